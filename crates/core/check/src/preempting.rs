//! Whether those may be stopped who are, whether that helps, and whether what they free goes to
//! nobody else.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{
    Action, DeviceAmount, HeldDevices, JobId, NodeName, Place, PodId, PreemptReason, Resources,
};

use crate::limits::{judge_kept_quota, judge_limits_later};
use crate::node_books::{HeldAmounts, Holder, NodeBooks, axes};
use crate::placing::Placing;
use crate::reclaim::gives_back;
use crate::violation::{VictimProblem, Violation};
use crate::world::{BookedJob, ClusterBooks, GivenUp};

impl ClusterBooks {
    /// Judges an order to stop pods, and notes what is kept from now on. Other actions are not its
    /// business.
    pub(crate) fn preempt(&mut self, action: &Action, found: &mut Vec<Violation>) {
        let Action::Preempt { job, victims, places, cost, until_ms, reason } = action else {
            return;
        };
        let job = *job;
        let Some(booked) = self.jobs.get(&job) else {
            return found.push(Violation::UnknownJob { job });
        };
        if booked.runs() || booked.job.preemption.never_preempts {
            found.push(Violation::MustNotPreempt { job });
        }
        let priority = booked.job.priority;
        let set: BTreeSet<PodId> = victims.iter().copied().collect();
        if cost.pods != set.len() as u64 {
            found
                .push(Violation::InVain { job, problem: format!("{} pods are listed", cost.pods) });
        }
        let victims = set.iter();
        found.extend(victims.filter_map(|pod| {
            let problem = victim_problem(self, *pod, (job, priority, *reason), &set)?;
            Some(Violation::Victim { job, pod: *pod, problem })
        }));
        self.ending.extend(set.iter().map(|pod| (Holder::Pod(*pod), Some(*until_ms))));
        self.end_room_held_for(job);
        judge_places(self, job, places, found);
        judge_limits_later(self, job, places, found);
        self.claims.insert(job, places.clone());
    }

    /// Holds what is kept for others of such priorities.
    fn keep_for_others(&mut self, job: JobId, is_such: impl Fn(i32) -> bool) {
        let others = self.claims.iter().filter(|(other, _)| {
            let booked = self.jobs.get(other);
            **other != job && booked.is_some_and(|booked| is_such(booked.job.priority))
        });
        let places: Vec<Place> = others.flat_map(|(_, places)| places).cloned().collect();
        places.iter().for_each(|place| self.keep(place));
    }

    /// Holds amounts and devices of a place and counts nobody. A device that others took meanwhile,
    /// and do not leave in time, cannot be kept.
    fn keep(&mut self, place: &Place) {
        let Some(resources) = asked_at(self, place) else { return };
        let Some(books) = self.nodes.get(&place.node) else { return };
        let has_room = |(index, amount): &&(u16, DeviceAmount)| {
            books.devices.has_room(*index, amount, &books.node, &self.mig_tables)
        };
        let devices = place.devices.iter().filter(has_room).cloned().collect();
        let held = HeldAmounts { resources, devices, ..HeldAmounts::default() };
        self.hold(&place.node, Holder::Pod(place.pod), held);
    }
}

fn victim_problem(
    world: &ClusterBooks,
    pod: PodId,
    (job, priority, reason): (JobId, i32, PreemptReason),
    victims: &BTreeSet<PodId>,
) -> Option<VictimProblem> {
    let booked = world.jobs.get(&pod.job);
    let Some(booked) = booked.filter(|b| b.pods.contains_key(&(pod.pod_set, pod.ordinal))) else {
        return Some(VictimProblem::HoldsNothing);
    };
    let may = booked.job.priority < priority
        || makes_place(booked, (priority, reason), world.now_ms)
        || reason == PreemptReason::Reclaim && gives_back(world, job, booked, victims);
    if !may {
        return Some(VictimProblem::Priority);
    }
    if booked.job.preemption.is_protected {
        return Some(VictimProblem::Protected);
    }
    if world.ending.contains_key(&Holder::Pod(pod)) {
        return Some(VictimProblem::EndsAnyway);
    }
    is_broken_by(world, booked, victims).then_some(VictimProblem::PartOfGang)
}

/// Whether a job of equal priority may make place for a better standing: a checkpoint of this
/// attempt or what it saves on notice is of use, it has run for as long as it must, and was not
/// preempted too often.
fn makes_place(booked: &BookedJob, of: (i32, PreemptReason), now_ms: u64) -> bool {
    let (job, rules) = (&booked.job, booked.job.preemption);
    let Some(start_ms) = job.start_ms else { return false };
    let ran_ms = now_ms.saturating_sub(start_ms);
    let did = job.interruption.stopped_after(ran_ms, job.history.is_empty());
    of == (job.priority, PreemptReason::Order)
        && (did.saved_ms > 0
            || job.interruption.save_on_notice_ms.is_some_and(|save_ms| save_ms < did.unsaved_ms))
        && ran_ms >= rules.min_run_ms.unwrap_or(0)
        && rules.max_preemptions.is_none_or(|most| job.history.preemptions < most)
}

/// Whether a job would go on below its smallest size.
fn is_broken_by(world: &ClusterBooks, booked: &BookedJob, victims: &BTreeSet<PodId>) -> bool {
    let job = booked.job.id;
    let stays = |(pod_set, ordinal): &&(u16, u32)| {
        let pod = PodId { job, pod_set: *pod_set, ordinal: *ordinal };
        !victims.contains(&pod) && !world.ending.contains_key(&Holder::Pod(pod))
    };
    let left: Vec<&(u16, u32)> = booked.pods.keys().filter(stays).collect();
    let of_set = |index: usize| left.iter().filter(|(set, _)| usize::from(*set) == index).count();
    let loses = |index: usize| {
        victims.iter().any(|pod| pod.job == job && usize::from(pod.pod_set) == index)
    };
    // What others made of the other sets is not its business.
    let mut sets = booked.job.pod_sets.iter().enumerate().filter(|(index, _)| loses(*index));
    !left.is_empty() && sets.any(|(index, set)| of_set(index) < set.min as usize)
}

/// The job must fit at its places when all that ends has gone, unless it is late with that,
/// beside what is kept for others of the same priority or a higher one.
fn judge_places(world: &ClusterBooks, job: JobId, places: &[Place], found: &mut Vec<Violation>) {
    let mut later = world.clone();
    for (node, holder) in holders_that_end(world) {
        later.release(&node, &holder);
    }
    let priority = world.jobs[&job].job.priority;
    later.keep_for_others(job, |of_other| of_other >= priority);
    let sets = &world.jobs[&job].job.pod_sets;
    for (index, set) in sets.iter().enumerate() {
        let planned = places.iter().filter(|p| usize::from(p.pod.pod_set) == index).count();
        if planned < set.min as usize {
            let problem = format!("{planned} of {} pods of set {index} have a place", set.min);
            found.push(Violation::InVain { job, problem });
        }
    }
    for place in places {
        let (Some(books), Some(set)) =
            (later.nodes.get(&place.node), sets.get(usize::from(place.pod.pod_set)))
        else {
            let problem = format!("{place:?} is nowhere");
            return found.push(Violation::InVain { job, problem });
        };
        let requirement = &*set.requirement;
        let (name, devices) = (&place.node, &place.devices);
        let placing = Placing { world: &later, pod: place.pod, requirement, name, books, devices };
        found.extend(
            placing
                .violations()
                .into_iter()
                .map(|problem| Violation::InVain { job, problem: problem.to_string() }),
        );
        let held = HeldAmounts {
            resources: requirement.resources.clone(),
            devices: devices.clone(),
            counts_into: requirement.counts_into.clone(),
            attachments: requirement.attachments.clone(),
        };
        later.hold(name, Holder::Pod(place.pod), held);
    }
    later.keep_for_others(job, |of_other| of_other < priority);
    judge_rooms(&later, job, found);
}

/// Whether a job that has what it needs left room free that was given up for it.
pub(crate) fn judge_rooms_of_started(world: &ClusterBooks, job: JobId, found: &mut Vec<Violation>) {
    if world.given_up.iter().any(|room| room.job == job) {
        let mut later = world.clone();
        later.keep_for_others(job, |_| true);
        judge_rooms(&later, job, found);
    }
}

/// What was given up for a job must be in its way where it goes.
fn judge_rooms(world: &ClusterBooks, job: JobId, found: &mut Vec<Violation>) {
    // What is booked may stand where the room was.
    if world.has_bookings {
        return;
    }
    let of_job = world.given_up.iter().filter(|room| room.job == job);
    let needless = of_job.filter(|room| {
        let Some(books) = world.nodes.get(&room.node) else { return false };
        let free = |axis: &str| axes(&books.free).find(|(a, _)| *a == axis).map_or(0, |f| f.1);
        let mut asked = axes(&room.held.resources).filter(|(_, amount)| *amount > 0);
        // One after the other, as two of them may be parts of one device.
        let mut beside = books.devices.clone();
        let mut devices = room.held.devices.iter();
        asked.all(|(axis, amount)| amount <= free(axis))
            && devices.all(|(index, amount)| {
                let has_room = beside.has_room(*index, amount, &books.node, &world.mig_tables);
                let is_proved = has_room && !beside.mixes(amount.mode);
                beside.apply(&HeldDevices::from_iter([(*index, amount.clone())]), 1);
                is_proved
            })
            // Such as where a device of the room is broken: no pod with devices goes to that
            // node then.
            && beside.overcommitted(&books.node, &world.mig_tables).is_none()
    });
    let not_needed = |room: &GivenUp| Violation::RoomNotNeeded { job, name: room.name.clone() };
    found.extend(needless.map(not_needed));
}

fn holders_that_end(world: &ClusterBooks) -> Vec<(NodeName, Holder)> {
    let mut all = Vec::new();
    let is_late = |end_ms: &Option<u64>| end_ms.is_some_and(|end_ms| end_ms <= world.now_ms);
    for (name, books) in &world.nodes {
        let ends = books
            .held
            .keys()
            .filter(|holder| world.ending.get(holder).is_some_and(|end_ms| !is_late(end_ms)));
        all.extend(ends.map(|holder| (name.clone(), holder.clone())));
    }
    all
}

pub(crate) fn asked_at(world: &ClusterBooks, place: &Place) -> Option<Resources> {
    let sets = &world.jobs.get(&place.pod.job)?.job.pod_sets;
    Some(sets.get(usize::from(place.pod.pod_set))?.requirement.resources.clone())
}

/// What a bind took of what is kept on its node for others of the same priority or a higher
/// one; it is in the books already.
pub(crate) fn judge_kept(
    world: &ClusterBooks,
    pod: PodId,
    node: &NodeName,
    found: &mut Vec<Violation>,
) {
    let Some(booked) = world.jobs.get(&pod.job) else { return };
    if !world.claims.is_empty() {
        judge_kept_quota(world, pod.job, found);
    }
    let of_others = world.claims.iter().filter(|(job, _)| {
        let other = world.jobs.get(job);
        **job != pod.job && other.is_some_and(|o| o.job.priority >= booked.job.priority)
    });
    let here = of_others.flat_map(|(_, places)| places).filter(|place| place.node == *node);
    let here: Vec<&Place> = here.collect();
    let Some(books) = world.nodes.get(node).filter(|_| !here.is_empty()) else { return };
    let asked = &booked.job.pod_sets[usize::from(pod.pod_set)].requirement.resources;
    let mut kept: BTreeMap<String, i64> = BTreeMap::new();
    for resources in here.iter().filter_map(|place| asked_at(world, place)) {
        for (axis, amount) in axes(&resources) {
            *kept.entry(axis.to_owned()).or_default() += amount;
        }
    }
    for (axis, amount) in axes(asked).filter(|(_, amount)| *amount > 0) {
        let kept = kept.get(axis).copied().unwrap_or(0);
        let later = free_later(world, books, axis);
        if kept > 0 && later < kept && later + amount >= kept {
            let (node, axis) = (node.clone(), axis.to_owned());
            found.push(Violation::TakesWhatIsKept { pod, node, axis });
        }
    }
    if books.devices.pooled {
        return;
    }
    // What would be free of a device when all that ends has gone, with the pod and without it.
    let mut with = books.clone();
    let ends = |holder: &&Holder| world.ending.contains_key(*holder);
    let ends: Vec<Holder> = books.held.keys().filter(ends).cloned().collect();
    ends.iter().for_each(|holder| drop(with.release(holder)));
    let mut without = with.clone();
    without.release(&Holder::Pod(pod));
    let fits = |books: &NodeBooks, (index, amount): &(u16, DeviceAmount)| {
        books.devices.has_room(*index, amount, &books.node, &world.mig_tables)
    };
    let mut kept = here.iter().flat_map(|place| &place.devices);
    let takes = kept.any(|device| fits(&without, device) && !fits(&with, device));
    if takes {
        let (node, axis) = (node.clone(), "devices".to_owned());
        found.push(Violation::TakesWhatIsKept { pod, node, axis });
    }
}

/// What of an axis is free when all that ends has gone.
fn free_later(world: &ClusterBooks, books: &NodeBooks, axis: &str) -> i64 {
    let of = |resources: &Resources| axes(resources).find(|(a, _)| *a == axis).map_or(0, |f| f.1);
    let ends = books.held.iter().filter(|(holder, _)| world.ending.contains_key(holder));
    of(&books.free) + ends.map(|(_, held)| of(&held.resources)).sum::<i64>()
}
