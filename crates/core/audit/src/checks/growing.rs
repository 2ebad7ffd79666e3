//! Workloads that an autoscaler may give more pods than the nodes that stay have room for.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::NodeAvailability;

use super::View;
use super::drained::{add_risks, removed_nodes, removes};
use crate::facts::{Autoscaler, Node, ObjectRef, Workload};
use crate::finding::Finding;

/// Pools of Karpenter, which adds nodes again for pods that need them.
const ADDS_NODES: &str = "NodePool";

/// Autoscalers that one finding names.
const MOST_NAMED: usize = 3;

/// What an autoscaler may add.
struct Growth<'f> {
    autoscaler: &'f Autoscaler,
    workload: &'f Workload,
    /// Pods at most, of how many there are now.
    pods: (u32, u32),
}

/// Adds to the findings that remove nodes which autoscalers may then lack them.
pub(super) fn name_growth(view: &View<'_>, found: &mut [Finding]) {
    let removed = removed_nodes(found);
    let mut growing: Vec<Growth<'_>> = growing(view);
    if removed.is_empty() || growing.is_empty() {
        return;
    }
    let used = used_then(view, found);
    growing.retain(|growth| !growth.has_room(view, &removed, &used));
    let removing = found.iter_mut().filter(|of| removes(of) && of.object.kind != ADDS_NODES);
    for finding in removing {
        let nodes = finding.affected.iter().filter_map(|of| view.nodes.get(&*of.name).copied());
        let nodes: Vec<&Node> = nodes.collect();
        let may_need = |of: &&Growth<'_>| nodes.iter().any(|node| of.pods_on(node, 0) > 0);
        let named = growing.iter().filter(may_need).take(MOST_NAMED);
        add_risks(finding, named.map(Growth::words).collect());
    }
}

fn growing<'f>(view: &View<'f>) -> Vec<Growth<'f>> {
    let facts = view.facts;
    let growth = |autoscaler: &'f Autoscaler| {
        let workload = view.gpu_workload_of(&autoscaler.scales)?;
        let most = autoscaler.most_replicas?;
        let now = workload.replicas;
        (most > now).then_some(Growth { autoscaler, workload, pods: (most, now) })
    };
    facts.autoscalers.iter().filter_map(growth).collect()
}

/// GPUs that pods have by node and resource, once those that findings move have moved.
fn used_then<'f>(view: &View<'f>, found: &[Finding]) -> BTreeMap<(String, &'f str), i64> {
    let moves = found.iter().flat_map(|finding| &finding.moves);
    let moved: BTreeMap<&ObjectRef, &str> = moves.map(|of| (&of.pod, &*of.to)).collect();
    let mut used: BTreeMap<(String, &str), i64> = BTreeMap::new();
    for workload in view.gpu_workloads() {
        let gpus = workload.gpus_per_pod();
        for pod in &workload.pods {
            let Some(node) = pod.node.as_deref() else { continue };
            let node = match moved.is_empty() {
                true => node,
                false => moved.get(&super::pod_ref(workload, pod)).copied().unwrap_or(node),
            };
            for (resource, count) in &gpus {
                *used.entry((node.to_owned(), *resource)).or_default() += count;
            }
        }
    }
    used
}

impl Growth<'_> {
    /// Whether all pods that may be added fit on nodes that stay, by their numbers of GPUs.
    fn has_room(
        &self,
        view: &View<'_>,
        removed: &BTreeSet<String>,
        used: &BTreeMap<(String, &str), i64>,
    ) -> bool {
        let needs = self.workload.gpus_per_pod();
        let Some((&resource, _)) = needs.iter().find(|(_, count)| **count > 0) else { return true };
        let stays = view.facts.nodes.iter().filter(|node| {
            node.node.condition == NodeAvailability::Ready
                && node.cordoned_since_ms.is_none()
                && !removed.contains(&*node.node.name)
        });
        let of_node = |node: &Node| {
            let used = used.get(&(node.node.name.to_string(), resource)).copied().unwrap_or(0);
            self.pods_on(node, used)
        };
        let (most, now) = self.pods;
        stays.map(of_node).fold(0, i64::saturating_add) >= i64::from(most - now)
    }

    /// How many of its pods a node has GPUs for, of which so many are used.
    fn pods_on(&self, node: &Node, used: i64) -> i64 {
        let needs = self.workload.gpus_per_pod();
        let Some((resource, count)) = needs.iter().find(|(_, count)| **count > 0) else { return 0 };
        let accepts = self.workload.accepts_labels(node);
        match node.gpus.get(*resource) {
            Some(gpus) if accepts && self.workload.can_get(resource, gpus) => {
                (gpus.allocatable - used).max(0) / count
            }
            _ => 0,
        }
    }

    fn words(&self) -> String {
        let ObjectRef { kind, namespace, name } = &self.autoscaler.object;
        let scales = &self.autoscaler.scales;
        let (most, now) = self.pods;
        format!(
            "{kind} {namespace}/{name} can scale {} {} from {now} to {most} pods, and the nodes that stay have too few \
             free GPUs for all of them",
            scales.kind, scales.name
        )
    }
}
