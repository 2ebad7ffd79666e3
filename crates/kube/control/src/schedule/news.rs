//! What a scheduler has to say to people and to metrics.

use std::sync::Arc;

use dovetail_cluster::world::{self, LastingOwner, PodKey};
use dovetail_model::{IntervalAdvice, JobId, PendingReason, PreemptReason, PreemptionCost};
use dovetail_plan::engine::EngineError;
use dovetail_translate::Receipt;

use super::forecasts::ForecastEnd;
use crate::announce::PodCondition;
use crate::bind::{Bind, BindReport};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A pod is on its node.
    Bound {
        /// The bind and its answer.
        report: BindReport,
        /// Since the pod was first seen waiting.
        waited_ms: u64,
    },
    /// A bind did not put its pod on its node.
    NotBound(BindReport),
    /// A bind that is decided and, in a dry run, not sent.
    WouldBind {
        bind: Arc<Bind>,
        /// Since the pod was first seen waiting.
        waited_ms: u64,
    },
    /// A pod waits.
    Pending { pod: PodKey, job: JobId, reason: PendingReason },
    /// Pods are to be preempted, or in a dry run would be, so that another one starts.
    Preempts(Box<Preempts>),
    /// The server has taken the delete of a pod that is evicted for another.
    Evicted(Box<Evicted>),
    /// The server has taken the delete of a pod whose gang, as it is shown, is given up.
    GangGivenUp { pod: PodKey, gang: String },
    /// So many pods are evicted for one pod or gang: of all that were to be, what became of it is
    /// known.
    Preempted {
        /// Pods whose delete the server has taken, at least one.
        evicted: u64,
        /// Those of them beyond what budgets allow, at most.
        budget_violations: u64,
        reason: PreemptReason,
        /// GPU-time in milli-GPU times ms that is lost with all that were to be evicted, as far as
        /// it was known when that was decided.
        lost_gpu_milli_ms: u64,
    },
    /// A pod was evicted, and its object is to say what that cost it so far.
    Receipt { account: Box<LastingOwner>, receipt: Receipt },
    /// A job was preempted again, and saves its progress much too seldom or too often for that.
    IntervalFarOff { account: Box<LastingOwner>, advice: IntervalAdvice },
    /// A Job was suspended in place of evicting its pods, for this reason, or resumed after that.
    JobTurned { job: Box<LastingOwner>, suspended_for: Option<PreemptReason> },
    /// A pod was evicted, and there is no object that dovetail reads which could say so.
    NoReceipt { pod: PodKey },
    /// The server refuses to evict a pod, or does not answer.
    EvictionRefused(Box<EvictionRefused>),
    /// Disruption budgets alone keep pods from being evicted for a pending pod, in words.
    PreemptionBlocked { pod: PodKey, text: String },
    /// Something about an object.
    Object(world::ObjectReport),
    /// Nodes are chosen by another policy from now on.
    ChoosesBy { policy: String },
    /// The engine did not take what the world reported. It starts again from the world.
    Inconsistent(EngineError),
    /// It has been forecast when a pending job starts.
    ForecastMade(JobId),
    /// A job has nodes of which it had been forecast when it would start.
    ForecastEnded(ForecastEnd),
    /// Engine and world were compared and differ, in these points.
    Differs(Vec<String>),
}

/// Which pods are preempted for which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preempts {
    /// The preemptor: the first pod of its job.
    pub preemptor: PodKey,
    /// The pods to evict, each with its node.
    pub victims: Vec<(PodKey, String)>,
    /// Where the job is to go, each node once.
    pub nodes: Vec<String>,
    pub cost: PreemptionCost,
    pub reason: PreemptReason,
    /// What the pods of the job say meanwhile, written with the node that is freed for each.
    pub says: Vec<PodCondition>,
    /// No pod is evicted in fact.
    pub is_dry_run: bool,
}

/// Which pod is not evicted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionRefused {
    /// The pod that was to be evicted.
    pub victim: PodKey,
    /// The preemptor; `None` if no job waits for it.
    pub preemptor: Option<PodKey>,
    /// HTTP code; `None` if the server did not answer: whether the pod is evicted is not known.
    pub code: Option<u16>,
    /// What the server says, or what went wrong.
    pub message: String,
    /// The server refuses every eviction in the namespace alike, for lack of a right.
    pub is_for_all: bool,
}

/// Which pod is evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evicted {
    pub victim: PodKey,
    pub node: String,
    /// The preemptor; `None` if that is gone.
    pub preemptor: Option<PodKey>,
    pub reason: PreemptReason,
}
