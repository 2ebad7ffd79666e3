//! A server by its own address.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Empty};
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

use super::transport::{HttpReply, Transport, TransportError};

/// How to reach a server.
#[derive(Clone, Debug)]
pub struct DirectOptions {
    /// Its address with whatever stands before `/api/v1/`, such as
    /// `https://metrics.example/prometheus`.
    pub url: String,
    /// A file with a bearer token. It is read anew for every request: tokens of pods change.
    pub token_file: Option<PathBuf>,
    /// A file with certificates (PEM) of those who may vouch for the server, instead of the
    /// system's.
    pub authority_file: Option<PathBuf>,
    /// More headers, such as a tenant (`X-Scope-OrgID`).
    pub headers: Vec<(String, String)>,
    /// How long an answer may take.
    pub timeout: Duration,
}

impl DirectOptions {
    /// An address, and nothing special.
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            token_file: None,
            authority_file: None,
            headers: Vec::new(),
            timeout: Duration::from_secs(120),
        }
    }
}

/// Settings that lead nowhere.
#[derive(Debug, Error)]
pub enum DirectError {
    /// Not the address of a server.
    #[error(
        "`{url}` is not a server address; use http://HOST:PORT or https://HOST, without a query \
         string"
    )]
    Address { url: String },
    /// A token would travel unprotected.
    #[error("the token is not sent to {url} because the connection is not encrypted: use https")]
    TokenInClear { url: String },
    #[error("`{name}` is not a valid header name, or its value contains invalid characters")]
    Header { name: String },
    #[error("cannot use the certificates of {file}: {problem}")]
    Certificates {
        /// The file, or `the system`.
        file: String,
        problem: String,
    },
}

/// Asks a server by its own address. Answers come over HTTP/1.1 or, with TLS, what both sides
/// speak.
pub struct Direct {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    /// Without a `/` at its end.
    base: String,
    token_file: Option<PathBuf>,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
}

impl Direct {
    /// Looks at the settings; nothing is sent yet.
    ///
    /// # Errors
    /// See [`DirectError`].
    pub fn new(options: &DirectOptions) -> Result<Self, DirectError> {
        let base = options.url.trim_end_matches('/').to_owned();
        let is_secure = check_address(&base)?;
        if options.token_file.is_some() && !is_secure && !is_loopback(&base) {
            return Err(DirectError::TokenInClear { url: base });
        }
        let mut headers = Vec::new();
        for (name, value) in &options.headers {
            let pair = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            headers.push(pair.ok_or_else(|| DirectError::Header { name: name.clone() })?);
        }
        let tls = match is_secure {
            true => tls(options)?,
            false => config(RootCertStore::empty()),
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let token_file = options.token_file.clone();
        Ok(Self { client, base, token_file, headers, timeout: options.timeout })
    }

    fn no_answer(&self, problem: impl ToString) -> TransportError {
        TransportError::NoAnswer { server: self.base.clone(), problem: problem.to_string() }
    }

    async fn ask(&self, path: &str, most_bytes: usize) -> Result<HttpReply, TransportError> {
        let mut request = Request::get(format!("{}{path}", self.base));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(file) = &self.token_file {
            let token = tokio::fs::read_to_string(file).await;
            let token =
                token.map_err(|e| self.no_answer(format!("token {}: {e}", file.display())))?;
            let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
            let mut value = value
                .map_err(|_| self.no_answer(format!("{} contains no token", file.display())))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(Empty::new()).map_err(|error| self.no_answer(error))?;
        let response = self.client.request(request).await;
        let response = response.map_err(|error| self.no_answer(with_causes(&error)))?;
        let status = response.status().as_u16();
        let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = seconds.and_then(|s| s.trim().parse().ok()).map(Duration::from_secs);
        let mut body = response.into_body();
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.no_answer(with_causes(&error)))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > most_bytes {
                let server = self.base.clone();
                return Err(TransportError::TooLarge { server, most_bytes });
            }
            bytes.extend_from_slice(&data);
        }
        Ok(HttpReply { status, retry_after, body: bytes.freeze() })
    }
}

impl Transport for Direct {
    fn name(&self) -> &str {
        &self.base
    }

    fn get<'a>(
        &'a self,
        path: &'a str,
        most_bytes: usize,
    ) -> BoxFuture<'a, Result<HttpReply, TransportError>> {
        Box::pin(async move {
            let asked = tokio::time::timeout(self.timeout, self.ask(path, most_bytes)).await;
            asked.unwrap_or_else(|_| {
                Err(self.no_answer(format!("timed out after {} s", self.timeout.as_secs())))
            })
        })
    }
}

/// Whether the address is one with TLS. Credentials in addresses end up in logs: they are refused.
fn check_address(url: &str) -> Result<bool, DirectError> {
    let refuse = || DirectError::Address { url: without_credentials(url) };
    let uri: Uri = url.parse().map_err(|_| refuse())?;
    let is_plain = uri.query().is_none() && !url.contains(['@', '#']);
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(_)) if is_plain => Ok(true),
        (Some("http"), Some(_)) if is_plain => Ok(false),
        _ => Err(refuse()),
    }
}

fn without_credentials(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => url.to_owned(),
    }
}

fn is_loopback(url: &str) -> bool {
    let host = url.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
    let host = host.unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn tls(options: &DirectOptions) -> Result<ClientConfig, DirectError> {
    let mut roots = RootCertStore::empty();
    match &options.authority_file {
        Some(file) => {
            let named = |problem: String| DirectError::Certificates {
                file: file.display().to_string(),
                problem,
            };
            let certificates = CertificateDer::pem_file_iter(file);
            for certificate in certificates.map_err(|error| named(error.to_string()))? {
                let certificate = certificate.map_err(|error| named(error.to_string()))?;
                roots.add(certificate).map_err(|error| named(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(named("the file contains none".to_owned()));
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let problem = "none were found: pass a file with --ca-file".to_owned();
                return Err(DirectError::Certificates { file: "the system".to_owned(), problem });
            }
        }
    }
    Ok(config(roots))
}

fn config(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    // Ring has the suites of all default versions.
    let builder = builder.expect("versions that the provider knows");
    builder.with_root_certificates(roots).with_no_client_auth()
}

/// An error with what caused it: hyper's own words say little.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
