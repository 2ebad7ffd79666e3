//! The nodes, with what is known about them from other objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{Event, Node as ModelNode};
use dovetail_objects::{CsiNode, Node, Pod, ResourceSlice};

use super::image_names::ImageNames;
use super::network::NodePlace;
use super::reported::full_name;
use crate::world::report::ObjectReport;
use dovetail_translate::{
    NodeSetting, REPLICAS_AS_GPUS, Rules, devices_not_counted, node as translated,
    offers_replicas_as_gpus, twice_offered,
};

#[derive(Debug, Default)]
pub(crate) struct Nodes {
    entries: BTreeMap<Box<str>, NodeEntry>,
    csi: BTreeMap<Box<str>, CsiNode>,
    slices: BTreeMap<Box<str>, ResourceSlice>,
    /// Names of slices by the node whose devices they offer.
    slices_of: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    image_names: ImageNames,
    /// Whether there are nodes and the settings select none of them.
    none_is_selected: bool,
}

#[derive(Debug, Default)]
struct NodeEntry {
    object: Option<Box<Node>>,
    /// Extended resources that it offers.
    offers: Vec<Box<str>>,
    place: NodePlace,
    reported: Option<Arc<ModelNode>>,
    /// What was last reported to be wrong with it.
    problems: Vec<ObjectReport>,
}

impl Nodes {
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entries.get(name)?.object.as_deref()
    }

    pub(crate) fn place_mut(&mut self, name: &str) -> Option<&mut NodePlace> {
        Some(&mut self.entries.get_mut(name)?.place)
    }

    /// A node as it was reported to the engine.
    pub(crate) fn reported_node(&self, name: &str) -> Option<&ModelNode> {
        self.entries.get(name)?.reported.as_deref()
    }

    pub(crate) fn csi(&self, name: &str) -> Option<&CsiNode> {
        self.csi.get(name)
    }

    pub(crate) fn slice(&self, name: &str) -> Option<&ResourceSlice> {
        self.slices.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, e)| e.object.is_some()).map(|(name, _)| &**name)
    }

    pub(crate) fn csi_names(&self) -> impl Iterator<Item = &str> {
        self.csi.keys().map(|name| &**name)
    }

    pub(crate) fn slice_names(&self) -> impl Iterator<Item = &str> {
        self.slices.keys().map(|name| &**name)
    }

    /// Whether the engine knows the node.
    pub(crate) fn is_there(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.reported.is_some())
    }

    /// Memory of each device of a node, as reported to the engine; 0 if there is none.
    pub(crate) fn device_memory_bytes(&self, name: &str) -> i64 {
        let reported = self.entries.get(name).and_then(|entry| entry.reported.as_ref());
        reported.and_then(|node| node.devices.first()).map_or(0, |device| device.memory_bytes)
    }

    /// Model of the devices of a node; empty if there are none, or if it does not say.
    pub(crate) fn device_model(&self, name: &str) -> &str {
        let reported = self.entries.get(name).and_then(|entry| entry.reported.as_ref());
        reported.and_then(|node| node.devices.first()).map_or("", |device| &device.model)
    }

    /// All nodes that were reported to the engine, by name.
    pub(crate) fn reported(&self) -> impl Iterator<Item = &Arc<ModelNode>> {
        self.entries.values().filter_map(|entry| entry.reported.as_ref())
    }

    /// As [`Self::reported`], and nothing else stays.
    pub(crate) fn into_reported(self) -> impl Iterator<Item = Arc<ModelNode>> {
        self.entries.into_values().filter_map(|entry| entry.reported)
    }

    pub(crate) fn set_csi(&mut self, csi: CsiNode) {
        self.csi.insert(csi.meta.name.clone(), csi);
    }

    pub(crate) fn remove_csi(&mut self, name: &str) {
        self.csi.remove(name);
    }

    /// Adds, replaces or forgets a slice; the nodes it was and is about.
    pub(crate) fn set_slice(&mut self, name: &str, slice: Option<ResourceSlice>) -> Vec<Box<str>> {
        let mut nodes = Vec::new();
        if let Some(before) = self.slices.remove(name) {
            if let Some(names) = self.slices_of.get_mut(&before.node) {
                names.remove(name);
                if names.is_empty() {
                    self.slices_of.remove(&before.node);
                }
            }
            nodes.push(before.node);
        }
        if let Some(slice) = slice {
            // Which devices it offers only the audit reads.
            let slice = ResourceSlice { devices: Vec::new(), ..slice };
            self.slices_of.entry(slice.node.clone()).or_default().insert(name.into());
            nodes.push(slice.node.clone());
            self.slices.insert(name.into(), slice);
        }
        nodes
    }

    /// Drivers that offer devices of a node through slices.
    fn device_drivers(&self, node: &str) -> BTreeSet<&str> {
        let names = self.slices_of.get(node).into_iter().flatten();
        names.filter_map(|name| Some(&*self.slices.get(name)?.driver)).collect()
    }

    /// Replaces the object of a node; the extended resources that it offered before, and offers
    /// now.
    pub(crate) fn put(&mut self, name: &str, mut object: Option<Box<Node>>) -> Offers {
        let entry = self.entries.entry(name.into()).or_default();
        if let Some(node) = &mut object {
            let before = entry.object.as_ref().map(|before| &before.images);
            node.images = self.image_names.share(&node.images, before);
        }
        let offered = object.iter().flat_map(|node| &node.allocatable.extended);
        let offered = offered.filter(|(_, amount)| **amount > 0);
        let mut now: Vec<Box<str>> = offered.map(|(name, _)| name.as_str().into()).collect();
        if object.as_deref().is_some_and(offers_replicas_as_gpus) {
            now.push(REPLICAS_AS_GPUS.into());
        }
        entry.object = object;
        let before = std::mem::replace(&mut entry.offers, now.clone());
        Offers { before, now }
    }

    /// Forgets a node whose object is gone; whether the engine knew it. `None` if it is there.
    pub(crate) fn take_gone(&mut self, name: &str) -> Option<bool> {
        self.entries
            .get(name)?
            .object
            .is_none()
            .then(|| self.entries.remove(name).is_some_and(|entry| entry.reported.is_some()))
    }

    /// A node in the words of the engine, and what people should know about it. `odd` are pods
    /// there, `by_claims` what it has by devices of claims, `devices_for` what claims it has
    /// devices for.
    pub(crate) fn reading(
        &self,
        name: &str,
        odd: &OddPods<'_>,
        (by_claims, devices_for): (&[(Box<str>, i64)], &[String]),
        rules: &Rules,
    ) -> Option<(ModelNode, Vec<ObjectReport>)> {
        let entry = self.entries.get(name)?;
        let object = entry.object.as_ref()?;
        let shared_by = shared_by_others(object, odd);
        let setting = NodeSetting {
            csi: self.csi.get(name),
            device_drivers: self.device_drivers(name),
            by_claims,
            domains: &entry.place.domains,
            devices_for,
            unknown_holder: odd.unreadable.is_some(),
            vgpus: shared_by.is_some(),
        };
        let twice = twice_offered(object, &setting).into_iter();
        let mut wrong: Vec<ObjectReport> = twice
            .map(|(resource, driver)| ObjectReport::TwiceOffered {
                node: name.to_owned(),
                resource: resource.to_owned(),
                driver,
            })
            .collect();
        wrong.extend(
            odd.unreadable.map(|pod| ObjectReport::UnknownHolder {
                node: name.to_owned(),
                pod: full_name(pod),
            }),
        );
        let resource = &rules.device_resource;
        let too_many = devices_not_counted(object, resource);
        wrong.extend(too_many.map(|(said, counted)| ObjectReport::TooManyDevices {
            node: name.to_owned(),
            resource: resource.clone(),
            said,
            counted,
        }));
        let node = translated(object, &setting, rules);
        let shared_by = shared_by.filter(|_| !node.devices.is_empty());
        wrong
            .extend(shared_by.map(|by| ObjectReport::SharedByOthers { node: name.to_owned(), by }));
        Some((node, wrong))
    }

    /// Notes a node as it is reported to the engine, and what is wrong with it.
    pub(crate) fn note(&mut self, name: &str, node: ModelNode, wrong: Vec<ObjectReport>) -> Noted {
        let memory_before = self.device_memory_bytes(name);
        let entry = self.entries.get_mut(name).expect("a node that is there");
        let is_new = entry.reported.is_none();
        let mut noted = Noted::default();
        if entry.reported.as_deref() != Some(&node) {
            noted.event = Some(Event::NodeChanged(Box::new(node.clone())));
            entry.reported = Some(Arc::new(node));
        }
        if entry.problems != wrong {
            let new = wrong.iter().filter(|report| !entry.problems.contains(report));
            noted.reports = new.cloned().collect();
            entry.problems = wrong;
        }
        noted.concerns_pods = is_new || self.device_memory_bytes(name) != memory_before;
        noted
    }

    /// What people should know when the settings select none of the nodes that there are: once,
    /// until they select one.
    pub(crate) fn note_selection(&mut self, rules: &Rules) -> Option<ObjectReport> {
        if rules.node_selector.is_empty() {
            return None;
        }
        let is_selected = |node: &Arc<ModelNode>| rules.selects(|label| node.label(label));
        let has_any = self.reported().next().is_some();
        let is_empty = has_any && !self.reported().any(is_selected);
        let was_empty = std::mem::replace(&mut self.none_is_selected, is_empty);
        (is_empty && !was_empty)
            .then(|| ObjectReport::NoNodeSelected { selector: rules.selector() })
    }
}

/// Pods on a node that decide what is free there.
pub(crate) struct OddPods<'p> {
    /// One that cannot be read.
    pub(crate) unreadable: Option<&'p Pod>,
    /// One that has vGPUs.
    pub(crate) of_vgpus: Option<&'p Pod>,
    /// Whether it makes no difference who allocates the GPUs.
    pub(crate) ignores_vgpus: bool,
}

/// What shows that HAMi or Volcano allocates the GPUs of a node, if something does.
fn shared_by_others(node: &Node, odd: &OddPods<'_>) -> Option<String> {
    if odd.ignores_vgpus {
        return None;
    }
    if let Some((key, _)) = node.vgpu_register() {
        return Some(format!("annotation {key}"));
    }
    let pod = odd.of_vgpus?;
    Some(format!("pod {} has {}", full_name(pod), pod.vgpu()?))
}

/// Extended resources that a node offered and offers.
#[derive(Debug)]
pub(crate) struct Offers {
    pub(crate) before: Vec<Box<str>>,
    pub(crate) now: Vec<Box<str>>,
}

/// What follows from a node that is different.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    pub(crate) event: Option<Event>,
    pub(crate) reports: Vec<ObjectReport>,
    /// Whether what the pods on it hold may be different.
    pub(crate) concerns_pods: bool,
}
