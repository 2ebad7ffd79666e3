//! A real Prometheus on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::becomes_ready;

const READY: &str = "Server is ready to receive web requests";

/// A running Prometheus, killed when dropped.
#[derive(Debug)]
pub struct PrometheusServer {
    child: Child,
    /// Where it answers.
    pub url: String,
}

impl PrometheusServer {
    /// Whether the programs are there; says so where they are not.
    #[allow(clippy::print_stderr, reason = "a skipped test must say why")]
    pub fn is_there() -> bool {
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

    /// Starts one in a folder, with the jobs of a configuration. What [`Self::write_blocks`] wrote
    /// there before is its past.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(folder: &Path, configuration: &str) -> Self {
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
            if becomes_ready(&mut child, READY) {
                return Self { child, url: format!("http://{address}") };
            }
            _ = child.wait();
        }
        panic!("Prometheus does not start");
    }

    /// Writes samples in the OpenMetrics text format into the blocks of a server that is not
    /// started yet.
    ///
    /// # Panics
    /// If promtool refuses them.
    pub fn write_blocks(folder: &Path, samples: &Path) {
        let wrote = Command::new("promtool")
            .args(["tsdb", "create-blocks-from", "--max-block-duration=24h", "openmetrics"])
            .arg(samples)
            .arg(folder.join("data"))
            .output()
            .expect("promtool starts");
        assert!(wrote.status.success(), "{}", String::from_utf8_lossy(&wrote.stderr));
    }
}

impl Drop for PrometheusServer {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
