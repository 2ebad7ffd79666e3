//! A node as the checks see it: GPUs, pool, since when it takes nothing.

use dovetail_objects::labels;
use std::collections::BTreeMap;

use dovetail_audit::{names_a_repair, repair_word};
use dovetail_facts::{Gpus, Node, NodeGpus, ObjectRef, Units};
use dovetail_gpus::{
    self as gpus, GpuCount, KnownLayouts, model_label, named_like_gpus, node_gpus_like,
};
use dovetail_model::{GpuFraction, GpuParts, NodeAvailability, is_gpu_resource};
use dovetail_objects::{Labels, Node as Object};
use dovetail_translate::{NodeSetting, Rules, node as translated};

use super::clamped::{Clamped, ClampedOf, MOST_GPUS};
use super::detail::{ConditionDetail, NodeDetail};
use super::layout_change::{RECORD, stuck_since};
use super::share::HAMI_GPUS;

/// Labels that name the node's pool, and the kind of object that a person edits.
pub const POOL_LABELS: [(&str, &str); 7] = [
    (labels::KARPENTER_NODE_POOL, "NodePool"),
    ("karpenter.sh/provisioner-name", "Provisioner"),
    ("eks.amazonaws.com/nodegroup", "EKSNodegroup"),
    ("alpha.eksctl.io/nodegroup-name", "EKSNodegroup"),
    ("cloud.google.com/gke-nodepool", "GKENodePool"),
    ("kubernetes.azure.com/agentpool", "AKSNodePool"),
    ("agentpool", "AKSNodePool"),
];

/// Annotations that keep an autoscaler from removing a node.
const HELD_BY: [&str; 3] = [
    labels::SCALE_DOWN_DISABLED,
    labels::KARPENTER_DO_NOT_DISRUPT,
    labels::KARPENTER_DO_NOT_CONSOLIDATE,
];

/// Labels that say how the GPUs of a node are shared, and among how many pods each.
const SHARED: [(&str, &str); 2] = [
    (labels::NVIDIA_STRATEGY, labels::NVIDIA_REPLICAS),
    (labels::GKE_STRATEGY, labels::GKE_SHARED_CLIENTS),
];

/// Taints of autoscalers on nodes that they are removing: Karpenter (v1, before v1), and Cluster
/// Autoscaler (`ToBeDeletedTaint` in its `utils/taints`).
const REMOVED_BY: [&str; 3] =
    ["karpenter.sh/disrupted", "karpenter.sh/disruption", "ToBeDeletedByClusterAutoscaler"];

const CORDONED: &str = dovetail_model::node::UNSCHEDULABLE;

/// A node that is younger than this and not ready is starting.
const STARTING_MS: u64 = 15 * 60_000;

/// A node, and its GPUs if it has any.
pub(super) struct ReadNode {
    pub(super) node: Node,
    pub(super) gpus: Option<NodeGpus>,
    pub(super) provider_id: String,
    /// Numbers of GPUs that no machine has.
    pub(super) clamped: Vec<Clamped>,
    /// Who says how many GPUs it has.
    pub(super) count: Option<GpuCount>,
    /// Resources that may be GPUs of it and are not counted as such.
    pub(super) other_names: Vec<String>,
    /// Whether it stands for machines that somebody else runs and bills by the pod: what it offers
    /// is a limit, and nobody pays for what is free of it.
    pub(super) is_virtual: bool,
}

/// Label of the nodes of Virtual Kubelet, with its value there.
const VIRTUAL: (&str, &str) = ("type", "virtual-kubelet");

/// Reads a node.
pub(super) fn read(
    object: &Object,
    detail: &NodeDetail<'_>,
    layouts: &KnownLayouts,
    now_ms: u64,
) -> ReadNode {
    let mut node = translated(object, &NodeSetting::default(), &Rules::default());
    let created_ms = object.meta.created_ms;
    let name = object.meta.name.to_string();
    let labels = &object.meta.labels;
    let pool = POOL_LABELS.iter().find_map(|(label, kind)| {
        let name = labels.get(label).filter(|name| !name.is_empty())?;
        Some(ObjectRef::new(kind, "", name))
    });
    let held_by = HELD_BY.iter().find(|key| detail.metadata.annotation(key) == Some("true"));
    let (is_being_removed, cordoned_ms) = leaving(object, detail);
    // What sets the taint of a cordon adds the time; a removal ends soon, and a node without the
    // taint was cordoned just now.
    let has_taint = detail.spec.taints.iter().any(|taint| taint.key == CORDONED);
    let is_undated =
        object.unschedulable && has_taint && cordoned_ms.is_none() && !is_being_removed;
    let age_ms = now_ms.saturating_sub(created_ms);
    node.condition = condition(object, detail, age_ms, is_being_removed);
    let clamped = clamped(object);
    let is_virtual = labels.get(VIRTUAL.0) == Some(VIRTUAL.1);
    let hami = detail.metadata.annotation(HAMI_GPUS);
    let read = node_gpus_like(object, hami, layouts).filter(|_| !is_virtual);
    let other_names = match &read {
        Some(read) => read.other_names.clone(),
        None => named_like_gpus(object),
    };
    let is_offered = |read: &gpus::NodeGpus| read.units.iter().any(|units| units.built_in > 0);
    // A layout that makes no instance of a GPU leaves nothing over: no pod can request anything.
    let uncounted_gpus = read.as_ref().map_or(0, |read| read.missing + read.without_instances);
    let waits_for_plugin = uncounted_gpus > 0 && !read.as_ref().is_some_and(is_offered);
    // The driver and the plugin come up after the node does.
    if waits_for_plugin && age_ms < STARTING_MS && node.condition == NodeAvailability::Ready {
        node.condition = NodeAvailability::Starting;
    }
    let layout_rest_milli = read.as_ref().map_or(0, rest_of_instances);
    let has_unclear_layout = read.as_ref().is_some_and(gpus::NodeGpus::has_unclear_layout);
    let offered = read.as_ref().map(|read| offered_gpus(object, read)).unwrap_or_default();
    ReadNode {
        count: read.as_ref().map(|read| read.count.clone()),
        gpus: read.map(|read| of_audit(&name, read)),
        provider_id: detail.spec.provider_id.clone(),
        clamped,
        other_names,
        is_virtual,
        node: Node {
            gpus: offered,
            scale_down_held_by: held_by.map(|key| format!("{key}: true")),
            cordoned_since_ms: (object.unschedulable || is_being_removed)
                .then(|| cordoned_ms.unwrap_or(if is_undated { created_ms } else { now_ms })),
            cordon_is_undated: is_undated,
            repair_marks: repair_marks(detail),
            is_being_removed,
            layout_rest_milli,
            time_slices: time_slices(labels),
            joined_ms: Some(created_ms).filter(|ms| *ms > 0),
            not_ready_since_ms: not_ready_since(detail),
            uncounted_gpus,
            has_unclear_layout,
            stuck_since_ms: detail.metadata.annotation(RECORD).and_then(stuck_since),
            // Pods that have ended, prices and providers' labels say the rest.
            ..Node::new(node, pool.unwrap_or_else(|| ObjectRef::new("Node", "", &name)))
        },
    }
}

/// What the kubelet offers of each GPU resource; `read` is what its units are.
fn offered_gpus(object: &Object, read: &gpus::NodeGpus) -> BTreeMap<String, Gpus> {
    let model = model_label(&object.meta.labels);
    let offered = object.allocatable.extended.iter().filter(|(name, _)| is_gpu_resource(name));
    offered
        .map(|(name, count)| {
            let allocatable = (*count).clamp(0, MOST_GPUS);
            let capacity = object.capacity.extended.iter().find(|(built_in, _)| *built_in == name);
            let built_in = capacity.map_or(allocatable, |(_, count)| *count);
            let built_in = built_in.clamp(allocatable, MOST_GPUS);
            let model = model.map(str::to_owned);
            let part = read.units_of(name).and_then(|units| units.part.clone());
            (name.clone(), Gpus { model, part, built_in, allocatable, ..Gpus::default() })
        })
        .collect()
}

/// Whether it is being removed, and since when it takes no new pods, as far as it says.
fn leaving(object: &Object, detail: &NodeDetail<'_>) -> (bool, Option<u64>) {
    let removal = detail.spec.taints.iter().find(|taint| REMOVED_BY.contains(&&*taint.key));
    let taints = detail.spec.taints.iter().filter(|taint| taint.key == CORDONED).chain(removal);
    let times = taints.filter_map(|taint| taint.time_added.0);
    let since_ms = times.chain(detail.metadata.deletion_timestamp.0).min();
    (removal.is_some() || object.meta.is_deleting(), since_ms)
}

/// What conditions and annotations of a node report of a repair that it needs, or of a reboot in
/// progress.
fn repair_marks(detail: &NodeDetail<'_>) -> Vec<String> {
    let conditions = detail.status.conditions.iter().filter(|of| is_of_repair(of));
    let conditions = conditions.map(|of| {
        let reason = if of.reason.is_empty() { "" } else { " with reason " };
        format!("condition {}={}{reason}{}", of.kind, of.status, of.reason)
    });
    let annotations = detail.metadata.annotations.iter().filter_map(|(key, value)| {
        let value = value.as_deref()?;
        let is_set = !value.is_empty() && !value.eq_ignore_ascii_case("false");
        let is_of_repair = key == labels::KURED_REBOOTING || names_a_repair(key);
        (is_set && is_of_repair).then(|| format!("annotation {key}: {value}"))
    });
    conditions.chain(annotations).collect()
}

/// How the types of conditions end that report health, the longer ends first, and whether each is
/// one of a fault.
const HEALTH: [(&str, bool); 4] =
    [("unhealthy", true), ("notready", true), ("healthy", false), ("ready", false)];

/// How a text ends, if it is like the type of a condition that reports health.
fn end_of_health(text: &str) -> Option<(&'static str, bool)> {
    let text = text.to_ascii_lowercase();
    HEALTH.into_iter().find(|(end, _)| text.ends_with(end))
}

/// The parts of a text by which it marks a node for a repair, in a text that does so, too; `None`
/// if there are none.
pub(crate) fn told_of_repair(text: &str) -> Option<String> {
    let end = end_of_health(text).map(|(end, _)| end);
    let mut parts: Vec<&str> = repair_word(text).into_iter().chain(end).collect();
    parts.dedup();
    (!parts.is_empty()).then(|| parts.join("-"))
}

/// Whether a condition of a component beside the kubelet reports that something does not work:
/// one of health that is not true, or one of a fault that is.
fn is_of_repair(condition: &ConditionDetail<'_>) -> bool {
    let is_of_health = end_of_health(&condition.kind).is_some_and(|(_, is_of_fault)| !is_of_fault);
    match &*condition.status {
        "True" => {
            let texts = [&condition.kind, &condition.reason];
            !is_of_health && texts.iter().any(|text| names_a_repair(text))
        }
        "False" => is_of_health && condition.kind != "Ready",
        _ => false,
    }
}

/// How many pods share each GPU in turns, by the labels of GPU Feature Discovery or of GKE.
fn time_slices(labels: &Labels) -> u32 {
    let count = |key: &str| labels.get(key).and_then(|count| count.parse::<u32>().ok());
    SHARED
        .iter()
        .filter(|(strategy, _)| labels.get(strategy).is_none_or(|by| by != "mps"))
        .filter_map(|(_, clients)| count(clients))
        .find(|count| *count > 1)
        .unwrap_or(0)
}

/// Leaves it open who holds the GPUs of a node that no plugin offers: resource slices may offer
/// them, and these were not read.
pub(super) fn leave_to_slices(read: &mut ReadNode) {
    let Some(gpus) = read.gpus.as_mut().filter(|gpus| gpus.units.iter().all(|of| of.count == 0))
    else {
        return;
    };
    let count = std::mem::take(&mut read.node.uncounted_gpus);
    gpus.unavailable_milli = (gpus.unavailable_milli - 1000 * count).max(0);
    gpus.units.push(Units {
        resource: labels::NVIDIA_GPU.to_owned(),
        count,
        parts: GpuParts::Equal(GpuFraction { part: 1, of: 1 }),
        is_shared: false,
        unknown: count,
    });
}

/// Leaves it open who holds what a node offers by claims: pods on it refer to some, and these were
/// not read.
pub(super) fn leave_to_claims(read: &mut ReadNode) {
    let offered = &read.node.gpus;
    for units in read.gpus.iter_mut().flat_map(|gpus| &mut gpus.units) {
        if offered.get(&units.resource).is_some_and(|gpus| gpus.claimable) {
            units.unknown = units.count;
        }
    }
}

/// What the node says of GPUs that no machine has, one for each resource.
fn clamped(object: &Object) -> Vec<Clamped> {
    let amounts = object.capacity.extended.iter().chain(&object.allocatable.extended);
    let mut said: BTreeMap<&String, i64> = BTreeMap::new();
    for (resource, count) in amounts.filter(|(name, _)| is_gpu_resource(name)) {
        if *count != (*count).clamp(0, MOST_GPUS) {
            said.entry(resource).or_insert(*count);
        }
    }
    let clamped = said.into_iter().map(|(resource, said)| Clamped {
        of: ClampedOf::Node(object.meta.name.to_string()),
        resource: resource.clone(),
        said,
        counted: said.clamp(0, MOST_GPUS),
    });
    clamped.collect()
}

/// The first GPU resource of which a node has less than none, with its path and its number.
pub(super) fn negative(object: &Object) -> Option<(String, i64)> {
    let amounts = [("capacity", &object.capacity), ("allocatable", &object.allocatable)];
    amounts.into_iter().find_map(|(field, amounts)| {
        let mut gpus = amounts.extended.iter().filter(|(name, _)| is_gpu_resource(name));
        let (name, count) = gpus.find(|(_, count)| **count < 0)?;
        Some((format!("status.{field}.{name}"), *count))
    })
}

/// Since when the node is not ready, as far as its condition says.
fn not_ready_since(detail: &NodeDetail<'_>) -> Option<u64> {
    let ready = detail.status.conditions.iter().find(|condition| condition.kind == "Ready")?;
    (ready.status != "True").then_some(ready.last_transition_time.0).flatten()
}

fn condition(
    object: &Object,
    detail: &NodeDetail<'_>,
    age_ms: u64,
    is_being_removed: bool,
) -> NodeAvailability {
    let ready = detail.status.conditions.iter().find(|condition| condition.kind == "Ready");
    match ready {
        // Only what says so is broken: a dump without conditions says nothing.
        Some(ready) if ready.status != "True" && age_ms < STARTING_MS => NodeAvailability::Starting,
        Some(ready) if ready.status != "True" => NodeAvailability::NotReady,
        _ if object.unschedulable || is_being_removed => NodeAvailability::Cordoned,
        _ => NodeAvailability::Ready,
    }
}

/// What layouts leave over of GPUs that have instances, in milli-GPU.
fn rest_of_instances(read: &gpus::NodeGpus) -> i64 {
    (read.layout_rest_milli - 1000 * read.without_instances).max(0)
}

/// What instances leave over of GPUs of which nothing tells how they are cut, in milli-GPU: nobody
/// knows whether more instances fit.
fn unknown_rest(read: &gpus::NodeGpus, unavailable_milli: i64) -> i64 {
    if !read.has_unknown_rest {
        return 0;
    }
    let usable: i64 = read.units.iter().map(|units| units.parts.milli(0, units.usable)).sum();
    (read.count.gpus * 1000 - unavailable_milli - usable).max(0)
}

/// GPUs as the audit counts them.
fn of_audit(node: &str, read: gpus::NodeGpus) -> NodeGpus {
    let unavailable_milli = read.unavailable_milli() + 1000 * read.without_instances;
    let layout_rest_milli = rest_of_instances(&read);
    let renamed_milli = 1000 * read.perhaps_renamed;
    let unknown_milli = unknown_rest(&read, unavailable_milli) + renamed_milli;
    let units = read.units.into_iter().map(|units| Units {
        resource: units.resource,
        count: units.usable,
        parts: units.parts,
        is_shared: units.is_shared,
        unknown: 0,
    });
    NodeGpus {
        node: node.to_owned(),
        model: read.model,
        gpus: read.count.gpus,
        unavailable_milli: unavailable_milli.clamp(0, read.count.gpus * 1000),
        layout_rest_milli,
        unknown_milli,
        units: units.collect(),
    }
}
