//! The delays of a kubelet.

use std::time::Duration;

/// An annotation on a pod: how many milliseconds it runs until its containers end by themselves. It
/// goes before [`KubeletOptions::run_for`].
pub const RUN_MS: &str = "kubelet.testkit.dovetail.dev/run-ms";

/// An annotation on a pod: the exit code of containers that end by themselves; 0 without it.
pub const EXIT_CODE: &str = "kubelet.testkit.dovetail.dev/exit-code";

/// How long each step takes, and how many requests are under way at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletOptions {
    /// From seeing a bound pod to checking whether the node takes it.
    pub admit_after: Duration,
    /// From admission to Running: pulling images, starting containers.
    pub start_after: Duration,
    /// From Running to the end of the containers. `None`: they never end by themselves.
    pub run_for: Option<Duration>,
    /// From the request to delete a pod to the end of its containers; never longer than the grace
    /// period of the request.
    pub terminate_after: Duration,
    /// The most requests under way at once; one HTTP/1.1 connection each.
    pub requests_in_flight: usize,
}

impl Default for KubeletOptions {
    fn default() -> Self {
        Self {
            admit_after: Duration::ZERO,
            start_after: Duration::ZERO,
            run_for: None,
            terminate_after: Duration::ZERO,
            requests_in_flight: 64,
        }
    }
}
