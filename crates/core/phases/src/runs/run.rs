//! A run with its attempts.

use std::ops::AddAssign;

use dovetail_account::device_time::Span;
use dovetail_model::Money;

use super::pod::{RunOwner, RunPod};

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub namespace: String,
    /// The label's value, or the owner's name; of several owners what their names have in common.
    pub name: String,
    /// What put it together.
    pub join: Join,
    /// In the order of their begins.
    pub attempts: Vec<RunAttempt>,
    /// All that it cost.
    pub total: RunAmount,
    /// What attempts cost that failed or were replaced, and pods that failed while their attempt
    /// went on.
    pub lost: RunAmount,
}

/// A time in which pods of one owner ran together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAttempt {
    /// What made them.
    pub owner: RunOwner,
    /// Places in the list of pods, ascending.
    pub pods: Vec<usize>,
    /// From its first moment with devices to its last.
    pub held: Option<Span>,
    pub end: AttemptEnd,
    /// Pods that failed while the others went on; none where the attempt failed as a whole.
    pub failed_pods: Vec<usize>,
    /// All that it cost.
    pub total: RunAmount,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptEnd {
    /// Nobody knows, and nothing came after it.
    Unknown,
    /// It has not.
    Open,
    /// With success.
    Completed,
    /// Nobody knows how, but another attempt followed.
    Replaced,
    /// Without success.
    Failed,
}

impl AttemptEnd {
    /// Name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Open => "running",
            Self::Completed => "completed",
            Self::Replaced => "replaced",
            Self::Failed => "failed",
        }
    }

    /// Whether what it cost was paid for nothing, as far as anybody knows.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Replaced | Self::Failed)
    }
}

/// What put pods into one run, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Join {
    /// The label `dovetail.dev/run`.
    Label,
    /// One owner, by its identity; or all of them ran at a time, so that it is one.
    Owner,
    /// One owner by its name: nobody kept its identity, and another of the name may have come after
    /// it.
    OwnerName,
    Experiment,
    /// Names of owners that followed each other.
    Name,
}

impl Join {
    /// Name in every output; what was inferred says so.
    pub fn name(self) -> &'static str {
        match self {
            Self::Label => "label dovetail.dev/run",
            Self::Owner => "owner",
            Self::OwnerName => "owner's name (inferred)",
            Self::Experiment => "experiment label",
            Self::Name => "name (inferred)",
        }
    }

    /// Whether nobody said that this is one run.
    pub fn is_inferred(self) -> bool {
        matches!(self, Self::OwnerName | Self::Name)
    }
}

/// Device-time and money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunAmount {
    pub gpu_milli_ms: i128,
    /// The part of it without a price.
    pub unpriced_gpu_milli_ms: i128,
    priced: Money,
    /// Pods with a price, and without.
    counts: [u64; 2],
}

impl RunAmount {
    /// What is known of the cost; `None` if there are pods and none has a price.
    pub fn cost(&self) -> Option<Money> {
        let [priced, unpriced] = self.counts;
        (priced > 0 || unpriced == 0).then_some(self.priced)
    }

    /// What pods come to.
    pub fn of<'p>(pods: impl IntoIterator<Item = &'p RunPod>) -> Self {
        let mut sum = Self::default();
        for pod in pods {
            let is_unpriced = pod.cost.is_none();
            sum.gpu_milli_ms += pod.gpu_milli_ms;
            sum.unpriced_gpu_milli_ms += if is_unpriced { pod.gpu_milli_ms } else { 0 };
            sum.priced += pod.cost.unwrap_or_default();
            sum.counts[usize::from(is_unpriced)] += 1;
        }
        sum
    }
}

impl AddAssign for RunAmount {
    fn add_assign(&mut self, other: Self) {
        self.gpu_milli_ms += other.gpu_milli_ms;
        self.unpriced_gpu_milli_ms += other.unpriced_gpu_milli_ms;
        self.priced += other.priced;
        self.counts = [0, 1].map(|place| self.counts[place] + other.counts[place]);
    }
}
