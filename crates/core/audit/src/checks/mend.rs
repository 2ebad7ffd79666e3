//! What would mend what a check found, where a change of one object does.

use dovetail_facts::{Container, ContainerKind, Node, Workload};
use dovetail_model::labels;
use std::collections::BTreeSet;

use dovetail_model::{Node as ModelNode, SelectorTerm, Taint, requirement::Operator};

use super::taints::{keeping_away, tolerates};
use super::{View, percent_of};
use crate::health::tells_of_health;
use crate::remedy::{LimitChange, PatchChange};

/// Labels that tell GPU nodes from others, the plainest first.
const GPU_LABELS: [&str; 4] = [
    labels::NVIDIA_PRESENT,
    labels::NVIDIA_PRODUCT,
    labels::AMD_PRODUCT,
    labels::KARPENTER_NODE_POOL,
];

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;

/// The one container that holds a resource while the pod runs; several would share what is changed
/// in a way that nobody knows.
fn holder<'w>(workload: &'w Workload, resource: &str) -> Option<&'w Container> {
    let holds = |container: &&Container| container.gpu_limits().any(|(name, _)| name == resource);
    let mut holders = workload.template.containers.iter().filter(holds);
    let first = holders.next()?;
    (holders.next().is_none() && first.kind != ContainerKind::Init).then_some(first)
}

/// So many of a resource for the one container that holds it.
pub(super) fn gpus(workload: &Workload, resource: &str, count: i64) -> Option<PatchChange> {
    let container = holder(workload, resource)?.name.clone();
    Some(PatchChange::Gpus { container, resource: resource.to_owned(), count })
}

/// Another resource for the one container that holds GPUs, if a node that the pods may use offers
/// it.
pub(super) fn other_gpus(
    view: &View<'_>,
    workload: &Workload,
    from: &str,
    to: &str,
) -> Vec<PatchChange> {
    let Some(holder) = holder(workload, from) else { return Vec::new() };
    let is_open =
        |node: &Node| keeping_away(node).all(|taint| taint.key == to || tolerates(workload, taint));
    if !view.nodes_meant_for(workload, to).any(is_open) {
        return Vec::new();
    }
    let of = |resource: &str, count| PatchChange::Gpus {
        container: holder.name.clone(),
        resource: resource.to_owned(),
        count,
    };
    vec![of(from, 0), of(to, 1)]
}

/// So much less CPU or memory for the largest container that the pods keep to their share.
pub(super) fn no_more_than(
    workload: &Workload,
    resource: &'static str,
    share: i64,
) -> Option<PatchChange> {
    let asked = |container: &Container| {
        let of = container.requests.get(resource).or(container.limits.get(resource));
        of.copied().unwrap_or(0)
    };
    let works = || workload.template.containers.iter().filter(|c| c.kind != ContainerKind::Init);
    let all: i64 = works().map(asked).fold(0, i64::saturating_add);
    let largest = works().max_by_key(|container| asked(container))?;
    let left = share.saturating_sub(all - asked(largest));
    let step = if resource == "cpu" { 10 } else { MIB };
    let request = left.div_euclid(step) * step;
    let container = largest.name.clone();
    (request > 0).then_some(PatchChange::Amount {
        container,
        resource,
        request,
        limit: LimitChange::Stays,
    })
}

/// So much more memory for the only container, as request and limit.
pub(super) fn more_memory(workload: &Workload, percent: u64) -> Option<PatchChange> {
    let mut works = workload.template.containers.iter();
    let (only, None) = (works.next()?, works.next()) else { return None };
    let has = only.limits.get("memory").or(only.requests.get("memory")).copied()?;
    let more = (has.checked_add(percent_of(has, percent))?.checked_add(MIB - 1)?) / MIB * MIB;
    let limit = LimitChange::Is(more);
    let container = only.name.clone();
    Some(PatchChange::Amount { container, resource: "memory", request: more, limit })
}

/// Memory at `/dev/shm` of each container with GPUs: 16 GiB, and no more than half of what the
/// container may use.
pub(super) fn shared_memory(workload: &Workload) -> Vec<PatchChange> {
    let works = workload.template.containers.iter();
    let works = works.filter(|c| c.kind == ContainerKind::Main && c.gpu_limits().next().is_some());
    let change = |container: &Container| {
        let half = container.limits.get("memory").map_or(i64::MAX, |memory| memory / 2);
        let bytes = (16 * GIB).min(half) / MIB * MIB;
        PatchChange::SharedMemory { container: container.name.clone(), bytes }
    };
    works.map(change).collect()
}

/// Tolerations of what keeps pods away from the kind of node that asks for the fewest; none of
/// taints of nodes that do not work.
pub(super) fn tolerate(
    view: &View<'_>,
    workload: &Workload,
    resource: &str,
) -> Option<PatchChange> {
    let missing = |node: &Node| -> Vec<Taint> {
        let taints = keeping_away(node).filter(|taint| !tolerates(workload, taint));
        taints.cloned().collect()
    };
    let nodes = view.nodes_meant_for(workload, resource).map(missing);
    let nodes = nodes.filter(|taints| !taints.iter().any(tells_of_health));
    let taints = nodes.min_by_key(|taints| (taints.len(), taints.clone()))?;
    Some(PatchChange::Tolerate { taints })
}

/// Labels by which pods without GPUs stay off GPU nodes: each of these has one of them, and no
/// other node has any; vendors have labels of their own. Empty where labels do not tell GPU nodes
/// from others.
pub(super) fn stay_off(view: &View<'_>) -> Vec<PatchChange> {
    let (with_gpus, others): (Vec<&Node>, Vec<&Node>) =
        view.facts.nodes.iter().partition(|node| node.has_gpus());
    let is_own = |label: &&str| !others.iter().any(|node| has_label(node, label));
    let known: Vec<&str> = GPU_LABELS.into_iter().filter(is_own).collect();
    let has_all = |label: &&&str| with_gpus.iter().all(|node| has_label(node, label));
    let mut keys: Vec<&str> = known.iter().find(has_all).copied().into_iter().collect();
    if keys.is_empty() {
        let mut left = with_gpus;
        for label in known {
            let before = left.len();
            left.retain(|node| !has_label(node, label));
            // A label that no more GPU nodes have excludes no more of them.
            keys.extend((left.len() < before).then_some(label));
        }
        if !left.is_empty() {
            return Vec::new();
        }
    }
    let term = |key: &str| SelectorTerm {
        key: key.to_owned(),
        operator: Operator::DoesNotExist,
        values: Vec::new(),
    };
    keys.into_iter().map(|key| PatchChange::AskOfNodes { term: term(key) }).collect()
}

fn has_label(node: &Node, label: &str) -> bool {
    node.node.label(label).is_some()
}

/// The model that all its pods are on now, by the label that names it.
pub(super) fn keep_model(
    view: &View<'_>,
    workload: &Workload,
    resource: &str,
) -> Option<PatchChange> {
    let mut labels = BTreeSet::new();
    for (_, node) in view.placed(workload) {
        labels.insert(model_label(node, resource)?);
    }
    let [(label, value)] = labels.into_iter().collect::<Vec<_>>()[..] else { return None };
    Some(PatchChange::SelectNodes { label: label.to_owned(), value: value.to_owned() })
}

/// The label of a node that names the model of its GPUs.
pub(super) fn model_label<'n>(node: &'n Node, resource: &str) -> Option<(&'n str, &'n str)> {
    label_of(&node.node, node.gpus.get(resource)?.model.as_deref()?)
}

fn label_of<'n>(node: &'n ModelNode, model: &str) -> Option<(&'n str, &'n str)> {
    let names = |(key, value): &(&'n str, &'n str)| *value == model && key.contains('/');
    node.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).find(names)
}
