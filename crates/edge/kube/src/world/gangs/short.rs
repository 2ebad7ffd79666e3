//! Gangs of which some members have nodes, fewer than may run.
//!
//! That happens when a leader was lost between the first and the last bind, when a bind had no effect, and when
//! a member is lost while its gang runs. In each case what is missing is placed ahead of others. If that does
//! not succeed for a stated time, the gang is given up or goes on waiting, by what its owner says.

use std::collections::BTreeMap;

use super::roll::Roll;
use crate::translate::gang::{GangName, OnLostMember, Terms, size_in};
use crate::world::DECISION;
use crate::world::World;
use crate::world::key::PodKey;
use crate::world::pods::Slot;
use crate::world::standing::Told;

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
}

impl Shortness {
    /// Whether the gang had its size, as far as that is known.
    pub(super) fn had_its_size(&self) -> bool {
        self.had_its_size == Some(true)
    }

    /// The gang is not short, or nothing can be said.
    pub(super) fn is_over(&mut self) {
        self.since_ms = None;
    }
}

impl World {
    /// Notes whether a gang is short; gives it up when it has been for too long. When it is to be looked at
    /// again.
    pub(super) fn note_shortness(
        &mut self,
        name: &GangName,
        terms: &Terms,
        roll: &Roll,
        missing: u32,
    ) -> Option<u64> {
        let now_ms = self.now_ms;
        let had_its_size = match self.gangs.get_mut(name).shortness.had_its_size {
            _ if roll.placed.is_empty() => None,
            _ if terms.min > 0 && roll.seen + roll.succeeded >= terms.min => Some(true),
            // A decision of this leadership is not seen whole yet.
            None if roll.seen < roll.placed.len() as u32 => None,
            None if missing > 0 => Some(self.had_its_size(name)),
            known => known,
        };
        let shortness = &mut self.gangs.get_mut(name).shortness;
        shortness.had_its_size = had_its_size;
        if missing == 0 || roll.placed.is_empty() {
            shortness.is_over();
            return None;
        }
        let given_up = match terms.on_lost_member {
            OnLostMember::Keep => false,
            OnLostMember::Restart => true,
            OnLostMember::Wait => had_its_size == Some(false),
        };
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

    /// Whether everything that was ever decided for a gang was carried out, as far as its pods say: each that
    /// was bound says how many were in its decision.
    fn had_its_size(&mut self, name: &GangName) -> bool {
        let members = self.gangs.get_mut(name).members.values().copied().collect::<Vec<_>>();
        let mut bound: BTreeMap<&str, u32> = BTreeMap::new();
        for slot in members {
            let tag = self.pods.get(slot).pod.meta.annotations.get(DECISION);
            *bound.entry(tag.unwrap_or("")).or_default() += 1;
        }
        bound.into_iter().all(|(tag, count)| size_in(tag).is_none_or(|size| size <= count))
    }

    fn bound_by_us(&self, placed: &[Slot]) -> Vec<PodKey> {
        let entries = placed.iter().map(|slot| self.pods.get(*slot));
        let ours = entries.filter(|entry| {
            let tag = entry.pod.meta.annotations.get(DECISION);
            matches!(entry.told, Told::Running { .. }) && tag.is_some()
        });
        ours.map(|entry| PodKey::of(&entry.pod)).collect()
    }
}
