//! SHR-11: MIG instances of a profile are free for long, on nodes in use.

use std::collections::BTreeMap;

use dovetail_facts::{Node, NodeGpus};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{MigTable, NodeAvailability, labels, to_nearest};

use super::profile_names::table_of;
use super::{View, claims_on, node_ref};
use crate::catalogue::Check;
use crate::finding::Finding;

const HOUR_MS: u64 = 3_600_000;

/// SHR-11: MIG instances of a profile that no pod has used for long, on nodes in use. Why the rest
/// of a node is free other checks say.
pub(super) fn unused_profiles(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let moment = view.moment.nodes.iter().map(|gpus| (&*gpus.node, gpus));
    let moment: BTreeMap<&str, &NodeGpus> = moment.collect();
    for (resource, of_nodes) in view.free_gpus(NodeAvailability::Ready) {
        let Some(profile) = resource.strip_prefix(labels::NVIDIA_MIG) else { continue };
        for (node, free) in of_nodes {
            if !is_unused_profile(view, node, resource, free) {
                continue;
            }
            let mut finding = Finding::new(check, &node.pool)
                .with("not used", format!("{free} × {profile} on {}", node.node.name))
                .affecting([node_ref(node)]);
            finding.claims = claims_on(node, None, check.reach.states(), view.facts.period);
            let gpus = moment.get(&*node.node.name).copied();
            finding.most_milli = Some(all_of(gpus, node, resource, free));
            finding.needs_waste = true;
            finding.since_ms = node.free_since_ms;
            found.push(finding);
        }
    }
}

/// What all instances of a profile are of a node's GPUs, in milli-GPU: as much as the ledger counts
/// for them, which depends on the layouts of these GPUs.
fn all_of(gpus: Option<&NodeGpus>, node: &Node, resource: &str, count: i64) -> i64 {
    let units = gpus.and_then(|gpus| gpus.units.iter().find(|of| of.resource == resource));
    match units {
        Some(units) => units.parts.milli(0, count),
        None => {
            let profile = resource.strip_prefix(labels::NVIDIA_MIG).unwrap_or(resource);
            milli_of(node, profile, count)
        }
    }
}

/// What so many instances of a profile that a node offers are of its GPUs, in milli-GPU.
fn milli_of(node: &Node, profile: &str, count: i64) -> i64 {
    let Some(table) = table_of(node) else { return 0 };
    let slices_of = |place: usize| i64::from(table.profiles[place].compute_slices);
    let slices = table.profile(profile).map_or(0, slices_of);
    slices_milli(&table, slices.saturating_mul(count))
}

/// What so many compute slices are of GPUs with a table, in milli-GPU.
pub(super) fn slices_milli(table: &MigTable, slices: i64) -> i64 {
    let milli_slices = slices.saturating_mul(WHOLE_DEVICE_MILLI);
    to_nearest(milli_slices, i64::from(table.compute_slices).max(1))
}

/// Whether no pod has used what a node in use has of a MIG profile, so much of which is free, for
/// long.
pub(super) fn is_unused_profile(view: &View<'_>, node: &Node, resource: &str, free: i64) -> bool {
    let least_ms = view.facts.thresholds.unused_profile_hours * HOUR_MS;
    let is_long = |since_ms: u64| view.facts.now_ms.saturating_sub(since_ms) >= least_ms;
    resource.starts_with(labels::NVIDIA_MIG)
        && node.without_gpu_pods_since_ms.is_none()
        && node.free_since_ms.is_some_and(is_long)
        && node.gpus.get(resource).is_some_and(|gpus| free >= gpus.allocatable)
}
