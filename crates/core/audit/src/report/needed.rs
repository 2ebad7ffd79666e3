//! Nodes that accept no pods now and that pending pods need: once they accept pods they are used,
//! and the bill stays. The nodes of each finding are opened by themselves, as each finding is fixed
//! by itself.

use std::collections::BTreeSet;

use dovetail_model::{Condition, Snapshot};

use super::room::started_in;
use crate::finding::Finding;
use crate::moment::Moment;

/// Keys of taints that Kubernetes sets by the state of a node.
const OF_STATES: &str = "node.kubernetes.io/";

/// Findings of which the nodes are opened at most for one resource, each on an engine of its own.
/// Of more findings nothing is promised to pending pods.
const MOST_TRIED: usize = 24;

/// Nodes on which pending pods would start if the nodes of one finding that are not ready or
/// cordoned took pods: the engine is asked, and more has to start than starts without them.
pub(super) fn needed(moment: &Moment, findings: &[Finding]) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    for demand in moment.demand.iter().filter(|demand| !demand.world.jobs.is_empty()) {
        let together = together(&demand.world, findings);
        if together.is_empty() {
            continue;
        }
        let before: i64 = started_in(&demand.world).values().sum();
        for nodes in together.iter().take(MOST_TRIED) {
            let after = started_in(&opened(&demand.world, nodes));
            if after.values().sum::<i64>() > before {
                needed.extend(after.into_keys().filter(|node| nodes.contains(&**node)));
            }
        }
    }
    needed
}

/// Closed nodes of a world that a finding affects, for each finding that affects any.
fn together<'f>(world: &Snapshot, findings: &'f [Finding]) -> BTreeSet<BTreeSet<&'f str>> {
    let is_closed =
        |node: &&dovetail_model::Node| node.unschedulable || node.condition != Condition::Ready;
    let closed: BTreeSet<&str> =
        world.nodes.iter().filter(is_closed).map(|node| &*node.name).collect();
    let of_finding = findings.iter().map(|finding| {
        let nodes = finding.affected.iter().filter(|object| object.kind == "Node");
        nodes.map(|node| &*node.name).filter(|name| closed.contains(name)).collect()
    });
    of_finding.filter(|nodes: &BTreeSet<&str>| !nodes.is_empty()).collect()
}

/// The world with these nodes ready and accepting pods.
fn opened(world: &Snapshot, names: &BTreeSet<&str>) -> Snapshot {
    let mut world = world.clone();
    for node in world.nodes.iter_mut().filter(|node| names.contains(&*node.name)) {
        (node.unschedulable, node.condition) = (false, Condition::Ready);
        node.taints.retain(|taint| !taint.key.starts_with(OF_STATES));
    }
    world
}
