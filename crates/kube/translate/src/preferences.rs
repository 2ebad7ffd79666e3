//! What pods prefer: preferred node affinity, soft taints (`PreferNoSchedule`), soft spread
//! constraints (`ScheduleAnyway`), images that are there.
//!
//! The points keep the proportions of kube-scheduler's plugin weights (2, 3, 2 and 1 times a
//! percent). It scales each plugin's points by the best node that fits; an engine that keeps scores
//! cannot read other nodes, so here the points of a node are its own; only images go with the share
//! of nodes that have them.

use dovetail_model::{CounterScope, Preference, Preferred};
use dovetail_objects::{LabelSelector, Pod};

use super::counting::spread;

/// Points of a node that satisfies all terms of preferred affinity, shared out by their weights.
const AFFINITY_POINTS: i64 = 200;
/// Points of each soft taint that is not tolerated.
const SOFT_TAINT_POINTS: i64 = -150;
/// Points of each pod that a soft constraint counts in the node's domain.
const SOFT_SPREAD_POINTS: i64 = -20;
/// Points of a node that has all images, if all nodes have them and they are large: see
/// [`Preferred::Images`].
const IMAGE_POINTS: i64 = 100;

pub(super) fn preferences(pod: &Pod) -> Vec<Preference> {
    let weights: i64 = pod.preferred_nodes.iter().map(|term| i64::from(term.weight)).sum();
    let affinity = pod.preferred_nodes.iter().map(|term| Preference {
        points: AFFINITY_POINTS * i64::from(term.weight) / weights,
        to: Preferred::Nodes(term.terms.to_vec()),
    });
    let readable = |selector: &LabelSelector| matches!(selector, LabelSelector::Of(_));
    let soft = pod.soft_spread.iter().filter(|constraint| readable(&constraint.selector));
    let spread = soft.map(|constraint| Preference {
        points: SOFT_SPREAD_POINTS,
        to: Preferred::Counted {
            selector: spread(pod, &constraint.selector).to_string(),
            label: constraint.topology_key.to_string(),
            scope: CounterScope::Eligible {
                honor_affinity: constraint.honor_affinity,
                honor_taints: constraint.honor_taints,
            },
        },
    });
    let taints = Preference { points: SOFT_TAINT_POINTS, to: Preferred::SoftTaints };
    let images = (!pod.images.is_empty()).then(|| {
        let names = pod.images.iter().map(|name| name.to_string()).collect();
        Preference { points: IMAGE_POINTS, to: Preferred::Images(names) }
    });
    affinity.chain([taints]).chain(spread).chain(images).collect()
}
