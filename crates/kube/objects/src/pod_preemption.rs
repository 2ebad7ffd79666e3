//! What a pod says about stopping others, and about being stopped.

use std::num::NonZeroU64;

use dovetail_model::PreemptReason;

/// Name of the condition of pods that are about to be stopped by the control plane.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// Reason of that condition where a scheduler stops them for others.
pub const PREEMPTION_BY_SCHEDULER: &str = "PreemptionByScheduler";
/// The same for a queue that is given back what it is guaranteed.
pub const RECLAIM_BY_SCHEDULER: &str = "ReclaimByScheduler";
/// The same for a pod of equal priority that is expected to end much sooner.
pub const ORDER_BY_SCHEDULER: &str = "OrderByScheduler";

/// Reason of that condition where the server does not let it be stopped: it is left in peace for
/// long.
pub const NOT_STOPPED: &str = "NotStopped";

/// From here on priorities are Kubernetes' own (`SystemCriticalPriority`).
const SYSTEM_PRIORITY: i32 = 2_000_000_000;

/// What a pod says about stopping others, and about being stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodPreemption {
    /// It waits instead of stopping others (`preemptionPolicy: Never`).
    pub never_preempts: bool,
    /// It is stopped for nobody: a static pod's mirror, a pod of a DaemonSet, or one that the
    /// system needs.
    pub is_protected: bool,
    /// A scheduler is about to stop it, or has begun to.
    pub is_target: bool,
    /// For which reason; that of whoever says nothing is priority.
    pub reason: PreemptReason,
    /// The same, and it is the scheduler that it names.
    pub is_own_target: bool,
    /// Something says that it is about to be stopped, whoever and for whatever reason.
    pub is_disrupted: bool,
    /// When a scheduler like this one last tried to stop it and the server did not let it go, in
    /// milliseconds since 1970; `None` if that was not tried.
    pub kept_ms: Option<NonZeroU64>,
    /// Seconds that it may take to stop; 30 unless it says otherwise.
    pub grace_s: u32,
}

/// The reason that the condition says in this word.
pub(super) fn reason_of(word: &str) -> Option<PreemptReason> {
    match word {
        PREEMPTION_BY_SCHEDULER => Some(PreemptReason::Priority),
        RECLAIM_BY_SCHEDULER => Some(PreemptReason::Reclaim),
        ORDER_BY_SCHEDULER => Some(PreemptReason::Order),
        _ => None,
    }
}

impl PodPreemption {
    /// Whether a pod of this priority and priority class is one that the system needs.
    pub(super) fn is_critical(priority: i32, class: &str) -> bool {
        priority >= SYSTEM_PRIORITY
            || matches!(class, "system-cluster-critical" | "system-node-critical")
    }
}
