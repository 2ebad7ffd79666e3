//! Whether what is reserved for jobs that are next will be there: once those have gone that a
//! reservation counts on, its places are free beside everything else that is held. And whether no
//! more of it is lent than may be.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Job, JobId, NodeName, Owner, Place, Reserved, Resources};

use crate::node_books::{HeldAmounts, Holder, NodeBooks, axes};
use crate::preempting::asked_at;
use crate::violation::Violation;
use crate::world::{BookedJob, ClusterBooks};

/// Judges how much is lent. `lent_percent`: GPUs that running jobs have in the room that one job
/// has lent them, at most, in percent of its own.
pub(crate) fn judge_lent(
    world: &ClusterBooks,
    all: &[Reserved],
    lent_percent: u32,
    found: &mut Vec<Violation>,
) {
    for reserved in all {
        let job = reserved.claim.job;
        let problem = problem_of_lent(world, reserved, lent_percent);
        found.extend(problem.map(|problem| Violation::Reservation { job, problem }));
    }
}

/// Judges the places of all reservations.
pub(crate) fn judge_reserved(world: &ClusterBooks, all: &[Reserved], found: &mut Vec<Violation>) {
    let mut places: BTreeMap<&NodeName, Vec<&Place>> = BTreeMap::new();
    let mut awaited: BTreeSet<Holder> = BTreeSet::new();
    for reserved in all {
        let problems = [problem_of_job(world, reserved), problem_of_places(world, reserved)];
        let job = reserved.claim.job;
        let problems = problems.into_iter().flatten();
        found.extend(problems.map(|problem| Violation::Reservation { job, problem }));
        for place in &reserved.claim.places {
            places.entry(&place.node).or_default().push(place);
        }
        awaited.extend(awaited_by(reserved));
    }
    for (node, places) in places.into_iter().filter(|(_, places)| places.len() > 1) {
        if let Some(problem) = problem_on_node(world, node, &places, &awaited) {
            let job = places[0].pod.job;
            let problem = format!("together with other reservations: {problem}");
            found.push(Violation::Reservation { job, problem });
        }
    }
}

/// It is for a job that waits, and for as many pods as that starts with.
fn problem_of_job(world: &ClusterBooks, reserved: &Reserved) -> Option<String> {
    let claim = &reserved.claim;
    let Some(booked) = world.jobs.get(&claim.job) else {
        return Some("the job is not known".to_owned());
    };
    if booked.runs() {
        return Some("the job runs".to_owned());
    }
    for (index, set) in booked.job.pod_sets.iter().enumerate() {
        let of_set = claim.places.iter().filter(|place| usize::from(place.pod.pod_set) == index);
        let places = of_set.count();
        let needed = set.min.saturating_sub(set.present) as usize;
        if places != needed {
            return Some(format!("pod set {index} has {places} places and needs {needed}"));
        }
    }
    let strange = claim.places.iter().find(|place| place.pod.job != claim.job);
    strange.map(|place| format!("a place is for {:?}", place.pod))
}

/// Its own places are free once those have gone that it counts on.
fn problem_of_places(world: &ClusterBooks, reserved: &Reserved) -> Option<String> {
    let awaited = awaited_by(reserved);
    let mut places: BTreeMap<&NodeName, Vec<&Place>> = BTreeMap::new();
    for place in &reserved.claim.places {
        places.entry(&place.node).or_default().push(place);
    }
    places.iter().find_map(|(node, places)| problem_on_node(world, node, places, &awaited))
}

fn awaited_by(reserved: &Reserved) -> BTreeSet<Holder> {
    let holder = |owner: &Owner| match owner {
        Owner::Pod(pod) => Some(Holder::Pod(*pod)),
        Owner::Foreign(name) => Some(Holder::Foreign(name.clone())),
        Owner::Reservation => None,
    };
    reserved.claim.awaited.iter().filter_map(holder).collect()
}

/// Whether places fit on a node that some have left.
fn problem_on_node(
    world: &ClusterBooks,
    name: &NodeName,
    places: &[&Place],
    gone: &BTreeSet<Holder>,
) -> Option<String> {
    let Some(books) = world.nodes.get(name) else { return Some(format!("node {name} is gone")) };
    let mut books: NodeBooks = books.clone();
    let leave: Vec<Holder> = books.held.keys().filter(|who| gone.contains(who)).cloned().collect();
    leave.iter().for_each(|holder| drop(books.release(holder)));
    for place in places {
        let resources = asked_at(world, place)?;
        let problem = problem_of_room(world, &mut books, place, resources);
        if problem.is_some() {
            return problem;
        }
    }
    None
}

/// Whether a place is not free on its node; else it is held from here on.
pub(crate) fn problem_of_room(
    world: &ClusterBooks,
    books: &mut NodeBooks,
    place: &Place,
    resources: Resources,
) -> Option<String> {
    let name = &place.node;
    for (index, amount) in &place.devices {
        if !books.devices.has_room(*index, amount, &books.node, &world.mig_tables) {
            return Some(format!("device {index} of node {name} is not free"));
        }
    }
    let free = |axis: &str| {
        let mut free = axes(&books.free).filter(|(name, _)| *name == axis);
        free.next().map_or(0, |(_, amount)| amount.max(0))
    };
    let short = axes(&resources).find(|(axis, asked)| *asked > free(axis));
    if let Some((axis, asked)) = short {
        return Some(format!("{asked} {axis} of node {name} are not free"));
    }
    let held = HeldAmounts { resources, devices: place.devices.clone(), ..HeldAmounts::default() };
    books.hold(Holder::Pod(place.pod), held);
    None
}

/// Running jobs that were let into its room have no more GPUs on its nodes than the bound, of each
/// on each node no more than it has there itself. Those of a higher priority may take it anyway.
/// All pods count that these books have there, also those beyond the smallest size of a job.
fn problem_of_lent(world: &ClusterBooks, reserved: &Reserved, percent: u32) -> Option<String> {
    let lender = &world.jobs.get(&reserved.claim.job)?.job;
    let places = reserved.claim.places.iter();
    let own = gpus_by_node(lender, places.map(|place| (place.pod.pod_set, &place.node)));
    let inside = |job: &JobId| {
        let booked = world.jobs.get(job).filter(|booked| booked.runs())?;
        let there = held_by_node(booked).into_iter();
        let inside = there.map(|(node, milli)| milli.min(own.get(node).copied().unwrap_or(0)));
        Some(inside.sum::<i64>()).filter(|_| booked.job.priority <= lender.priority)
    };
    let lent: i64 = reserved.lent.iter().filter_map(inside).sum();
    let most = lender.min_gpu_milli() * i64::from(percent) / 100;
    (lent > most).then(|| format!("{lent} milli-GPUs are lent; the limit is {most}"))
}

/// GPUs of all pods that a job has on each node, in milli-GPU.
pub(crate) fn held_by_node(booked: &BookedJob) -> BTreeMap<&NodeName, i64> {
    let pods = booked.pods.iter().map(|((pod_set, _), node)| (*pod_set, node));
    gpus_by_node(&booked.job, pods)
}

/// GPUs of pods of a job on each node, in milli-GPU.
fn gpus_by_node<'n>(
    job: &Job,
    pods: impl Iterator<Item = (u16, &'n NodeName)>,
) -> BTreeMap<&'n NodeName, i64> {
    let mut by_node = BTreeMap::new();
    for (pod_set, node) in pods {
        let set = job.pod_sets.get(usize::from(pod_set));
        *by_node.entry(node).or_default() += set.map_or(0, |set| set.requirement.gpu_milli());
    }
    by_node
}
