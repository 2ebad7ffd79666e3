//! What run times are learned from: which jobs are alike, and how long they ran.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::JobId;
use crate::job::{Estimate, EstimateSource};

/// What tells jobs apart besides their name, size and GPU model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct RunProfile {
    /// Who submits such jobs: a user, a service account, a team; empty is unknown.
    pub owner: String,
    /// What they run: a container image without its tag, or the name of a model; empty is unknown.
    pub image: String,
    /// Name of what made its pods, without which runs of it have nothing in common; empty where the
    /// name of the job says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub work: String,
    /// How long its user says it runs, where its estimate rests on that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated_ms: Option<u64>,
    /// Its time limit: it is ended once it has run for so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
}

impl RunProfile {
    /// An estimate that its time limit cuts off; the limit itself in the place of none.
    pub fn within_limit(&self, estimate: Option<Estimate>) -> Option<Estimate> {
        let Some(limit_ms) = self.limit_ms else { return estimate };
        let at_limit =
            Estimate { p50_ms: limit_ms, p90_ms: limit_ms, source: EstimateSource::Limit };
        let Estimate { p50_ms, p90_ms, source } = estimate.unwrap_or(at_limit);
        Some(Estimate { p50_ms: p50_ms.min(limit_ms), p90_ms: p90_ms.min(limit_ms), source })
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Jobs that are alike. A group that leaves a field out covers all of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct RunTimeGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// GPUs of the whole job, rounded up to a power of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Name, image and allowed GPU models, the name with each number replaced by `#`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<(String, String, String)>,
    /// It counts by how many times the stated run time they took.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
}

/// Runs of one group by how long they took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunTimeCounts {
    /// Per bucket of run times: its number, the weight of the runs that completed in it, and of
    /// those that were still running when they were last seen there; ascending by number.
    pub buckets: Vec<(u8, u32, u32)>,
    /// When the group was last added to: how many runs had been seen by then.
    pub last_seen: u64,
}

/// Jobs of one owner and size that came one after the other, of which one has not ended at least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Owner and size of its jobs.
    pub group: RunTimeGroup,
    /// Its first job, which may have ended: when it was submitted, its name and its number.
    pub first: (u64, String, JobId),
    /// When its newest job was submitted.
    pub last_ms: u64,
    /// Its jobs that have not ended.
    pub jobs: BTreeSet<JobId>,
}

/// All that an engine has learned about run times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunTimeTables {
    /// Runs seen so far.
    pub runs: u64,
    /// How many versions have been published.
    pub version: u64,
    /// Time of the newest version.
    pub published_ms: u64,
    /// What estimates are read from: the newest version.
    pub published: Vec<(RunTimeGroup, RunTimeCounts)>,
    /// What the next version will be made of.
    pub next: Vec<(RunTimeGroup, RunTimeCounts)>,
}
