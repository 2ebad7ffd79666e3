//! Since when the objects of a finding are there: as long as that a fault of theirs may be, where
//! nothing says it more closely.

use dovetail_facts::Facts;
use rustc_hash::FxHashMap;

use crate::finding::Finding;

/// When pods got their nodes and nodes joined.
pub(super) struct Begins<'f> {
    of_pods: FxHashMap<(&'f str, &'f str), u64>,
    of_nodes: FxHashMap<&'f str, u64>,
}

impl<'f> Begins<'f> {
    pub(super) fn of(facts: &'f Facts) -> Self {
        let pods = facts.workloads.iter().flat_map(|workload| {
            workload.pods.iter().filter_map(|pod| {
                let since_ms = pod.placed_since_ms.or(pod.created_ms)?;
                Some(((workload.owner.namespace.as_str(), pod.name.as_str()), since_ms))
            })
        });
        let nodes = facts.nodes.iter().filter_map(|node| Some((&*node.node.name, node.joined_ms?)));
        Self { of_pods: pods.collect(), of_nodes: nodes.collect() }
    }

    /// Since when the first of the pods or nodes concerned is there.
    pub(super) fn of_affected(&self, finding: &Finding) -> Option<u64> {
        let begins = finding.affected.iter().filter_map(|object| match object.kind.as_str() {
            "Pod" => self.of_pods.get(&(object.namespace.as_str(), object.name.as_str())).copied(),
            "Node" => self.of_nodes.get(object.name.as_str()).copied(),
            _ => None,
        });
        begins.min()
    }
}
