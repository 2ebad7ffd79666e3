//! What a pod says about stopping others, and about being stopped.

/// Name of the condition of pods that are about to be stopped by the control plane.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// Reason of that condition where a scheduler stops them for others.
pub const PREEMPTION_BY_SCHEDULER: &str = "PreemptionByScheduler";

/// From here on priorities are Kubernetes' own (`SystemCriticalPriority`).
const SYSTEM_PRIORITY: i32 = 2_000_000_000;

/// What a pod says about stopping others, and about being stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodPreemption {
    /// It waits instead of stopping others (`preemptionPolicy: Never`).
    pub never_preempts: bool,
    /// It is stopped for nobody: a static pod's mirror, a pod of a DaemonSet, or one that the system needs.
    pub is_protected: bool,
    /// A scheduler is about to stop it, or has begun to.
    pub is_target: bool,
    /// Seconds that it may take to stop; 30 unless it says otherwise.
    pub grace_s: u32,
}

impl PodPreemption {
    /// Whether a pod of this priority and priority class is one that the system needs.
    pub(super) fn is_critical(priority: i32, class: &str) -> bool {
        priority >= SYSTEM_PRIORITY
            || matches!(class, "system-cluster-critical" | "system-node-critical")
    }
}
