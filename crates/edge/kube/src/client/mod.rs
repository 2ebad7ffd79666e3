//! Connections to the API server, kept apart by purpose: a flood of events or statuses must delay
//! neither a bind nor a renewal of the leadership.

mod lists;
mod request;

use std::time::Duration;

use kube::{Client, Config};
use thiserror::Error;

pub(crate) use lists::next_page;
pub use lists::{ListError, Lists, PAGE, read_lists};
pub(crate) use request::{Answered, NoAnswer, is_about_identity, message, send, with_causes};

/// One client per purpose, each with connections of its own.
#[derive(Clone)]
pub struct Clients {
    /// Lists and watches.
    pub watches: Client,
    /// `pods/binding` and nothing else. It retries nothing: a bind must not land later than it was
    /// meant to.
    pub binds: Client,
    /// Conditions and events of pods. It retries nothing: what was to be said may be out of date.
    pub announcements: Client,
    /// Everything else: reads of single objects, evictions.
    pub rest: Client,
    /// The lease alone. It retries nothing: the leadership counts time itself.
    pub lease: Client,
}

/// No client could be made of a configuration.
#[derive(Debug, Error)]
#[error(
    "cannot set up a client for the API server at {server}: check the kubeconfig's certificates and credentials"
)]
pub struct ClientError {
    /// Address of the server.
    pub server: String,
    /// What kube says.
    #[source]
    pub source: kube::Error,
}

/// A connection is given up when it cannot be made within this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl Clients {
    /// Clients for the server and the credentials of this configuration. Nothing is sent yet.
    ///
    /// # Errors
    /// When certificates or credentials cannot be used.
    pub fn new(config: &Config) -> Result<Self, ClientError> {
        let client = |retries: bool, read_timeout: Option<Duration>| {
            let mut config = config.clone();
            config.default_retry = retries;
            config.connect_timeout = Some(CONNECT_TIMEOUT);
            config.read_timeout = read_timeout;
            config.reset_reader_on_write = true;
            let server = config.cluster_url.to_string();
            Client::try_from(config).map_err(|source| ClientError { server, source })
        };
        // Watches end by their own time-outs; a bind, a look and a renewal by their callers'.
        Ok(Self {
            watches: client(true, None)?,
            binds: client(false, None)?,
            announcements: client(false, None)?,
            rest: client(true, Some(Duration::from_secs(60)))?,
            lease: client(false, None)?,
        })
    }
}
