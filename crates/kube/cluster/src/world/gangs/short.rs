//! Gangs of which some members have nodes, fewer than may run.
//!
//! That happens when a leader was lost between the first and the last bind, when a bind had no
//! effect, and when a member is lost while its gang runs. In each case what is missing is placed
//! ahead of others. If that does not succeed for a stated time, the gang is given up or goes on
//! waiting, by what its owner says.

use super::settle::Settling;
use crate::world::key::PodKey;
use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use crate::world::readings::decided::{
    decided_pods, is_carried_out, ran_beside, runs_by_our_decision,
};
use crate::world::readings::gang::GangReading;
use crate::world::readings::roll::{Lack, Roll, roll};
use dovetail_translate::gang::{GangName, GangTerms, OnLostMember};

/// A gang that is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwinding {
    pub gang: GangName,
    /// Its pods that have nodes by our decisions: they are to be deleted.
    pub pods: Vec<PodKey>,
    /// Its smallest size.
    pub min: u32,
}

/// A gang that has fewer pods on nodes than start together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortLook {
    /// How many pods fewer.
    pub pods: u32,
    /// For so long room is kept for a member that is lost.
    pub keep_for_ms: u64,
    /// Its pods are deleted when it has been short for so long; `None` if it waits on.
    pub given_up_after_ms: Option<u64>,
}

/// Whether a gang is short, and since when.
#[derive(Debug, Default)]
pub(crate) struct Shortness {
    since_ms: Option<u64>,
    /// Whether it had its size, as far as that is known.
    had_its_size: Option<bool>,
    /// The largest size that it was seen whole at.
    whole_at: u32,
}

impl Shortness {
    /// Whether the gang is short.
    pub(crate) fn is_there(&self) -> bool {
        self.since_ms.is_some()
    }

    /// Whether what a gang lacks was lost: it had as much as it needs. If it needs more than was
    /// ever decided for it, because it starts in stages or its owner has asked for more, it lacks
    /// what it never had.
    pub(super) fn is_loss(&self, gang: &GangReading<'_>, lack: &Lack) -> bool {
        let (objects, name) = (gang.objects, gang.name);
        let ran_with = || ran_beside(objects, name).max(self.whole_at);
        !lack.is_none()
            && self.had_its_size == Some(true)
            && decided_pods(objects, name).unwrap_or(u32::MAX).max(ran_with()) >= gang.terms.min
    }

    /// What a gang lacks of which some pods have nodes.
    pub(super) fn look(&self, gang: &GangReading<'_>) -> Option<ShortLook> {
        let roll = roll(gang.objects, gang.name);
        let lack = gang.lack(roll.settled());
        let patience = gang.objects.settings.patience;
        let given_up = is_given_up(gang.terms, self.had_its_size);
        (!lack.is_none() && !roll.placed.is_empty()).then_some(ShortLook {
            pods: lack.pods,
            keep_for_ms: patience.keep_for_ms,
            given_up_after_ms: given_up.then_some(patience.complete_within_ms),
        })
    }

    /// The gang is not short, or nothing can be said.
    pub(crate) fn is_over(&mut self) {
        self.since_ms = None;
    }
}

/// Whether a gang is given up that stays short.
fn is_given_up(terms: &GangTerms, had_its_size: Option<bool>) -> bool {
    match terms.on_lost_member {
        OnLostMember::Keep => false,
        OnLostMember::Restart => true,
        OnLostMember::Wait => had_its_size == Some(false),
    }
}

impl Settling<'_> {
    /// Notes whether a gang is short; gives it up when it has been for too long. When it is to be
    /// looked at again.
    pub(super) fn note_shortness(
        &mut self,
        terms: &GangTerms,
        roll: &Roll,
        lack: &Lack,
    ) -> Option<u64> {
        let (objects, name, now_ms) = (&*self.objects, &**self.name, self.objects.now_ms);
        let gang = GangReading { objects, name, terms };
        let seen = roll.seen.iter().chain(&roll.succeeded).copied();
        let is_seen_whole = gang.lack(seen).is_none();
        let shortness = &mut self.gangs.get_mut(name).shortness;
        shortness.had_its_size = match shortness.had_its_size {
            _ if roll.placed.is_empty() => None,
            _ if terms.min > 0 && is_seen_whole => Some(true),
            // Objects alone say it: the next leader would not know what was seen before.
            _ if !lack.is_none() && decided_pods(objects, name).is_none() => {
                Some(is_carried_out(objects, name))
            }
            // A decision of this leadership is not seen whole yet.
            None if roll.seen.len() < roll.placed.len() => None,
            None if !lack.is_none() => Some(is_carried_out(objects, name)),
            known => known,
        };
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
        let given_up = is_given_up(terms, shortness.had_its_size);
        let since_ms = *shortness.since_ms.get_or_insert(now_ms);
        let complete_within_ms = objects.settings.patience.complete_within_ms;
        let due_ms = since_ms + complete_within_ms;
        if !given_up || now_ms < due_ms {
            return given_up.then_some(due_ms);
        }
        shortness.since_ms = Some(now_ms);
        let pods = bound_by_us(objects, &roll.placed);
        if !pods.is_empty() {
            let gang = GangName::clone(name);
            self.gangs.unwinding.push(Unwinding { gang, pods, min: terms.min });
        }
        Some(now_ms + complete_within_ms)
    }
}

fn bound_by_us(objects: &Objects, placed: &[Slot]) -> Vec<PodKey> {
    let ours = placed.iter().filter(|slot| runs_by_our_decision(objects, **slot));
    ours.map(|slot| PodKey::of(&objects.pods.get(*slot).pod)).collect()
}
