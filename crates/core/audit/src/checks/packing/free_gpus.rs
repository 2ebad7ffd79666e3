//! What is free on the nodes that pending pods accept. Many workloads are pending in a large
//! cluster, and they ask few things of nodes: each of these is asked of the nodes once.

use std::collections::BTreeMap;

use dovetail_facts::{Node, Workload};
use dovetail_model::{NodeAvailability, NodeCondition, Toleration};
use rustc_hash::FxHashMap;

use crate::checks::View;
use crate::checks::consolidation::removals;
use crate::checks::taints::{is_given_toleration, keeping_away, passes};

/// Everything that decides which nodes the pods of a workload accept for a resource.
#[derive(PartialEq, Eq, Hash)]
struct Asked<'f> {
    resource: &'f str,
    conditions: &'f [NodeCondition],
    tolerations: &'f [Toleration],
    is_claimed: bool,
    is_given_toleration: bool,
}

impl<'f> Asked<'f> {
    fn by(workload: &'f Workload, resource: &'f str) -> Self {
        let template = &workload.template;
        Self {
            resource,
            conditions: &template.node_conditions,
            tolerations: &template.tolerations,
            is_claimed: template.claimed_gpus.contains_key(resource),
            is_given_toleration: is_given_toleration(workload, resource),
        }
    }
}

/// Units of a resource that are free on ready nodes which some pods accept.
#[derive(Clone, Copy)]
pub(super) struct FreeUnits {
    pub(super) all: i64,
    /// On one node.
    pub(super) largest: i64,
}

/// Nodes with free units of a resource, and how many, in the order in which they were read.
pub(super) type Pieces<'f> = Vec<(&'f Node, i64)>;

/// What is free of each resource, for pods that ask different things of nodes.
pub(super) struct FreeGpus<'f> {
    view: &'f View<'f>,
    ready: BTreeMap<&'f str, Pieces<'f>>,
    cordoned: BTreeMap<&'f str, Pieces<'f>>,
    units: FxHashMap<Asked<'f>, FreeUnits>,
    /// Cordoned nodes that stay, each with more free units than all before it.
    rising: FxHashMap<Asked<'f>, Pieces<'f>>,
}

impl<'f> FreeGpus<'f> {
    pub(super) fn of(view: &'f View<'f>) -> Self {
        Self {
            view,
            ready: view.free_gpus(NodeAvailability::Ready),
            cordoned: view.free_gpus(NodeAvailability::Cordoned),
            units: FxHashMap::default(),
            rising: FxHashMap::default(),
        }
    }

    /// How much is free on the ready nodes that the pods of a workload accept.
    pub(super) fn units(&mut self, workload: &'f Workload, resource: &'f str) -> FreeUnits {
        let ready = &self.ready;
        let count = || {
            let pieces = accepted(ready, workload, resource).map(|(_, free)| free);
            let none = FreeUnits { all: 0, largest: 0 };
            pieces.fold(none, |FreeUnits { all, largest }, free| FreeUnits {
                all: all.saturating_add(free),
                largest: largest.max(free),
            })
        };
        *self.units.entry(Asked::by(workload, resource)).or_insert_with(count)
    }

    /// The ready nodes that the pods of a workload accept.
    pub(super) fn pieces(&self, workload: &Workload, resource: &str) -> Pieces<'f> {
        accepted(&self.ready, workload, resource).collect()
    }

    /// The first cordoned node with so many free units that the pods of a workload would accept.
    pub(super) fn cordoned(
        &mut self,
        workload: &'f Workload,
        resource: &'f str,
        least: i64,
    ) -> Option<&'f Node> {
        let (view, cordoned) = (self.view, &self.cordoned);
        let rising = self.rising.entry(Asked::by(workload, resource)).or_insert_with(|| {
            // AUT-06 does not open a node that leaves.
            let leaves = |node: &Node| {
                node.is_being_removed || removals(view).contains_key(&*node.node.name)
            };
            let mut most = 0;
            let is_more = |(node, free): &(&Node, i64)| {
                let is_more = *free > most && !leaves(node);
                most = if is_more { *free } else { most };
                is_more
            };
            accepted(cordoned, workload, resource).filter(is_more).collect()
        });
        let first = rising.partition_point(|(_, free)| *free < least);
        rising.get(first).map(|(node, _)| *node)
    }
}

/// Those of the nodes that the pods of a workload accept for a resource.
fn accepted<'p, 'f>(
    pieces: &'p BTreeMap<&'f str, Pieces<'f>>,
    workload: &'p Workload,
    resource: &'p str,
) -> impl Iterator<Item = (&'f Node, i64)> {
    let accepts = move |(node, _): &(&Node, i64)| {
        workload.accepts_labels(node)
            && workload.can_get(resource, &node.gpus[resource])
            && keeping_away(node).all(|taint| passes(workload, resource, taint))
    };
    pieces.get(resource).into_iter().flatten().copied().filter(accepts)
}
