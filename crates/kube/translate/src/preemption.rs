//! Who may be stopped for whom.

use dovetail_model::PreemptionRules;
use dovetail_objects::Pod;

use super::run_time::{said_min_run_ms, said_most_preemptions};

/// What a job of these pods may do to others, and others to it: what any of its pods forbids, all
/// do.
pub fn preemption_rules<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> PreemptionRules {
    let mut rules = PreemptionRules::default();
    for pod in pods {
        let says = pod.preemption;
        rules.never_preempts |= says.never_preempts;
        rules.is_protected |= says.is_protected;
        let grace_ms = 1_000 * u64::from(says.grace_s);
        rules.grace_ms = rules.grace_ms.max(Some(grace_ms));
        rules.min_run_ms = rules.min_run_ms.max(said_min_run_ms(pod));
        let most = said_most_preemptions(pod);
        rules.max_preemptions = rules.max_preemptions.into_iter().chain(most).min();
    }
    rules
}
