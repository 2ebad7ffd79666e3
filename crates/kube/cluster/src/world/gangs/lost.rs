//! Members that a running gang lost while there was no leader: those that are left say how many
//! they were, and not where the lost ones were. So room is kept for them where one like them would
//! go now, as for a member that a leader sees lost, until they are created again and placed, or for
//! a stated time.

use std::sync::Arc;

use dovetail_model::{ConditionCause, Job, JobId, NodeName, PodSet, Requirement, RuleCause};

use super::Gangs;
use super::short::Shortness;
use crate::world::feed::Feed;
use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use crate::world::readings::decided::decided_pods;
use crate::world::readings::gang::{GangReading, terms_of};
use crate::world::readings::requirements::Requirements;
use crate::world::readings::roll::{Lack, Roll, roll};
use dovetail_translate::gang::GangName;

/// Members of one gang that were lost, and are not created again yet.
#[derive(Debug)]
pub struct LostMembers {
    gang: Arc<GangName>,
    /// A job of pods like them; it is never reported.
    pub job: Job,
    /// For each of its pod sets a member that asks for the same.
    like: Vec<Slot>,
}

impl Gangs {
    /// What running gangs have lost, as far as it is known only from those that are left: for a
    /// leader that begins. The most important and oldest gangs come first.
    pub(crate) fn lost_members(
        &self,
        objects: &Objects,
        requirements: &mut Requirements,
    ) -> Vec<LostMembers> {
        let short = self.by_name.iter().filter(|(_, gang)| gang.shortness.is_there());
        let lost = short
            .filter_map(|(name, gang)| lost_of((name, &gang.shortness), objects, requirements));
        let mut lost: Vec<LostMembers> = lost.collect();
        lost.sort_by_key(|lost| (std::cmp::Reverse(lost.job.priority), lost.job.submit_ms));
        lost
    }
}

impl LostMembers {
    /// Keeps room for lost members: for one of the pod set of this number on each of these nodes.
    pub(crate) fn keep_room(
        &self,
        objects: &mut Objects,
        feed: &mut Feed,
        places: &[(u16, NodeName)],
    ) {
        let places = places.iter().filter_map(|(pod_set, node)| {
            Some((*self.like.get(usize::from(*pod_set))?, Arc::clone(node)))
        });
        feed.rooms.reserve_for_lost(objects, &mut feed.requirements, &self.gang, places);
        objects.dirty.gangs.insert(Arc::clone(&self.gang));
    }
}

fn lost_of(
    (name, shortness): (&Arc<GangName>, &Shortness),
    objects: &Objects,
    requirements: &mut Requirements,
) -> Option<LostMembers> {
    let (roll, terms) = (roll(objects, name), terms_of(objects, name)?.ok()?);
    let gang = GangReading { objects, name, terms: &terms };
    let lack = gang.lack(roll.settled());
    // Another scheduler keeps room for its own gangs, and elsewhere.
    let is_anothers = |slot: &Slot| !objects.is_ours(&objects.pods.get(*slot).pod);
    if roll.placed.iter().any(is_anothers)
        || !shortness.is_loss(&gang, &lack)
        || decided_pods(objects, name).is_none()
    {
        return None;
    }
    // A member that is ending holds its node until it has gone, and that will be seen.
    let ends = |slot: &Slot| objects.pods.get(*slot).ends_on_a_node();
    // What is freed by preempting a gang is for its preemptor.
    let is_stopped = |slot: Slot| objects.pods.get(slot).pod.preemption.is_target;
    if objects.members.of(name).any(is_stopped) {
        return None;
    }
    let unseen = gang.lack(roll.there().chain(objects.members.of(name).filter(ends)));
    let like = like_the_lost(&gang, requirements, &roll, &unseen);
    let first = *roll.placed.first()?;
    let oldest = objects.pods.get(first);
    let (priority, submit_ms) = (oldest.pod.priority, oldest.pod.meta.created_ms);
    let queue = objects.queue_of(first);
    let mut pod_sets = Vec::with_capacity(like.len());
    for (number, (slot, count)) in like.iter().enumerate() {
        let requirement = need_of_the_lost(&gang, requirements, *slot, &roll);
        pod_sets.push(PodSet::fixed(&number.to_string(), requirement, *count));
    }
    let job = Job::single(JobId(0), &name.to_string(), submit_ms, Arc::default());
    let job = Job { priority, queue, pod_sets, ..job };
    let like: Vec<Slot> = like.into_iter().map(|(slot, _)| slot).collect();
    (!like.is_empty()).then(|| LostMembers { gang: Arc::clone(name), job, like })
}

/// For each kind of lost member one that is left and asks for the same, with how many are lost: one
/// of the same role, and where no role is lacking, one that asks for what most ask for. A role of
/// which none is left is passed over: what it asked for is not known.
fn like_the_lost(
    gang: &GangReading<'_>,
    requirements: &mut Requirements,
    roll: &Roll,
    unseen: &Lack,
) -> Vec<(Slot, u32)> {
    let of_role = |role: usize| {
        let mut placed = roll.placed.iter().copied();
        placed.find(|slot| gang.role(*slot) == Some(role))
    };
    let of_roles = unseen.of_roles.iter().enumerate().filter(|(_, lost)| **lost > 0);
    let mut like: Vec<(Slot, u32)> =
        of_roles.clone().filter_map(|(role, lost)| Some((of_role(role)?, *lost))).collect();
    let of_roles = of_roles.fold(0_u32, |sum, (_, lost)| sum.saturating_add(*lost));
    let rest = unseen.pods.saturating_sub(of_roles);
    if rest > 0 {
        let most = most_common(gang.objects, requirements, &roll.placed);
        like.extend(most.map(|slot| (slot, rest)));
    }
    like
}

/// The oldest of those that ask for what most of them ask for.
fn most_common(
    objects: &Objects,
    requirements: &mut Requirements,
    placed: &[Slot],
) -> Option<Slot> {
    let mut kinds: Vec<(Arc<Requirement>, Slot, u32)> = Vec::new();
    for slot in placed {
        let need = requirements.would_need(objects, *slot);
        match kinds.iter_mut().find(|(known, ..)| Arc::ptr_eq(known, &need)) {
            Some((.., count)) => *count += 1,
            None => kinds.push((need, *slot, 1)),
        }
    }
    // Of equal ones the last would be taken.
    let most = kinds.into_iter().rev().max_by_key(|(.., count)| *count);
    most.map(|(_, slot, _)| slot)
}

/// What a lost member needed that was like this one, where its gang is. What this one's volumes ask
/// for is not known of those of the other, which are others where each member has its own.
fn need_of_the_lost(
    gang: &GangReading<'_>,
    requirements: &mut Requirements,
    slot: Slot,
    roll: &Roll,
) -> Arc<Requirement> {
    let wish = requirements.would_need(gang.objects, slot);
    let near = requirements.near(gang, slot, wish, roll);
    let mut need = Requirement { attachments: Default::default(), ..Requirement::clone(&near) };
    need.node_conditions.retain(|condition| !is_of_any_volume(condition.cause));
    need.rules.retain(|rule| {
        !matches!(rule.cause, RuleCause::DiskConflict | RuleCause::ReadWriteOncePod)
    });
    requirements.intern(need)
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
        ConditionCause::NodeAffinity
        | ConditionCause::DeviceClaims
        | ConditionCause::DeclaredFeatures
        | ConditionCause::SharedGpus => false,
    }
}
