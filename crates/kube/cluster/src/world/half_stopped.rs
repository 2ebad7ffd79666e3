//! Stops that were begun and not finished: gangs of which some pods were stopped for others and the
//! rest were not, and pods that say that they are about to be stopped.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{Event, Owner, Phase, PodId};
use dovetail_objects::Pod;

use super::World;
use super::key::PodKey;
use super::pods::{SLACK_MS, Slot};
use super::standing::{Standing, Told};
use crate::translate::gang::GangName;

impl World {
    /// Who is left of gangs of which some of these pods have been stopped, where too few are left
    /// to go on.
    pub fn left_of_stopped(&self, victims: &[PodId]) -> Vec<PodId> {
        let is_going = |slot: &Slot| self.pods.get(*slot).pod.meta.is_deleting();
        let is_begun = |pod: &PodId| self.ids.get(pod).is_none_or(is_going);
        if !victims.iter().any(is_begun) {
            return Vec::new();
        }
        let there = victims.iter().filter_map(|pod| self.ids.get(pod));
        let gangs: BTreeSet<&Arc<GangName>> =
            there.filter_map(|slot| self.pods.get(*slot).gang.as_ref()).collect();
        let left = gangs.into_iter().flat_map(|name| self.left_of(name, &BTreeSet::new()));
        left.filter_map(|slot| self.pods.get(slot).id).collect()
    }

    /// Who is left of gangs that were being stopped when the last leader ended, as their pods tell:
    /// one is marked, the gang cannot go on without those that have gone or are `awaited`, and
    /// somebody waits for whom they may have been stopped.
    pub fn left_by_the_last_leader(&self, awaited: &BTreeSet<PodId>) -> Vec<PodId> {
        let mut gangs: BTreeMap<&Arc<GangName>, BTreeSet<Slot>> = BTreeMap::new();
        for slot in self.marked() {
            let entry = self.pods.get(slot);
            let Some(name) = &entry.gang else { continue };
            let stopped = gangs.entry(name).or_default();
            if entry.id.is_some_and(|id| awaited.contains(&id)) {
                stopped.insert(slot);
            }
        }
        let most = self.first_nominated().map(|pod| pod.priority);
        let left = gangs.into_iter().flat_map(|(name, stopped)| {
            let left = self.left_of(name, &stopped);
            let is_below = |slot: &Slot| Some(self.pods.get(*slot).pod.priority) < most;
            if left.iter().all(is_below) { left } else { Vec::new() }
        });
        left.filter_map(|slot| self.pods.get(slot).id).collect()
    }

    /// Who cannot go on of a gang without some. Of one that is stopped whole nobody can once it has
    /// lost any.
    fn left_of(&self, name: &Arc<GangName>, stopped: &BTreeSet<Slot>) -> Vec<Slot> {
        let is_untouched = stopped.is_empty() && !self.has_lost_some(name);
        match self.is_whole_group(name) && is_untouched {
            true => Vec::new(),
            false => self.left_without(name, stopped),
        }
    }

    /// Pods that run on and say that their own scheduler is about to stop them.
    pub fn marked_by_us(&self) -> impl Iterator<Item = PodKey> {
        let marked = self.marked().map(|slot| &*self.pods.get(slot).pod);
        let stays = marked.filter(|pod| !pod.meta.is_deleting() && !pod.node.is_empty());
        stays.map(PodKey::of)
    }

    /// These pods are about to go.
    pub fn about_to_go(&self, pods: &[PodId]) -> Vec<Event> {
        let slots = pods.iter().filter_map(|pod| self.ids.get(pod)).copied();
        let held = slots.filter_map(|slot| match self.standing(slot) {
            Standing::Running(mut holding) if matches!(holding.owner, Owner::Pod(_)) => {
                let grace_ms = 1_000 * u64::from(self.pods.get(slot).pod.preemption.grace_s);
                let ends_ms = self.now_ms.saturating_add(grace_ms).saturating_add(SLACK_MS);
                holding.phase = Phase::Releasing { expected_end_ms: Some(ends_ms) };
                Some(Event::HeldChanged(holding))
            }
            _ => None,
        });
        held.collect()
    }

    /// Pods on nodes that their own scheduler is about to stop, or has begun to: what another one
    /// stops is its business.
    fn marked(&self) -> impl Iterator<Item = Slot> {
        self.pods.in_order().filter(|slot| {
            let entry = self.pods.get(*slot);
            let is_there = matches!(entry.told, Told::Running { .. }) && !entry.pod.is_over();
            is_there && entry.pod.preemption.is_own_target && self.is_ours(&entry.pod)
        })
    }

    /// The most important of those that wait and name a node that is freed for them.
    pub fn first_nominated(&self) -> Option<&Pod> {
        let entries = self.pods.in_order().map(|slot| self.pods.get(slot));
        let names = entries.filter(|entry| {
            entry.waits() && !entry.pod.nominated_node.is_empty() && self.is_ours(&entry.pod)
        });
        names.map(|entry| &*entry.pod).min_by_key(|pod| Reverse(pod.priority))
    }
}
