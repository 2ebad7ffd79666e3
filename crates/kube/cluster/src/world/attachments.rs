//! Volumes that are attached to nodes without a pod there that uses them.
//!
//! kube-scheduler counts them for a node's limits besides the volumes of its pods; a volume that
//! both are about counts once. Such an attachment stands in the engine as something a stranger
//! holds.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Attachment, Event, Holding, HoldingId, NodeName, Owner, Phase, Resources};
use dovetail_objects::VolumeAttachment;

use super::World;
use super::pods::Slot;
use super::standing::Told;
use super::tell::Events;
use crate::translate::held;

/// The attachments, and the volumes of pods by node.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    entries: BTreeMap<Box<str>, AttachmentEntry>,
    by_node: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    by_volume: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    /// Volumes of pods that the engine knows on a node, with how many pods use each.
    used: BTreeMap<Box<str>, BTreeMap<Attachment, u32>>,
    /// What each pod contributes to them.
    contributed: BTreeMap<Slot, (Box<str>, BTreeSet<Attachment>)>,
}

#[derive(Debug)]
struct AttachmentEntry {
    object: VolumeAttachment,
    told: Option<(NodeName, Attachment)>,
}

impl Attachments {
    pub(super) fn get(&self, name: &str) -> Option<&VolumeAttachment> {
        self.entries.get(name).map(|entry| &entry.object)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|name| &**name)
    }

    /// Attachments that name a persistent volume.
    pub(super) fn of_volume(&self, volume: &str) -> impl Iterator<Item = &Box<str>> {
        self.by_volume.get(volume).into_iter().flatten()
    }

    fn of_node(&self, node: &str) -> Vec<Box<str>> {
        self.by_node.get(node).into_iter().flatten().cloned().collect()
    }

    fn uses(&self, node: &str, attachment: &Attachment) -> bool {
        self.used.get(node).is_some_and(|used| used.contains_key(attachment))
    }

    /// Told holdings, for a snapshot.
    pub(super) fn holdings(&self) -> impl Iterator<Item = Holding> {
        let told =
            self.entries.iter().filter_map(|(name, entry)| Some((name, entry.told.as_ref()?)));
        told.map(|(name, (node, attachment))| holding(name, node, attachment))
    }
}

impl World {
    pub(super) fn put_attachment(&mut self, object: VolumeAttachment) {
        let name = object.meta.name.clone();
        self.file_attachment(&name, false);
        let told = self.attachments.entries.remove(&name).and_then(|entry| entry.told);
        self.attachments.entries.insert(name.clone(), AttachmentEntry { object, told });
        self.file_attachment(&name, true);
        self.dirty.attachments.insert(name);
    }

    pub(super) fn remove_attachment(&mut self, name: &str) {
        self.file_attachment(name, false);
        if let Some(entry) = self.attachments.entries.get_mut(name) {
            entry.object = VolumeAttachment::default();
            self.dirty.attachments.insert(name.into());
        }
    }

    fn file_attachment(&mut self, name: &str, there: bool) {
        let Attachments { entries, by_node, by_volume, .. } = &mut self.attachments;
        let Some(entry) = entries.get(name) else { return };
        let keys = [(by_node, &entry.object.node), (by_volume, &entry.object.volume)];
        for (index, key) in keys {
            let names = index.entry(key.clone()).or_default();
            match there {
                true => names.insert(name.into()),
                false => names.remove(name),
            };
            if names.is_empty() {
                index.remove(key);
            }
        }
    }

    /// The node is gone, and in the engine everything that was on it.
    pub(super) fn forget_attachments_of(&mut self, node: &str) {
        for name in self.attachments.of_node(node) {
            if let Some(entry) = self.attachments.entries.get_mut(&name) {
                entry.told = None;
            }
            self.dirty.attachments.insert(name);
        }
    }

    /// Notes which volumes a pod accounts for on which node.
    pub(super) fn account_attachments(&mut self, slot: Slot, told: &Told) {
        let now = match told {
            Told::Assumed { node, .. }
            | Told::Running { node, .. }
            | Told::Foreign { node, .. } => {
                let pod = &self.pods.get(slot).pod;
                let held = held(pod, &self.facts, &self.settings.rules);
                (!held.attachments.is_empty()).then(|| (Box::from(&**node), held.attachments))
            }
            Told::Nothing | Told::Waiting { .. } | Told::Member { .. } => None,
        };
        if self.attachments.contributed.get(&slot) == now.as_ref() {
            return;
        }
        if let Some((node, volumes)) = self.attachments.contributed.remove(&slot) {
            self.contribute(&node, &volumes, false);
        }
        if let Some((node, volumes)) = now {
            self.contribute(&node, &volumes, true);
            self.attachments.contributed.insert(slot, (node, volumes));
        }
    }

    fn contribute(&mut self, node: &str, volumes: &BTreeSet<Attachment>, there: bool) {
        let used = self.attachments.used.entry(node.into()).or_default();
        for volume in volumes {
            let count = used.entry(volume.clone()).or_default();
            match there {
                true => *count += 1,
                false => *count -= 1,
            }
            if *count == 0 {
                used.remove(volume);
            }
        }
        if used.is_empty() {
            self.attachments.used.remove(node);
        }
        self.dirty.attachments.extend(self.attachments.of_node(node));
    }

    pub(super) fn settle_attachment(&mut self, name: &str, events: &mut Events) {
        let Some(entry) = self.attachments.entries.get(name) else { return };
        let object = &entry.object;
        let wanted = self.stands(object);
        if entry.told != wanted {
            match &wanted {
                Some((node, volume)) => {
                    let holding = holding(name, node, volume);
                    events.held.push(Event::ForeignHeld(Box::new(holding)));
                }
                None => events.freed.push(Event::ForeignReleased { name: holder(name) }),
            }
        }
        let is_gone = object.meta.name.is_empty();
        match (is_gone, self.attachments.entries.get_mut(name)) {
            (false, Some(entry)) => entry.told = wanted,
            _ => {
                self.attachments.entries.remove(name);
            }
        }
    }

    /// What an attachment holds that no pod accounts for.
    fn stands(&self, object: &VolumeAttachment) -> Option<(NodeName, Attachment)> {
        if object.driver.is_empty() || object.volume.is_empty() || object.node.is_empty() {
            return None;
        }
        let volume = self.facts.volume(&object.volume).filter(|v| v.in_tree.is_none())?;
        let handle = volume.source.as_ref()?.handle.to_string();
        let attachment = Attachment { limit: object.driver.to_string(), volume: handle };
        if self.attachments.uses(&object.node, &attachment) {
            return None;
        }
        Some(((*object.node).into(), attachment))
    }
}

/// The name under which it is held; no namespace has a colon in its name.
fn holder(name: &str) -> String {
    format!("volumeattachment:{name}")
}

/// Under a name of its own: a pod that comes to use the volume counts it besides, as for
/// kube-scheduler.
fn holding(name: &str, node: &NodeName, attachment: &Attachment) -> Holding {
    let volume = format!("attached:{}", attachment.volume);
    Holding {
        id: HoldingId(0),
        node: node.clone(),
        owner: Owner::Foreign(holder(name)),
        phase: Phase::Held { expected_end_ms: None },
        reservation: None,
        resources: Resources::default(),
        devices: Vec::new(),
        counts_into: BTreeSet::new(),
        attachments: [Attachment { limit: attachment.limit.clone(), volume }].into(),
    }
}
