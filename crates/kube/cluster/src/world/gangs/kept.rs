//! Room kept for a member that was lost, or whose bind had no effect, while others of its gang have
//! nodes. Nobody else gets what it held for a stated time, and whoever replaces it may start in it:
//! the room is held until it does, so that no order of those that wait gives it away. Otherwise two
//! gangs that lose some members each could let in a third, and never be whole again.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{
    Event, Holding, HoldingId, Owner, Phase as HoldingPhase, Requirement, TopologyRequest,
};
use dovetail_objects::Phase;

use super::roll::{Lack, Roll};
use crate::translate::gang::{GangName, Terms};
use crate::world::World;
use crate::world::pods::Slot;
use crate::world::standing::{Told, full_name};
use crate::world::tell::Events;

/// What a lost member held.
#[derive(Debug)]
pub(super) struct Kept {
    holding: Holding,
    /// What it asked for.
    wants: Wants,
    until_ms: u64,
    is_told: bool,
    /// Who replaces it.
    heir: Option<Slot>,
}

impl Kept {
    /// Room like what a holding is, until a time.
    pub(super) fn new(mut holding: Holding, wants: Wants, until_ms: u64) -> Self {
        // Nobody is there to be counted, and volumes go with their pods.
        holding.counts_into.clear();
        holding.attachments.clear();
        Self { holding, wants, until_ms, is_told: false, heir: None }
    }

    /// Under which name it is held.
    fn name(&self) -> &str {
        match &self.holding.owner {
            Owner::Foreign(name) => name,
            Owner::Pod(_) | Owner::Reservation => "",
        }
    }
}

/// Who may start in what is kept for a gang.
#[derive(Debug, Default)]
pub(super) struct Heirs {
    pub(super) pods: Vec<Slot>,
    /// Whether they are as many as it lacks, of every role.
    pub(super) are_all: bool,
}

/// What a member asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wants {
    /// Its part of the gang, and where that is to be.
    part: (Option<Box<str>>, TopologyRequest),
    requirement: Arc<Requirement>,
}

impl Wants {
    /// As much of everything, in the same part.
    fn is_as_much(&self, other: &Self) -> bool {
        let amounts = |wants: &Self| {
            let requirement = &wants.requirement;
            (requirement.resources.clone(), requirement.device.clone())
        };
        self.part == other.part && amounts(self) == amounts(other)
    }
}

/// How much the one that replaces another is to be like it.
#[derive(Clone, Copy, Debug)]
enum Likeness {
    /// It asks for the same.
    Same,
    /// As much of everything, in the same part.
    AsMuch,
    /// It is of the same part.
    SamePart,
    /// It is of the same gang.
    Any,
}

impl Likeness {
    /// The closest first.
    const ALL: &[Self] = &[Self::Same, Self::AsMuch, Self::SamePart, Self::Any];
    /// Those that leave no doubt while others may come yet.
    const ENOUGH_ALONE: &[Self] = &[Self::Same, Self::AsMuch];

    fn is_between(self, lost: &Wants, heir: &Wants) -> bool {
        match self {
            Self::Same => lost == heir,
            Self::AsMuch => lost.is_as_much(heir),
            Self::SamePart => lost.part == heir.part,
            Self::Any => true,
        }
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
        let phase = HoldingPhase::Kept { priority: entry.pod.priority };
        let holding = self.holding(slot, owner, node, phase);
        let wants = self.wants(slot, &gang);
        let is_heir = matches!(self.pods.get(slot).told, Told::Assumed { .. });
        let keep_for_ms = self.settings.patience.keep_for_ms;
        let gang = self.gangs.get_mut(&gang);
        // Who did not start in room that was kept for it keeps that no longer than it was kept.
        let until_ms = gang.heirs.remove(&slot).filter(|_| is_heir);
        let until_ms = until_ms.unwrap_or(self.now_ms + keep_for_ms);
        let kept = &mut gang.kept;
        // One that has its name takes its place.
        kept.retain(|kept| kept.holding.owner != holding.owner);
        kept.push(Kept::new(holding, wants, until_ms));
    }

    /// Tells what is kept for a gang with what it lacks, and who may start in it: nobody if it
    /// never had that. When it is to be looked at again.
    pub(super) fn settle_kept(
        &mut self,
        name: &GangName,
        roll: &Roll,
        lack: &Lack,
        heirs: &Heirs,
        events: &mut Events,
    ) -> Option<u64> {
        let is_decided = |slot: &Slot| {
            roll.placed.contains(slot) && matches!(self.pods.get(*slot).told, Told::Assumed { .. })
        };
        let mut decided = std::mem::take(&mut self.gangs.get_mut(name).heirs);
        decided.retain(|slot, _| is_decided(slot));
        let mut kept = std::mem::take(&mut self.gangs.get_mut(name).kept);
        let started = kept.iter().filter_map(|kept| Some((kept.heir?, kept.until_ms)));
        decided.extend(started.filter(|(heir, _)| is_decided(heir)));
        self.gangs.get_mut(name).heirs = decided;
        if kept.is_empty() {
            return None;
        }
        let missing = if roll.placed.is_empty() { 0 } else { lack.pods as usize };
        let has_started = |heir: Slot| roll.placed.contains(&heir);
        let is_over = |kept: &Kept| {
            let is_gone = !self.nodes.is_there(&kept.holding.node);
            kept.until_ms <= self.now_ms || is_gone || kept.heir.is_some_and(has_started)
        };
        let mut given_up: Vec<Kept> = kept.extract_if(.., |kept| is_over(kept)).collect();
        self.name_heirs(name, &mut kept, heirs);
        // The last that were lost are replaced last.
        kept.sort_by_key(|kept| kept.heir.is_some());
        given_up.extend(kept.drain(..kept.len().saturating_sub(missing)));
        let given_up_any = !given_up.is_empty();
        for kept in given_up.into_iter().filter(|kept| kept.is_told) {
            events.freed.push(Event::ForeignReleased { name: kept.name().to_owned() });
        }
        let is_news = given_up_any || kept.iter().any(|kept| !kept.is_told);
        for kept in kept.iter_mut().filter(|kept| !kept.is_told) {
            kept.is_told = true;
            events.held.push(Event::ForeignHeld(Box::new(kept.holding.clone())));
        }
        let due_ms = kept.iter().map(|kept| kept.until_ms).min();
        self.gangs.get_mut(name).kept = kept;
        self.gangs.is_room_kept_anew |= is_news;
        due_ms
    }

    /// Those of a gang that wish for a node and are of what it lacks. Who would be one too many
    /// replaces nobody.
    pub(super) fn heirs(&self, name: &GangName, terms: &Terms, roll: &Roll, lack: &Lack) -> Heirs {
        let role = |slot: &Slot| self.role_in(name, terms, *slot);
        let wishing = roll.wishing.iter();
        let pods = wishing.filter(|slot| lack.is_less_by(role(slot))).copied().collect();
        let are_all = lack.met_by(roll.wishing.iter().map(role)) >= lack.pods;
        Heirs { pods, are_all }
    }

    /// Says who of those that may replaces whom. While some have not come, room is only for who
    /// asks for as much as the lost one: what another needs may come yet.
    fn name_heirs(&mut self, gang: &GangName, kept: &mut [Kept], may: &Heirs) {
        let wishing = &may.pods;
        for kept in kept.iter_mut() {
            kept.heir = kept.heir.filter(|heir| wishing.contains(heir));
        }
        let mut heirs: Vec<(Slot, Wants)> =
            wishing.iter().map(|slot| (*slot, self.wants(*slot, gang))).collect();
        // The best match first; where there is no other, the smallest room that suffices, else the
        // largest.
        let likenesses = if may.are_all { Likeness::ALL } else { Likeness::ENOUGH_ALONE };
        for likeness in likenesses {
            heirs.retain(|(slot, _)| !kept.iter().any(|kept| kept.heir == Some(*slot)));
            for (slot, wants) in &heirs {
                let is_alike = |kept: &&mut Kept| {
                    kept.heir.is_none() && likeness.is_between(&kept.wants, wants)
                };
                let asked_milli = wants.requirement.gpu_milli();
                let rank = |kept: &&mut Kept| {
                    let there_milli = kept.wants.requirement.gpu_milli();
                    let suffices = there_milli >= asked_milli;
                    if suffices { (0, there_milli) } else { (1, -there_milli) }
                };
                if let Some(room) = kept.iter_mut().filter(is_alike).min_by_key(rank) {
                    room.heir = Some(*slot);
                }
            }
        }
    }

    /// What a member asks for, or asked for when it waited.
    pub(super) fn wants(&mut self, slot: Slot, gang: &GangName) -> Wants {
        let requirement = match self.pods.get(slot).wish.clone() {
            Some(wish) => wish,
            None => self.would_need(slot),
        };
        let terms = self.terms_of(gang).and_then(Result::ok);
        let part = terms.map(|terms| {
            let role = self.role_in(gang, &terms, slot);
            let name = role.map(|role| Box::from(&*terms.roles[role].name));
            (name, self.own_topology(slot, role, &terms))
        });
        Wants { part: part.unwrap_or_default(), requirement }
    }

    /// Under which name room is held for a pod that waits by itself.
    pub(in crate::world) fn room_for(&self, slot: Slot) -> BTreeSet<String> {
        let gang = self.pods.get(slot).gang.as_deref().and_then(|name| self.gangs.get(name));
        let kept = gang.into_iter().flat_map(|gang| &gang.kept);
        let own = kept.filter(|kept| kept.is_told && kept.heir == Some(slot));
        own.map(|kept| kept.name().to_owned()).collect()
    }

    /// Under which names room is held for what a gang lacks, all of it.
    pub(super) fn room_for_all(&self, name: &GangName) -> BTreeSet<String> {
        let kept = self.gangs.get(name).into_iter().flat_map(|gang| &gang.kept);
        kept.filter(|kept| kept.is_told).map(|kept| kept.name().to_owned()).collect()
    }

    /// The engine has given up room for somebody of a higher priority.
    pub fn rooms_given_up(&mut self, names: &[String]) -> Vec<Event> {
        for (gang, known) in &mut self.gangs.by_name {
            let before = known.kept.len();
            known.kept.retain(|kept| !names.iter().any(|name| name == kept.name()));
            if known.kept.len() < before {
                self.dirty.gangs.insert(Arc::clone(gang));
                self.gangs.is_room_kept_anew = true;
            }
        }
        self.settle()
    }

    /// Whether other room is kept than at the last call.
    pub fn take_is_room_kept_anew(&mut self) -> bool {
        std::mem::take(&mut self.gangs.is_room_kept_anew)
    }

    /// Under which names room is kept, and for which gangs.
    pub fn kept_rooms(&self) -> impl Iterator<Item = (String, String)> {
        let gangs = self.gangs.by_name.iter();
        gangs.flat_map(|(gang, known)| {
            let told = known.kept.iter().filter(|kept| kept.is_told);
            told.map(|kept| (kept.name().to_owned(), gang.to_string()))
        })
    }

    /// Everything that is kept and was told.
    pub(in crate::world) fn kept_holdings(&self) -> impl Iterator<Item = Holding> {
        let kept = self.gangs.by_name.values().flat_map(|gang| &gang.kept);
        let told = kept.filter(|kept| kept.is_told);
        told.map(|kept| Holding { id: HoldingId(0), ..kept.holding.clone() })
    }
}
