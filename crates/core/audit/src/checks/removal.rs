//! What a finding says of a node that can go once its pods are on other nodes.

use std::collections::BTreeSet;

use dovetail_account::device_time::DeviceState;

use super::resource_cluster::Removal;
use super::{UNWANTED, View, claims_on};
use crate::finding::{Finding, Move};

impl Removal {
    /// A finding with the moves, and with the free GPUs of other nodes that are then used.
    pub(super) fn told_by(&self, mut finding: Finding, view: &View<'_>) -> Finding {
        for Move { pod, to, .. } in &self.moves {
            finding = finding.with("moves", format!("{}/{} to {to}", pod.namespace, pod.name));
        }
        let targets: BTreeSet<&str> = self.moves.iter().map(|of| &*of.to).collect();
        let nodes = targets.into_iter().filter_map(|name| view.node_of.get(name));
        let states = UNWANTED.map(|cause| DeviceState::Free(Some(cause)));
        let period = view.facts.period;
        finding.fills = nodes.flat_map(|node| claims_on(node, None, &states, period)).collect();
        finding.fills_milli = self.fills_milli;
        finding.moves.extend(self.moves.iter().cloned());
        finding
    }
}
