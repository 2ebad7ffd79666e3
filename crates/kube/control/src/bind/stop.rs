//! Why a pod is stopped, and what it has in common with the others that are to be stopped with it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

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

/// What stops have in common that were decided at once. Each of them helps only with the others: once it is called
/// off, none that has not begun begins. Who decides may call it off, and who carries it out does when one of them is
/// not carried out.
#[derive(Clone, Debug)]
pub struct StopDecision {
    number: u64,
    pods: Arc<[PodKey]>,
    named_first: Arc<[PodKey]>,
    is_called_off: Arc<AtomicBool>,
    kept: Arc<OnceLock<BTreeSet<PodKey>>>,
    told: Arc<OnceLock<Told>>,
}

/// Pods of a decision that were told, before any of them was stopped, that they are about to be.
#[derive(Debug, Default)]
pub struct Told {
    /// Those that have the mark.
    pub marked: BTreeSet<PodKey>,
    /// Those whose mark the server refused, or did not answer.
    pub refused: BTreeSet<PodKey>,
}

impl StopDecision {
    /// One that holds, to stop these pods after those in `named_first` were told for which nodes. The number names it
    /// towards whoever decides; 0 is none's.
    pub fn new(number: u64, pods: Vec<PodKey>, named_first: Vec<PodKey>) -> Self {
        Self {
            number,
            pods: pods.into(),
            named_first: named_first.into(),
            is_called_off: Arc::default(),
            kept: Arc::default(),
            told: Arc::default(),
        }
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

    /// Those of its pods that the server would not let go; `None` as long as that was not asked.
    pub fn kept(&self) -> Option<&BTreeSet<PodKey>> {
        self.kept.get()
    }

    /// The server was asked, and would not let these go.
    pub fn keep(&self, kept: BTreeSet<PodKey>) {
        // The stops of one decision come one after the other: the first asks.
        _ = self.kept.set(kept);
    }

    /// Which of its pods were told together; `None` as long as they were not.
    pub fn told(&self) -> Option<&Told> {
        self.told.get()
    }

    /// Its pods were told.
    pub fn tell(&self, told: Told) {
        // As what is kept.
        _ = self.told.set(told);
    }

    /// What has not begun of it is not to begin.
    pub fn call_off(&self) {
        self.is_called_off.store(true, Ordering::Release);
    }

    /// Whether it holds no longer.
    pub fn is_called_off(&self) -> bool {
        self.is_called_off.load(Ordering::Acquire)
    }
}

impl PartialEq for StopDecision {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for StopDecision {}
