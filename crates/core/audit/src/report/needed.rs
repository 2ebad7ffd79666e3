//! Nodes that accept no pods now, and what pending pods would do with them if they did: the engine
//! is asked for the nodes of each finding by themselves, as each finding is fixed by itself.

use std::collections::BTreeSet;

use dovetail_capacity::what_is_free;
use dovetail_model::{Condition, FreeCause, Snapshot};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, Engine};

use super::room::started_in;
use crate::finding::Finding;
use crate::moment::{Demand, Moment, devices_by_node};

/// Keys of taints that Kubernetes sets by the state of a node.
const OF_STATES: &str = "node.kubernetes.io/";

/// Findings of which the nodes are opened at most for one resource, each on an engine of its own.
/// Of more findings nothing is promised.
const MOST_ALONE: usize = 24;

/// Why a pod that fits on a node does not start there.
const FITS_AND_WAITS: [FreeCause; 3] =
    [FreeCause::GangShort, FreeCause::Quota, FreeCause::Reserved];

/// Nodes that are not ready or cordoned, by what pending pods would do with them.
#[derive(Debug, Default)]
pub(super) struct Closed {
    /// Pending pods would start on it if the nodes of its finding accepted pods.
    pub(super) needed: BTreeSet<String>,
    /// Pending pods would fit on it and need more than that: other nodes for their gang, quota.
    pub(super) awaited: BTreeSet<String>,
}

/// What pending pods would do with each closed node.
pub(super) fn closed(moment: &Moment, findings: &[Finding]) -> Closed {
    let mut found = Closed::default();
    for demand in moment.demand.iter().filter(|demand| !demand.world.jobs.is_empty()) {
        let names: BTreeSet<&str> = (demand.world.nodes.iter())
            .filter(|node| node.unschedulable || node.condition != Condition::Ready)
            .map(|node| &*node.name)
            .collect();
        if !names.is_empty() {
            found.add(demand, &names, &together(findings, &names));
        }
    }
    found.awaited.retain(|name| !found.needed.contains(name));
    found
}

/// Closed nodes that a finding affects, for each finding that affects any.
fn together<'f>(findings: &'f [Finding], names: &BTreeSet<&str>) -> BTreeSet<BTreeSet<&'f str>> {
    let of_finding = findings.iter().map(|finding| {
        let nodes = finding.affected.iter().filter(|object| object.kind == "Node");
        nodes.map(|node| &*node.name).filter(|name| names.contains(name)).collect()
    });
    of_finding.filter(|nodes: &BTreeSet<&str>| !nodes.is_empty()).collect()
}

impl Closed {
    fn add(
        &mut self,
        demand: &Demand,
        names: &BTreeSet<&str>,
        together: &BTreeSet<BTreeSet<&str>>,
    ) {
        let world = opened(&demand.world, names);
        let Ok(mut engine) = Engine::new(EngineConfig::default(), &world) else { return };
        let Ok(plan) = engine.step(Batch::decision(), 0) else { return };
        // A node that is not used if all are open is not missed, whatever it would do alone.
        let mut used = devices_by_node(&plan);
        used.retain(|node, _| names.contains(&**node));
        let is_used = |nodes: &&BTreeSet<&str>| nodes.iter().any(|node| used.contains_key(*node));
        for nodes in together.iter().filter(is_used).take(MOST_ALONE) {
            let started = started_in(&opened(&demand.world, nodes)).into_keys();
            self.needed.extend(started.filter(|node| used.contains_key(node)));
        }
        self.awaited.extend(used.into_keys());
        for piece in what_is_free(&mut engine, &[]).pieces {
            let fits = piece.gpu_milli.keys().any(|cause| FITS_AND_WAITS.contains(cause));
            if fits && names.contains(&*piece.node) {
                self.awaited.insert(piece.node.to_string());
            }
        }
    }
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
