//! Workloads that an autoscaler may give more pods than the nodes that stay have room for.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Autoscaler, Node, ObjectRef, Workload};
use dovetail_model::NodeAvailability;

use super::View;
use super::drained::{add_risks, removed_nodes, removes};
use crate::finding::{Finding, Move};

/// Pools of Karpenter, which adds nodes again for pods that need them.
const ADDS_NODES: &str = "NodePool";

/// Autoscalers that one finding names.
const MOST_NAMED: usize = 3;

/// What an autoscaler may add.
struct Growth<'f> {
    autoscaler: &'f Autoscaler,
    workload: &'f Workload,
    /// A resource of which a pod holds GPUs, and how many.
    needs: Option<(&'f str, i64)>,
    /// Pods at most, of how many there are now.
    pods: (u32, u32),
}

/// Nodes with free GPUs, and how many are free, by resource.
type FreeGpus<'f> = BTreeMap<&'f str, Vec<(&'f Node, i64)>>;

/// Adds to the findings that remove nodes which autoscalers may then lack them.
pub(super) fn name_growth(view: &View<'_>, found: &mut [Finding]) {
    let removed = removed_nodes(found);
    let mut growing: Vec<Growth<'_>> = growing(view);
    if removed.is_empty() || growing.is_empty() {
        return;
    }
    let free = free_then(view, &removed, found);
    growing.retain(|growth| !growth.has_room(&free));
    let removing = found.iter_mut().filter(|of| removes(of) && of.object.kind != ADDS_NODES);
    for finding in removing {
        let nodes = finding.affected.iter().filter_map(|of| view.node_of.get(&*of.name).copied());
        let nodes: Vec<&Node> = nodes.collect();
        let may_need = |of: &&Growth<'_>| nodes.iter().any(|node| of.may_use(node));
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
        if most <= now {
            return None;
        }
        let needs = workload.gpus_per_pod().into_iter().find(|(_, count)| *count > 0);
        Some(Growth { autoscaler, workload, needs, pods: (most, now) })
    };
    facts.autoscalers.iter().filter_map(growth).collect()
}

/// GPUs that are free on the nodes that stay, once the pods of the others have moved, and whichever
/// of the moves between nodes that stay are made.
fn free_then<'f>(view: &View<'f>, removed: &BTreeSet<String>, found: &[Finding]) -> FreeGpus<'f> {
    let used = used_then(view, found);
    let stays = view.facts.nodes.iter().filter(|node| {
        node.node.condition == NodeAvailability::Ready
            && node.cordoned_since_ms.is_none()
            && !removed.contains(&*node.node.name)
    });
    let mut free = FreeGpus::new();
    for node in stays {
        for (resource, gpus) in &node.gpus {
            let used = used.get(&(&*node.node.name, resource.as_str())).copied().unwrap_or(0);
            if gpus.allocatable > used {
                free.entry(resource.as_str()).or_default().push((node, gpus.allocatable - used));
            }
        }
    }
    free
}

/// GPUs that pods may have by node and resource, once those of nodes that go have moved. Other
/// moves (SCH-08) may be made or not: such a pod counts on its node and where it would move.
fn used_then<'a>(view: &View<'a>, found: &'a [Finding]) -> BTreeMap<(&'a str, &'a str), i64> {
    let mut moved: BTreeMap<&ObjectRef, &str> = BTreeMap::new();
    let mut may_move: BTreeMap<&ObjectRef, BTreeSet<&str>> = BTreeMap::new();
    for finding in found {
        let leaves = removes(finding);
        for Move { pod, to, .. } in &finding.moves {
            if leaves {
                moved.insert(pod, to);
            } else {
                may_move.entry(pod).or_default().insert(to);
            }
        }
    }
    let moves = !moved.is_empty() || !may_move.is_empty();
    let mut used: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for workload in view.gpu_workloads() {
        let gpus = workload.gpus_per_pod();
        for pod in &workload.pods {
            let Some(node) = pod.node.as_deref() else { continue };
            let mut nodes = vec![node];
            if moves {
                let pod = super::pod_ref(workload, pod);
                nodes[0] = moved.get(&pod).copied().unwrap_or(node);
                let others = may_move.get(&pod).into_iter().flatten().copied();
                let others: Vec<&str> = others.filter(|to| *to != nodes[0]).collect();
                nodes.extend(others);
            }
            for (resource, count) in &gpus {
                for node in &nodes {
                    *used.entry((*node, *resource)).or_default() += count;
                }
            }
        }
    }
    used
}

impl Growth<'_> {
    /// Whether all pods that may be added fit on nodes that stay, by their numbers of GPUs.
    fn has_room(&self, free: &FreeGpus<'_>) -> bool {
        let Some((resource, count)) = self.needs else { return true };
        let (most, now) = self.pods;
        let mut missing = i64::from(most - now);
        for (node, free) in free.get(resource).into_iter().flatten() {
            if missing <= 0 {
                break;
            }
            if self.may_use(node) {
                missing -= free / count;
            }
        }
        missing <= 0
    }

    /// Whether its pods could run on an empty node.
    fn may_use(&self, node: &Node) -> bool {
        let Some((resource, count)) = self.needs else { return false };
        node.gpus.get(resource).is_some_and(|gpus| {
            gpus.allocatable >= count
                && self.workload.can_get(resource, gpus)
                && self.workload.accepts_labels(node)
        })
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
