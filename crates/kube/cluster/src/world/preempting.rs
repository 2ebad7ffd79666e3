//! Pods that are stopped for others, and pods for which room is made, as the objects tell of them.
//!
//! Which decision a waiting pod rests on is in the objects alone: its `status.nominatedNodeName`,
//! and on that node the pods that are ending or carry the condition that says so. A scheduler that
//! starts anew finds it there.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{
    Claim, Event, JobId, NodeName, Owner, Phase, Place, PodId, ReservationId, Snapshot,
};

use super::World;
use super::key::PodKey;
use super::pods::{SLACK_MS, Slot, late_from_ms};
use super::standing::{Standing, Told, full_name};

/// Claims of a snapshot have reservations from here on, as the engine's own.
const FIRST_CLAIM: u32 = 1 << 31;

impl World {
    /// Whether a pod that another scheduler placed counts as one of ours, because it may be
    /// stopped.
    pub(super) fn may_be_stopped(&self, slot: Slot) -> bool {
        let entry = self.pods.get(slot);
        let pod = &entry.pod;
        let may = self.settings.preempt_foreign && !entry.strange && entry.gang.is_none();
        may && !pod.node.is_empty() && !pod.preemption.is_protected
    }

    /// Whether a pod is one that a scheduler like this one may have begun to stop.
    fn is_ours_to_stop(&self, slot: Slot) -> bool {
        self.is_ours(&self.pods.get(slot).pod) || self.may_be_stopped(slot)
    }

    /// As if these pods were gone: what a dry run would have stopped.
    pub fn leave_out(&mut self, pods: &[PodId]) -> Vec<Event> {
        for slot in pods.iter().filter_map(|pod| self.ids.get(pod)).copied().collect::<Vec<_>>() {
            self.pods.get_mut(slot).is_left_out = true;
            self.dirty.pods.insert(slot);
        }
        self.settle()
    }

    /// What those of these pods hold that are not ending: they were to be stopped and were not.
    pub fn not_stopped(&self, pods: &[PodId]) -> Vec<Event> {
        let slots = pods.iter().filter_map(|pod| self.ids.get(pod));
        let running = slots.filter(|slot| {
            let entry = self.pods.get(**slot);
            matches!(entry.told, Told::Running { .. }) && !entry.pod.meta.is_deleting()
        });
        let held = running.filter_map(|slot| match self.standing(*slot) {
            Standing::Running(holding) => Some(Event::HeldChanged(holding)),
            _ => None,
        });
        held.collect()
    }

    /// Waiting pods of ours that name a node which is freed for them, by that node.
    fn nominations(&self) -> BTreeMap<NodeName, Vec<(PodId, Slot)>> {
        let mut all: BTreeMap<NodeName, Vec<(PodId, Slot)>> = BTreeMap::new();
        for (id, slot) in &self.ids {
            let entry = self.pods.get(*slot);
            let waits = matches!(entry.told, Told::Waiting { .. } | Told::Member { .. });
            let node = &entry.pod.nominated_node;
            if waits && !node.is_empty() && self.nodes.is_there(node) {
                all.entry((**node).into()).or_default().push((*id, *slot));
            }
        }
        all
    }

    /// Waiting pods of ours that name a node, of jobs without a claim: nothing is freed for them.
    pub fn stale_nominations(&self, claims: &[Claim]) -> Vec<PodKey> {
        let kept: BTreeSet<JobId> = claims.iter().map(|claim| claim.job).collect();
        let named = self.pods.in_order().map(|slot| self.pods.get(slot));
        let stale = named.filter(|entry| {
            let pod = &entry.pod;
            let names = entry.waits() && !pod.nominated_node.is_empty() && self.is_ours(pod);
            names && !entry.id.is_some_and(|id| kept.contains(&id.job))
        });
        stale.map(|entry| PodKey::of(&entry.pod)).collect()
    }

    /// Room that is being made, as the objects tell of it: for jobs that name nodes on which
    /// somebody ends.
    pub(super) fn restore_claims(&self, snapshot: &mut Snapshot) {
        let mut claims: BTreeMap<JobId, Claim> = BTreeMap::new();
        for (node, pods) in self.nominations() {
            let (awaited, grace_ms) = self.ending_on(&node);
            if awaited.is_empty() {
                continue;
            }
            let until_ms = snapshot.now_ms + grace_ms + SLACK_MS;
            for holding in &mut snapshot.holdings {
                if awaited.contains(&holding.owner) {
                    holding.phase = Phase::Releasing { expected_end_ms: Some(until_ms) };
                }
            }
            for (pod, slot) in pods {
                let number = ReservationId(FIRST_CLAIM + claims.len() as u32);
                let holding = self.holding(slot, Owner::Pod(pod), node.clone(), Phase::Assumed);
                let place = Place { pod, node: node.clone(), devices: holding.devices };
                let claim = claims.entry(pod.job).or_insert_with(|| Claim {
                    job: pod.job,
                    reservation: number,
                    places: Vec::new(),
                    awaited: Vec::new(),
                    until_ms,
                });
                claim.places.push(place);
                claim.until_ms = claim.until_ms.max(until_ms);
                let new = awaited.iter().filter(|owner| !claim.awaited.contains(owner));
                let new: Vec<Owner> = new.cloned().collect();
                claim.awaited.extend(new);
            }
        }
        snapshot.claims = claims.into_values().collect();
    }

    /// Who holds something on a node and is ending and not late with it, or about to by a
    /// scheduler; how long that may take.
    fn ending_on(&self, node: &str) -> (Vec<Owner>, u64) {
        let (mut owners, mut grace_ms) = (Vec::new(), 0);
        for slot in self.pods.on_node(node) {
            let entry = self.pods.get(slot);
            let pod = &entry.pod;
            let ends =
                pod.meta.is_deleting() || (pod.preemption.is_target && self.is_ours_to_stop(slot));
            let is_late = late_from_ms(pod).is_some_and(|from_ms| from_ms <= self.now_ms);
            if !ends || is_late || *pod.node != *node || pod.is_over() {
                continue;
            }
            let owner = match (&entry.told, entry.id) {
                (Told::Running { .. }, Some(id)) => Owner::Pod(id),
                (Told::Foreign { .. }, _) => Owner::Foreign(full_name(pod)),
                _ => continue,
            };
            grace_ms = grace_ms.max(1_000 * u64::from(pod.preemption.grace_s));
            owners.push(owner);
        }
        (owners, grace_ms)
    }
}
