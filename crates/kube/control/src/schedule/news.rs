//! What a scheduler has to say to people and to metrics.

use dovetail_cluster::world::{self, PodKey};
use dovetail_model::{JobId, PendingReason, PreemptionCost};
use dovetail_plan::engine::EngineError;

use crate::announce::Condition;
use crate::bind::{Bind, Report};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A pod is on its node.
    Bound {
        /// The bind and its answer.
        report: Report,
        /// Since the pod was first seen waiting.
        waited_ms: u64,
    },
    /// A bind did not put its pod on its node.
    NotBound(Report),
    /// A bind that is decided and, in a dry run, not sent.
    WouldBind {
        /// The bind.
        bind: Bind,
        /// Since the pod was first seen waiting.
        waited_ms: u64,
    },
    /// A pod waits.
    Waits {
        /// The pod.
        pod: PodKey,
        /// Its job.
        job: JobId,
        /// Why.
        reason: PendingReason,
    },
    /// Pods are to be stopped, or in a dry run would be, so that one of a higher priority starts.
    Preempts(Box<Preempts>),
    /// The server has taken the delete of a pod that is stopped for another.
    Stopped(Box<Stopped>),
    /// The server has taken the delete of a pod whose gang, as it is shown, is given up.
    GangGivenUp {
        /// The pod.
        pod: PodKey,
        /// Its gang.
        gang: String,
    },
    /// So many pods are stopped for one pod or gang: of all that were to be, what became of it is known.
    Preempted {
        /// Pods whose delete the server has taken, at least one.
        stopped: u64,
        /// Those of them beyond what budgets allow, at most.
        budget_violations: u64,
    },
    /// The server does not let a pod go that was to be stopped, or does not say whether it does.
    StopRefused(Box<StopRefused>),
    /// Something about an object.
    Object(world::Report),
    /// The engine did not take what the world told it. It starts anew from the world.
    Inconsistent(EngineError),
    /// Engine and world were compared and differ, in these points.
    Differs(Vec<String>),
}

/// Who is to be stopped for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preempts {
    /// For whom: the first pod of its job.
    pub preemptor: PodKey,
    /// Who is to be stopped, each with its node.
    pub victims: Vec<(PodKey, String)>,
    /// Where the job is to go, each node once.
    pub nodes: Vec<String>,
    /// What that costs.
    pub cost: PreemptionCost,
    /// What the pods of the job say meanwhile, written with the node that is freed for each.
    pub says: Vec<Condition>,
    /// Nobody is stopped in fact.
    pub is_dry_run: bool,
}

/// Who is not stopped, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRefused {
    /// Who was to be stopped.
    pub victim: PodKey,
    /// For whom; `None` if nobody waits for it.
    pub preemptor: Option<PodKey>,
    /// HTTP code; `None` if the server did not answer: whether it is stopped is not known.
    pub code: Option<u16>,
    /// What the server says, or what went wrong.
    pub message: String,
    /// The server refuses every stop in the namespace alike, for lack of a right.
    pub is_for_all: bool,
}

/// Who is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The pod.
    pub victim: PodKey,
    /// Its node.
    pub node: String,
    /// For whom; `None` if that is gone.
    pub preemptor: Option<PodKey>,
}

/// A pod as people name it.
pub fn shown(pod: &PodKey) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}
