//! Nodes to which no pod moves, because pods that are there keep other pods off by required
//! anti-affinity. Which pods exactly is no part of the facts: every pod counts.

use std::collections::BTreeSet;

use dovetail_facts::{Node, Workload};
use dovetail_model::{Node as WorldNode, labels};

/// Nodes and domains of nodes that pods keep others off.
#[derive(Default)]
pub(super) struct KeptOff<'f> {
    nodes: BTreeSet<&'f str>,
    /// Node labels of terms that are about more than one node.
    keys: BTreeSet<&'f str>,
    /// The same with the values that nodes of these pods have.
    domains: BTreeSet<(&'f str, &'f str)>,
}

impl<'f> KeptOff<'f> {
    /// Adds what a pod of a workload on a node keeps off.
    pub(super) fn add(&mut self, workload: &'f Workload, node: &'f Node) {
        for key in workload.template.keeps_others_off.iter().map(String::as_str) {
            // A node without the label is no domain, and none that other pods should come to.
            self.nodes.insert(&node.node.name);
            if key != labels::HOST_NAME
                && let Some(value) = node.node.label(key)
            {
                self.keys.insert(key);
                self.domains.insert((key, value));
            }
        }
    }

    /// Whether pods are kept off a node.
    pub(super) fn has(&self, node: &WorldNode) -> bool {
        let in_domain =
            |key: &&str| node.label(key).is_some_and(|value| self.domains.contains(&(*key, value)));
        self.nodes.contains(&*node.name) || self.keys.iter().any(in_domain)
    }
}
