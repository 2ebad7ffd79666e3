//! The pods, and by what they are looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{JobId, NodeName, PodId, Requirement};
use dovetail_objects::{Pod, PodVolume};

use super::claimants::Claimants;
use super::decisions::{Decision, Decisions, GangDecision};
use super::extended_pods::ExtendedPods;
use super::registry::Use;
use super::reported::Reported;
use crate::world::causes::RecentCauses;
use crate::world::key::PodKey;
use crate::world::report::Gathering;
use dovetail_translate::NotYet;
use dovetail_translate::gang::{GangName, decision, decision_beside, gang_decision};

/// A pod that is terminating may take so much longer than its grace period.
pub(crate) const SLACK_MS: u64 = 60_000;

/// Number of a pod while it is kept.
pub(crate) type Slot = u32;

/// A pod with what is known about it.
#[derive(Debug)]
pub(crate) struct PodEntry {
    pub(crate) pod: Arc<Pod>,
    /// It could not be read: only its name, and maybe its node, are known.
    pub(crate) is_unreadable: bool,
    /// What was reported to the engine.
    pub(crate) reported: Reported,
    /// The decision by which it counts as being on a node, until the watch shows where it is.
    decision: Option<u64>,
    /// Whether it is left alone for a while, and the reason for its owner.
    pub(crate) held_back: Option<PodPause>,
    /// Whether it counts as gone: a dry run would have preempted it.
    pub(crate) is_assumed_gone: bool,
    /// Whether it is exempt from preemption: the server refuses to evict it.
    pub(crate) is_exempt: bool,
    /// Why it is left untouched.
    pub(crate) refused: Option<NotYet>,
    /// What was said of late about why it is left untouched.
    pub(crate) said: RecentCauses,
    /// Its name in the engine, from when it first waits or runs there.
    pub(crate) id: Option<PodId>,
    /// Whether that name is one in the job of its gang, and not that of a job of its own.
    pub(crate) is_in_job: bool,
    /// How many pods its gang had, at least, when it was last placed by itself beside them; 0 if it
    /// was not.
    pub(crate) beside: u32,
    /// The gang it belongs to.
    pub(crate) gang: Option<Arc<GangName>>,
    /// What it needs, if it belongs to a gang and has no node.
    pub(crate) wish: Option<Arc<Requirement>>,
    /// What was last reported of its wait for other members of its gang.
    pub(crate) announced_wait: Option<Gathering>,
    /// Selectors that are in use because of it.
    pub(crate) uses: Box<[Use]>,
    /// Its node in the indices.
    place: Box<str>,
}

/// A pod is left alone for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodPause {
    /// What went wrong, where that is not over in a moment.
    pub(crate) why: Option<NotYet>,
}

impl PodEntry {
    pub(crate) fn new(pod: Arc<Pod>, is_unreadable: bool) -> Self {
        Self {
            pod,
            is_unreadable,
            reported: Reported::Nothing,
            decision: None,
            held_back: None,
            is_assumed_gone: false,
            is_exempt: false,
            refused: None,
            said: RecentCauses::default(),
            id: None,
            is_in_job: false,
            beside: 0,
            gang: None,
            wish: None,
            announced_wait: None,
            uses: Box::default(),
            place: Box::default(),
        }
    }

    /// Whether what is free on its node depends on more than what it holds: it cannot be read, or
    /// has vGPUs.
    pub(crate) fn is_odd(&self) -> bool {
        self.is_unreadable || self.pod.vgpu().is_some()
    }

    /// Whether it has no node, and none is decided for it.
    pub(crate) fn waits(&self) -> bool {
        let pod = &self.pod;
        pod.node.is_empty() && !self.is_decided() && !pod.meta.is_deleting() && !pod.is_over()
    }

    /// Whether a node is decided for it, and the watch does not show where it is.
    pub(crate) fn is_decided(&self) -> bool {
        self.decision.is_some()
    }

    /// The name of a decision about it: it starts alone for its gang, or beside a gang that runs,
    /// or it has none.
    fn name_of_decision(&self, epoch: u64, number: u64) -> String {
        match self {
            Self { is_in_job: true, .. } => gang_decision(epoch, number, 1),
            Self { gang: Some(_), beside: 1.., .. } => decision_beside(epoch, number, self.beside),
            _ => decision(epoch, number),
        }
    }

    /// Whether it is on a node and about to leave it.
    pub(crate) fn ends_on_a_node(&self) -> bool {
        let pod = &self.pod;
        let is_reported = matches!(self.reported, Reported::Running { .. });
        is_reported && pod.meta.is_deleting() && !pod.is_over()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Pods {
    slots: Vec<Option<PodEntry>>,
    free: Vec<Slot>,
    by_name: BTreeMap<Box<str>, BTreeMap<Box<str>, Slot>>,
    by_node: BTreeMap<Box<str>, BTreeSet<Slot>>,
    by_claim: BTreeMap<(Box<str>, Box<str>), BTreeSet<Slot>>,
    /// Pods without a node that use any claim.
    unplaced_with_claims: BTreeSet<Slot>,
    pub(crate) extended: ExtendedPods,
    pub(crate) claimants: Claimants,
    /// Pods on nodes whose deletion has begun, by when they are late with that.
    late_from: BTreeSet<(u64, Slot)>,
    /// Pods by their names in the engine.
    by_id: BTreeMap<PodId, Slot>,
    /// Which of them are assigned to which nodes.
    pub(crate) decisions: Decisions,
}

impl Pods {
    pub(crate) fn get(&self, slot: Slot) -> &PodEntry {
        self.slots[slot as usize].as_ref().expect("a pod that is kept")
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut PodEntry {
        self.slots[slot as usize].as_mut().expect("a pod that is kept")
    }

    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<Slot> {
        self.by_name.get(namespace)?.get(name).copied()
    }

    /// The pod of this name and identity, if it is still there.
    pub(crate) fn by_key(&self, key: &PodKey) -> Option<Slot> {
        let slot = self.find(&key.namespace, &key.name)?;
        (self.get(slot).pod.meta.uid == key.uid).then_some(slot)
    }

    /// The pod of this name in the engine.
    pub(crate) fn by_id(&self, pod: PodId) -> Option<Slot> {
        self.by_id.get(&pod).copied()
    }

    /// Names in the engine, with the pods that have them.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (PodId, Slot)> {
        self.by_id.iter().map(|(id, slot)| (*id, *slot))
    }

    /// Pods that the engine knows as pods of a job.
    pub(crate) fn of_job(&self, job: JobId) -> impl Iterator<Item = Slot> {
        let first = PodId { job, pod_set: 0, ordinal: 0 };
        let last = PodId { job, pod_set: u16::MAX, ordinal: u32::MAX };
        self.by_id.range(first..=last).map(|(_, slot)| *slot)
    }

    /// Names a pod in the engine.
    pub(crate) fn set_id(&mut self, slot: Slot, id: Option<PodId>, is_in_job: bool) {
        let entry = self.get_mut(slot);
        entry.is_in_job = is_in_job;
        let before = std::mem::replace(&mut entry.id, id);
        // Another member may have its name by now.
        if let Some(before) = before.filter(|before| self.by_id.get(before) == Some(&slot)) {
            self.by_id.remove(&before);
        }
        if let Some(id) = id {
            self.by_id.insert(id, slot);
        }
    }

    /// All pods by namespace and name.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = Slot> {
        self.by_name.values().flat_map(BTreeMap::values).copied()
    }

    /// The same, with what is known about them.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &PodEntry> {
        self.in_order().map(|slot| self.get(slot))
    }

    pub(crate) fn of_namespace<'p>(
        &'p self,
        namespace: &str,
    ) -> impl Iterator<Item = Slot> + use<'p> {
        self.by_name.get(namespace).into_iter().flat_map(BTreeMap::values).copied()
    }

    /// Pods that are on a node, are to be there, or for which it is freed.
    pub(crate) fn on_node<'p>(&'p self, node: &str) -> impl Iterator<Item = Slot> + use<'p> {
        self.by_node.get(node).into_iter().flatten().copied()
    }

    pub(crate) fn with_claim(&self, namespace: &str, claim: &str) -> impl Iterator<Item = Slot> {
        let key = (Box::from(namespace), Box::from(claim));
        self.by_claim.get(&key).into_iter().flatten().copied()
    }

    pub(crate) fn with_claims(&self) -> BTreeSet<Slot> {
        self.by_claim.values().flatten().copied().collect()
    }

    /// Pods without a node that use any claim.
    pub(crate) fn unplaced_with_claims(&self) -> impl Iterator<Item = Slot> {
        self.unplaced_with_claims.iter().copied()
    }

    /// Pods that became late with leaving their nodes after one time and up to another.
    pub(crate) fn late_between(&self, after_ms: u64, now_ms: u64) -> impl Iterator<Item = Slot> {
        let later = self.late_from.range((after_ms.saturating_add(1), 0)..);
        later.take_while(move |(from_ms, _)| *from_ms <= now_ms).map(|(_, slot)| *slot)
    }

    /// When the next pod is late with leaving its node.
    pub(crate) fn next_late_ms(&self, now_ms: u64) -> Option<u64> {
        let later = self.late_from.range((now_ms.saturating_add(1), 0)..);
        later.map(|(from_ms, _)| *from_ms).next()
    }

    /// Keeps a pod that was not there.
    pub(crate) fn insert(&mut self, entry: PodEntry) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as Slot - 1
        });
        let meta = &entry.pod.meta;
        let of_namespace = self.by_name.entry(meta.namespace.clone()).or_default();
        of_namespace.insert(meta.name.clone(), slot);
        self.slots[slot as usize] = Some(entry);
        self.index_claims(slot, true);
        self.index_late(slot, true);
        self.index(slot);
        slot
    }

    /// Replaces the object of a pod.
    pub(crate) fn replace(&mut self, slot: Slot, pod: Arc<Pod>, is_unreadable: bool) -> Arc<Pod> {
        self.index_claims(slot, false);
        self.index_late(slot, false);
        let entry = self.get_mut(slot);
        entry.is_unreadable = is_unreadable;
        let old = std::mem::replace(&mut entry.pod, pod);
        self.index_claims(slot, true);
        self.index_late(slot, true);
        self.index(slot);
        old
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> PodEntry {
        self.index_claims(slot, false);
        self.index_late(slot, false);
        let entry = self.slots[slot as usize].take().expect("a pod that is kept");
        leave(&mut self.by_node, &entry.place, slot);
        let meta = &entry.pod.meta;
        if let Some(of_namespace) = self.by_name.get_mut(&meta.namespace) {
            of_namespace.remove(&meta.name);
            if of_namespace.is_empty() {
                self.by_name.remove(&meta.namespace);
            }
        }
        self.free.push(slot);
        entry
    }

    /// Notes where a pod is now.
    pub(crate) fn index(&mut self, slot: Slot) {
        let place: Box<str> = self.wanted_place(slot).into();
        let entry = self.slots[slot as usize].as_mut().expect("a pod that is kept");
        if entry.place == place {
            return;
        }
        let before = std::mem::replace(&mut entry.place, place.clone());
        leave(&mut self.by_node, &before, slot);
        if !place.is_empty() {
            self.by_node.entry(place).or_default().insert(slot);
        }
    }

    /// The node it is on, is to be on, or that is freed for it; empty if none.
    fn wanted_place(&self, slot: Slot) -> &str {
        let entry = self.get(slot);
        match (&*entry.pod.node, self.decision_of(entry)) {
            ("", Some(decision)) => &decision.bind.node,
            ("", None) => &entry.pod.nominated_node,
            (node, _) => node,
        }
    }

    /// The decision by which a pod counts as being on a node.
    pub(crate) fn decision_of(&self, entry: &PodEntry) -> Option<&Decision> {
        self.decisions.get(entry.decision?)
    }

    /// A pod is assigned to a node: what one decision, perhaps about more pods, says of it.
    pub(crate) fn assign(
        &mut self,
        slot: Slot,
        number: u64,
        node: &NodeName,
        gang: Option<GangDecision>,
        since_ms: u64,
    ) {
        let Self { slots, decisions, .. } = self;
        let entry = slots[slot as usize].as_mut().expect("a pod that is kept");
        let Some(pod) = entry.id else { return };
        let tag = |epoch, number| match gang {
            Some(GangDecision { first, size }) => gang_decision(epoch, first, size),
            None => entry.name_of_decision(epoch, number),
        };
        let key = PodKey::of(&entry.pod);
        decisions.add(number, (pod, key), node, (gang, since_ms), tag);
        entry.decision = Some(number);
        self.index(slot);
    }

    /// A pod does not count as being on a node by a decision any more.
    pub(crate) fn unassign(&mut self, slot: Slot) {
        if let Some(number) = self.get_mut(slot).decision.take() {
            self.decisions.release(number);
        }
    }

    fn index_late(&mut self, slot: Slot, there: bool) {
        let pod = &self.slots[slot as usize].as_ref().expect("a pod that is kept").pod;
        let Some(from_ms) = late_from_ms(pod).filter(|_| !pod.node.is_empty()) else { return };
        match there {
            true => self.late_from.insert((from_ms, slot)),
            false => self.late_from.remove(&(from_ms, slot)),
        };
    }

    fn index_claims(&mut self, slot: Slot, there: bool) {
        let Self { slots, by_claim, unplaced_with_claims, extended, claimants, .. } = self;
        unplaced_with_claims.remove(&slot);
        let pod = &slots[slot as usize].as_ref().expect("a pod that is kept").pod;
        extended.index(slot, pod, there);
        claimants.index(slot, pod, there);
        for volume in &pod.volumes {
            let (PodVolume::Claim(claim) | PodVolume::Ephemeral(claim)) = volume else { continue };
            let key = (pod.meta.namespace.clone(), claim.clone());
            if there && pod.node.is_empty() {
                unplaced_with_claims.insert(slot);
            }
            match there {
                true => {
                    by_claim.entry(key).or_default().insert(slot);
                }
                false => leave(by_claim, &key, slot),
            }
        }
    }
}

/// From when a pod whose deletion has begun is late with leaving its node: Kubernetes counts its
/// grace period in.
pub(crate) fn late_from_ms(pod: &Pod) -> Option<u64> {
    Some(pod.meta.gone_by_ms?.get().saturating_add(SLACK_MS))
}

pub(super) fn leave<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Slot>>, key: &K, slot: Slot) {
    if let Some(slots) = index.get_mut(key) {
        slots.remove(&slot);
        if slots.is_empty() {
            index.remove(key);
        }
    }
}
