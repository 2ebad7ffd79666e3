//! Members that a running gang lost while nobody led: those that are left say how many they were,
//! and nobody says where the lost ones were. So room is kept for them where one like them would go
//! now, as for a member that is lost while somebody looks, until they are made anew and placed, or
//! for a stated time.

use std::sync::Arc;

use dovetail_model::{
    ConditionCause, Event, Job, JobId, NodeName, Owner, Phase, PodSet, Requirement, RuleCause,
};

use super::kept::Kept;
use super::roll::{Lack, Roll};
use crate::translate::gang::{GangName, Terms};
use crate::world::World;
use crate::world::pods::Slot;

/// Members of one gang that were lost, and are not made anew yet.
#[derive(Debug)]
pub struct LostMembers {
    gang: Arc<GangName>,
    /// A job of pods like them; it is never told.
    pub job: Job,
    /// For each of its pod sets a member that asks for the same.
    like: Vec<Slot>,
}

impl World {
    /// What running gangs have lost, as far as it is known only from those that are left: for a
    /// leader that begins. The most important and oldest gangs come first.
    pub fn lost_members(&mut self) -> Vec<LostMembers> {
        let names: Vec<Arc<GangName>> = self.gangs.names().map(Arc::clone).collect();
        let mut lost: Vec<LostMembers> =
            names.iter().filter_map(|name| self.lost_of(name)).collect();
        lost.sort_by_key(|lost| (std::cmp::Reverse(lost.job.priority), lost.job.submit_ms));
        lost
    }

    /// Keeps room for lost members: for one of the pod set of this number on each of these nodes.
    pub fn keep_for_lost(&mut self, lost: &LostMembers, places: &[(u16, NodeName)]) -> Vec<Event> {
        let until_ms = self.now_ms + self.settings.patience.keep_for_ms;
        let mut kept = Vec::with_capacity(places.len());
        for (number, (pod_set, node)) in places.iter().enumerate() {
            let Some(like) = lost.like.get(usize::from(*pod_set)).copied() else { continue };
            let owner = Owner::Foreign(format!("lost place {} of {}", number + 1, lost.gang));
            let phase = Phase::Kept { priority: self.pods.get(like).pod.priority };
            let holding = self.holding(like, owner, Arc::clone(node), phase);
            kept.push(Kept::new(holding, self.wants(like, &lost.gang), until_ms));
        }
        self.gangs.get_mut(&lost.gang).kept.extend(kept);
        self.dirty.gangs.insert(Arc::clone(&lost.gang));
        self.settle()
    }

    fn lost_of(&mut self, name: &Arc<GangName>) -> Option<LostMembers> {
        let gang = self.gangs.get(name).filter(|gang| gang.shortness.is_there())?;
        let (roll, terms) = (self.roll(gang), self.terms_of(name)?.ok()?);
        let lack = self.lack(name, &terms, roll.settled());
        // Another scheduler keeps room for its own gangs, and elsewhere.
        let is_anothers = |slot: &Slot| !self.is_ours(&self.pods.get(*slot).pod);
        if roll.placed.iter().any(is_anothers)
            || !self.is_loss(name, &terms, &lack)
            || !self.say_how_many_they_were(gang)
        {
            return None;
        }
        // A member that is ending holds its node until it has gone, and that will be seen.
        let slots = || gang.members.values().copied();
        let ends = |slot: &Slot| self.pods.get(*slot).ends_on_a_node();
        // What is freed by stopping a gang is for those for whom it is stopped.
        let is_stopped = |slot: Slot| self.pods.get(slot).pod.preemption.is_target;
        if slots().any(is_stopped) {
            return None;
        }
        let there = roll.settled().chain(roll.wishing.iter().copied()).chain(slots().filter(ends));
        let unseen = self.lack(name, &terms, there);
        let like = self.like_the_lost(name, &terms, &roll, &unseen);
        let oldest = self.pods.get(*roll.placed.first()?);
        let (priority, submit_ms) = (oldest.pod.priority, oldest.pod.meta.created_ms);
        let queue = self.queue_of(*roll.placed.first()?);
        let mut pod_sets = Vec::with_capacity(like.len());
        for (number, (slot, count)) in like.iter().enumerate() {
            let requirement = self.need_of_the_lost(*slot, name, &terms, &roll);
            pod_sets.push(PodSet::fixed(&number.to_string(), requirement, *count));
        }
        let job = Job::single(JobId(0), &name.to_string(), submit_ms, Arc::default());
        let job = Job { priority, queue, pod_sets, ..job };
        let like: Vec<Slot> = like.into_iter().map(|(slot, _)| slot).collect();
        (!like.is_empty()).then(|| LostMembers { gang: Arc::clone(name), job, like })
    }

    /// For each kind of lost member one that is left and asks for the same, with how many are lost:
    /// one of the same role, and where no role is lacking, one that asks for what most ask for. A
    /// role of which nobody is left is passed over: what it asked for is not known.
    fn like_the_lost(
        &mut self,
        name: &GangName,
        terms: &Terms,
        roll: &Roll,
        unseen: &Lack,
    ) -> Vec<(Slot, u32)> {
        let of_role = |world: &Self, role: usize| {
            let mut placed = roll.placed.iter().copied();
            placed.find(|slot| world.role_in(name, terms, *slot) == Some(role))
        };
        let of_roles = unseen.of_roles.iter().enumerate().filter(|(_, lost)| **lost > 0);
        let mut like: Vec<(Slot, u32)> = of_roles
            .clone()
            .filter_map(|(role, lost)| Some((of_role(self, role)?, *lost)))
            .collect();
        let of_roles = of_roles.fold(0_u32, |sum, (_, lost)| sum.saturating_add(*lost));
        let rest = unseen.pods.saturating_sub(of_roles);
        if rest > 0 {
            like.extend(self.most_common(&roll.placed).map(|slot| (slot, rest)));
        }
        like
    }

    /// The oldest of those that ask for what most of them ask for.
    fn most_common(&mut self, placed: &[Slot]) -> Option<Slot> {
        let mut kinds: Vec<(Arc<Requirement>, Slot, u32)> = Vec::new();
        for slot in placed {
            let need = self.would_need(*slot);
            match kinds.iter_mut().find(|(known, ..)| Arc::ptr_eq(known, &need)) {
                Some((.., count)) => *count += 1,
                None => kinds.push((need, *slot, 1)),
            }
        }
        // Of equal ones the last would be taken.
        let most = kinds.into_iter().rev().max_by_key(|(.., count)| *count);
        most.map(|(_, slot, _)| slot)
    }

    /// What a lost member needed that was like this one, where its gang is. What this one's volumes
    /// ask for is not known of those of the other, which are others where each member has its own.
    fn need_of_the_lost(
        &mut self,
        slot: Slot,
        name: &GangName,
        terms: &Terms,
        roll: &Roll,
    ) -> Arc<Requirement> {
        let wish = self.would_need(slot);
        let near = self.near(slot, wish, name, terms, roll);
        let mut need = Requirement { attachments: Default::default(), ..Requirement::clone(&near) };
        need.node_conditions.retain(|condition| !is_of_any_volume(condition.cause));
        need.rules.retain(|rule| {
            !matches!(rule.cause, RuleCause::DiskConflict | RuleCause::ReadWriteOncePod)
        });
        self.intern(need)
    }
}

/// Whether a condition comes from volumes, be they there, still to be made, or only attached: a
/// lost pod took its own with it. Whether volumes that were made suit a decision is asked of those
/// that are there alone (`claims.rs`).
fn is_of_any_volume(cause: ConditionCause) -> bool {
    match cause {
        ConditionCause::VolumeNodeAffinity
        | ConditionCause::VolumeZone
        | ConditionCause::VolumeDriver
        | ConditionCause::StorageTopology
        | ConditionCause::StorageCapacity => true,
        ConditionCause::NodeAffinity | ConditionCause::DeclaredFeatures => false,
    }
}
