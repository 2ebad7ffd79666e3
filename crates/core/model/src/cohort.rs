//! Run times of jobs that came together, as plain data.

use serde::{Deserialize, Serialize};

use crate::ids::{JobId, QueueName};

/// What the order of jobs rests on that has been learnt from run times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cohorts {
    /// Tables of all jobs, of kinds and of cohorts, by number.
    pub tables: Vec<CohortTable>,
    /// Kinds by their GPUs: the numbers of their tables.
    pub kinds: Vec<(u32, u32)>,
    /// Cohorts that take new jobs: by kind, with their table and their newest submission.
    pub open: Vec<(u32, u32, u64)>,
    /// Jobs that have not ended: their cohort, and the length that they have reached.
    pub members: Vec<(JobId, u32, u8)>,
    /// Jobs that run: their standing, when it changes next, and whether they make place for others.
    pub running: Vec<(JobId, u64, u64, bool)>,
    /// Cohorts that are to be computed again.
    pub stale: Vec<u32>,
    /// By queue: the mean time from a preemption to the next start, in ms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requeue_ms: Vec<(QueueName, u64)>,
}

/// How many jobs ended at which length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CohortTable {
    pub number: u32,
    /// The wider group that it falls back on.
    pub parent: Option<u32>,
    /// Jobs by length, in millionths, without those of none.
    pub ended: Vec<(u8, u64)>,
    /// What was last computed of it, in ms by length.
    pub inverse_index_ms: Vec<u64>,
    /// How much changed since then: jobs that ended, or reached another length.
    #[serde(skip_serializing_if = "is_zero")]
    pub changes: u32,
    /// Of a cohort: the oldest and the newest submission of its jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_ms: Option<(u64, u64)>,
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(changes: &u32) -> bool {
    *changes == 0
}
