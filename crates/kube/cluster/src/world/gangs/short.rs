//! Gangs of which some members have nodes, fewer than may run.
//!
//! That happens when a leader was lost between the first and the last bind, when a bind had no
//! effect, and when a member is lost while its gang runs. In each case what is missing is placed
//! ahead of others. If that does not succeed for a stated time, the gang is given up or goes on
//! waiting, by what its owner says.

use std::collections::BTreeMap;

use super::Gang;
use super::look::ShortLook;
use super::roll::{Lack, Roll};
use crate::translate::gang::{GangName, OnLostMember, Terms, size_beside, size_in};
use crate::world::DECISION;
use crate::world::World;
use crate::world::key::PodKey;
use crate::world::pods::{PodEntry, Slot};

/// A gang that is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwinding {
    /// The gang.
    pub gang: GangName,
    /// Its pods that have nodes by our decisions: they are to be deleted.
    pub pods: Vec<PodKey>,
    /// Its smallest size.
    pub min: u32,
}

/// Whether a gang is short, and since when.
#[derive(Debug, Default)]
pub(super) struct Shortness {
    since_ms: Option<u64>,
    /// Whether it had its size, as far as that is known.
    had_its_size: Option<bool>,
    /// The largest size that it was seen whole at.
    whole_at: u32,
}

impl Shortness {
    /// Whether the gang is short.
    pub(super) fn is_there(&self) -> bool {
        self.since_ms.is_some()
    }

    /// The gang is not short, or nothing can be said.
    pub(super) fn is_over(&mut self) {
        self.since_ms = None;
    }
}

/// Whether a gang is given up that stays short.
fn is_given_up(terms: &Terms, had_its_size: Option<bool>) -> bool {
    match terms.on_lost_member {
        OnLostMember::Keep => false,
        OnLostMember::Restart => true,
        OnLostMember::Wait => had_its_size == Some(false),
    }
}

impl World {
    /// Notes whether a gang is short; gives it up when it has been for too long. When it is to be
    /// looked at again.
    pub(super) fn note_shortness(
        &mut self,
        name: &GangName,
        terms: &Terms,
        roll: &Roll,
        lack: &Lack,
    ) -> Option<u64> {
        let now_ms = self.now_ms;
        let seen = roll.seen.iter().chain(&roll.succeeded).copied();
        let is_seen_whole = self.lack(name, terms, seen).is_none();
        let others_bound =
            self.gangs.get(name).is_some_and(|gang| !self.say_how_many_they_were(gang));
        let had_its_size = match self.gangs.get_mut(name).shortness.had_its_size {
            _ if roll.placed.is_empty() => None,
            _ if terms.min > 0 && is_seen_whole => Some(true),
            // Objects alone say it: what was seen before would be forgotten by the next who leads.
            _ if others_bound && !lack.is_none() => Some(self.is_carried_out(name)),
            // A decision of this leadership is not seen whole yet.
            None if roll.seen.len() < roll.placed.len() => None,
            None if !lack.is_none() => Some(self.is_carried_out(name)),
            known => known,
        };
        let shortness = &mut self.gangs.get_mut(name).shortness;
        shortness.had_its_size = had_its_size;
        shortness.whole_at = match roll.placed.is_empty() {
            true => 0,
            false if is_seen_whole => shortness.whole_at.max(terms.min),
            false => shortness.whole_at,
        };
        if is_seen_whole || roll.placed.is_empty() {
            shortness.is_over();
            return None;
        }
        // What is decided may fail again, as before: only what is seen ends it.
        if lack.is_none() {
            return None;
        }
        let given_up = is_given_up(terms, had_its_size);
        let since_ms = *shortness.since_ms.get_or_insert(now_ms);
        let due_ms = since_ms + self.settings.patience.complete_within_ms;
        if !given_up || now_ms < due_ms {
            return given_up.then_some(due_ms);
        }
        shortness.since_ms = Some(now_ms);
        let pods = self.bound_by_us(&roll.placed);
        if !pods.is_empty() {
            let gang = GangName::clone(name);
            self.gangs.unwinding.push(Unwinding { gang, pods, min: terms.min });
        }
        Some(now_ms + self.settings.patience.complete_within_ms)
    }

    /// What a gang lacks of which some pods have nodes.
    pub(super) fn short_look(&self, name: &GangName, terms: &Terms) -> Option<ShortLook> {
        let gang = self.gangs.get(name)?;
        let roll = self.roll(gang);
        let lack = self.lack(name, terms, roll.settled());
        let patience = self.settings.patience;
        let given_up = is_given_up(terms, gang.shortness.had_its_size);
        (!lack.is_none() && !roll.placed.is_empty()).then_some(ShortLook {
            pods: lack.pods,
            keep_for_ms: patience.keep_for_ms,
            given_up_after_ms: given_up.then_some(patience.complete_within_ms),
        })
    }

    /// Whether what a gang lacks was lost: it had as much as it needs. If it needs more than was
    /// ever decided for it, because it starts in stages or its owner has asked for more, it lacks
    /// what it never had.
    pub(super) fn is_loss(&self, name: &GangName, terms: &Terms, lack: &Lack) -> bool {
        let Some(gang) = self.gangs.get(name) else { return false };
        !lack.is_none()
            && gang.shortness.had_its_size == Some(true)
            && self.decided_pods(gang).max(self.ran_with(gang)) >= terms.min
    }

    /// With how many pods a gang ran, as far as that was seen, or as pods say that were placed by
    /// themselves beside it: of the decisions about those others nobody may be left.
    fn ran_with(&self, gang: &Gang) -> u32 {
        let placed = gang.members.values().map(|slot| &self.pods.get(*slot).pod);
        let placed = placed.filter(|pod| !pod.node.is_empty() && !pod.is_over());
        let beside =
            placed.filter_map(|pod| size_beside(pod.meta.annotations.get(DECISION)?)).max();
        beside.unwrap_or(0).max(gang.shortness.whole_at)
    }

    /// Whether the pods of a gang that have nodes all say for how many a decision was: then those
    /// that are missing are known.
    pub(super) fn say_how_many_they_were(&self, gang: &Gang) -> bool {
        self.decided_pods(gang) != u32::MAX
    }

    /// For how many pods a gang has had nodes, as far as its pods say: those that were bound for it
    /// say how many were in their decision. What others have bound says nothing: that may have been
    /// any number.
    pub(super) fn decided_pods(&self, gang: &Gang) -> u32 {
        let entries = gang.members.values().map(|slot| self.pods.get(*slot));
        let mut decided: BTreeMap<&str, u32> = BTreeMap::new();
        let placed = entries.filter(|entry| !entry.pod.node.is_empty() || entry.assumed.is_some());
        for entry in placed {
            match entry.pod.meta.annotations.get(DECISION) {
                Some(tag) => *decided.entry(tag).or_default() += 1,
                None if entry.pod.node.is_empty() => *decided.entry("").or_default() += 1,
                None => return u32::MAX,
            }
        }
        let sizes = decided.into_iter().map(|(tag, count)| size_in(tag).unwrap_or(count));
        sizes.fold(0_u32, u32::saturating_add)
    }

    /// Whether everything that was ever decided for a gang was carried out, as far as its pods say.
    /// Of a decision of which fewer pods are there than it was about, the others wait as they did
    /// when it was made, or they were lost since: who was made after it was carried out replaces
    /// one of those. What others have bound is one decision, which does not say about how many.
    fn is_carried_out(&self, name: &GangName) -> bool {
        let Some(gang) = self.gangs.get(name) else { return true };
        let entries = || gang.members.values().map(|slot| self.pods.get(*slot));
        let mut bound: BTreeMap<Option<&str>, (u32, u64)> = BTreeMap::new();
        for entry in entries() {
            let meta = &entry.pod.meta;
            let tag = meta.annotations.get(DECISION);
            if tag.is_none() && entry.pod.node.is_empty() {
                continue;
            }
            let (count, first_ms) = bound.entry(tag).or_insert((0, u64::MAX));
            *count += 1;
            *first_ms = (*first_ms).min(match (entry.pod.scheduled_ms, tag) {
                // Made with a node.
                (0, None) => meta.created_ms,
                (scheduled_ms, _) => scheduled_ms,
            });
        }
        bound.into_iter().all(|(tag, (count, first_ms))| {
            // When it was bound is not known of a pod that does not say so.
            let is_old = |entry: &PodEntry| first_ms == 0 || entry.pod.meta.created_ms <= first_ms;
            tag.is_some_and(|tag| size_in(tag).is_none_or(|size| size <= count))
                || !entries().any(|entry| entry.waits() && is_old(entry))
        })
    }

    fn bound_by_us(&self, placed: &[Slot]) -> Vec<PodKey> {
        let ours = placed.iter().filter(|slot| self.runs_by_our_decision(**slot));
        ours.map(|slot| PodKey::of(&self.pods.get(*slot).pod)).collect()
    }
}
