//! Preemption: who may be stopped for whom, and what is kept for whoever is to start instead.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::holding::{HeldDevices, Owner};
use crate::ids::{JobId, NodeName, PodId, ReservationId};

/// What a job may do to others when there is no room for it, and others to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PreemptionRules {
    /// It waits instead of stopping others.
    pub never_preempts: bool,
    /// It is stopped for nobody.
    pub is_protected: bool,
    /// Its pods are gone so long after they were told to stop, at the latest; `None` is unknown.
    pub grace_ms: Option<u64>,
    /// It is preempted at most so often; `None` is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_preemptions: Option<u32>,
    /// It is not preempted before its attempt has run so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_run_ms: Option<u64>,
}

/// Why pods may be preempted for a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreemptReason {
    /// The job has a higher priority than all of them.
    #[default]
    Priority,
    /// Of equal priority, it is expected to end so much sooner that this is worth the work lost.
    Order,
    /// Its queue holds less than it is guaranteed, and theirs hold more.
    Reclaim,
}

impl PreemptReason {
    /// Whether it is the reason of whoever states none.
    // The form that serde asks for.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn is_priority(&self) -> bool {
        *self == Self::Priority
    }
}

/// How many of the pods that a selector counts may be stopped now.
///
/// A pod is counted if the name is among its holding's selectors
/// ([`crate::Holding::counts_into`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub name: String,
    /// How many may be stopped; each more is a violation.
    pub disruptions_allowed: i64,
}

/// Where a pod is to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub pod: PodId,
    pub node: NodeName,
    /// Its devices; on a node with counted devices the kubelet chooses which.
    pub devices: HeldDevices,
}

/// What is kept for a job until those have left who were stopped for it.
///
/// Of each node it has a place on, it keeps what it needs there beyond what those still hold, and
/// as they leave it keeps what they held: others get only what is left over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptionReservation {
    pub job: JobId,
    /// Under which its holdings are kept.
    pub reservation: ReservationId,
    /// Where the job could start; it may start elsewhere.
    pub places: Vec<Place>,
    /// Who must leave first.
    pub awaited: Vec<Owner>,
    /// It is given back if they have not left by then.
    pub until_ms: u64,
    /// Whether others give back to its queue: then a higher priority takes nothing of it. Whoever
    /// took it would have to give it back again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_reclaimed: bool,
}

/// What is reserved for the job that is next in its queue, from when others are expected to have
/// ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// Where it is to start, and who is expected to have ended by then (`until_ms`).
    pub claim: PreemptionReservation,
    /// Jobs that were let into its room until then: they run, or wait with a claim until those have
    /// left who are preempted for them.
    pub lent: BTreeSet<JobId>,
    /// The job was first of all, and stays so until it starts: no other queue comes before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_turn: bool,
}

/// What a preemption costs; the smallest is chosen, compared field by field from the first to the
/// last, except that the two of GPU-time count together first.
///
/// Up to the number of pods this is the order of kube-scheduler (`pickOneNodeForPreemption`); in a
/// tie it asks next for the latest start, which is what `work_lost_gpu_milli_ms` is for pods of
/// equal size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PreemptionCost {
    /// Pods stopped beyond what budgets allow, summed over the budgets.
    pub budget_violations: u64,
    /// Highest priority of a stopped pod.
    pub highest_priority: i64,
    /// Sum of their priorities, each with 2^31 added so that none is negative.
    pub priorities: u64,
    /// How many pods are stopped.
    pub pods: u64,
    /// GPU-time since their last checkpoints, or since they started where none is known.
    pub work_lost_gpu_milli_ms: u64,
    /// GPU-time that they are expected to wait until they start again; 0 where nothing is known of
    /// that. It is not lost: others use the GPUs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requeue_gpu_milli_ms: u64,
    /// Time since the first of those of the highest priority started, or, where the newest jobs are
    /// the victims, was submitted.
    pub longest_run_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Ord for PreemptionCost {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |cost: &Self| {
            let lost = cost.work_lost_gpu_milli_ms;
            (
                (cost.budget_violations, cost.highest_priority, cost.priorities, cost.pods),
                lost.saturating_add(cost.requeue_gpu_milli_ms),
                (lost, cost.requeue_gpu_milli_ms, cost.longest_run_ms),
            )
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for PreemptionCost {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
