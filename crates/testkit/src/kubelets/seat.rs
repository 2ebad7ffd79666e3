//! One pod on its node, from binding to its end.

use std::collections::VecDeque;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use super::admission::Rejection;
use super::options::{EXIT_CODE, KubeletOptions, RUN_MS};
use super::requests::{self, Amounts};
use super::status::{Exit, Identity};

#[derive(Debug)]
pub(super) struct Seat {
    pub(super) node: String,
    pub(super) identity: Identity,
    pub(super) requests: Amounts,
    pub(super) stage: Stage,
    /// Someone asked to delete the pod.
    pub(super) doomed: bool,
    /// How long the containers run, and how they end.
    pub(super) ends: Option<(Duration, Exit)>,
    /// What is still to be written, oldest first; the first is under way.
    pub(super) writes: VecDeque<Write>,
}

/// How far a pod is on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not checked yet.
    Queued,
    /// Admitted; its containers do not run yet.
    Starting,
    Running,
    /// Rejected or ended: it holds nothing.
    Over,
}

/// What happens to a pod when a delay is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Admit,
    Start,
    Finish,
    Stop,
}

/// What a kubelet tells the API server of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Write {
    Reject(Rejection),
    Run,
    End(Exit),
    /// The containers are gone: the object may go, too.
    Delete,
}

impl Seat {
    pub(super) fn new(pod: &Pod, node: &str, options: &KubeletOptions) -> Option<Self> {
        Some(Self {
            node: node.to_owned(),
            identity: Identity::of(pod)?,
            requests: requests::of_pod(pod),
            stage: Stage::Queued,
            doomed: false,
            ends: ends(pod, options),
            writes: VecDeque::new(),
        })
    }
}

/// When the containers of a pod end by themselves. Containers that would be restarted never do.
fn ends(pod: &Pod, options: &KubeletOptions) -> Option<(Duration, Exit)> {
    let annotation = |key| pod.metadata.annotations.as_ref().and_then(|all| all.get(key));
    let run_for = annotation(RUN_MS).and_then(|text| text.parse().ok()).map(Duration::from_millis);
    let code = annotation(EXIT_CODE).and_then(|text| text.parse().ok()).unwrap_or(0);
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    let restarted = match policy.unwrap_or("Always") {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    };
    let run_for = run_for.or(options.run_for).filter(|_| !restarted)?;
    Some((run_for, Exit { code }))
}

/// The node that a pod is bound to.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// The phase that the API server knows.
pub(super) fn phase_of(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}
