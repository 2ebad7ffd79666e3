//! What pending pods take of nodes once other findings are fixed: of nodes that their selectors or
//! models exclude (SCH-14), and of GPUs that get other MIG layouts for them (SHR-08).

use std::collections::BTreeMap;

use dovetail_facts::Node;
use dovetail_model::{Resources, labels};

use crate::checks::View;
use crate::checks::missing_instances::shortages;
use crate::checks::pending::{ExcludedPod, excluded_pods};
use crate::checks::profile_names::table_of;

/// What they take of a node.
#[derive(Default)]
pub(super) struct Taken<'v> {
    /// By resource.
    units: BTreeMap<&'v str, i64>,
    /// GPUs that get another layout. Instances in use stay on these, or come again there.
    recut_gpus: i64,
    /// What the pods request beside GPUs.
    pub(super) requests: Resources,
}

/// The nodes of which they take something, by name.
pub(super) fn taken_by_pending<'v>(view: &'v View<'_>) -> BTreeMap<&'v str, Taken<'v>> {
    let mut taken: BTreeMap<&str, Taken<'_>> = BTreeMap::new();
    for ExcludedPod { node, resource, units, resources } in excluded_pods(view) {
        let of_node = taken.entry(node).or_default();
        *of_node.units.entry(resource).or_default() += units;
        of_node.requests.add_times(resources, 1);
    }
    for (node, recut) in shortages(view).iter().flat_map(|finding| &finding.recuts) {
        let of_node = taken.entry(node).or_default();
        of_node.recut_gpus += recut.gpus;
        of_node.requests.add_times(&recut.resources, 1);
    }
    // Of these the units are counted.
    taken.values_mut().for_each(|of_node| of_node.requests.extended.clear());
    taken
}

impl Taken<'_> {
    /// How many of the free units of a resource they leave at least: all free units of a GPU that
    /// gets another layout may go.
    pub(super) fn leaves(&self, node: &Node, resource: &str, free: i64) -> i64 {
        let taken = self.units.get(resource).copied().unwrap_or(0);
        let recut = match self.recut_gpus {
            0 => 0,
            gpus => most_on_a_gpu(node, resource).map_or(free, |most| gpus.saturating_mul(most)),
        };
        free.saturating_sub(taken).saturating_sub(recut).max(0)
    }
}

/// How many units of a resource one GPU of a node has at most; `None` if no table states it.
fn most_on_a_gpu(node: &Node, resource: &str) -> Option<i64> {
    if resource == labels::NVIDIA_GPU {
        return Some(1);
    }
    let name = resource.strip_prefix(labels::NVIDIA_MIG)?;
    let table = table_of(node)?;
    let profile = &table.profiles[table.profile(name)?];
    let compute = i64::from(table.compute_slices) / i64::from(profile.compute_slices).max(1);
    let memory = i64::from(table.memory_slices) / i64::from(profile.memory_slices).max(1);
    Some(compute.min(memory))
}
