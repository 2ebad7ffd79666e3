//! CAP: GPUs that are paid and cannot be used.

use dovetail_account::device_time::DeviceState;
use dovetail_facts::Node;
use dovetail_model::NodeAvailability;

use super::{Run, View, claims_on, node_ref, spare};
use crate::catalogue::Check;
use crate::finding::Finding;
use crate::remedy::PatchChange;

pub(super) const RUNS: &[Run] = &[
    ("CAP-01", not_offered),
    ("CAP-02", not_ready),
    ("CAP-05", not_counted),
    ("CAP-06", spare::free_beside_others),
];

fn not_offered(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    // A node that starts gets its device plugin soon, and so does one that changes its MIG layout;
    // one that is not ready has its own finding.
    let is_up = |node: &&Node| {
        let condition = node.node.condition;
        !matches!(condition, NodeAvailability::NotReady | NodeAvailability::Starting)
            && !node.is_changing_layout()
    };
    let busy = view.nodes_of_gpu_pods();
    for node in view.facts.nodes.iter().filter(is_up) {
        for (resource, gpus) in &node.gpus {
            if gpus.built_in > gpus.allocatable {
                // What pods share is offered, too.
                let [offered, all] = [gpus.allocatable, gpus.built_in]
                    .map(|count| count.saturating_add(gpus.set_apart));
                let offered = format!("{offered} of {all} on {}", node.node.name);
                let mut finding = Finding::new(check, &node.pool)
                    .with("resource", resource)
                    .with("offered", offered)
                    .affecting([node_ref(node)]);
                // What runs on its other GPUs ends with a drain: when, a person decides.
                if !busy.contains(&*node.node.name) {
                    finding = finding.mended_by(PatchChange::Drain);
                }
                let states = [DeviceState::Unavailable];
                finding.claims = claims_on(node, None, &states, view.facts.period);
                found.push(finding);
            }
        }
    }
}

fn not_ready(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let meant = |node: &&Node| {
        node.node.condition == NodeAvailability::NotReady && !node.devices.is_empty()
    };
    for node in view.facts.nodes.iter().filter(meant) {
        let mut finding = Finding::new(check, &node.pool)
            .with("not ready", &node.node.name)
            .affecting([node_ref(node)]);
        // Its pods need a node, this one or another.
        if node.without_gpu_pods_since_ms.is_none() {
            finding.stays.insert(node.node.name.to_string());
        }
        finding.claims = claims_on(node, None, &[DeviceState::Unavailable], view.facts.period);
        found.push(finding);
    }
}

fn not_counted(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let is_up = |node: &&Node| node.node.condition != NodeAvailability::NotReady;
    let is_meant = |node: &&Node| {
        node.uncounted_gpus > 0 && !node.lacks_instances() && !node.is_between_layouts()
    };
    for node in view.facts.nodes.iter().filter(is_up).filter(is_meant) {
        let missing = format!("{} on {}", node.uncounted_gpus, node.node.name);
        let mut finding = Finding::new(check, &node.pool)
            .with("GPUs in the label that no plugin reports", missing)
            .affecting([node_ref(node)]);
        finding.claims = claims_on(node, None, &[DeviceState::Unavailable], view.facts.period);
        found.push(finding);
    }
}
