//! What decides whose turn it is, term by term, for whoever asks why a job waits.
//!
//! The keys by which jobs and queues are compared are made of these terms, so that what people read
//! is what decided.

use dovetail_model::QueueName;
use serde::Serialize;
use smallvec::{SmallVec, smallvec};

use super::Order;
use super::queues::quota::UsageScope;

/// What decides how soon it is the turn of a pending job; in each part the smallest goes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TurnTerms {
    pub order: Order,
    /// The job's; the highest goes first.
    pub priority: i32,
    /// Whether queues are compared before priorities.
    pub is_by_queue_first: bool,
    /// Its queue and those above, the uppermost first; empty where the order looks at no queues.
    pub queues: Vec<LevelTerms>,
    /// Within its queue; `None` where the order knows no standings.
    pub standing: Option<StandingTerms>,
}

/// The terms of one level of the tree of queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LevelTerms {
    pub queue: QueueName,
    /// The queue with all below it, or its own jobs against the queues below it.
    pub scope: UsageScope,
    pub terms: QueueTerms,
}

/// What decides between queues with the same parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum QueueTerms {
    /// The dominant share for its weight.
    DominantShare(ShareTerms),
    /// Quota, then usage for its weight.
    FairTree(UsageTerms),
    /// As NVIDIA's KAI Scheduler compares them.
    Kai(KaiTerms),
}

impl QueueTerms {
    /// What is compared.
    pub fn key(&self) -> SmallVec<[u64; 5]> {
        match self {
            Self::DominantShare(terms) => smallvec![terms.key()],
            Self::FairTree(terms) => SmallVec::from_slice(&terms.key()),
            Self::Kai(terms) => SmallVec::from_slice(&terms.key()),
        }
    }
}

/// Order `dominant-share`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ShareTerms {
    /// Parts of a billion of what the cluster has most of it.
    pub share: u64,
    pub weight: u32,
}

impl ShareTerms {
    /// What is compared.
    pub fn key(&self) -> u64 {
        self.share / u64::from(self.weight.max(1))
    }
}

/// Fair Tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UsageTerms {
    /// Whether it holds less than its quota.
    pub is_below_quota: bool,
    /// Usage that still counts, in parts of a billion of cluster-seconds.
    pub used: u64,
    /// What its running jobs count for at once, in the same unit.
    pub entry: u64,
    pub weight: u32,
}

impl UsageTerms {
    /// What is compared.
    pub fn key(&self) -> [u64; 2] {
        let usage = self.used.saturating_add(self.entry);
        [u64::from(!self.is_below_quota), usage / u64::from(self.weight.max(1))]
    }
}

/// Preset `kai`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KaiTerms {
    /// Whether it holds more of something than it should have.
    pub is_over_share: bool,
    /// Whether it would hold more than its quota with the job.
    pub is_beyond_quota: bool,
    /// The queue's; the highest goes first.
    pub priority: i32,
    /// The largest part of what it should have (or its quota, if that is more) that it would hold
    /// with the job, in millionths.
    pub part_with_job: u64,
    /// The same without the job.
    pub part: u64,
}

impl KaiTerms {
    /// What is compared.
    pub fn key(&self) -> [u64; 5] {
        [
            u64::from(self.is_over_share),
            u64::from(self.is_beyond_quota),
            u64::from(self.priority.abs_diff(i32::MAX)),
            self.part_with_job,
            self.part,
        ]
    }
}

/// What a standing is the sum of, in GPU-ms ([`super::Turns`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StandingTerms {
    /// Run time that is expected until the job ends, in ms; `None` if nothing is known.
    pub expected_ms: Option<u64>,
    /// Whether that is the job's own estimate, and not learned from jobs that ended.
    pub is_estimated: bool,
    /// GPUs, in thousandths.
    pub gpu_milli: i64,
    /// For its expected GPU-time.
    pub size: u128,
    /// For its expected run time, whatever its size.
    pub run_time: u128,
    /// For its submission: the same for all jobs that were submitted at that time.
    pub submitted: u128,
    /// What the time until now takes off the sum.
    pub waited: u128,
}

impl StandingTerms {
    /// The standing.
    pub fn sum(&self) -> u64 {
        u64::try_from(self.size + self.run_time + self.submitted).unwrap_or(u64::MAX)
    }
}
