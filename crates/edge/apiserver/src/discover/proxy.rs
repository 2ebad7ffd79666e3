//! A service or a pod, asked through the API server.

use std::time::Duration;

use bytes::Bytes;
use dovetail_control::answer::message;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::Request;
use kube::client::Body;
use kube::{Client, Config};
use thiserror::Error;

use super::candidate::CandidateService;
use super::exporter_pod::ExporterPod;
use crate::client::{ClientError, client, with_causes};

/// An answer may take this long; the API server gives up after a minute by default.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// Asks one service or pod of a cluster by way of its API server (`services/proxy` or `pods/proxy`,
/// verb `get`).
pub struct Proxy {
    client: Client,
    base: String,
    name: String,
}

/// What came back, from the service or from the API server itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyReply {
    pub status: u16,
    /// How long it asks to be left alone, if it does.
    pub retry_after: Option<Duration>,
    /// Body; of a refusal by the API server its message.
    pub body: Bytes,
}

/// No answer came.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProxyError {
    /// The connection broke, or it took too long.
    #[error("no response from {asked}: {problem}")]
    NoAnswer {
        /// Who was asked.
        asked: String,
        problem: String,
    },
    /// The body is larger than allowed.
    #[error("the response of {asked} is larger than {most_bytes} bytes")]
    TooLarge {
        /// Who was asked.
        asked: String,
        most_bytes: usize,
    },
}

/// The ways that lead through one API server. All of them share its connections.
pub struct Proxies(Client);

impl Proxies {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// When certificates or credentials cannot be used.
    pub fn new(config: &Config) -> Result<Self, ClientError> {
        let mut config = config.clone();
        // Who asks repeats by its own rules.
        config.default_retry = false;
        config.read_timeout = Some(ANSWER_WITHIN);
        Ok(Self(client(config)?))
    }

    /// The way to a service.
    pub fn to_service(&self, service: &CandidateService) -> Proxy {
        self.to(service.path(), &service.name())
    }

    /// The way to a pod.
    pub fn to_pod(&self, pod: &ExporterPod) -> Proxy {
        self.to(pod.path(), &pod.title())
    }

    fn to(&self, base: String, title: &str) -> Proxy {
        let name = format!("{title} through the API server");
        Proxy { client: self.0.clone(), base, name }
    }
}

impl Proxy {
    /// Who is asked, as messages name it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks for a path, which begins with `/` and may have a query.
    ///
    /// # Errors
    /// See [`ProxyError`].
    pub async fn get(&self, path: &str, most_bytes: usize) -> Result<ProxyReply, ProxyError> {
        let asked = tokio::time::timeout(ANSWER_WITHIN, self.ask(path, most_bytes)).await;
        let late = || format!("timed out after {} s", ANSWER_WITHIN.as_secs());
        asked.unwrap_or_else(|_| Err(self.no_answer(late())))
    }

    async fn ask(&self, path: &str, most_bytes: usize) -> Result<ProxyReply, ProxyError> {
        let request = Request::get(format!("{}{path}", self.base)).body(Body::empty());
        let request = request.map_err(|error| self.no_answer(error.to_string()))?;
        let response = self.client.send(request).await;
        let response = response.map_err(|error| self.no_answer(with_causes(&error)))?;
        let status = response.status().as_u16();
        let seconds = response.headers().get("Retry-After").and_then(|value| value.to_str().ok());
        let retry_after = seconds.and_then(|s| s.trim().parse().ok()).map(Duration::from_secs);
        match Limited::new(response.into_body(), most_bytes).collect().await {
            Ok(body) if status >= 400 => {
                let body = without_status(body.to_bytes());
                Ok(ProxyReply { status, retry_after, body })
            }
            Ok(body) => Ok(ProxyReply { status, retry_after, body: body.to_bytes() }),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(ProxyError::TooLarge { asked: self.name.clone(), most_bytes })
            }
            Err(error) => Err(self.no_answer(with_causes(&*error))),
        }
    }

    fn no_answer(&self, problem: String) -> ProxyError {
        ProxyError::NoAnswer { asked: self.name.clone(), problem }
    }
}

/// The API server's own answer is a `Status`, of which people need the message. What a service says
/// stays.
fn without_status(body: Bytes) -> Bytes {
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    if answer["kind"] == "Status" { Bytes::from(message(&body)) } else { body }
}
