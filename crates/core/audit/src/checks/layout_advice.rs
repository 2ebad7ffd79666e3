//! SHR-07 and SHR-09: which MIG layout a node could have, and what leaves the node before.
//!
//! A layout is named only where the node's GPUs have its profile. mig-manager deletes the instances
//! that it replaces, so no label is advised while pods use GPUs of the node: they leave first.

use std::collections::BTreeSet;

use dovetail_facts::Node;
use dovetail_model::{Layout, MigTable, labels};

use super::gpu_pods::GpuPods;
use super::profile_names::table_of;
use crate::catalogue::{DRAIN, GKE};
use crate::example::Example;
use crate::finding::Finding;

/// What to do about GPUs that did not get the instances of their node's layout. Without the label,
/// GPU Operator would ask for `all-disabled`, which deletes the instances of running pods.
const APPLY_AGAIN: &str = "kubectl drain NODE --ignore-daemonsets  # then delete the mig-manager pod of this node: its \
                           successor creates the missing instances. Uncordon the node afterwards; if this \
                           does not help, replace the GPUs";

/// Adds what gives all GPUs of a node instances, and which pods leave the node before. `stays`:
/// whether the node keeps the layout that its label names, which some GPUs lack.
pub(super) fn with_layout(
    pods: &GpuPods<'_>,
    mut finding: Finding,
    node: &Node,
    stays: bool,
) -> Finding {
    let profile = table_of(node).map(|table| uniform_profile(node, &table).to_owned());
    if node.pool.kind == GKE {
        // Another pool replaces no instance of this one.
        let example =
            |profile: String| format!("gpu-partition-size={profile}  # of a new node pool");
        finding.examples.extend(profile.map(example).map(Example::new));
        return finding;
    }
    let layout = profile.map(|profile| format!("all-{profile}"));
    finding = pods.must_leave(finding, node);
    // To set the label to what it says changes nothing.
    let has_it =
        layout.is_some() && node.node.label(labels::NVIDIA_MIG_CONFIG) == layout.as_deref();
    if stays || has_it {
        return finding.for_example(APPLY_AGAIN);
    }
    let is_used = pods.count_on(node) > 0 || node.may_be_held;
    match (layout, is_used) {
        (Some(layout), true) => finding.for_example(format!(
            "{DRAIN}  # then: kubectl label node NODE nvidia.com/mig.config={layout} --overwrite. \
             Uncordon it once nvidia.com/mig.config.state is success"
        )),
        (None, true) => finding.for_example(format!(
            "{DRAIN}  # then label it with a layout that its GPUs have (nvidia.com/mig.config). \
             Uncordon it once nvidia.com/mig.config.state is success"
        )),
        (Some(layout), false) => finding.for_example(format!(
            "kubectl label node NODES nvidia.com/mig.config={layout} --overwrite  # no pod uses \
             these GPUs; or dovetail partition plan"
        )),
        // The example of the check.
        (None, false) => finding,
    }
}

/// The profile of a layout that cuts all GPUs alike and leaves nothing over: that of the node's
/// instances, if they have one and it fills a GPU, else the smallest.
fn uniform_profile<'t>(node: &Node, table: &'t MigTable) -> &'t str {
    let offered = node.gpus.iter().filter(|(_, gpus)| gpus.built_in > 0);
    let names = offered.filter_map(|(resource, _)| resource.strip_prefix(labels::NVIDIA_MIG));
    let places: BTreeSet<Option<usize>> = names.map(|name| table.profile(name)).collect();
    let only = places.first().copied().flatten().filter(|_| places.len() == 1);
    let place = only.filter(|place| fills_a_gpu(table, *place)).unwrap_or(0);
    &table.profiles[place].name
}

/// Whether as many instances of a profile as a GPU can have leave nothing over.
fn fills_a_gpu(table: &MigTable, place: usize) -> bool {
    let mut layout: Layout = vec![0; table.profiles.len()];
    let mut more = layout.clone();
    more[place] += 1;
    while table.is_legal(&more) {
        layout.clone_from(&more);
        more[place] += 1;
    }
    table.left_over(&layout) == Some(0)
}
