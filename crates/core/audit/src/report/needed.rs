//! Nodes that accept no pods now and that pending pods need: mended, they are used, and the bill
//! stays.

use std::collections::BTreeSet;

use dovetail_model::Condition;

use super::room::started_in;
use crate::moment::Moment;

/// Keys of taints that Kubernetes sets by the state of a node.
const OF_STATES: &str = "node.kubernetes.io/";

/// Nodes on which pending pods would start if every node that is not ready or cordoned took pods:
/// the engine is asked.
pub(super) fn needed(moment: &Moment) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    for demand in moment.demand.iter().filter(|demand| !demand.world.jobs.is_empty()) {
        let mut world = demand.world.clone();
        let mut closed = BTreeSet::new();
        for node in &mut world.nodes {
            let is_closed = node.unschedulable || node.condition != Condition::Ready;
            if is_closed {
                closed.insert(node.name.to_string());
                (node.unschedulable, node.condition) = (false, Condition::Ready);
                node.taints.retain(|taint| !taint.key.starts_with(OF_STATES));
            }
        }
        if !closed.is_empty() {
            let started = started_in(&world);
            needed.extend(started.into_keys().filter(|node| closed.contains(node)));
        }
    }
    needed
}
