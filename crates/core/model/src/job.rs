//! Jobs: what users submit.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{JobId, QueueName};
use crate::preemption::PreemptionRules;
use crate::requirement::Requirement;

/// One or more pod sets that start together or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Identity within the engine.
    pub id: JobId,
    /// Name as the user knows it.
    pub name: String,
    /// Queue; empty is the default queue.
    #[serde(default)]
    pub queue: QueueName,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// When it was submitted.
    pub submit_ms: u64,
    /// The roles of the job; never empty.
    pub pod_sets: Vec<PodSet>,
    /// Where the whole gang must or should be.
    #[serde(default)]
    pub topology: TopologyRequest,
    /// Expected run time; `None` is unknown.
    #[serde(default)]
    pub estimate: Option<Estimate>,
    /// When it started; `None` while it waits.
    #[serde(default)]
    pub start_ms: Option<u64>,
    /// When it must have ended.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// What stopping and restarting costs.
    #[serde(default)]
    pub interruption: InterruptionCost,
    /// Whether it may stop others, and others it.
    #[serde(default)]
    pub preemption: PreemptionRules,
    /// Names ([`crate::Owner::Foreign`]) under which room is held for it alone while it waits: to
    /// it that room is free, and when it starts, wherever that is, nothing is held under them any
    /// more.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub kept_room: BTreeSet<String>,
}

impl Job {
    /// A job of one pod.
    pub fn single(id: JobId, name: &str, submit_ms: u64, requirement: Arc<Requirement>) -> Self {
        Self {
            id,
            name: name.to_owned(),
            queue: QueueName::new(),
            priority: 0,
            submit_ms,
            pod_sets: vec![PodSet::fixed("main", requirement, 1)],
            topology: TopologyRequest::default(),
            estimate: None,
            start_ms: None,
            deadline_ms: None,
            interruption: InterruptionCost::default(),
            preemption: PreemptionRules::default(),
            kept_room: BTreeSet::new(),
        }
    }

    /// Milli-GPU that the job holds at its smallest size.
    pub fn min_gpu_milli(&self) -> i64 {
        self.pod_sets.iter().map(|set| set.requirement.gpu_milli() * i64::from(set.min)).sum()
    }
}

/// Identical pods of one role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSet {
    /// Role, unique in the job.
    pub name: String,
    /// What each pod needs.
    pub requirement: Arc<Requirement>,
    /// Fewest pods the job can start with.
    pub min: u32,
    /// Most pods it can use; equal to `min` unless elastic.
    pub max: u32,
    /// Pods it has now.
    #[serde(default)]
    pub present: u32,
    /// Where the pods of this set must or should be, within the job's own request.
    #[serde(default)]
    pub topology: TopologyRequest,
}

impl PodSet {
    /// A set of exactly `count` pods.
    pub fn fixed(name: &str, requirement: Arc<Requirement>, count: u32) -> Self {
        Self {
            name: name.to_owned(),
            requirement,
            min: count,
            max: count,
            present: 0,
            topology: TopologyRequest::default(),
        }
    }
}

/// Levels of the topology a gang asks for, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TopologyRequest {
    /// All pods in one domain of this level, or the job waits.
    pub required: Option<String>,
    /// As few domains of this level as possible.
    pub preferred: Option<String>,
}

/// Expected run time with its spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Half of such jobs end by then.
    pub p50_ms: u64,
    /// Nine of ten end by then.
    pub p90_ms: u64,
    /// Where it comes from.
    pub source: EstimateSource,
}

/// Where an estimate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimateSource {
    /// Stated with the job.
    User,
    /// Learnt from earlier jobs.
    History,
    /// A configured default.
    Default,
}

/// What it costs to stop a job and start it again. `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptionCost {
    /// Time between checkpoints.
    pub checkpoint_interval_ms: Option<u64>,
    /// Time to write one.
    pub checkpoint_cost_ms: Option<u64>,
    /// Time to come back.
    pub restart_cost_ms: Option<u64>,
    /// When the last one was written.
    pub last_checkpoint_ms: Option<u64>,
}
