//! Actions: what the engine decides.

use serde::{Deserialize, Serialize};

use crate::holding::HeldDevices;
use crate::ids::{JobId, NodeName, PodId};
use crate::preemption::{Place, PreemptReason, PreemptionCost};

/// The decisions of one step, in the order in which they were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub actions: Vec<Action>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Run a pod on a node. All pods of a job are bound in one plan.
    Bind {
        pod: PodId,
        node: NodeName,
        /// Devices by index with the amount of each; on a node with counted devices the kubelet
        /// chooses which.
        devices: HeldDevices,
    },
    /// A job is over because a node it ran on is gone; everything it held elsewhere is free.
    Lost { job: JobId },
    /// A learning policy published a new version; later decisions rest on it.
    Publish {
        version: u64,
        /// What scores read from now on, as named fixed-point integers.
        values: Vec<(String, i64)>,
    },
    /// Stop pods of lower priority, or of a worse standing, so that a job can start in their place.
    /// What they free is kept for it until it has started, or until [`Action::GivenBack`].
    Preempt {
        job: JobId,
        /// The pods to stop, in order; whole jobs, or pods of elastic ones beyond their smallest
        /// size.
        victims: Vec<PodId>,
        /// Where the job could then start.
        places: Vec<Place>,
        cost: PreemptionCost,
        /// When it is given back at the latest.
        until_ms: u64,
        #[serde(default, skip_serializing_if = "PreemptReason::is_priority")]
        reason: PreemptReason,
    },
    /// What was kept for a job is free for everybody: others left too late or took the room,
    /// somebody of higher priority needs it, or the job is not what it was.
    GivenBack { job: JobId },
    /// Room that somebody outside kept for a job of lower priority ([`crate::HoldingPhase::Kept`])
    /// is free, so that this one can start, there or beside it.
    RoomGivenUp {
        /// Who starts, or will.
        job: JobId,
        /// Under which name it was held.
        name: String,
    },
    /// A job that cannot start, with the reason; said once until it changes.
    Wait { job: JobId, reason: PendingReason },
}

/// Why a job does not start, as its pods' `PodScheduled` condition says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PendingReason {
    /// Within quota and next in line, and no present node can take it: new nodes would help.
    Unschedulable,
    /// Its queue, or one above, is at its limit.
    WaitingForQuota,
    /// Others go first, or those that are to be preempted write a checkpoint first.
    WaitingForTurn,
    /// Capacity is kept for it from a later time on.
    WaitingForReservation,
    /// Not all of its pods exist yet.
    WaitingForMembers,
}
