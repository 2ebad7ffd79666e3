//! Why a pod is evicted, and what it has in common with the others that are evicted with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_cluster::world::{LastingOwner, PodKey};
use dovetail_model::PreemptReason;
use dovetail_objects::{
    NOT_STOPPED, ORDER_BY_SCHEDULER, PREEMPTION_BY_SCHEDULER, RECLAIM_BY_SCHEDULER,
};

use crate::answer::lacked_right;

/// Why a pod is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionCause {
    /// Its gang stayed below its smallest size.
    GangGivenUp,
    /// For another pod, for this reason.
    Preempted(PreemptReason),
}

/// How a pod is made to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// It is deleted, as kube-scheduler does for a higher priority: disruption budgets are the last
    /// resort, not a bound.
    Deleted,
    /// It is evicted through the API: the server refuses that where a disruption budget does not
    /// allow it.
    Evicted,
}

impl EvictionCause {
    /// Whether it is for another pod.
    pub fn is_for_another(self) -> bool {
        matches!(self, Self::Preempted(_))
    }

    /// How the pod is made to leave.
    pub(super) fn leaves(self) -> Leaves {
        match self {
            Self::GangGivenUp | Self::Preempted(PreemptReason::Priority) => Leaves::Deleted,
            Self::Preempted(PreemptReason::Order | PreemptReason::Reclaim) => Leaves::Evicted,
        }
    }

    /// Reason of the condition `DisruptionTarget`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::GangGivenUp => "GangIncomplete",
            Self::Preempted(PreemptReason::Priority) => PREEMPTION_BY_SCHEDULER,
            Self::Preempted(PreemptReason::Reclaim) => RECLAIM_BY_SCHEDULER,
            Self::Preempted(PreemptReason::Order) => ORDER_BY_SCHEDULER,
        }
    }

    /// Message of the condition.
    pub fn message(self, scheduler: &str) -> String {
        let why = match self {
            Self::GangGivenUp => "its gang stayed below its minimum size and restarts",
            Self::Preempted(PreemptReason::Priority) => {
                "preempting to accommodate a higher priority pod"
            }
            Self::Preempted(PreemptReason::Reclaim) => {
                "evicted to return quota to another queue: the queue of this pod exceeds its own \
                 quota"
            }
            Self::Preempted(PreemptReason::Order) => {
                "evicted for a pod of equal priority that is expected to finish much sooner"
            }
        };
        format!("{scheduler}: {why}")
    }
}

/// Why a pod that was marked for eviction is not evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEvicted {
    /// The server does not let it go, and will not soon.
    Refused,
    /// It may be evicted in a moment, or another in its place.
    ForNow,
}

impl NotEvicted {
    /// By what the server said.
    pub fn by(code: u16, message: &str) -> Self {
        let is_soon = matches!(code, 429 | 500) || lacked_right(code, message).is_some();
        if is_soon { Self::ForNow } else { Self::Refused }
    }

    /// Reason of the condition `DisruptionTarget`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Refused => NOT_STOPPED,
            Self::ForNow => "StopCalledOff",
        }
    }

    /// Message of the condition.
    pub fn message(self, scheduler: &str) -> String {
        match self {
            Self::Refused => format!("{scheduler}: the API server refused to evict the pod"),
            Self::ForNow => format!("{scheduler}: the pod is not evicted for now"),
        }
    }
}

/// What evictions have in common that were decided at once. Each of them helps only with the
/// others: once one of them fails, or the decision is called off, none that has not begun begins.
#[derive(Clone, Debug)]
pub struct EvictionDecision {
    number: u64,
    pods: Arc<[PodKey]>,
    named_first: Arc<[PodKey]>,
    /// Jobs that are suspended in place of evicting their pods, by pod.
    jobs: Arc<BTreeMap<PodKey, LastingOwner>>,
}

impl EvictionDecision {
    /// A decision to evict these pods after the nodes for those in `named_first` were written. The
    /// number names it towards the caller; 0 is for evictions outside a decision.
    pub fn new(number: u64, pods: Vec<PodKey>, named_first: Vec<PodKey>) -> Self {
        let (pods, named_first) = (pods.into(), named_first.into());
        Self { number, pods, named_first, jobs: Arc::default() }
    }

    /// The same, but these pods leave because their Job is suspended. Of each Job all pods are of
    /// this decision, and their evictions are ordered by their names.
    pub fn suspending(self, jobs: BTreeMap<PodKey, LastingOwner>) -> Self {
        Self { jobs: jobs.into(), ..self }
    }

    /// Whether any Job is suspended.
    pub(super) fn suspends_jobs(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// The Job that is suspended so that a pod leaves, and whether the write is that of this pod:
    /// the first one of each Job.
    pub fn suspends(&self, pod: &PodKey) -> Option<(&LastingOwner, bool)> {
        let job = self.jobs.get(pod)?;
        let first = self.jobs.iter().find(|(_, of)| *of == job);
        Some((job, first.is_some_and(|(first, _)| first == pod)))
    }

    /// An eviction that helps by itself, whatever becomes of others.
    pub fn alone() -> Self {
        Self::new(0, Vec::new(), Vec::new())
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The pods that it evicts; none for an eviction that helps by itself.
    pub fn pods(&self) -> &[PodKey] {
        &self.pods
    }

    /// The pods for which they are evicted: the next leader finds the node that each names.
    pub fn named_first(&self) -> &[PodKey] {
        &self.named_first
    }
}

impl PartialEq for EvictionDecision {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for EvictionDecision {}
