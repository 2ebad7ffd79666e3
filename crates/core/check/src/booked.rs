//! Whether what is booked will be there, and is: at its time its places are free beside everything
//! but what may be in them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Booked, Job, JobId, NodeName, Owner, Place, Snapshot};

use crate::node_books::{Holder, NodeBooks};
use crate::reserved::{held_by_node, problem_of_room};
use crate::violation::Violation;
use crate::world::ClusterBooks;

/// Judges all bookings in force. `lent_percent`: GPUs of running jobs that one booking has lent its
/// room to, at most, in percent of its own.
pub(crate) fn judge_bookings(
    world: &ClusterBooks,
    snapshot: &Snapshot,
    lent_percent: u32,
    found: &mut Vec<Violation>,
) {
    let in_force = || snapshot.bookings.iter().filter(|booked| booked.verdict.is_in_force());
    for booked in in_force() {
        let name = &booked.booking.name;
        let at_its_start = |other: &&Booked| {
            let booking = &other.booking;
            (booking.from_ms..booking.to_ms).contains(&booked.booking.from_ms)
        };
        let together: Vec<&Booked> = in_force().filter(at_its_start).collect();
        let problems = [
            problem_of_count(booked),
            problem_of_places(world, snapshot, &[booked]),
            problem_of_places(world, snapshot, &together),
            problem_of_lent(world, booked, lent_percent),
        ];
        let problems = problems.into_iter().flatten();
        found.extend(problems.map(|problem| Violation::Booking { name: name.clone(), problem }));
    }
}

fn problem_of_count(booked: &Booked) -> Option<String> {
    let (places, count) = (booked.claim.places.len(), booked.booking.count);
    (places > count as usize).then(|| format!("{places} places for {count} pods"))
}

/// The places of some bookings are free together once those have gone that may be in them.
fn problem_of_places(world: &ClusterBooks, snapshot: &Snapshot, all: &[&Booked]) -> Option<String> {
    let mut by_node: BTreeMap<&NodeName, Vec<(&Place, &Booked)>> = BTreeMap::new();
    for booked in all {
        for place in &booked.claim.places {
            by_node.entry(&place.node).or_default().push((place, booked));
        }
    }
    by_node.into_iter().find_map(|(name, places)| {
        let Some(books) = world.nodes.get(name) else {
            return Some(format!("node {name} is gone"));
        };
        let mut books: NodeBooks = books.clone();
        let may_be_there =
            |who: &&Holder| all.iter().any(|booked| may_be_in(snapshot, booked, who));
        let gone: Vec<Holder> = books.held.keys().filter(may_be_there).cloned().collect();
        gone.iter().for_each(|holder| drop(books.release(holder)));
        places.into_iter().find_map(|(place, booked)| {
            let resources = &booked.booking.requirement.resources;
            problem_of_room(world, &mut books, place, resources.clone())
        })
    })
}

/// Whether something held may be in the room of a booking: it was there when that was chosen and is
/// expected to end before its time, as is what started there later (p90); or it started in its time
/// and it is booked for it.
fn may_be_in(snapshot: &Snapshot, booked: &Booked, holder: &Holder) -> bool {
    let (from_ms, since_ms) = (booked.booking.from_ms, booked.since_ms);
    let counted_on = |owner: Owner| booked.claim.awaited.contains(&owner);
    let pod = match holder {
        Holder::Pod(pod) => pod,
        Holder::Foreign(name) => return counted_on(Owner::Foreign(name.clone())),
        Holder::Reserved(..) => return false,
    };
    let Some(job) = snapshot.jobs.iter().find(|job| job.id == pod.job) else { return false };
    let Some(start_ms) = job.start_ms else { return false };
    if start_ms >= from_ms {
        return booked.booking.beneficiary.as_ref().is_some_and(|of| of.is(job));
    }
    match start_ms < since_ms {
        true => counted_on(Owner::Pod(*pod)),
        false => ends_by(job, start_ms, from_ms) || counted_on_at_once(booked, job, *pod),
    }
}

/// What started in the step in which the places were chosen may have been there before.
fn counted_on_at_once(booked: &Booked, job: &Job, pod: dovetail_model::PodId) -> bool {
    job.start_ms == Some(booked.since_ms) && booked.claim.awaited.contains(&Owner::Pod(pod))
}

fn ends_by(job: &Job, start_ms: u64, time_ms: u64) -> bool {
    job.estimate.is_some_and(|estimate| start_ms.saturating_add(estimate.p90_ms) <= time_ms)
}

/// Running jobs that it lent its room to have no more of its GPUs than the bound, of each on each
/// node no more than it has there itself.
fn problem_of_lent(world: &ClusterBooks, booked: &Booked, percent: u32) -> Option<String> {
    let jobs: BTreeSet<JobId> = booked
        .claim
        .awaited
        .iter()
        .filter_map(|owner| match owner {
            Owner::Pod(pod) => Some(pod.job),
            _ => None,
        })
        .collect();
    let lent_time = booked.since_ms + 1..booked.booking.from_ms;
    let lent = jobs.iter().filter_map(|job| world.jobs.get(job));
    let lent = lent.filter(|it| it.job.start_ms.is_some_and(|at| lent_time.contains(&at)));
    let of_pod = booked.booking.requirement.gpu_milli();
    let mut places: BTreeMap<&NodeName, i64> = BTreeMap::new();
    booked.claim.places.iter().for_each(|place| *places.entry(&place.node).or_default() += of_pod);
    let inside =
        |(node, milli): (&NodeName, i64)| milli.min(places.get(node).copied().unwrap_or(0));
    let lent: i64 = lent.flat_map(|it| held_by_node(it).into_iter().map(inside)).sum();
    let own = booked.booking.as_job(JobId(0)).min_gpu_milli();
    let most = own * i64::from(percent) / 100;
    (lent > most).then(|| format!("{lent} milli-GPUs are lent; the limit is {most}"))
}
