//! Pods that only some nodes can run, because what their claims were given is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::node::NAME_LABEL;
use dovetail_model::requirement::Operator;
use dovetail_model::{Node, NodeCondition};
use dovetail_objects::Pod;
use rustc_hash::FxHashMap;

use crate::facts::claims::{ClaimedNodes, NodeTerms};

/// Looks up the nodes that the claims of pods confine them to. Pods often share a claim, or the
/// nodes of theirs.
pub(super) struct Confinements<'c> {
    nodes: &'c [Node],
    places: &'c BTreeMap<String, usize>,
    claimed: &'c ClaimedNodes,
    known: FxHashMap<Vec<&'c NodeTerms>, Arc<BTreeSet<usize>>>,
}

impl<'c> Confinements<'c> {
    /// Among these nodes, with their places by name.
    pub(super) fn new(
        (nodes, places): (&'c [Node], &'c BTreeMap<String, usize>),
        claimed: &'c ClaimedNodes,
    ) -> Self {
        Self { nodes, places, claimed, known: FxHashMap::default() }
    }

    /// The nodes that can use all claims of a pod in a namespace; `None` where every node can.
    pub(super) fn of(&mut self, namespace: &str, pod: &Pod) -> Option<Arc<BTreeSet<usize>>> {
        let claims = self.claimed.of_pod(namespace, pod);
        if claims.is_empty() {
            return None;
        }
        let (nodes, places) = (self.nodes, self.places);
        let found = self.known.entry(claims).or_insert_with_key(|claims| {
            let conditions = claims.iter().copied().cloned().map(NodeCondition::node_affinity);
            let conditions: Vec<NodeCondition> = conditions.collect();
            let is_reached =
                |node: &usize| conditions.iter().all(|condition| condition.accepts(&nodes[*node]));
            let by_name = claims.iter().find_map(|any_of| named(any_of));
            let nodes: Vec<usize> = match by_name {
                Some(names) => names.into_iter().filter_map(|of| places.get(of).copied()).collect(),
                None => (0..nodes.len()).collect(),
            };
            Arc::new(nodes.into_iter().filter(is_reached).collect())
        });
        Some(Arc::clone(found))
    }
}

/// The nodes that terms name, if they name all that satisfy them: nearly all devices are in one
/// node.
fn named(any_of: &NodeTerms) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    for terms in any_of {
        let mut by_name =
            terms.iter().filter(|term| term.key == NAME_LABEL && term.operator == Operator::In);
        names.extend(by_name.next()?.values.iter().map(String::as_str));
    }
    Some(names)
}
