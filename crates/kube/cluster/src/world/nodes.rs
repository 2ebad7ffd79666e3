//! The nodes, with what is known about them from other objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{Event, Node as ModelNode};
use dovetail_objects::{CsiNode, Node, ResourceSlice};

use super::World;
use super::image_names::ImageNames;
use super::network::NodePlace;
use super::pods::Slot;
use super::report::Report;
use super::standing::{Told, full_name};
use super::tell::Events;
use crate::translate::{NodeSetting, devices_not_counted, node as translated, twice_offered};

/// All nodes.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    entries: BTreeMap<Box<str>, NodeEntry>,
    csi: BTreeMap<Box<str>, CsiNode>,
    slices: BTreeMap<Box<str>, ResourceSlice>,
    /// Names of slices by the node whose devices they offer.
    slices_of: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    image_names: ImageNames,
    /// Whether there are nodes and the settings leave none of them.
    none_is_selected: bool,
}

#[derive(Debug, Default)]
struct NodeEntry {
    object: Option<Box<Node>>,
    /// Extended resources that it offers.
    offers: Vec<Box<str>>,
    /// Where it is.
    place: NodePlace,
    told: Option<Arc<ModelNode>>,
    /// What people were told is wrong with it.
    reported: Vec<Report>,
}

impl Nodes {
    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        self.entries.get(name)?.object.as_deref()
    }

    pub(super) fn place_mut(&mut self, name: &str) -> Option<&mut NodePlace> {
        Some(&mut self.entries.get_mut(name)?.place)
    }

    /// A node as the engine was told of it.
    pub(super) fn told_of(&self, name: &str) -> Option<&ModelNode> {
        self.entries.get(name)?.told.as_deref()
    }

    pub(super) fn csi(&self, name: &str) -> Option<&CsiNode> {
        self.csi.get(name)
    }

    pub(super) fn slice(&self, name: &str) -> Option<&ResourceSlice> {
        self.slices.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, e)| e.object.is_some()).map(|(name, _)| &**name)
    }

    pub(super) fn csi_names(&self) -> impl Iterator<Item = &str> {
        self.csi.keys().map(|name| &**name)
    }

    pub(super) fn slice_names(&self) -> impl Iterator<Item = &str> {
        self.slices.keys().map(|name| &**name)
    }

    /// Whether the engine knows the node.
    pub(super) fn is_there(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.told.is_some())
    }

    /// Memory of each device of a node, as the engine was told; 0 if there is none.
    pub(super) fn device_memory_bytes(&self, name: &str) -> i64 {
        let told = self.entries.get(name).and_then(|entry| entry.told.as_ref());
        told.and_then(|node| node.devices.first()).map_or(0, |device| device.memory_bytes)
    }

    /// Model of the devices of a node; empty if there are none, or if it does not say.
    pub(super) fn device_model(&self, name: &str) -> &str {
        let told = self.entries.get(name).and_then(|entry| entry.told.as_ref());
        told.and_then(|node| node.devices.first()).map_or("", |device| &device.model)
    }

    /// All nodes that the engine was told of, by name.
    pub(super) fn told(&self) -> impl Iterator<Item = &Arc<ModelNode>> {
        self.entries.values().filter_map(|entry| entry.told.as_ref())
    }

    /// As [`Self::told`], and nothing else stays.
    pub(super) fn into_told(self) -> impl Iterator<Item = Arc<ModelNode>> {
        self.entries.into_values().filter_map(|entry| entry.told)
    }

    pub(super) fn set_csi(&mut self, csi: CsiNode) {
        self.csi.insert(csi.meta.name.clone(), csi);
    }

    pub(super) fn remove_csi(&mut self, name: &str) {
        self.csi.remove(name);
    }

    /// Adds, replaces or forgets a slice; the nodes it was and is about.
    pub(super) fn set_slice(&mut self, name: &str, slice: Option<ResourceSlice>) -> Vec<Box<str>> {
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
}

impl World {
    pub(super) fn put_node(&mut self, name: &str, mut object: Option<Box<Node>>) {
        let before = self.nodes.entries.get(name).and_then(|entry| entry.object.as_ref());
        if let Some(node) = &mut object {
            let before = before.map(|before| &before.images);
            node.images = self.nodes.image_names.share(&node.images, before);
        }
        let offered = object.iter().flat_map(|node| &node.allocatable.extended);
        let offered = offered.filter(|(_, amount)| **amount > 0);
        let offers: Vec<Box<str>> = offered.map(|(name, _)| name.as_str().into()).collect();
        let entry = self.nodes.entries.entry(name.into()).or_default();
        entry.object = object;
        let before = std::mem::replace(&mut entry.offers, offers.clone());
        if self.is_ready {
            self.place_node(name);
        }
        let mut turned = false;
        for resource in &offers {
            turned |= self.facts.add_offer(resource) && self.is_given_by_class(resource);
        }
        for resource in &before {
            turned |= self.facts.remove_offer(resource) && self.is_given_by_class(resource);
        }
        if turned {
            self.mark_unplaced();
        }
        self.dirty.nodes.insert(name.into());
    }

    fn is_given_by_class(&self, resource: &str) -> bool {
        self.facts.device_class_for(resource).is_some()
    }

    /// Tells the engine if a node stands differently.
    pub(super) fn settle_node(&mut self, name: &str, events: &mut Events) {
        let Some(entry) = self.nodes.entries.get(name) else { return };
        let Some(object) = &entry.object else {
            let was_there = entry.told.is_some();
            self.nodes.entries.remove(name);
            if was_there {
                self.free_gangs_on(name, events);
                events.nodes.push(Event::NodeRemoved { node: name.into() });
                self.forget_what_was_on(name);
            }
            return;
        };
        let cannot_be_read = |slot: &Slot| {
            let entry = self.pods.get(*slot);
            entry.strange && *entry.pod.node == *name
        };
        let strange = self.pods.on_node(name).find(cannot_be_read);
        let setting = NodeSetting {
            csi: self.nodes.csi.get(name),
            device_drivers: self.nodes.device_drivers(name),
            domains: &entry.place.domains,
            unknown_holder: strange.is_some(),
        };
        let node = translated(object, &setting, &self.settings.rules);
        let twice = twice_offered(object, &setting).into_iter();
        let mut wrong: Vec<Report> = twice
            .map(|(resource, driver)| Report::TwiceOffered {
                node: name.to_owned(),
                resource: resource.to_owned(),
                driver,
            })
            .collect();
        wrong.extend(strange.map(|slot| Report::UnknownHolder {
            node: name.to_owned(),
            pod: full_name(&self.pods.get(slot).pod),
        }));
        let resource = &self.settings.rules.device_resource;
        let too_many = devices_not_counted(object, resource);
        wrong.extend(too_many.map(|(said, counted)| Report::TooManyDevices {
            node: name.to_owned(),
            resource: resource.clone(),
            said,
            counted,
        }));
        self.note_node(name, node, wrong, events);
    }

    /// Says when the settings leave no node of those that there are, once until they leave one.
    pub(super) fn note_selection(&mut self) {
        let rules = &self.settings.rules;
        if rules.node_selector.is_empty() {
            return;
        }
        let is_selected = |node: &Arc<ModelNode>| rules.selects(|label| node.label(label));
        let has_any = self.nodes.told().next().is_some();
        let is_empty = has_any && !self.nodes.told().any(is_selected);
        let selector = rules.selector();
        if is_empty && !self.nodes.none_is_selected {
            self.reports.push(Report::NoNodeSelected { selector });
        }
        self.nodes.none_is_selected = is_empty;
    }

    fn note_node(&mut self, name: &str, node: ModelNode, wrong: Vec<Report>, events: &mut Events) {
        let memory_before = self.nodes.device_memory_bytes(name);
        let entry = self.nodes.entries.get_mut(name).expect("a node that is there");
        let is_new = entry.told.is_none();
        if entry.told.as_deref() != Some(&node) {
            events.nodes.push(Event::NodeChanged(Box::new(node.clone())));
            entry.told = Some(Arc::new(node));
        }
        if entry.reported != wrong {
            self.reports
                .extend(wrong.iter().filter(|report| !entry.reported.contains(report)).cloned());
            entry.reported = wrong;
        }
        if is_new || self.nodes.device_memory_bytes(name) != memory_before {
            self.dirty.pods.extend(self.pods.on_node(name));
        }
    }

    /// In the engine a job is over when a node it was on is gone. A gang is not: only its pods
    /// there are.
    fn free_gangs_on(&mut self, node: &str, events: &mut Events) {
        for slot in self.pods.on_node(node) {
            let entry = self.pods.get(slot);
            let (Told::Assumed { node: told, .. } | Told::Running { node: told, .. }) = &entry.told
            else {
                continue;
            };
            if let Some(pod) = entry.id.filter(|_| entry.is_in_job && **told == *node) {
                events.freed.push(Event::PodEnded { pod });
            }
        }
    }

    /// In the engine nothing is left of what was on a node that is gone.
    fn forget_what_was_on(&mut self, node: &str) {
        for slot in self.pods.on_node(node).collect::<Vec<_>>() {
            let entry = self.pods.get_mut(slot);
            let holds_nothing =
                matches!(entry.told, Told::Nothing | Told::Waiting { .. } | Told::Member { .. });
            if !holds_nothing {
                entry.assumed = None;
                self.retell(slot, Told::Nothing);
            }
            self.pods.index(slot);
            self.dirty.pods.insert(slot);
        }
        self.forget_attachments_of(node);
    }
}
