//! What excludes how many devices, in full: counters by name, and constraints one by one.

use std::collections::BTreeSet;

use dovetail_claims::{Alternative, Constraint, DeviceDemand, ValueRule};
use dovetail_objects::{ConstraintRule, ResourceClaim};

use crate::catalog::{CandidateNode, Catalog};
use crate::held::ClaimedDevices;
use crate::look::{Exclusion, RequestLook};
use crate::question::{AllocationQuestion, Reached, ReachedDevice, question};

/// For each request of claims what excludes how many devices of a node, when `held` is what others
/// have. A device counts for the first thing that excludes it; constraints come last, in the order
/// of the claim. Empty where a claim cannot be understood.
pub fn explain(
    catalog: &Catalog,
    held: &ClaimedDevices,
    place: CandidateNode<'_>,
    claims: &[&ResourceClaim],
) -> Vec<RequestLook> {
    let mut reached = Reached::of(catalog, held, place);
    reached.names_counters = true;
    let Ok(mut question) = question(&reached, claims) else { return Vec::new() };
    for at in 0..question.constraints.len() {
        let Some((claim, number)) = question.constraints[at] else { continue };
        let (rule, attribute) = match &claims[claim].asked.constraints[number].rule {
            ConstraintRule::Match(name) => ("matchAttribute", name),
            ConstraintRule::Distinct(name) => ("distinctAttribute", name),
            // The question was refused.
            ConstraintRule::Other => continue,
        };
        let attribute = (**attribute).into();
        exclude(&mut question, at, &Exclusion::Constraint { number, rule, attribute });
    }
    question.requests.into_iter().flat_map(|(.., looks)| looks).collect()
}

impl Reached<'_> {
    /// The first counter that has less left than a device draws, or that is overdrawn.
    pub(crate) fn short_counter<'d>(&self, one: &'d ReachedDevice<'_>) -> Option<&'d str> {
        let names = one.device.draws.iter().flat_map(|drawn| drawn.counters.keys());
        let is_short = |counter: usize, amount: i128| {
            let left = self.counters[counter];
            left < 0 || (one.held.is_none() && left < amount)
        };
        let mut each = names.zip(one.draws.iter());
        each.find(|(_, draw)| is_short(draw.counter, draw.amount)).map(|(name, _)| &**name)
    }
}

/// Takes the devices from the requests of a constraint that it excludes by itself.
fn exclude(question: &mut AllocationQuestion, at: usize, why: &Exclusion) {
    let AllocationQuestion { demand, requests, .. } = question;
    let constraint = demand.constraints[at].clone();
    let common = match constraint.rule {
        ValueRule::Match => common_values(demand, &constraint),
        ValueRule::Distinct => BTreeSet::new(),
    };
    let has_each_value = has_enough_values(demand, &constraint);
    for (request, alternatives) in demand.requests.iter_mut().enumerate() {
        for (number, alternative) in alternatives.iter_mut().enumerate() {
            if !constraint.covers(request, number) {
                continue;
            }
            let before = alternative.candidates.len();
            let mut seen = BTreeSet::new();
            alternative.candidates.retain(|candidate| {
                let values = &constraint.values[candidate.device];
                match constraint.rule {
                    ValueRule::Match => values.iter().any(|value| common.contains(value)),
                    ValueRule::Distinct if has_each_value => !values.is_empty(),
                    // One device of each value is left.
                    ValueRule::Distinct => {
                        !values.is_empty() && values.iter().all(|value| seen.insert(*value))
                    }
                }
            });
            let excluded = before - alternative.candidates.len();
            if excluded > 0 {
                *requests[request].2[number].excluded.entry(why.clone()).or_default() += excluded;
            }
        }
    }
}

/// Of each request the alternatives that a constraint is about, with their numbers; without the
/// requests that have another alternative.
fn bound<'d>(demand: &'d DeviceDemand, constraint: &Constraint) -> Vec<&'d [Alternative]> {
    let requests = demand.requests.iter().enumerate();
    let bound = requests.filter(|(request, alternatives)| {
        (0..alternatives.len()).all(|number| constraint.covers(*request, number))
    });
    bound.map(|(_, alternatives)| alternatives.as_slice()).collect()
}

/// The fewest devices that requests want together.
fn fewest(bound: &[&[Alternative]]) -> usize {
    let of = |alternatives: &&[Alternative]| alternatives.iter().map(|one| one.count).min();
    bound.iter().filter_map(of).sum()
}

/// The values that enough devices have for all requests of a constraint.
fn common_values(demand: &DeviceDemand, constraint: &Constraint) -> BTreeSet<u32> {
    let bound = bound(demand, constraint);
    let candidates = |alternative: &Alternative, value: u32| -> Vec<usize> {
        let devices = alternative.candidates.iter().map(|candidate| candidate.device);
        devices.filter(|device| constraint.values[*device].contains(&value)).collect()
    };
    let all: BTreeSet<u32> = constraint.values.iter().flatten().copied().collect();
    let is_enough = |value: &u32| {
        let serves = |one: &Alternative| candidates(one, *value).len() >= one.count;
        let devices: BTreeSet<usize> =
            bound.iter().copied().flatten().flat_map(|one| candidates(one, *value)).collect();
        let is_once = bound.iter().copied().flatten().all(|one| !one.only_looks_on);
        bound.iter().all(|alternatives| alternatives.iter().any(serves))
            && (!is_once || devices.len() >= fewest(&bound) || bound.len() == 1)
    };
    all.into_iter().filter(is_enough).collect()
}

/// Whether the devices of the requests of a constraint have as many values as devices are wanted.
fn has_enough_values(demand: &DeviceDemand, constraint: &Constraint) -> bool {
    let bound = bound(demand, constraint);
    let candidates = bound.iter().copied().flatten().flat_map(|one| &one.candidates);
    let values: BTreeSet<u32> =
        candidates.flat_map(|candidate| &constraint.values[candidate.device]).copied().collect();
    values.len() >= fewest(&bound)
}
