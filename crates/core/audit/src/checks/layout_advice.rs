//! SHR-07 and SHR-09: which MIG layout a node could have, and what leaves the node before.
//!
//! A layout is named only where the node's GPUs have its profile, and where no pod that runs in the
//! node's pool, or is pending and may use the node, requests what the layout lacks. mig-manager
//! deletes the instances that it replaces, so no label is advised while pods use GPUs of the node:
//! they leave first.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Node, ObjectRef, Workload};
use dovetail_model::{Layout, MigTable, labels};

use super::View;
use super::gpu_pods::GpuPods;
use super::profile_names::table_of;
use super::taints::{keeping_away, passes};
use crate::catalogue::{DRAIN, GKE};
use crate::example::Example;
use crate::finding::Finding;
use crate::names::first_of;

/// Pods that one line names.
const MOST_NAMED: usize = 3;

/// What to do about GPUs that did not get the instances of their node's layout. Without the label,
/// GPU Operator would ask for `all-disabled`, which deletes the instances of running pods.
const APPLY_AGAIN: &str = "kubectl drain NODE --ignore-daemonsets  # then delete the mig-manager pod of this node: its \
                           successor creates the missing instances. Uncordon the node afterwards; if this \
                           does not help, replace the GPUs";

/// What to do where every layout of one profile lacks something that pods request.
const KEEP: &str = "keep the layout of the node while these pods request its instances or other \
                    profiles: a layout with only one profile has no room for all of them";

/// The profile that all instances of a layout have: its place in a table.
type OnlyProfile<'t> = (&'t MigTable, usize);

/// What is known of pods that layouts of nodes concern.
pub(super) struct LayoutAdvice<'f> {
    on_nodes: GpuPods<'f>,
    /// Pods that have a node, by pool and by what they request.
    running: BTreeMap<&'f ObjectRef, BTreeMap<&'f str, BTreeSet<String>>>,
    /// Pods that wait, by what they request.
    pending: Vec<(&'f Workload, &'f str, BTreeSet<String>)>,
}

impl<'f> LayoutAdvice<'f> {
    pub(super) fn of(view: &View<'f>) -> Self {
        let mut running: BTreeMap<&ObjectRef, BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
        let mut pending = Vec::new();
        for workload in view.gpu_workloads() {
            let resources: Vec<&str> = workload.gpus_per_pod().into_keys().collect();
            let mut waiting = BTreeSet::new();
            for pod in &workload.pods {
                let name = format!("{}/{}", workload.owner.namespace, pod.name);
                let node = pod.node.as_deref().and_then(|node| view.node_of.get(node).copied());
                if let Some(node) = node {
                    let of_pool = running.entry(&node.pool).or_default();
                    for resource in &resources {
                        of_pool.entry(*resource).or_default().insert(name.clone());
                    }
                } else if pod.is_pending() {
                    waiting.insert(name);
                }
            }
            if !waiting.is_empty() {
                let of = |resource: &&'f str| (workload, *resource, waiting.clone());
                pending.extend(resources.iter().map(of));
            }
        }
        Self { on_nodes: GpuPods::of(view), running, pending }
    }

    /// Adds what gives all GPUs of a node instances, and which pods leave the node before. `stays`:
    /// whether the node keeps the layout that its label names, which some GPUs lack.
    pub(super) fn advise(&self, mut finding: Finding, node: &Node, stays: bool) -> Finding {
        let table = table_of(node);
        let only = table.as_ref().map(|table| (table, uniform_profile(node, table)));
        let profile = only.map(|(table, place)| table.profiles[place].name.clone());
        if node.pool.kind == GKE {
            // Another pool replaces no instance of this one.
            let example =
                |profile: String| format!("gpu-partition-size={profile}  # of a new node pool");
            finding.examples.extend(profile.map(example).map(Example::new));
            return finding;
        }
        let layout = profile.map(|profile| format!("all-{profile}"));
        // To set the label to what it says changes nothing.
        let has_it =
            layout.is_some() && node.node.label(labels::NVIDIA_MIG_CONFIG) == layout.as_deref();
        if stays || has_it {
            return self.on_nodes.must_leave(finding, node).for_example(APPLY_AGAIN);
        }
        let lost = self.lost(node, only);
        if !lost.is_empty() {
            let named = lost.iter().fold(finding, |finding, (resource, pods)| {
                let pods = first_of(pods.iter(), MOST_NAMED);
                finding
                    .with("pods that a layout must keep room for", format!("{pods} ({resource})"))
            });
            return named.for_example(KEEP);
        }
        let finding = self.on_nodes.must_leave(finding, node);
        let is_used = self.on_nodes.count_on(node) > 0 || node.may_be_held;
        match layout {
            Some(layout) if is_used => finding.for_example(format!(
                "{DRAIN}  # then: kubectl label node NODE nvidia.com/mig.config={layout} --overwrite. \
                 Uncordon it once nvidia.com/mig.config.state is success"
            )),
            Some(layout) => finding.for_example(format!(
                "kubectl label node NODES nvidia.com/mig.config={layout} --overwrite  # no pod uses \
                 these GPUs; or dovetail partition plan"
            )),
            // The example of the check.
            None => finding,
        }
    }

    /// The pods that request what a node would lack, by resource, if all instances of its GPUs had
    /// one profile; `None` is one that nobody knows.
    fn lost<'s>(
        &'s self,
        node: &'s Node,
        only: Option<OnlyProfile<'_>>,
    ) -> BTreeMap<&'s str, BTreeSet<String>> {
        let mut lost: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let offered = node.gpus.keys().filter(|_| node.may_be_held);
        for resource in offered.filter(|resource| is_lost(node, resource, only)) {
            lost.entry(resource).or_default().insert("pods that were not read".to_owned());
        }
        let running = self.running.get(&node.pool).into_iter().flatten();
        for (resource, pods) in running.filter(|(resource, _)| is_lost(node, resource, only)) {
            lost.entry(*resource).or_default().extend(pods.iter().cloned());
        }
        for (workload, resource, pods) in &self.pending {
            let may_use = || {
                workload.accepts_labels(node)
                    && keeping_away(node).all(|taint| passes(workload, resource, taint))
            };
            if is_lost(node, resource, only) && may_use() {
                lost.entry(*resource).or_default().extend(pods.iter().cloned());
            }
        }
        lost
    }
}

/// Whether a node offers a resource, or its GPUs have the profile, and no instance of this only
/// profile is that.
fn is_lost(node: &Node, resource: &str, only: Option<OnlyProfile<'_>>) -> bool {
    let is_offered = || node.gpus.get(resource).is_some_and(|gpus| gpus.built_in > 0);
    match (profile_name(node, resource), only) {
        (Some(name), Some((table, place))) => match table.profile(name) {
            Some(asked) => asked != place,
            None => is_offered(),
        },
        _ => is_offered(),
    }
}

/// The name of the profile whose instances a resource counts on a node; `None` if it counts
/// something else.
fn profile_name<'n>(node: &'n Node, resource: &'n str) -> Option<&'n str> {
    if let Some(name) = resource.strip_prefix(labels::NVIDIA_MIG) {
        return Some(name.trim_end_matches(".shared"));
    }
    let product = node.node.label(labels::NVIDIA_PRODUCT)?;
    let (_, name) = product.split_once("-MIG-")?;
    let is_of_gpus = [labels::NVIDIA_GPU, labels::NVIDIA_SHARED].contains(&resource);
    is_of_gpus.then(|| name.trim_end_matches("-SHARED"))
}

/// The place of the profile of a layout that cuts all GPUs alike and leaves nothing over: that of
/// the node's instances, if they have one and it fills a GPU, else the smallest.
fn uniform_profile(node: &Node, table: &MigTable) -> usize {
    let offered = node.gpus.iter().filter(|(_, gpus)| gpus.built_in > 0);
    let names = offered.filter_map(|(resource, _)| profile_name(node, resource));
    let places: BTreeSet<Option<usize>> = names.map(|name| table.profile(name)).collect();
    let only = places.first().copied().flatten().filter(|_| places.len() == 1);
    only.filter(|place| fills_a_gpu(table, *place)).unwrap_or(0)
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
