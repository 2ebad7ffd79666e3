//! Room kept for a member that was lost, or whose bind had no effect, while others of its gang have
//! nodes. No other job gets what it held for a stated time, and its replacement may start in it:
//! the room is held until it does, so that no order of those that wait gives it away. Otherwise two
//! gangs that lose some members each could let in a third, and never be whole again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{
    Event, Holding, HoldingId, HoldingPhase, NodeName, Owner, Requirement, TopologyRequest,
};
use dovetail_objects::PodPhase;

use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use crate::world::objects::reported::{Reported, full_name};
use crate::world::readings::gang::{GangReading, terms_of};
use crate::world::readings::requirements::Requirements;
use crate::world::readings::roll::{Lack, Roll};
use crate::world::readings::standing::holding;
use dovetail_translate::gang::GangName;

/// What is kept for all gangs.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    by_gang: BTreeMap<Arc<GangName>, OfGang>,
    /// Whether other room is kept than when that was last asked.
    is_kept_anew: bool,
}

/// What a lost member held.
#[derive(Debug)]
pub(crate) struct LostHolding {
    holding: Holding,
    /// What it asked for.
    wants: Wants,
    until_ms: u64,
    is_reported: bool,
    /// The pod that replaces it.
    replacement: Option<Slot>,
}

/// What is kept for a gang.
#[derive(Debug, Default)]
struct OfGang {
    kept: Vec<LostHolding>,
    /// Until when room was kept for replacements that are decided and not seen on their nodes yet.
    replacements: BTreeMap<Slot, u64>,
}

impl LostHolding {
    /// Room like what a holding is, until a time.
    pub(crate) fn new(mut holding: Holding, wants: Wants, until_ms: u64) -> Self {
        // There is no pod to be counted, and volumes go with their pods.
        holding.counts_into.clear();
        holding.attachments.clear();
        Self { holding, wants, until_ms, is_reported: false, replacement: None }
    }

    /// Under which name it is held.
    fn name(&self) -> &str {
        match &self.holding.owner {
            Owner::Foreign(name) => name,
            Owner::Pod(_) | Owner::Reservation => "",
        }
    }
}

/// The pods that may start in what is kept for a gang.
#[derive(Debug, Default)]
pub(crate) struct Replacements {
    pub(crate) pods: Vec<Slot>,
    /// Whether they are as many as it lacks, of every role.
    pub(crate) are_all: bool,
}

/// What a member asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wants {
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
    SamePart,
    /// It is of the same gang.
    Any,
}

impl Likeness {
    /// The closest first.
    const ALL: &[Self] = &[Self::Same, Self::AsMuch, Self::SamePart, Self::Any];
    /// Those that leave no doubt while others may come yet.
    const ENOUGH_ALONE: &[Self] = &[Self::Same, Self::AsMuch];

    fn is_between(self, lost: &Wants, replacement: &Wants) -> bool {
        match self {
            Self::Same => lost == replacement,
            Self::AsMuch => lost.is_as_much(replacement),
            Self::SamePart => lost.part == replacement.part,
            Self::Any => true,
        }
    }
}

/// What follows from the rooms of a gang.
#[derive(Debug, Default)]
pub(crate) struct RoomsNoted {
    pub(crate) freed: Vec<Event>,
    pub(crate) held: Vec<Event>,
    /// When they are to be looked at again.
    pub(crate) due_ms: Option<u64>,
}

impl Rooms {
    /// Notes what a member holds that is about to be reported as gone.
    pub(crate) fn keep(&mut self, objects: &Objects, requirements: &mut Requirements, slot: Slot) {
        let entry = objects.pods.get(slot);
        let (Some(gang), Reported::Running { node, .. } | Reported::Assumed { node, .. }) =
            (&entry.gang, &entry.reported)
        else {
            return;
        };
        // What is freed by preempting it is for its preemptor.
        let is_stopped = entry.pod.preemption.is_target || entry.is_assumed_gone;
        let is_over = entry.pod.phase == PodPhase::Succeeded || is_stopped;
        if !objects.is_ready || is_over || !objects.nodes.is_there(node) {
            return;
        }
        let owner = Owner::Foreign(format!(
            "reservation for the replacement of {} in {gang}",
            full_name(&entry.pod)
        ));
        let phase = HoldingPhase::Kept { priority: entry.pod.priority };
        let holding = holding(objects, slot, owner, node.clone(), phase);
        let wants = wants(objects, requirements, slot, gang);
        let is_replacement = matches!(entry.reported, Reported::Assumed { .. });
        let of_gang = self.by_gang.entry(Arc::clone(gang)).or_default();
        // A replacement that did not start keeps its room no longer than it was kept before.
        let until_ms = of_gang.replacements.remove(&slot).filter(|_| is_replacement);
        let keep_for_ms = objects.settings.patience.keep_for_ms;
        let until_ms = until_ms.unwrap_or(objects.now_ms + keep_for_ms);
        // One that has its name takes its place.
        of_gang.kept.retain(|kept| kept.holding.owner != holding.owner);
        of_gang.kept.push(LostHolding::new(holding, wants, until_ms));
    }

    /// Keeps room for lost members of a gang: on each of these nodes for one like a member that is
    /// left.
    pub(crate) fn reserve_for_lost(
        &mut self,
        objects: &Objects,
        requirements: &mut Requirements,
        gang: &Arc<GangName>,
        places: impl Iterator<Item = (Slot, NodeName)>,
    ) {
        let until_ms = objects.now_ms + objects.settings.patience.keep_for_ms;
        let of_gang = self.by_gang.entry(Arc::clone(gang)).or_default();
        for (number, (like, node)) in places.enumerate() {
            let owner = Owner::Foreign(format!("lost place {} of {gang}", number + 1));
            let phase = HoldingPhase::Kept { priority: objects.pods.get(like).pod.priority };
            let holding = holding(objects, like, owner, node, phase);
            let wants = wants(objects, requirements, like, gang);
            of_gang.kept.push(LostHolding::new(holding, wants, until_ms));
        }
    }

    /// Reports what is kept for a gang with what it lacks, and finds replacements that may start in
    /// it: none if it never had that.
    pub(crate) fn settle(
        &mut self,
        objects: &Objects,
        requirements: &mut Requirements,
        gang: &GangName,
        (roll, lack, replacements): (&Roll, &Lack, &Replacements),
    ) -> RoomsNoted {
        let mut noted = RoomsNoted::default();
        let Some(of_gang) = self.by_gang.get_mut(gang) else { return noted };
        // A pod that is not placed may be gone.
        let is_decided = |slot: &Slot| {
            roll.placed.contains(slot)
                && matches!(objects.pods.get(*slot).reported, Reported::Assumed { .. })
        };
        let OfGang { kept, replacements: decided } = of_gang;
        decided.retain(|slot, _| is_decided(slot));
        let started = kept.iter().filter_map(|kept| Some((kept.replacement?, kept.until_ms)));
        decided.extend(started.filter(|(replacement, _)| is_decided(replacement)));
        if kept.is_empty() {
            return noted;
        }
        let missing = if roll.placed.is_empty() { 0 } else { lack.pods as usize };
        let has_started = |replacement: Slot| roll.placed.contains(&replacement);
        let is_over = |kept: &LostHolding| {
            let is_gone = !objects.nodes.is_there(&kept.holding.node);
            kept.until_ms <= objects.now_ms || is_gone || kept.replacement.is_some_and(has_started)
        };
        let mut given_up: Vec<LostHolding> = kept.extract_if(.., |kept| is_over(kept)).collect();
        match_replacements(objects, requirements, gang, kept, replacements);
        // The last that were lost are replaced last.
        kept.sort_by_key(|kept| kept.replacement.is_some());
        given_up.extend(kept.drain(..kept.len().saturating_sub(missing)));
        let is_new = !given_up.is_empty() || kept.iter().any(|kept| !kept.is_reported);
        for kept in given_up.into_iter().filter(|kept| kept.is_reported) {
            noted.freed.push(Event::ForeignReleased { name: kept.name().to_owned() });
        }
        for kept in kept.iter_mut().filter(|kept| !kept.is_reported) {
            kept.is_reported = true;
            noted.held.push(Event::ForeignHeld(Box::new(kept.holding.clone())));
        }
        noted.due_ms = kept.iter().map(|kept| kept.until_ms).min();
        self.is_kept_anew |= is_new;
        noted
    }

    /// Forgets a gang without members.
    pub(crate) fn forget(&mut self, gang: &GangName) {
        self.by_gang.remove(gang);
    }

    fn reported(&self) -> impl Iterator<Item = (&Arc<GangName>, &LostHolding)> {
        let all = self.by_gang.iter();
        all.flat_map(|(gang, of)| of.kept.iter().map(move |kept| (gang, kept)))
            .filter(|(_, kept)| kept.is_reported)
    }

    /// Under which name room is held for a pod that waits by itself.
    pub(crate) fn for_pod(&self, gang: Option<&GangName>, slot: Slot) -> BTreeSet<String> {
        let kept = gang.and_then(|gang| self.by_gang.get(gang)).into_iter();
        let own = kept.flat_map(|of| &of.kept).filter(|kept| kept.replacement == Some(slot));
        own.filter(|kept| kept.is_reported).map(|kept| kept.name().to_owned()).collect()
    }

    /// Under which names room is held for what a gang lacks, all of it.
    pub(crate) fn for_gang(&self, gang: &GangName) -> BTreeSet<String> {
        let kept = self.by_gang.get(gang).into_iter().flat_map(|of| &of.kept);
        kept.filter(|kept| kept.is_reported).map(|kept| kept.name().to_owned()).collect()
    }

    /// The engine has given up room for a job of a higher priority; the gangs that had it.
    pub(crate) fn given_up(&mut self, names: &[String]) -> Vec<Arc<GangName>> {
        let mut gangs = Vec::new();
        for (gang, of_gang) in &mut self.by_gang {
            let before = of_gang.kept.len();
            of_gang.kept.retain(|kept| !names.iter().any(|name| name == kept.name()));
            if of_gang.kept.len() < before {
                gangs.push(Arc::clone(gang));
            }
        }
        self.is_kept_anew |= !gangs.is_empty();
        gangs
    }

    /// Whether other room is kept than at the last call.
    pub(crate) fn take_is_kept_anew(&mut self) -> bool {
        std::mem::take(&mut self.is_kept_anew)
    }

    /// Under which names room is kept, and for which gangs.
    pub(crate) fn names(&self) -> impl Iterator<Item = (String, String)> {
        self.reported().map(|(gang, kept)| (kept.name().to_owned(), gang.to_string()))
    }

    /// Everything that is kept and was reported.
    pub(crate) fn holdings(&self) -> impl Iterator<Item = Holding> {
        self.reported().map(|(_, kept)| Holding { id: HoldingId(0), ..kept.holding.clone() })
    }
}

/// The pending pods of a gang that are of what it lacks. One too many replaces none.
pub(crate) fn replacements(gang: &GangReading<'_>, roll: &Roll, lack: &Lack) -> Replacements {
    let pending = roll.pending.iter();
    let pods = pending.filter(|slot| lack.is_less_by(gang.role(**slot))).copied().collect();
    let are_all = lack.met_by(roll.pending.iter().map(|slot| gang.role(*slot))) >= lack.pods;
    Replacements { pods, are_all }
}

/// Matches replacements with rooms. While some have not come, room is only for a pod that asks for
/// as much as the lost one: what another needs may come yet.
fn match_replacements(
    objects: &Objects,
    requirements: &mut Requirements,
    gang: &GangName,
    kept: &mut [LostHolding],
    may: &Replacements,
) {
    let pending = &may.pods;
    for kept in kept.iter_mut() {
        kept.replacement = kept.replacement.filter(|replacement| pending.contains(replacement));
    }
    let mut replacements: Vec<(Slot, Wants)> =
        pending.iter().map(|slot| (*slot, wants(objects, requirements, *slot, gang))).collect();
    // The best match first; where there is no other, the smallest room that suffices, else the
    // largest.
    let likenesses = if may.are_all { Likeness::ALL } else { Likeness::ENOUGH_ALONE };
    for likeness in likenesses {
        replacements.retain(|(slot, _)| !kept.iter().any(|kept| kept.replacement == Some(*slot)));
        for (slot, wants) in &replacements {
            let is_alike = |kept: &&mut LostHolding| {
                kept.replacement.is_none() && likeness.is_between(&kept.wants, wants)
            };
            let asked_milli = wants.requirement.gpu_milli();
            let rank = |kept: &&mut LostHolding| {
                let there_milli = kept.wants.requirement.gpu_milli();
                let suffices = there_milli >= asked_milli;
                if suffices { (0, there_milli) } else { (1, -there_milli) }
            };
            if let Some(room) = kept.iter_mut().filter(is_alike).min_by_key(rank) {
                room.replacement = Some(*slot);
            }
        }
    }
}

/// What a member asks for, or asked for when it waited.
fn wants(objects: &Objects, requirements: &mut Requirements, slot: Slot, name: &GangName) -> Wants {
    let requirement = match objects.pods.get(slot).wish.clone() {
        Some(wish) => wish,
        None => requirements.would_need(objects, slot),
    };
    let terms = terms_of(objects, name).and_then(Result::ok);
    let part = terms.map(|terms| {
        let gang = GangReading { objects, name, terms: &terms };
        let role = gang.role(slot);
        let part = role.map(|role| Box::from(&*terms.roles[role].name));
        (part, gang.own_topology(slot, role))
    });
    Wants { part: part.unwrap_or_default(), requirement }
}
