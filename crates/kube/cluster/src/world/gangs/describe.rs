//! A gang as a job: members that need the same are a pod set.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{Job, JobId, PodSet, Requirement, TopologyRequest};
use rustc_hash::FxHashMap;

use crate::world::feed::Feed;
use crate::world::feed::running::MOST_POD_SETS;
use crate::world::objects::pods::Slot;
use crate::world::objects::receipts::remember;
use crate::world::readings::device_kinds::joint_bounds;
use crate::world::readings::gang::GangReading;
use crate::world::readings::requirements::Requirements;
use crate::world::readings::roll::{Lack, Roll, smallest};
use dovetail_translate::gang::{GangName, GangTerms};
use dovetail_translate::{JobDeclaration, NotYet, preemption_rules};

/// The members of a pod set, by ordinal.
pub(super) struct Seating {
    pub(super) requirement: Arc<Requirement>,
    /// Their role, of those that the terms of the gang name.
    role: Option<usize>,
    /// Where they must and should be, by themselves.
    topology: TopologyRequest,
    pub(super) slots: Vec<Slot>,
}

/// All pod sets of a job.
pub(super) type Seats = Vec<Seating>;

/// Label of a pod: its role in the gang.
const POD_SET: &str = "dovetail.dev/pod-set";

/// The job of the pending members, of which those must start that the gang lacks.
pub(super) fn describe(
    gang: &GangReading<'_>,
    feed: &mut Feed,
    roll: &Roll,
    lack: &Lack,
    id: JobId,
) -> Result<(Job, Seats), NotYet> {
    let (objects, name, terms) = (gang.objects, gang.name, gang.terms);
    let seats = seats(gang, &mut feed.requirements, roll);
    if seats.len() > MOST_POD_SETS {
        let problem = format!(
            "its pods have {} different specifications, and a gang may have at most \
             {MOST_POD_SETS}: use the same specification for equal pods",
            seats.len()
        );
        return Err(NotYet::Gang { gang: name.to_string(), problem });
    }
    one_place_for_each_part(name, terms, &seats)?;
    let counts: Vec<(Option<usize>, u32)> =
        seats.iter().map(|set| (set.role, set.slots.len() as u32)).collect();
    let smallest = smallest(&counts, lack);
    let sets = seats.iter().zip(smallest).zip(names_of_sets(gang, &seats));
    let pod_sets = sets
        .map(|((set, min), name)| PodSet {
            min,
            max: set.slots.len() as u32,
            topology: set.topology.clone(),
            ..PodSet::fixed(&name, Arc::clone(&set.requirement), 0)
        })
        .collect();
    let pods = roll.pending.iter().map(|slot| &objects.pods.get(*slot).pod);
    let submit_ms = pods.clone().map(|pod| pod.meta.created_ms).min().unwrap_or(0);
    let mut preemption = preemption_rules(pods.clone().map(|pod| &**pod));
    preemption.never_preempts |= objects.exempt.preemptors.contains(&id);
    let all = pods.clone().map(|pod| &**pod);
    let said = JobDeclaration::of(all.clone(), &objects.settings.rules);
    let said = said.within(objects.descriptions.shortest_limit_ms(all));
    let priority = pods.map(|pod| pod.priority).next().unwrap_or(0);
    // What is missing follows those that are placed by conditions of its own.
    let required = terms.topology.required.clone().filter(|_| roll.placed.is_empty());
    let topology = TopologyRequest { required, ..terms.topology.clone() };
    let job = Job::single(id, &name.to_string(), submit_ms, Arc::default());
    let queue = roll.pending.first().map(|slot| objects.queue_of(*slot)).unwrap_or_default();
    let kept_room = feed.rooms.for_gang(name);
    let job = Job { queue, pod_sets, topology, preemption, ..said.told(job) };
    let job = Job { priority, kept_room, ..job };
    Ok(match roll.pending.first() {
        Some(first) => (remember(objects, *first, job), seats),
        None => (job, seats),
    })
}

fn seats(gang: &GangReading<'_>, requirements: &mut Requirements, roll: &Roll) -> Seats {
    let mut seats: Seats = Vec::new();
    // Equal requirements are one: their addresses tell them apart.
    let mut known: FxHashMap<(usize, Option<usize>, TopologyRequest), usize> = FxHashMap::default();
    for slot in roll.pending.iter().copied() {
        let Some(wish) = gang.objects.pods.get(slot).wish.clone() else { continue };
        let role = gang.role(slot);
        let own = gang.own_topology(slot, role);
        let kind = (Arc::as_ptr(&wish).addr(), role, own.clone());
        let set = match known.get(&kind) {
            Some(set) => *set,
            None => {
                let follows = gang.placed_of_set(slot, roll).is_some();
                let required = own.required.filter(|_| !follows);
                let topology = TopologyRequest { required, ..own };
                let requirement = requirements.near(gang, slot, wish, roll);
                seats.push(Seating { requirement, role, topology, slots: Vec::new() });
                known.insert(kind, seats.len() - 1);
                seats.len() - 1
            }
        };
        seats[set].slots.push(slot);
    }
    bound_together(gang, requirements, &mut seats);
    seats
}

/// Pods with different claims get no more devices on a node together than it has.
fn bound_together(gang: &GangReading<'_>, requirements: &mut Requirements, seats: &mut Seats) {
    let sets: Vec<&[Slot]> = seats.iter().map(|set| &*set.slots).collect();
    let bounds = joint_bounds(gang.objects, gang.name, &sets);
    for (set, bounds) in seats.iter_mut().zip(bounds) {
        if bounds.is_empty() {
            continue;
        }
        let mut requirement = Requirement::clone(&set.requirement);
        for (rule, times) in bounds {
            requirement.counts_into.insert_times(rule.selector.clone(), times);
            requirement.rules.push(rule);
        }
        set.requirement = requirements.intern(requirement);
    }
}

/// Each set by the role of its first pod, or by its number where that is not said or taken.
fn names_of_sets(gang: &GangReading<'_>, seats: &Seats) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut names = Vec::with_capacity(seats.len());
    for (number, set) in seats.iter().enumerate() {
        let first = set.slots.first().map(|slot| &gang.objects.pods.get(*slot).pod.meta.labels);
        let of_terms = set.role.map(|role| &*gang.terms.roles[role].name);
        let role = first.and_then(|labels| labels.get(POD_SET)).or(of_terms);
        let role = role.filter(|role| !role.is_empty()).unwrap_or("pods");
        let name = match taken.insert(role) {
            true => role.to_owned(),
            false => format!("{role}-{number}"),
        };
        names.push(name);
    }
    names
}

/// The pods of a part that must be in one place must ask for the same: the place is asked for pod
/// set by pod set.
fn one_place_for_each_part(
    name: &GangName,
    terms: &GangTerms,
    seats: &Seats,
) -> Result<(), NotYet> {
    let mut placed = BTreeSet::new();
    for role in seats.iter().filter(|set| set.topology.required.is_some()).filter_map(|s| s.role) {
        if terms.parts.have_places() && !placed.insert(role) {
            let problem = format!(
                "the pods of its part {} have different specifications and require one topology \
                 domain, which dovetail does not support yet: use the same specification for all \
                 of them",
                terms.roles[role].name
            );
            return Err(NotYet::Gang { gang: name.to_string(), problem });
        }
    }
    Ok(())
}
