//! Room kept for a member that was lost, or whose bind had no effect, while others of its gang have nodes: until
//! it or its replacement can be placed, or for a stated time, nobody else gets what it held. Otherwise two gangs
//! that lose some members each could let in a third, and never be whole again.

use dovetail_model::{Event, Holding, HoldingId, Owner, Phase as HoldingPhase};

use super::roll::{Lack, Roll};
use crate::object::Phase;
use crate::translate::gang::GangName;
use crate::world::World;
use crate::world::pods::Slot;
use crate::world::standing::{Told, full_name};
use crate::world::tell::Events;

/// What a lost member held.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) holding: Holding,
    until_ms: u64,
    is_told: bool,
}

impl Kept {
    /// Room like what a holding is, until a time.
    pub(super) fn new(mut holding: Holding, until_ms: u64) -> Self {
        // Nobody is there to be counted, and volumes go with their pods.
        holding.counts_into.clear();
        holding.attachments.clear();
        Self { holding, until_ms, is_told: false }
    }
}

impl World {
    /// Notes what a member holds that is about to be told as gone.
    pub(in crate::world) fn keep_room(&mut self, slot: Slot) {
        let entry = self.pods.get(slot);
        let (Some(gang), Told::Running { node, .. } | Told::Assumed { node, .. }) =
            (&entry.gang, &entry.told)
        else {
            return;
        };
        // What is freed by stopping it is for those for whom it was stopped.
        let is_stopped = entry.pod.preemption.is_target || entry.is_left_out;
        let is_over = entry.pod.phase == Phase::Succeeded || is_stopped;
        if !self.is_ready || is_over || !self.nodes.is_there(node) {
            return;
        }
        let owner = Owner::Foreign(format!("the place of {} in {gang}", full_name(&entry.pod)));
        let (gang, node) = (gang.clone(), node.clone());
        let phase = HoldingPhase::Held { expected_end_ms: None };
        let holding = self.holding(slot, owner, node, phase);
        let until_ms = self.now_ms + self.settings.patience.keep_for_ms;
        let kept = &mut self.gangs.get_mut(&gang).kept;
        kept.push(Kept::new(holding, until_ms));
    }

    /// Tells what is kept for a gang with what it lacks: whether that `is_loss`, or it never had it. When it is to be
    /// looked at again, and for how many of those that wish for a node room was kept until now.
    pub(super) fn settle_kept(
        &mut self,
        name: &GangName,
        roll: &Roll,
        lack: &Lack,
        is_loss: bool,
        events: &mut Events,
    ) -> (Option<u64>, usize) {
        let mut kept = std::mem::take(&mut self.gangs.get_mut(name).kept);
        if kept.is_empty() {
            return (None, 0);
        }
        let (missing, wishing) = (lack.pods as usize, roll.wishing.len());
        let wanted = match is_loss {
            _ if roll.placed.is_empty() => 0,
            true => missing.saturating_sub(wishing),
            // They are placed together.
            false if wishing < missing => missing,
            false => 0,
        };
        let is_over =
            |kept: &Kept| kept.until_ms <= self.now_ms || !self.nodes.is_there(&kept.holding.node);
        let mut given_up: Vec<Kept> = kept.extract_if(.., |kept| is_over(kept)).collect();
        // The last that were lost are replaced last.
        let kept_for = kept.len().saturating_sub(wanted);
        given_up.extend(kept.drain(..kept_for));
        for kept in given_up.into_iter().filter(|kept| kept.is_told) {
            if let Owner::Foreign(name) = kept.holding.owner {
                events.freed.push(Event::ForeignReleased { name });
            }
        }
        for kept in kept.iter_mut().filter(|kept| !kept.is_told) {
            kept.is_told = true;
            events.held.push(Event::ForeignHeld(Box::new(kept.holding.clone())));
        }
        let due_ms = kept.iter().map(|kept| kept.until_ms).min();
        self.gangs.get_mut(name).kept = kept;
        (due_ms, kept_for)
    }

    /// Everything that is kept and was told.
    pub(in crate::world) fn kept_holdings(&self) -> impl Iterator<Item = Holding> {
        let kept = self.gangs.by_name.values().flat_map(|gang| &gang.kept);
        let told = kept.filter(|kept| kept.is_told);
        told.map(|kept| Holding { id: HoldingId(0), ..kept.holding.clone() })
    }
}
