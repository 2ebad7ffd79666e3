//! Points of what a pod prefers, preference by preference and pod by pod.

use dovetail_model::{NodeId, Preferred, Requirement, TaintEffect};

use crate::naive::{label, rules};
use crate::state::State;

/// Points of a node.
pub(super) fn points(state: &State, requirement: &Requirement, slot: NodeId) -> i64 {
    let node = &state.nodes.cold(slot).node;
    let mut sum = 0;
    for preference in &requirement.preferences {
        let times = match &preference.to {
            Preferred::Nodes(terms) => {
                let mut all = true;
                for term in terms {
                    all &= term.accepts(label(node, &term.key));
                }
                i64::from(all)
            }
            Preferred::SoftTaints => {
                let mut open = 0;
                for taint in &node.taints {
                    let soft = taint.effect == TaintEffect::PreferNoSchedule;
                    let accepts = requirement.tolerations.iter().any(|t| t.accepts(taint));
                    open += i64::from(soft && !accepts);
                }
                open
            }
            Preferred::Counted { selector, label: key, scope } => match label(node, key) {
                Some(value) => rules::pods_in(state, requirement, (selector, key, *scope), value),
                None => 0,
            },
        };
        sum += preference.points.clamp(-10_000, 10_000) * times.min(10_000);
    }
    sum.clamp(-10_000, 10_000)
}
