//! Volumes that are attached to nodes without a pod there that uses them.
//!
//! kube-scheduler counts them for a node's limits besides the volumes of its pods; a volume that
//! both are about counts once. For the engine such an attachment is a holding of another
//! scheduler.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{
    Attachment, Event, Holding, HoldingId, HoldingPhase, NodeName, Owner, Resources, Selectors,
};
use dovetail_objects::VolumeAttachment;

use super::pods::Slot;
use dovetail_translate::ReferredObjects;

/// The attachments, and the volumes of pods by node.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    entries: BTreeMap<Box<str>, AttachmentEntry>,
    by_node: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    by_volume: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    /// Volumes of pods that the engine knows on a node, with how many pods use each.
    used: BTreeMap<Box<str>, BTreeMap<Attachment, u32>>,
    /// What each pod contributes to them.
    contributed: BTreeMap<Slot, (Box<str>, BTreeSet<Attachment>)>,
    /// Attachments that may hold something else than was reported to the engine.
    dirty: BTreeSet<Box<str>>,
}

#[derive(Debug)]
struct AttachmentEntry {
    object: VolumeAttachment,
    reported: Option<(NodeName, Attachment)>,
}

impl Attachments {
    pub(crate) fn get(&self, name: &str) -> Option<&VolumeAttachment> {
        self.entries.get(name).map(|entry| &entry.object)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|name| &**name)
    }

    fn of_node(&self, node: &str) -> Vec<Box<str>> {
        self.by_node.get(node).into_iter().flatten().cloned().collect()
    }

    fn uses(&self, node: &str, attachment: &Attachment) -> bool {
        self.used.get(node).is_some_and(|used| used.contains_key(attachment))
    }

    /// Told holdings, for a snapshot.
    pub(crate) fn holdings(&self) -> impl Iterator<Item = Holding> {
        let reported =
            self.entries.iter().filter_map(|(name, entry)| Some((name, entry.reported.as_ref()?)));
        reported.map(|(name, (node, attachment))| holding(name, node, attachment))
    }

    pub(crate) fn put(&mut self, object: VolumeAttachment) {
        let name = object.meta.name.clone();
        self.file(&name, false);
        let reported = self.entries.remove(&name).and_then(|entry| entry.reported);
        self.entries.insert(name.clone(), AttachmentEntry { object, reported });
        self.file(&name, true);
        self.dirty.insert(name);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.file(name, false);
        if let Some(entry) = self.entries.get_mut(name) {
            entry.object = VolumeAttachment::default();
            self.dirty.insert(name.into());
        }
    }

    fn file(&mut self, name: &str, there: bool) {
        let Self { entries, by_node, by_volume, .. } = self;
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

    /// Marks the attachments that name a persistent volume.
    pub(crate) fn mark_volume(&mut self, volume: &str) {
        self.dirty.extend(self.by_volume.get(volume).into_iter().flatten().cloned());
    }

    /// The node is gone, and in the engine everything that was on it.
    pub(crate) fn forget_node(&mut self, node: &str) {
        for name in self.of_node(node) {
            if let Some(entry) = self.entries.get_mut(&name) {
                entry.reported = None;
            }
            self.dirty.insert(name);
        }
    }

    /// Notes which volumes a pod accounts for on which node.
    pub(crate) fn account(&mut self, slot: Slot, now: Option<(Box<str>, BTreeSet<Attachment>)>) {
        if self.contributed.get(&slot) == now.as_ref() {
            return;
        }
        if let Some((node, volumes)) = self.contributed.remove(&slot) {
            self.contribute(&node, &volumes, false);
        }
        if let Some((node, volumes)) = now {
            self.contribute(&node, &volumes, true);
            self.contributed.insert(slot, (node, volumes));
        }
    }

    fn contribute(&mut self, node: &str, volumes: &BTreeSet<Attachment>, there: bool) {
        let used = self.used.entry(node.into()).or_default();
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
            self.used.remove(node);
        }
        self.dirty.extend(self.of_node(node));
    }

    /// Compares what is marked with what was reported: what is held now and was not, and what is
    /// not held any more.
    pub(crate) fn settle(&mut self, facts: &ReferredObjects) -> (Vec<Event>, Vec<Event>) {
        let (mut held, mut freed) = (Vec::new(), Vec::new());
        for name in std::mem::take(&mut self.dirty) {
            let Some(entry) = self.entries.get(&name) else { continue };
            let wanted = self.stands(&entry.object, facts);
            if entry.reported != wanted {
                match &wanted {
                    Some((node, volume)) => {
                        let holding = holding(&name, node, volume);
                        held.push(Event::ForeignHeld(Box::new(holding)));
                    }
                    None => freed.push(Event::ForeignReleased { name: holder(&name) }),
                }
            }
            let is_gone = entry.object.meta.name.is_empty();
            match (is_gone, self.entries.get_mut(&name)) {
                (false, Some(entry)) => entry.reported = wanted,
                _ => {
                    self.entries.remove(&name);
                }
            }
        }
        (held, freed)
    }

    /// What an attachment holds that no pod accounts for.
    fn stands(
        &self,
        object: &VolumeAttachment,
        facts: &ReferredObjects,
    ) -> Option<(NodeName, Attachment)> {
        if object.driver.is_empty() || object.volume.is_empty() || object.node.is_empty() {
            return None;
        }
        let volume = facts.volume(&object.volume).filter(|v| v.in_tree.is_none())?;
        let handle = volume.source.as_ref()?.handle.to_string();
        let attachment = Attachment { limit: object.driver.to_string(), volume: handle };
        if self.uses(&object.node, &attachment) {
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
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: None,
        resources: Resources::default(),
        devices: Vec::new(),
        counts_into: Selectors::default(),
        attachments: [Attachment { limit: attachment.limit.clone(), volume }].into(),
    }
}
