//! Extended resources that a device class maps to devices (KEP-5004): how many of them a node has,
//! and the claim by which a pod has them there.
//!
//! A device plugin goes first: only on nodes where none offers the resource do devices of the class
//! serve it. To the engine such a node has as many of the resource as devices are free, and as pods
//! there have by claims. What a pod had that is gone counts as free although its claim has it until
//! it is deleted: a pod that gets it too early is tried again, and none is preempted for it beside
//! the first.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use dovetail_devices::{CandidateNode, free_of_class};
use dovetail_objects::{
    ClaimContents, Controller, ExtendedMapping, Meta, Node, Pod, ResourceClaim,
};
use rustc_hash::FxHasher;

use crate::world::objects::Objects;
use dovetail_translate::device_requests;

/// Most letters that a claim has of the name of its pod.
const MOST_LETTERS: usize = 200;

/// The claim by which a pod has extended resources on a node.
#[derive(Clone, Debug)]
pub(crate) struct ExtendedClaim {
    /// As it is to be created: without identity.
    pub(crate) claim: ResourceClaim,
    /// Which of its requests serves which container.
    pub(crate) mappings: Vec<ExtendedMapping>,
}

/// Extended resources that a node has by devices, with how many of each.
pub(crate) type Supply = BTreeMap<Box<str>, i64>;

/// What a node has of the extended resources that classes map to devices.
pub(crate) fn supply(objects: &Objects, node: &str) -> Supply {
    let Some(object) = objects.nodes.get(node) else { return Supply::new() };
    let names = objects.facts.resources_of_classes();
    let names = names.into_iter().chain(objects.pods.extended.resources_by_class());
    let place = CandidateNode { node, labels: &object.meta.labels };
    let served = names.filter_map(|resource| {
        let class = class_for(objects, object, resource)?;
        let devices = &objects.device_claims;
        let free = free_of_class(&devices.catalog, &devices.held, place, class);
        let had = had(objects, node, resource) + devices.leaving(node, resource);
        let amount = had + i64::try_from(free).unwrap_or(0);
        (amount > 0).then(|| (resource.into(), amount))
    });
    served.collect()
}

/// How much of a resource pods on a node have by claims.
fn had(objects: &Objects, node: &str, resource: &str) -> i64 {
    let pods = objects.pods.on_node(node).map(|slot| objects.pods.get(slot));
    let has = pods.filter(|entry| {
        let pod = &entry.pod;
        let is_there = !pod.node.is_empty() && !pod.is_over();
        (is_there || entry.is_decided()) && has_devices(objects, pod)
    });
    let amounts = has.filter_map(|entry| {
        let pod = &entry.pod;
        let amounts = if pod.node.is_empty() { &pod.requests } else { pod.holds() };
        amounts.extended.get(resource)
    });
    amounts.sum()
}

/// Whether the claim for the extended resources of a pod has devices, or some are set aside for it.
fn has_devices(objects: &Objects, pod: &Pod) -> bool {
    let claims = &objects.device_claims;
    let is_set_aside = || claims.is_set_aside(&pod.meta.namespace, &name_of(pod));
    let claim = claims.extended_of(&pod.meta.uid);
    claim.is_some_and(|claim| claim.allocation.is_some()) || is_set_aside()
}

/// The class whose devices serve a resource on a node; none where a device plugin does.
fn class_for<'o>(objects: &'o Objects, node: &Node, resource: &str) -> Option<&'o str> {
    let is_by_plugin = node.allocatable.extended.get(resource).is_some_and(|amount| *amount > 0);
    let class = objects.facts.device_class_for(resource).filter(|_| !is_by_plugin)?;
    Some(&class.meta.name)
}

/// The claim that a pod needs on a node; `None` if it has all its resources without one.
pub(crate) fn extended_claim(objects: &Objects, pod: &Pod, node: &str) -> Option<ExtendedClaim> {
    if pod.extended.is_empty() {
        return None;
    }
    let object = objects.nodes.get(node)?;
    let asked = pod.extended.iter().flat_map(|container| &container.requests);
    let classes = asked.filter_map(|request| {
        Some((&*request.resource, class_for(objects, object, &request.resource)?))
    });
    let classes: BTreeMap<&str, &str> = classes.collect();
    let (requests, mappings) = device_requests(&pod.extended, &classes);
    if requests.is_empty() {
        return None;
    }
    let meta = Meta {
        namespace: pod.meta.namespace.clone(),
        name: name_of(pod).into(),
        controller: Controller { uid: pod.meta.uid.clone(), ..Controller::default() },
        ..Meta::default()
    };
    let asked = ClaimContents { requests, ..ClaimContents::default() };
    let claim = ResourceClaim { meta, asked, ..ResourceClaim::default() };
    Some(ExtendedClaim { claim, mappings })
}

/// The name of the claim for the extended resources of a pod. It follows from the pod, so that it
/// is never created twice, whichever leader asks for it and whatever the server answers.
pub(crate) fn name_of(pod: &Pod) -> String {
    let mut hasher = FxHasher::default();
    pod.meta.uid.hash(&mut hasher);
    let name: String = pod.meta.name.chars().take(MOST_LETTERS).collect();
    let name = name.trim_end_matches(['-', '.']);
    format!("{name}-extended-resources-{:08x}", hasher.finish() as u32)
}
