//! A message handed to somebody's address: one POST, tried a few times, and never for long.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::{Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// How long and how often it is tried.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// One try may take this long.
    pub within: Duration,
    pub tries: u32,
    /// The pause after the first; each further one doubles it.
    pub pause: Duration,
    /// No pause is longer, whatever the other side asks for.
    pub longest_pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            within: Duration::from_secs(10),
            tries: 4,
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
        }
    }
}

/// Why a message did not arrive. The path of an address is often a secret: it is never shown.
#[derive(Debug, Error)]
pub enum WebhookError {
    /// Not an address to send to.
    #[error("`{shown}` is not a webhook address: use https://HOST/PATH")]
    Address {
        /// Its beginning.
        shown: String,
    },
    /// Nobody vouches for anybody.
    #[error("no system certificates were found, so no https address can be trusted")]
    Certificates,
    #[error(
        "{host} rejected the message with status {status}: check the webhook's address and the \
         message format that it accepts"
    )]
    Refused { host: String, status: u16 },
    /// Nobody took it.
    #[error("{host} did not accept the message (attempts: {tries}): {problem}")]
    NotTaken {
        host: String,
        tries: u32,
        /// The last answer.
        problem: String,
    },
}

/// An address that takes messages.
pub struct Webhook {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    uri: Uri,
    host: String,
    patience: Patience,
}

/// What a try led to.
enum Tried {
    Taken,
    Refused(u16),
    Again { problem: String, after: Option<Duration> },
}

impl Webhook {
    /// Looks at the address; nothing is sent yet.
    ///
    /// # Errors
    /// See [`WebhookError`].
    pub fn new(url: &str, patience: Patience) -> Result<Self, WebhookError> {
        let uri: Option<Uri> = url.parse().ok();
        let known =
            uri.and_then(|uri| Some((uri.scheme_str()?.to_owned(), uri.host()?.to_owned(), uri)));
        // What stands before `://` is no secret; where there is none, anything may be.
        let scheme = url.split_once("://").map_or("…", |(scheme, _)| scheme);
        let (host, uri) = match known {
            Some((scheme, host, uri)) if ["http", "https"].contains(&scheme.as_str()) => {
                (host, uri)
            }
            _ => return Err(WebhookError::Address { shown: format!("{scheme}://…") }),
        };
        let mut roots = RootCertStore::empty();
        if uri.scheme_str() == Some("https") {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(WebhookError::Certificates);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        // Ring has the suites of all default versions.
        let builder = builder.expect("versions that the provider knows");
        let tls = builder.with_root_certificates(roots).with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, uri, host, patience })
    }

    /// Sends JSON until it is taken, refused, or tried often enough.
    ///
    /// # Errors
    /// See [`WebhookError`].
    pub async fn send(&self, body: &serde_json::Value) -> Result<(), WebhookError> {
        let bytes = Bytes::from(body.to_string());
        let host = self.host.clone();
        let mut problem = String::new();
        for turn in 0..self.patience.tries {
            match self.try_once(bytes.clone()).await {
                Tried::Taken => return Ok(()),
                Tried::Refused(status) => return Err(WebhookError::Refused { host, status }),
                Tried::Again { problem: found, after } => {
                    problem = found;
                    if turn + 1 < self.patience.tries {
                        tokio::time::sleep(pause(&self.patience, turn, after)).await;
                    }
                }
            }
        }
        Err(WebhookError::NotTaken { host, tries: self.patience.tries, problem })
    }

    async fn try_once(&self, body: Bytes) -> Tried {
        let request = Request::post(self.uri.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body));
        let again = |problem: String| Tried::Again { problem, after: None };
        let Ok(request) = request else { return again("it is not a valid request URL".to_owned()) };
        let asked = tokio::time::timeout(self.patience.within, self.client.request(request)).await;
        let answer = match asked {
            Err(_) => {
                return again(format!("timed out after {} s", self.patience.within.as_secs_f64()));
            }
            // The address stands in none of these: hyper names the host at most.
            Ok(Err(error)) => return again(error.to_string()),
            Ok(Ok(answer)) => answer,
        };
        let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let after = after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        match answer.status().as_u16() {
            200..=299 => Tried::Taken,
            status @ (408 | 425 | 429 | 500..=599) => {
                Tried::Again { problem: format!("it returned {status}"), after }
            }
            status => Tried::Refused(status),
        }
    }
}

/// The pause after a try, by its number.
fn pause(patience: &Patience, turn: u32, asked: Option<Duration>) -> Duration {
    let doubled = patience.pause.saturating_mul(2_u32.saturating_pow(turn));
    doubled.max(asked.unwrap_or_default()).min(patience.longest_pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let patience = Patience::default();
        let seconds = |turn, asked: Option<u64>| {
            pause(&patience, turn, asked.map(Duration::from_secs)).as_secs()
        };
        assert_eq!([seconds(0, None), seconds(1, None), seconds(3, None)], [1, 2, 8]);
        assert_eq!(
            [seconds(0, Some(30)), seconds(0, Some(9_999)), seconds(40, None)],
            [30, 60, 60]
        );
    }

    #[test]
    fn what_is_secret_in_an_address_is_not_shown() {
        for url in ["ftp://hooks.example/secret", "secret", "https:///secret", "http//secret"] {
            let told = Webhook::new(url, Patience::default()).err().expect("refused").to_string();
            assert!(!told.contains("secret") && told.contains("https://HOST/PATH"), "{told}");
        }
    }
}
