//! What is answered over connections, to whom, and what a client may take.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use dovetail_serve::connections::{Limits, serve};
use dovetail_serve::metrics::Metrics;
use dovetail_serve::{AccessGuard, Certificate, ListenAddress, Site, TlsFiles};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::world::ledger;

/// When requests come: 30 November 2026.
const NOW_MS: u64 = 1_796_000_000_000;
/// No test waits longer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    address: SocketAddr,
    certificate: Option<Certificate>,
    stop: watch::Sender<bool>,
    ended: JoinHandle<std::io::Result<()>>,
    _folder: TempDir,
}

impl Server {
    pub(crate) async fn start(
        guard: AccessGuard,
        files: Option<&TlsFiles>,
        limits: Limits,
    ) -> Self {
        let (folder, books) = ledger().await;
        let metrics = Arc::<Metrics>::default();
        metrics.collected("west", true, 1_500);
        let routes = Site::new(books, metrics, guard, || NOW_MS).routes();
        let place = ListenAddress::new("127.0.0.1:0", files, false).expect("a place");
        let certificate = place.tls.clone();
        let listener = TcpListener::bind(place.address).await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let (stop, stopped) = watch::channel(false);
        let ended =
            tokio::spawn(async move { serve(listener, &place, routes, limits, stopped).await });
        Self { address, certificate, stop, ended, _folder: folder }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream
    }

    /// Status and text of an answer.
    pub(crate) async fn ask(&self, head: &str) -> (u16, String) {
        let (mut stream, head) = (self.connect(), head.to_owned());
        let asked = move || {
            write!(stream, "{head}\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("an answer");
            text
        };
        let text = tokio::task::spawn_blocking(asked).await.expect("an answer");
        (status(&text), text)
    }

    pub(crate) async fn end(self) {
        self.stop.send_replace(true);
        let ended = tokio::time::timeout(PATIENCE, self.ended).await;
        ended.expect("an end in time").expect("no panic").expect("no failure");
    }
}

fn status(text: &str) -> u16 {
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no answer: {text}"))
}

const WINDOW: &str = "window=2026-11-18T00:00:00Z,2026-11-18T02:00:00Z&aggregate=namespace";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_path_answers_and_nothing_else_does() {
    let server = Server::start(AccessGuard::default(), None, Limits::default()).await;
    for (head, expected, told) in [
        ("GET /healthz HTTP/1.1", 200, "ok"),
        ("GET /readyz HTTP/1.1", 200, "ok"),
        (&format!("GET /allocation?{WINDOW} HTTP/1.1"), 200, "\"prod\""),
        (&format!("GET /allocation/compute?{WINDOW} HTTP/1.1"), 200, "\"gpuCost\""),
        (&format!("GET /model/allocation?{WINDOW} HTTP/1.1"), 200, "\"code\":200"),
        ("GET /allocation HTTP/1.1", 400, "window: missing"),
        ("GET /allocation?window=7d&aggregate=service HTTP/1.1", 400, "unsupported key `service`"),
        ("GET /allocation?window=%00 HTTP/1.1", 400, "control characters"),
        ("GET /nothing HTTP/1.1", 404, "use /allocation"),
        ("POST /allocation HTTP/1.1", 405, ""),
        ("GET /metrics HTTP/1.1\r\nContent-Length: 5", 413, "must not have a body"),
        ("GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked", 413, "must not have a body"),
        ("nonsense", 400, ""),
        (
            "GET /metrics HTTP/1.1",
            200,
            "dovetail_http_requests_total{path=\"/allocation\",code=\"400\"} 3",
        ),
    ] {
        let (found, text) = server.ask(head).await;
        assert_eq!(found, expected, "{head}: {text}");
        assert!(text.contains(told), "{head}: {text}");
    }
    // Cut off behind its bound; the answer may be lost with what was not read.
    let mut stream = server.connect();
    let asked = move || {
        _ = write!(stream, "GET /healthz HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(100 << 10));
        let mut text = String::new();
        _ = stream.read_to_string(&mut text);
        text
    };
    let text = tokio::task::spawn_blocking(asked).await.expect("read");
    assert!(text.is_empty() || status(&text) == 431, "{text}");
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_token_only_probes_are_answered() {
    let secret = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(secret.path(), "0123456789abcdef0123456789abcdef").expect("written");
    let guard = AccessGuard::new(Some(secret.path()), None).expect("a guard");
    let server = Server::start(guard, None, Limits::default()).await;
    let good = "Authorization: Bearer 0123456789abcdef0123456789abcdef";
    for (head, expected) in [
        ("GET /healthz HTTP/1.1".to_owned(), 200),
        ("GET /readyz HTTP/1.1".to_owned(), 200),
        ("GET /metrics HTTP/1.1".to_owned(), 401),
        (format!("GET /allocation?{WINDOW} HTTP/1.1"), 401),
        ("GET /model/allocation HTTP/1.1\r\nAuthorization: Bearer x".to_owned(), 401),
        (format!("GET /metrics HTTP/1.1\r\n{good}"), 200),
        (format!("GET /allocation?{WINDOW} HTTP/1.1\r\n{good}"), 200),
    ] {
        let (found, text) = server.ask(&head).await;
        assert_eq!(found, expected, "{head}: {text}");
        assert!(found == 200 || !text.contains("prod"), "{head}: {text}");
    }
    let mut answers = Vec::new();
    for _ in 0..60 {
        answers.push(server.ask("GET /metrics HTTP/1.1").await);
    }
    // Guessing is slow, and guesses are no load.
    let (_, refused) = answers.iter().find(|(code, _)| *code == 429).expect("a refusal");
    assert!(refused.to_lowercase().contains("retry-after: 1"), "{refused}");
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_says_nothing_is_cut_off_and_makes_room() {
    let limits = Limits { connections: 1, head: Duration::from_millis(300), ..Limits::default() };
    let server = Server::start(AccessGuard::default(), None, limits).await;
    let mut silent = server.connect();
    // There is no room for this one until the silent one is gone.
    let (found, _) = server.ask("GET /healthz HTTP/1.1").await;
    assert_eq!(found, 200);
    // It reads the end of the connection, or that it was reset; a time-out would be neither.
    let cut = tokio::task::spawn_blocking(move || silent.read(&mut [0; 64])).await.expect("read");
    let is_cut = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
    assert!(cut.map_or_else(is_cut, |_| true));
    let mut slow = server.connect();
    write!(slow, "GET /healthz HTTP/1.1\r\nHost:").expect("sent");
    let (found, _) = server.ask("GET /healthz HTTP/1.1").await;
    assert_eq!(found, 200);
    server.end().await;
}

/// Asks over TLS for whether it is well, of a server that a root vouches for.
fn shaken(stream: TcpStream, root: &CertificateDer<'static>) -> Result<u16, String> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = StreamOwned::new(client, stream);
    let sent = write!(stream, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    sent.map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    // The server may end without TLS's own goodbye.
    _ = stream.read_to_end(&mut text);
    Ok(status(&String::from_utf8(text).expect("text")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_shown_and_its_successor_and_plain_text_is_not_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    let files =
        TlsFiles { certificate: folder.path().join("tls.crt"), key: folder.path().join("tls.key") };
    let made = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("made");
    let written = || {
        let made = made();
        std::fs::write(&files.certificate, made.cert.pem()).expect("written");
        std::fs::write(&files.key, made.signing_key.serialize_pem()).expect("written");
        made.cert.der().clone()
    };
    let first = written();
    let server = Server::start(AccessGuard::default(), Some(&files), Limits::default()).await;
    let ask = async |root: &CertificateDer<'static>| {
        let (stream, root) = (server.connect(), root.clone());
        tokio::task::spawn_blocking(move || shaken(stream, &root)).await.expect("an answer")
    };
    assert_eq!(ask(&first).await, Ok(200));
    let certificate = server.certificate.as_ref().expect("a certificate");
    assert!(!certificate.read_again().expect("the same"));
    // Renewed, and then spoiled: what was right is shown further.
    let second = written();
    assert_eq!(ask(&first).await, Ok(200));
    assert!(certificate.read_again().expect("another"));
    assert_eq!(ask(&second).await, Ok(200));
    assert!(ask(&first).await.is_err());
    std::fs::write(&files.key, made().signing_key.serialize_pem()).expect("written");
    let told = certificate.read_again().expect_err("a foreign key").to_string();
    assert!(told.contains("tls.key"), "{told}");
    assert_eq!(ask(&second).await, Ok(200));
    let mut plain = server.connect();
    write!(plain, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    tokio::task::spawn_blocking(move || {
        _ = plain.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP"));
    })
    .await
    .expect("no HTTP");
    server.end().await;
}
