//! Jobs: what users submit.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::history::History;
use crate::ids::{JobId, QueueName};
use crate::interruption::{AttemptTime, InterruptionCost};
use crate::preemption::PreemptionRules;
use crate::requirement::Requirement;
use crate::run_time::RunProfile;

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
    pub submit_ms: u64,
    /// The roles of the job; never empty.
    pub pod_sets: Vec<PodSet>,
    /// Where the whole gang must or should be.
    #[serde(default)]
    pub topology: TopologyRequest,
    /// Expected run time; `None` is unknown.
    #[serde(default)]
    pub estimate: Option<Estimate>,
    /// What else is known of jobs like it, to learn their run times from.
    #[serde(default, skip_serializing_if = "RunProfile::is_empty")]
    pub profile: RunProfile,
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
    /// Earlier attempts. The engine keeps them while a preempted job is away.
    #[serde(default, skip_serializing_if = "History::is_empty")]
    pub history: History,
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
            profile: RunProfile::default(),
            start_ms: None,
            deadline_ms: None,
            interruption: InterruptionCost::default(),
            preemption: PreemptionRules::default(),
            kept_room: BTreeSet::new(),
            history: History::default(),
        }
    }

    /// Milli-GPU that the job holds at its smallest size.
    pub fn min_gpu_milli(&self) -> i64 {
        self.pod_sets.iter().map(|set| set.requirement.gpu_milli() * i64::from(set.min)).sum()
    }

    /// Milli-GPU of the pods that it has now.
    pub fn present_gpu_milli(&self) -> i64 {
        let of_set = |set: &PodSet| set.requirement.gpu_milli() * i64::from(set.present);
        self.pod_sets.iter().map(of_set).sum()
    }

    /// How long an attempt that starts now is expected to take: what is left of the work, the time
    /// to come back and the checkpoints.
    pub fn expected_attempt_ms(&self) -> Option<u64> {
        let work_ms = self.estimate?.p50_ms.saturating_sub(self.history.saved_ms);
        Some(self.interruption.attempt_ms(work_ms, self.history.is_empty()))
    }

    /// What its attempt has done by a time; nothing while it waits. A checkpoint that was reported
    /// counts where it is newer than the declared interval says.
    pub fn attempt_at(&self, now_ms: u64) -> AttemptTime {
        let Some(start_ms) = self.start_ms else { return AttemptTime::default() };
        let ran_ms = now_ms.saturating_sub(start_ms);
        let mut did = self.interruption.stopped_after(ran_ms, self.history.is_empty());
        if let Some(reported_ms) = self.interruption.last_checkpoint_ms
            && reported_ms >= start_ms
        {
            let since_ms = now_ms.saturating_sub(reported_ms);
            let newer_ms = did.unsaved_ms.saturating_sub(since_ms);
            did.unsaved_ms -= newer_ms;
            did.saved_ms += newer_ms;
        }
        did
    }

    /// The same if it is preempted then.
    pub fn preempted_at(&self, now_ms: u64) -> AttemptTime {
        self.attempt_at(now_ms).with_notice(self.interruption.save_on_notice_ms)
    }
}

/// Identical pods of one role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSet {
    /// Role, unique in the job.
    pub name: String,
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
    pub source: EstimateSource,
}

/// Where an estimate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimateSource {
    /// Stated with the job.
    User,
    /// The job's time limit, where nothing better is known.
    Limit,
    /// Learnt from earlier jobs.
    History,
    /// A configured default.
    Default,
}
