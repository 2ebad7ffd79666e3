//! How a server is set up, and the journal of its binds.

use std::time::Duration;

/// How a server is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// It is Kubernetes 1.`minor`: groups and behaviour that came later are missing.
    pub minor: u32,
    /// Whether watches may begin with a list (feature gate WatchList).
    pub streaming_lists: bool,
    /// Changes kept per kind; who asks for older ones gets 410.
    pub history_limit: usize,
    /// Time between bookmarks of a watch.
    pub bookmark_interval: Duration,
    /// Groups and versions that are switched off.
    pub without: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            minor: 37,
            streaming_lists: true,
            history_limit: 200_000,
            bookmark_interval: Duration::from_secs(60),
            without: Vec::new(),
        }
    }
}

/// A bind that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub namespace: String,
    pub pod: String,
    pub uid: String,
    pub node: String,
    /// Version of the write.
    pub revision: u64,
}
