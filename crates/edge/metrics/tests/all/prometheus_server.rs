//! A real Prometheus on loopback, and an exporter that it scrapes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Nothing here takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const READY: &str = "Server is ready to receive web requests";

/// Whether the programs are there; says so where they are not.
#[allow(clippy::print_stderr, reason = "a skipped test must say why")]
pub(crate) fn is_there() -> bool {
    let found = ["prometheus", "promtool"].iter().all(|program| {
        let mut asked = Command::new(program);
        asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    });
    if !found {
        eprintln!(
            "skipped: tests against a real Prometheus: no `prometheus` and `promtool` on the PATH \
             (make test fetches them where apt-get can)"
        );
    }
    found
}

/// A running Prometheus, killed when dropped.
pub(crate) struct PrometheusServer {
    child: Child,
    pub(crate) url: String,
}

impl PrometheusServer {
    /// Starts one in a folder, with the jobs of a configuration.
    pub(crate) fn start(folder: &Path, configuration: &str) -> Self {
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, configuration).expect("a file in a temporary folder");
        // Another process may take the port in between.
        for _ in 0..5 {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
            let address = listener.local_addr().expect("an address").to_string();
            drop(listener);
            let mut child = Command::new("prometheus")
                .arg(format!("--config.file={}", file.display()))
                .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
                .arg("--storage.tsdb.retention.time=100y")
                .arg(format!("--web.listen-address={address}"))
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("prometheus starts");
            if becomes_ready(&mut child) {
                return Self { child, url: format!("http://{address}") };
            }
            _ = child.wait();
        }
        panic!("Prometheus does not start");
    }
}

/// Whether it says so before it ends. Its log is read to the end by a thread.
fn becomes_ready(child: &mut Child) -> bool {
    let log = child.stderr.take().expect("a pipe");
    let (sender, ready) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            if line.contains(READY) {
                _ = sender.send(());
            }
        }
    });
    ready.recv_timeout(PATIENCE).is_ok()
}

impl Drop for PrometheusServer {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// An exporter that answers every scrape with the next of its pages, and the last one for ever.
pub(crate) struct FakeExporter {
    pub(crate) address: String,
    scrapes: mpsc::Receiver<()>,
}

impl FakeExporter {
    pub(crate) fn start(pages: Vec<String>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (sender, scrapes) = mpsc::channel();
        std::thread::spawn(move || {
            let mut pages = pages.into_iter().peekable();
            for connection in listener.incoming().map_while(Result::ok) {
                let last = pages.peek().cloned().unwrap_or_default();
                let page = pages.next_if(|_| true).unwrap_or(last);
                if pages.peek().is_none() {
                    pages = vec![page.clone()].into_iter().peekable();
                }
                if answer(connection, &page).is_ok() && sender.send(()).is_err() {
                    return;
                }
            }
        });
        Self { address, scrapes }
    }

    /// Waits for so many scrapes from now on.
    pub(crate) fn wait_for_scrapes(&self, count: usize) {
        for _ in 0..count {
            self.scrapes.recv_timeout(PATIENCE).expect("a scrape in time");
        }
    }
}

/// One request and one answer, and the connection is over.
fn answer(mut connection: std::net::TcpStream, page: &str) -> std::io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        connection.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    write!(
        connection,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{page}",
        page.len()
    )
}
