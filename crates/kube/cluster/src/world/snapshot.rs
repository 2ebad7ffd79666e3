//! The world as plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::{
    HoldingId, HoldingPhase, Job, JobId, NodeName, Owner, Place, PodId, PreemptReason,
    PreemptionReservation, ReservationId, Snapshot,
};

use super::index::Index;
use super::objects::Objects;
use super::objects::pods::{SLACK_MS, Slot, late_from_ms};
use super::objects::reported::{Reported, full_name};
use super::readings::decided::stays_with_its_gang;
use super::readings::standing::{PodReading, holding, standing};
use crate::queues;
use dovetail_translate::started_ms;

/// Claims of a snapshot have reservations from here on, as the engine's own.
const FIRST_CLAIM: u32 = 1 << 31;

/// The world as it was reported to the engine, without its nodes.
pub(super) fn without_nodes(index: &mut Index, now_ms: u64) -> Snapshot {
    let Index { objects, feed, gangs, .. } = index;
    let mut snapshot = Snapshot {
        now_ms,
        topology: objects.network.topology.clone(),
        queues: feed.counted.reported().cloned().collect(),
        usage: objects.queues.objects().values().flat_map(queues::usage).collect(),
        ..Snapshot::default()
    };
    let mut in_jobs: BTreeMap<JobId, BTreeMap<PodId, Slot>> = BTreeMap::new();
    for slot in objects.pods.in_order() {
        let entry = objects.pods.get(slot);
        match (&entry.reported, entry.id) {
            (Reported::Waiting { requirement, .. }, Some(pod)) => {
                snapshot.jobs.push(feed.job(objects, slot, pod.job, Arc::clone(requirement)));
            }
            (Reported::Assumed { .. } | Reported::Running { .. }, Some(pod)) => {
                let start_ms = started_ms(&entry.pod).min(now_ms);
                match entry.is_in_job {
                    true => {
                        in_jobs.entry(pod.job).or_default().insert(pod, slot);
                    }
                    false => {
                        let job = feed.running_job(objects, slot, pod.job, start_ms);
                        let queue = feed.counted.counted_for(pod.job).to_owned();
                        snapshot.jobs.push(Job { queue, ..job });
                    }
                }
            }
            _ => {}
        }
        match standing(objects, slot) {
            PodReading::Assumed(holding)
            | PodReading::Running(holding)
            | PodReading::Foreign(holding) => {
                snapshot.holdings.push(*holding);
            }
            PodReading::Nothing | PodReading::Refused(_) | PodReading::Waiting(_) => {}
        }
    }
    snapshot.jobs.extend(gangs.waiting_jobs().cloned());
    for (job, pods) in in_jobs {
        snapshot.jobs.push(feed.running_gang(objects, job, &pods, now_ms));
    }
    snapshot.holdings.extend(objects.attachments.holdings());
    snapshot.holdings.extend(feed.rooms.holdings());
    for (number, holding) in snapshot.holdings.iter_mut().enumerate() {
        holding.id = HoldingId(number as u64);
    }
    snapshot.jobs.sort_by_key(|job| job.id);
    snapshot.budgets = objects.budgets.translated();
    snapshot.bookings = objects.reservations.translated();
    restore_claims(objects, &mut snapshot);
    snapshot
}

/// A pending job, as it was reported to the engine.
pub(super) fn waiting_job(index: &Index, job: JobId) -> Option<Job> {
    let Index { objects, feed, gangs, .. } = index;
    let slot = objects.pods.of_job(job).next()?;
    match &objects.pods.get(slot).reported {
        Reported::Waiting { requirement, .. } => {
            Some(feed.job(objects, slot, job, Arc::clone(requirement)))
        }
        Reported::Member { .. } => gangs.waiting_jobs().find(|one| one.id == job).cloned(),
        _ => None,
    }
}

/// Room that is being made, according to the objects: for jobs with nominated nodes on which pods
/// terminate.
///
/// Which decision a waiting pod rests on is in the objects alone: its `status.nominatedNodeName`,
/// and on that node the pods that are ending or carry the condition that says so. A scheduler that
/// restarts finds it there.
fn restore_claims(objects: &Objects, snapshot: &mut Snapshot) {
    let mut claims: BTreeMap<JobId, PreemptionReservation> = BTreeMap::new();
    for (node, pods) in nominations(objects) {
        let (awaited, grace_ms) = ending_on(objects, &node);
        if awaited.is_empty() {
            continue;
        }
        let until_ms = snapshot.now_ms + grace_ms + SLACK_MS;
        for holding in &mut snapshot.holdings {
            if awaited.contains(&holding.owner) {
                holding.phase = HoldingPhase::Releasing { expected_end_ms: Some(until_ms) };
            }
        }
        for (pod, slot) in pods {
            let number = ReservationId(FIRST_CLAIM + claims.len() as u32);
            let holding =
                holding(objects, slot, Owner::Pod(pod), node.clone(), HoldingPhase::Assumed);
            let place = Place { pod, node: node.clone(), devices: holding.devices };
            let claim = claims.entry(pod.job).or_insert_with(|| PreemptionReservation {
                job: pod.job,
                reservation: number,
                places: Vec::new(),
                awaited: Vec::new(),
                until_ms,
                is_reclaimed: false,
            });
            claim.is_reclaimed |= awaited.iter().any(|owner| is_reclaimed(objects, owner));
            claim.places.push(place);
            claim.until_ms = claim.until_ms.max(until_ms);
            let new = awaited.iter().filter(|owner| !claim.awaited.contains(owner));
            let new: Vec<Owner> = new.cloned().collect();
            claim.awaited.extend(new);
        }
    }
    snapshot.claims = claims.into_values().collect();
}

/// Whether a pod says that it is evicted for a queue that gets back what is its own.
fn is_reclaimed(objects: &Objects, owner: &Owner) -> bool {
    let Owner::Pod(pod) = owner else { return false };
    let slot = objects.pods.by_id(*pod);
    let marked = slot.map(|slot| &objects.pods.get(slot).pod.preemption);
    marked.is_some_and(|it| it.is_target && it.reason == PreemptReason::Reclaim)
}

/// Waiting pods of ours that name a node which is freed for them, by that node.
fn nominations(objects: &Objects) -> BTreeMap<NodeName, Vec<(PodId, Slot)>> {
    let mut all: BTreeMap<NodeName, Vec<(PodId, Slot)>> = BTreeMap::new();
    for (id, slot) in objects.pods.ids() {
        let entry = objects.pods.get(slot);
        let node = &entry.pod.nominated_node;
        if entry.reported.waits() && !node.is_empty() && objects.nodes.is_there(node) {
            all.entry((**node).into()).or_default().push((id, slot));
        }
    }
    all
}

/// The owners of what is held on a node that are terminating and not late with it, or about to be
/// preempted; how long that may take.
fn ending_on(objects: &Objects, node: &str) -> (Vec<Owner>, u64) {
    let (mut owners, mut grace_ms) = (Vec::new(), 0);
    for slot in objects.pods.on_node(node) {
        let entry = objects.pods.get(slot);
        let pod = &entry.pod;
        // A scheduler like this one may have begun to preempt it.
        let may_be_ours = objects.is_ours(pod) || objects.may_be_preempted(entry);
        let is_marked = pod.preemption.is_target && may_be_ours;
        let ends = pod.meta.is_deleting() || (is_marked && !stays_with_its_gang(objects, slot));
        let is_late = late_from_ms(pod).is_some_and(|from_ms| from_ms <= objects.now_ms);
        if !ends || is_late || *pod.node != *node || pod.is_over() {
            continue;
        }
        let owner = match (&entry.reported, entry.id) {
            (Reported::Running { .. }, Some(id)) => Owner::Pod(id),
            (Reported::Foreign { .. }, _) => Owner::Foreign(full_name(pod)),
            _ => continue,
        };
        grace_ms = grace_ms.max(1_000 * u64::from(pod.preemption.grace_s));
        owners.push(owner);
    }
    (owners, grace_ms)
}
