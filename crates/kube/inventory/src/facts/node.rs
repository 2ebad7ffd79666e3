//! A node as the checks see it: GPUs, pool, since when it takes nothing.

use dovetail_objects::labels;
use std::collections::BTreeMap;

use dovetail_audit::{Gpus, Node, NodeGpus, ObjectRef, Slice, Units, is_gpu_resource};
use dovetail_cluster::translate::{NodeSetting, Rules, node as translated};
use dovetail_model::Condition;
use dovetail_objects::{GpuLabels, Labels, Node as Object};

use super::clamped::Clamped;
use super::detail::NodeDetail;
use super::gpu_count::counted_by_provider;
use super::share::{
    HAMI_GPUS, counted_as, gpus_of_slices, hami_gpus, is_of_shares, single_mig, slice_of,
};

/// Labels that name the GPU model, the most precise first.
const MODEL_LABELS: [&str; 6] = [
    labels::NVIDIA_PRODUCT,
    labels::AMD_PRODUCT,
    labels::AMD_OLD_PRODUCT,
    labels::GKE_ACCELERATOR,
    labels::KARPENTER_GPU,
    labels::AWS_ACCELERATOR,
];

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

const CORDONED: &str = dovetail_model::node::UNSCHEDULABLE;

/// A node that is younger than this and not ready is starting.
const STARTING_MS: u64 = 15 * 60_000;

/// The name of whole GPUs, under which slices and replicas are offered, too.
const GPU: &str = labels::NVIDIA_GPU;

/// GPUs of one node; more are a slip of whoever wrote the label.
const MOST_GPUS: i64 = 4096;

/// A node, and its GPUs if it has any.
pub(super) struct ReadNode {
    pub(super) node: Node,
    pub(super) gpus: Option<NodeGpus>,
    pub(super) provider_id: String,
    /// Numbers of GPUs that no machine has.
    pub(super) clamped: Vec<Clamped>,
}

/// Reads a node.
pub(super) fn read(object: &Object, detail: &NodeDetail<'_>, now_ms: u64) -> ReadNode {
    let mut node = translated(object, &NodeSetting::default(), &Rules::default());
    let created_ms = object.meta.created_ms;
    node.condition = condition(object, detail, now_ms.saturating_sub(created_ms));
    let name = object.meta.name.to_string();
    let labels = &object.meta.labels;
    let pool = POOL_LABELS.iter().find_map(|(label, kind)| {
        let name = labels.get(label).filter(|name| !name.is_empty())?;
        Some(ObjectRef::new(kind, "", name))
    });
    let held_by = HELD_BY.iter().find(|key| detail.metadata.annotation(key) == Some("true"));
    let taints = detail.spec.taints.iter();
    let cordoned_ms = taints.filter(|taint| taint.key == CORDONED).find_map(|t| t.time_added.0);
    let model = model_label(labels);
    let offered = object.allocatable.extended.iter().filter(|(name, _)| is_gpu_resource(name));
    let gpus: BTreeMap<String, Gpus> = offered
        .map(|(name, count)| {
            let allocatable = (*count).clamp(0, MOST_GPUS);
            let capacity = object.capacity.extended.iter().find(|(built_in, _)| *built_in == name);
            let built_in = capacity.map_or(allocatable, |(_, count)| *count);
            let built_in = built_in.clamp(allocatable, MOST_GPUS);
            let model = model.clone();
            (name.clone(), Gpus { model, built_in, allocatable, ..Gpus::default() })
        })
        .collect();
    let clamped = clamped(object);
    let shared = hami_gpus(detail.metadata.annotation(HAMI_GPUS));
    let read = node_gpus(object, &gpus, model, shared);
    let uncounted_gpus = uncounted(&gpus, read.as_ref(), labelled(labels));
    ReadNode {
        gpus: read,
        provider_id: detail.spec.provider_id.clone(),
        clamped,
        node: Node {
            pool: pool.unwrap_or_else(|| ObjectRef::new("Node", "", &name)),
            gpus,
            scale_down_held_by: held_by.map(|key| format!("{key}: true")),
            // A node that does not say since when was cordoned just now, as far as anybody knows.
            cordoned_since_ms: object.unschedulable.then(|| cordoned_ms.unwrap_or(now_ms)),
            // Whoever knows the providers' labels says so.
            is_spot: None,
            without_gpu_pods_since_ms: None,
            uncounted_gpus,
            numa_policy: None,
            // Whoever knows prices says so.
            cheapest_region: None,
            devices: Vec::new(),
            node,
        },
    }
}

/// The model as a label of the node names it.
pub(super) fn model_label(labels: &Labels) -> Option<String> {
    let model = MODEL_LABELS.iter().find_map(|label| labels.get(label));
    model.filter(|model| !model.is_empty()).map(str::to_owned)
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
        node: object.meta.name.to_string(),
        resource: resource.clone(),
        said,
        counted: said.clamp(0, MOST_GPUS),
        pod: None,
    });
    clamped.collect()
}

/// Physical GPUs as GPU discovery counts them; 0 where no label says. With the MIG strategy
/// `single` its label counts slices.
pub(super) fn labelled(labels: &Labels) -> i64 {
    let labels = GpuLabels::read(|key| labels.get(key));
    match labels.product.and_then(single_mig) {
        Some(_) => 0,
        None => labels.count.map_or(0, i64::from),
    }
}

/// GPUs that the label counts and no plugin does. Where GPUs are cut into slices, what is left of
/// each is not missing.
fn uncounted(gpus: &BTreeMap<String, Gpus>, read: Option<&NodeGpus>, labelled: i64) -> i64 {
    let is_cut = gpus.keys().any(|resource| resource.starts_with(labels::NVIDIA_MIG));
    let counted: i64 = read.into_iter().flat_map(|read| &read.units).fold(0, |sum, units| {
        let built_in = gpus.get(&units.resource).map_or(0, |gpus| gpus.built_in);
        sum + units.slice.milli(built_in)
    });
    if is_cut || counted == 0 { 0 } else { (labelled - (counted + 999) / 1000).max(0) }
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

fn condition(object: &Object, detail: &NodeDetail<'_>, age_ms: u64) -> Condition {
    let ready = detail.status.conditions.iter().find(|condition| condition.kind == "Ready");
    match ready {
        // Only what says so is broken: a dump without conditions says nothing.
        Some(ready) if ready.status != "True" && age_ms < STARTING_MS => Condition::Starting,
        Some(ready) if ready.status != "True" => Condition::NotReady,
        _ if object.unschedulable => Condition::Cordoned,
        _ => Condition::Ready,
    }
}

/// The physical GPUs of a node, and the units in which pods ask for them. `shared` are the physical
/// GPUs that HAMi shares out, if it does.
fn node_gpus(
    object: &Object,
    offered: &BTreeMap<String, Gpus>,
    product: Option<String>,
    shared: Option<i64>,
) -> Option<NodeGpus> {
    let labels = &object.meta.labels;
    let replicas = GpuLabels::read(|key| labels.get(key)).replicas.map_or(1, i64::from);
    let labelled = labelled(labels);
    let shared = shared.map(|gpus| if gpus > 0 { gpus } else { labelled });
    // A plugin may offer replicas of GPUs that no label counts.
    let is_whole = replicas == 1 && product.as_deref().and_then(single_mig).is_none();
    let counted =
        || Some(labelled).filter(|gpus| *gpus > 0).or_else(|| counted_by_provider(labels));
    let shared = shared.or_else(|| counted().filter(|_| is_whole));
    let mut units = Vec::new();
    let (mut usable_milli, mut built_in_milli, mut cut_from) = (0, 0, 0);
    let capacity = object.capacity.extended.iter().filter(|(name, _)| is_gpu_resource(name));
    for (resource, built_in) in capacity.filter(|(name, _)| counted_as(offered, name).is_none()) {
        let usable = offered.get(resource).map_or(0, |gpus| gpus.allocatable);
        let built_in = (*built_in).clamp(usable, MOST_GPUS);
        let shared = shared.filter(|gpus| resource == GPU && (1..built_in).contains(gpus));
        let slice = match shared {
            Some(gpus) => Slice { part: gpus, of: built_in },
            None => slice_of(resource, replicas, product.as_deref()),
        };
        let is_replica = resource.starts_with(GPU) && replicas > 1;
        if let Some((model, profile)) = product.as_deref().and_then(single_mig)
            && resource.starts_with(GPU)
        {
            cut_from += gpus_of_slices(model, profile, (built_in + replicas - 1) / replicas);
        }
        usable_milli += slice.milli(usable);
        built_in_milli += slice.milli(built_in);
        let is_shared = shared.is_some() || is_replica || is_of_shares(resource);
        units.push(Units { resource: resource.clone(), count: usable, slice, is_shared });
    }
    let built_in = (built_in_milli + 999) / 1000;
    let gpus = labelled.max(built_in).max(cut_from).min(MOST_GPUS);
    // What a plugin counts and does not offer is broken; so is what the label counts and no plugin
    // does. What no slice is cut from is neither.
    let is_cut = cut_from > 0 || units.iter().any(|of| of.resource.starts_with(labels::NVIDIA_MIG));
    let missing_milli = match built_in_milli {
        0 => gpus * 1000,
        _ if is_cut => 0,
        _ => (gpus - built_in) * 1000,
    };
    let unavailable_milli = built_in_milli - usable_milli + missing_milli;
    let model = product.map(|product| match single_mig(&product) {
        Some((model, _)) => model.to_owned(),
        None => product,
    });
    (gpus > 0).then(|| NodeGpus {
        node: object.meta.name.to_string(),
        model,
        gpus,
        unavailable_milli: unavailable_milli.clamp(0, gpus * 1000),
        units,
    })
}
