//! Nodes whose few pods fit elsewhere: which pods would move where, checked by the engine.
//!
//! Only pods that start again without loss move: owned by a controller, not kept from eviction, no
//! training or batch that saves nothing, no data on the node. A toleration of every taint moves
//! none to a node with a taint that its own node lacks. A node that waiting or later pods need
//! stays, and so does one with a pod that the API server would not let in again (a younger
//! LimitRange, a lowered quota). The engine decides node by node ([`super::emptying`]), everybody
//! else stands where he stands. AUT-06 has the nodes of these that are cordoned, AUT-07 the others.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::DeviceState;
use dovetail_model::labels;

use super::emptying::{Decided, Emptied, emptied};
use super::needed::needs;
use super::resource_cluster::Removal;
use super::{UNWANTED, View, claims_on, node_ref};
use crate::catalogue::Check;
use crate::finding::Finding;

/// Resources that count whole GPUs.
pub(super) const WHOLE: [&str; 3] = [labels::NVIDIA_GPU, labels::AMD_GPU, labels::HABANA_GAUDI];

pub(super) fn nearly_empty(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for (name, removal) in removals(view) {
        let Some(node) = view.node_of.get(&**name) else { continue };
        if node.cordoned_since_ms.is_some() {
            continue;
        }
        let mut finding = Finding::new(check, &node.pool)
            .with("GPUs requested", &removal.requested)
            .affecting([node_ref(node)]);
        let states = UNWANTED.map(|cause| DeviceState::Free(Some(cause)));
        finding.claims = claims_on(node, None, &states, view.facts.period);
        found.push(removal.told_by(finding, view));
    }
}

/// All nodes that can go together, by name.
pub(super) fn removals<'v>(view: &'v View<'_>) -> &'v BTreeMap<String, Removal> {
    view.removals.get_or_init(|| {
        let mut removals: BTreeMap<String, Removal> = BTreeMap::new();
        let mut decided = Decided::default();
        // Parts of GPUs are no devices of their own to the engine. Pods that were not read may use
        // what looks free, or need it.
        let is_whole = |resource: &&&str| WHOLE.contains(*resource) && !view.facts.lacks_pods;
        for resource in view.most_gpus.keys().filter(is_whole) {
            for (name, removal) in removals_of(view, resource, &decided) {
                decided.taken.extend(removal.moves.iter().map(|of| of.to.clone()));
                decided.gone.insert(name.clone());
                removals.insert(name, removal);
            }
        }
        removals
    })
}

fn removals_of(view: &View<'_>, resource: &str, decided: &Decided) -> Vec<(String, Removal)> {
    let cluster = view.cluster(resource);
    let Emptied { mut nodes, to } = emptied(&cluster, decided);
    let names: BTreeSet<&str> = nodes.iter().map(|node| &*node.node.name).collect();
    // The pods of a node that stays are in nobody's way: they were placed with all others.
    let needed = needs(view, &names);
    nodes.retain(|node| !needed.contains_key(&*node.node.name));
    nodes.into_iter().map(|node| cluster.removal(node, &to)).collect()
}
