//! The few requests that starting a control plane needs: HTTP/1.0 over TLS, one per connection.
//!
//! A Kubernetes client does far more and takes far longer to compile; `cargo xtask` has no other
//! use for one. HTTP/1.0 answers end with the connection, so nothing has to be parsed.

use std::fmt;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::StartError;
use super::certificates::Authority;

/// How long one request may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Speaks to one API server as its administrator.
pub(super) struct LoopbackClient {
    port: u16,
    token: String,
    tls: Arc<ClientConfig>,
}

// The token is a secret.
impl fmt::Debug for LoopbackClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LoopbackClient").field("port", &self.port).finish_non_exhaustive()
    }
}

impl LoopbackClient {
    pub(super) fn new(port: u16, authority: &Authority, token: &str) -> Result<Self, StartError> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_slice(authority.der()).into_owned())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { port, token: token.to_owned(), tls: Arc::new(tls) })
    }

    /// Whether the server says that it is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.status_of("/readyz") == Some(200)
    }

    /// With which code the server answers to this path.
    pub(super) fn status_of(&self, path: &str) -> Option<u16> {
        self.request("GET", path, "").ok().and_then(|answer| status(&answer))
    }

    /// What the server has at this path; `None` if nothing.
    pub(super) fn object(&self, path: &str) -> Option<serde_json::Value> {
        let answer = self.request("GET", path, "").ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok().filter(|_| status(head) == Some(200))
    }

    pub(super) fn create(&self, path: &str, object: &str) -> Result<(), StartError> {
        let answer = self.request("POST", path, object);
        match &answer {
            Ok(answer) if status(answer) == Some(201) => return Ok(()),
            _ => {}
        }
        let answer = answer.unwrap_or_else(|error| error.to_string());
        Err(StartError::Refused { path: path.to_owned(), answer })
    }

    /// The whole answer: head and body.
    fn request(&self, method: &str, path: &str, body: &str) -> std::io::Result<String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let connection = ClientConnection::new(Arc::clone(&self.tls), name);
        let connection = connection.map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        let (token, length) = (&self.token, body.len());
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        // A server may close without saying so in TLS; the status line shows whether it answered.
        if let Err(error) = stream.read_to_end(&mut answer)
            && error.kind() != std::io::ErrorKind::UnexpectedEof
        {
            return Err(error);
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// The status code of an answer.
fn status(answer: &str) -> Option<u16> {
    answer.split(' ').nth(1)?.parse().ok()
}
