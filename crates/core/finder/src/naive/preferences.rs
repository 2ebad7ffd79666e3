//! Points of what a pod prefers, preference by preference and pod by pod.

use dovetail_model::{Node, NodeId, Preferred, Requirement, TaintEffect};

use crate::naive::{label, rules};
use dovetail_state::State;

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
            Preferred::Images(names) => {
                sum += by_images(state, preference.points.clamp(-10_000, 10_000), names, slot);
                0
            }
        };
        sum += preference.points.clamp(-10_000, 10_000) * times.min(10_000);
    }
    sum.clamp(-10_000, 10_000)
}

/// Points by images, each looked for on every node.
fn by_images(state: &State, points: i64, names: &[String], slot: NodeId) -> i64 {
    let here = &state.nodes.cold(slot).node.images;
    let nodes = state.nodes.present().count() as i128;
    let mut sum_bytes = 0;
    for name in names {
        let having = |node: &&Node| node.images.iter().any(|(have, _)| **have == **name);
        let with_it = state.nodes.present().map(|(_, node)| node).filter(having).count() as i128;
        let size_bytes =
            here.iter().find(|(have, _)| ***have == **name).map_or(0, |(_, size)| size);
        sum_bytes += i128::from(size_bytes) * with_it / nodes;
    }
    let (least, most) = (23 * 1024 * 1024, 1000 * 1024 * 1024 * names.len() as i128);
    if names.is_empty() {
        return 0;
    }
    let within = sum_bytes.max(least).min(most) - least;
    (i128::from(points) * within / (most - least)) as i64
}
