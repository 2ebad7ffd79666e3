//! Why a pod is stopped, and what it has in common with the others that are to be stopped with it.

use std::sync::Arc;

use dovetail_cluster::world::PodKey;
use dovetail_objects::NOT_STOPPED;

use crate::answer::lacked_right;

/// Why a pod is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its gang stayed below its smallest size.
    GangGivenUp,
    /// For a pod of a higher priority.
    Preempted,
}

impl Stop {
    /// Reason of the condition `DisruptionTarget`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::GangGivenUp => "GangIncomplete",
            Self::Preempted => dovetail_objects::PREEMPTION_BY_SCHEDULER,
        }
    }

    /// Message of the condition.
    pub fn message(self, scheduler: &str) -> String {
        match self {
            Self::GangGivenUp => {
                format!("{scheduler}: its gang stayed below its smallest size and restarts")
            }
            Self::Preempted => {
                format!("{scheduler}: preempting to accommodate a higher priority pod")
            }
        }
    }
}

/// Why a pod that was told that it is about to be stopped is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The server does not let it go, and will not soon.
    Refused,
    /// It may be stopped in a moment, or another in its place.
    ForNow,
}

impl Kept {
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
            Self::Refused => format!("{scheduler}: the server does not let it be deleted"),
            Self::ForNow => format!("{scheduler}: it is not stopped for now"),
        }
    }
}

/// What stops have in common that were decided at once. Each of them helps only with the others: once one of them is
/// not carried out, or the decision is called off, none that has not begun begins.
#[derive(Clone, Debug)]
pub struct StopDecision {
    number: u64,
    pods: Arc<[PodKey]>,
    named_first: Arc<[PodKey]>,
}

impl StopDecision {
    /// One to stop these pods after those in `named_first` were told for which nodes. The number names it towards
    /// whoever decides; 0 is none's.
    pub fn new(number: u64, pods: Vec<PodKey>, named_first: Vec<PodKey>) -> Self {
        Self { number, pods: pods.into(), named_first: named_first.into() }
    }

    /// A stop that helps by itself, whatever becomes of others.
    pub fn alone() -> Self {
        Self::new(0, Vec::new(), Vec::new())
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The pods that are stopped by it; none for one that helps by itself.
    pub fn pods(&self) -> &[PodKey] {
        &self.pods
    }

    /// Those for which they are stopped: whoever takes over finds the node that each is told.
    pub fn named_first(&self) -> &[PodKey] {
        &self.named_first
    }
}

impl PartialEq for StopDecision {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for StopDecision {}
