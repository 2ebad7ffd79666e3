//! One pod on its node, from binding to its end.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

use super::admission::Rejection;
use super::options::{EXIT_CODE, KubeletOptions, RUN_MS};
use super::requests::{Amounts, requests_of};
use super::status::{Exit, Identity};

#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) node: String,
    pub(crate) identity: Identity,
    pub(crate) requests: Amounts,
    pub(crate) stage: PodStage,
    /// Someone asked to delete the pod.
    pub(crate) doomed: bool,
    /// How long the containers run, and how they end.
    pub(crate) ends: Option<(Duration, Exit)>,
    /// What is still to be written, oldest first; the first is under way.
    pub(crate) writes: VecDeque<KubeletWrite>,
}

/// How far a pod is on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodStage {
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
pub enum PodTransition {
    /// The node looks at it.
    Admit,
    /// Its containers run.
    Start,
    /// They end by themselves.
    Finish,
    /// They end because the pod is deleted.
    Stop,
}

/// What a kubelet tells the API server of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeletWrite {
    /// The node does not take it.
    Reject(Rejection),
    /// Its containers run.
    Run,
    /// Its containers ended.
    End(Exit),
    /// The containers are gone: the object may go, too.
    Delete,
}

impl KubeletWrite {
    /// The patch of the pod's status that says so; `None` is the deletion of the object.
    pub fn status(&self, pod: &Identity, now_ms: u64) -> Option<Value> {
        Some(match self {
            Self::Reject(rejection) => pod.rejected(rejection),
            Self::Run => pod.running(now_ms),
            Self::End(exit) => pod.ended(*exit, now_ms),
            Self::Delete => return None,
        })
    }
}

impl Seat {
    pub(crate) fn new(pod: &Value, node: &str, options: &KubeletOptions) -> Option<Self> {
        Some(Self {
            node: node.to_owned(),
            identity: Identity::of(pod)?,
            requests: requests_of(pod),
            stage: PodStage::Queued,
            doomed: false,
            ends: ends(pod, options),
            writes: VecDeque::new(),
        })
    }
}

/// When the containers of a pod end by themselves. Containers that would be restarted never do.
fn ends(pod: &Value, options: &KubeletOptions) -> Option<(Duration, Exit)> {
    let annotation = |key: &str| pod["metadata"]["annotations"][key].as_str();
    let run_for = annotation(RUN_MS).and_then(|text| text.parse().ok()).map(Duration::from_millis);
    let code = annotation(EXIT_CODE).and_then(|text| text.parse().ok()).unwrap_or(0);
    let restarted = match pod["spec"]["restartPolicy"].as_str().unwrap_or("Always") {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    };
    let run_for = run_for.or(options.run_for).filter(|_| !restarted)?;
    Some((run_for, Exit { code }))
}

/// The node that a pod is bound to.
pub(crate) fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|name| !name.is_empty())
}

/// The phase that the API server knows.
pub(crate) fn phase_of(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or("Pending")
}
