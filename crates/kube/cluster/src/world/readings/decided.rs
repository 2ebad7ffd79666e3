//! What the pods of a gang say was decided for it.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_objects::Pod;

use crate::world::objects::Objects;
use crate::world::objects::pods::{PodEntry, Slot};
use crate::world::objects::reported::Reported;
use crate::world::readings::gang::{GangReading, terms_of};
use crate::world::readings::roll::roll;
use dovetail_translate::gang::{GangName, size_beside, size_in};

/// Annotation with the decision, written by the bind itself: after a restart the pods say which of
/// them were decided together.
pub const DECISION: &str = "dovetail.dev/decision";

/// Whether a pod runs for the engine because we decided it, and no other scheduler.
pub(crate) fn runs_by_our_decision(objects: &Objects, slot: Slot) -> bool {
    let entry = objects.pods.get(slot);
    let is_decided = entry.pod.meta.annotations.get(DECISION).is_some();
    is_decided && objects.is_ours(&entry.pod) && matches!(entry.reported, Reported::Running { .. })
}

fn entries<'o>(objects: &'o Objects, gang: &GangName) -> impl Iterator<Item = &'o PodEntry> {
    objects.members.of(gang).map(|slot| objects.pods.get(slot))
}

/// With how many pods a gang ran, as pods say that were placed by themselves beside it: of the
/// pods of those other decisions none may be left.
pub(crate) fn ran_beside(objects: &Objects, gang: &GangName) -> u32 {
    let placed = entries(objects, gang).map(|entry| &entry.pod);
    let placed = placed.filter(|pod| !pod.node.is_empty() && !pod.is_over());
    let beside = placed.filter_map(|pod| size_beside(pod.meta.annotations.get(DECISION)?)).max();
    beside.unwrap_or(0)
}

/// For how many pods a gang has had nodes, as far as its pods say: those that were bound for it say
/// how many were in their decision. What others have bound says nothing: that may have been any
/// number, and then this is `None`.
pub(crate) fn decided_pods(objects: &Objects, gang: &GangName) -> Option<u32> {
    let mut decided: BTreeMap<&str, u32> = BTreeMap::new();
    let placed =
        entries(objects, gang).filter(|entry| !entry.pod.node.is_empty() || entry.is_decided());
    for entry in placed {
        match entry.pod.meta.annotations.get(DECISION) {
            Some(tag) => *decided.entry(tag).or_default() += 1,
            None if entry.pod.node.is_empty() => *decided.entry("").or_default() += 1,
            None => return None,
        }
    }
    let sizes = decided.into_iter().map(|(tag, count)| size_in(tag).unwrap_or(count));
    // The largest number stands for all above it.
    Some(sizes.fold(0_u32, u32::saturating_add)).filter(|pods| *pods < u32::MAX)
}

/// Whether everything that was ever decided for a gang was carried out, as far as its pods say. Of
/// a decision of which fewer pods are there than it was about, the others wait as they did when it
/// was made, or they were lost since: a pod that was made after it was carried out replaces one of
/// those. What others have bound is one decision, which does not say about how many.
pub(crate) fn is_carried_out(objects: &Objects, gang: &GangName) -> bool {
    let mut bound: BTreeMap<Option<&str>, (u32, u64)> = BTreeMap::new();
    for entry in entries(objects, gang) {
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
            || !entries(objects, gang).any(|entry| entry.waits() && is_old(entry))
    })
}

/// The pods that would be left of a gang without some, if those are too few, or if its group says
/// that all go with one; without those that may not be evicted.
pub(crate) fn left_without(
    objects: &Objects,
    gang: &GangName,
    stopped: &BTreeSet<Slot>,
) -> Vec<Slot> {
    let mut left = too_few_without(objects, gang, stopped);
    left.retain(|slot| may_go(objects, *slot));
    left
}

/// The same with those that may not be evicted.
fn too_few_without(objects: &Objects, gang: &GangName, stopped: &BTreeSet<Slot>) -> Vec<Slot> {
    let Some(Ok(terms)) = terms_of(objects, gang) else { return Vec::new() };
    let mut roll = roll(objects, gang);
    roll.placed.append(&mut roll.victims);
    roll.placed.retain(|slot| !stopped.contains(slot));
    let lack = GangReading { objects, name: gang, terms: &terms }.lack(roll.settled());
    match !is_whole_group(objects, gang) && lack.is_none() {
        true => Vec::new(),
        false => roll.placed,
    }
}

fn may_go(objects: &Objects, slot: Slot) -> bool {
    !objects.pods.get(slot).pod.preemption.is_protected && !objects.is_exempt(slot)
}

/// Whether a pod that is marked is not evicted after all: its gang could not go on without those
/// that are, one of the others may not be evicted by now, and none has gone yet.
pub(crate) fn stays_with_its_gang(objects: &Objects, slot: Slot) -> bool {
    let Some(gang) = &objects.pods.get(slot).gang else { return false };
    let is_going = |pod: &Pod| !pod.node.is_empty() && pod.meta.is_deleting();
    if entries(objects, gang).any(|entry| is_going(&entry.pod)) || has_lost_some(objects, gang) {
        return false;
    }
    let members = objects.members.of(gang);
    let marked = members.filter(|slot| objects.pods.get(*slot).pod.preemption.is_target).collect();
    too_few_without(objects, gang, &marked).iter().any(|slot| !may_go(objects, *slot))
}

/// The pods that cannot go on of a gang without some. Of one that is preempted whole none can once
/// it has lost any.
pub(crate) fn left_of(objects: &Objects, gang: &GangName, stopped: &BTreeSet<Slot>) -> Vec<Slot> {
    let is_untouched = stopped.is_empty() && !has_lost_some(objects, gang);
    match is_whole_group(objects, gang) && is_untouched {
        true => Vec::new(),
        false => left_without(objects, gang, stopped),
    }
}

/// Whether the group of a gang says that all go with one.
fn is_whole_group(objects: &Objects, gang: &GangName) -> bool {
    objects.descriptions.group_of(gang).is_some_and(|group| group.is_stopped_whole)
}

/// Whether a gang has fewer pods than were ever decided for it, as far as they say.
fn has_lost_some(objects: &Objects, gang: &GangName) -> bool {
    decided_pods(objects, gang).is_some_and(|decided| {
        let roll = roll(objects, gang);
        ((roll.settled().count() + roll.victims.len()) as u32) < decided
    })
}
