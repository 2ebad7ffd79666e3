//! What is given to claims, checked from the question alone: added up device by device.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_claims::{DeviceChoice, DeviceDemand, DeviceSupply, ValueRule};

/// What a choice of devices did that it must not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimViolation {
    /// A request has another number of devices than it asks for.
    Count { request: usize },
    /// A request has a device that it must not have.
    NotCandidate { request: usize, device: usize },
    /// A device is given away more often than it may be.
    Twice { device: usize },
    /// More is drawn from a counter than is left.
    Overdrawn { counter: usize },
    /// The devices of a constraint differ, or are alike.
    Constraint { constraint: usize },
    /// The requests of a claim have more devices than it may have.
    TooMany { group: usize },
}

/// Everything that is wrong with a choice; nothing if it is right.
pub fn check_claims(
    supply: &DeviceSupply,
    demand: &DeviceDemand,
    choice: &DeviceChoice,
) -> Vec<ClaimViolation> {
    let mut wrong = Vec::new();
    let mut uses: BTreeMap<usize, usize> = BTreeMap::new();
    let mut drawn: BTreeMap<usize, i128> = BTreeMap::new();
    for (request, devices) in choice.devices.iter().enumerate() {
        let alternative = &demand.requests[request][choice.alternatives[request]];
        if devices.len() != alternative.count {
            wrong.push(ClaimViolation::Count { request });
        }
        let once: BTreeSet<&usize> = devices.iter().collect();
        for device in devices {
            let candidate = alternative.candidates.iter().find(|of| of.device == *device);
            let Some(candidate) = candidate else {
                wrong.push(ClaimViolation::NotCandidate { request, device: *device });
                continue;
            };
            if !alternative.only_looks_on {
                *uses.entry(*device).or_default() += 1;
                for draw in &candidate.draws {
                    *drawn.entry(draw.counter).or_default() += draw.amount;
                }
            }
        }
        let repeats = once.len() < devices.len();
        if repeats && (alternative.is_each_once || alternative.only_looks_on) {
            wrong.push(ClaimViolation::Count { request });
        }
    }
    for (device, times) in uses {
        if times > 1 && !supply.devices[device].is_shared {
            wrong.push(ClaimViolation::Twice { device });
        }
        for draw in &supply.devices[device].draws {
            *drawn.entry(draw.counter).or_default() += draw.amount;
        }
    }
    let overdrawn = drawn.into_iter().filter(|(of, amount)| *amount > supply.counters[*of].max(0));
    wrong.extend(overdrawn.map(|(counter, _)| ClaimViolation::Overdrawn { counter }));
    for group in 0..demand.groups.len() {
        let devices = &choice.devices[demand.groups[group].requests.clone()];
        if devices.iter().map(Vec::len).sum::<usize>() > demand.groups[group].most_devices {
            wrong.push(ClaimViolation::TooMany { group });
        }
    }
    let broken = (0..demand.constraints.len()).filter(|at| !holds(demand, choice, *at));
    wrong.extend(broken.map(|constraint| ClaimViolation::Constraint { constraint }));
    wrong
}

fn holds(demand: &DeviceDemand, choice: &DeviceChoice, at: usize) -> bool {
    let constraint = &demand.constraints[at];
    let mut sets: Vec<BTreeSet<u32>> = Vec::new();
    for (request, alternative) in choice.alternatives.iter().enumerate() {
        let is_under = constraint
            .covers
            .iter()
            .any(|(of, only)| *of == request && (only.is_none() || *only == Some(*alternative)));
        if is_under {
            let values = |device: &usize| constraint.values[*device].iter().copied().collect();
            sets.extend(choice.devices[request].iter().map(values));
        }
    }
    if sets.iter().any(BTreeSet::is_empty) {
        return false;
    }
    match constraint.rule {
        ValueRule::Match => {
            let Some(first) = sets.first() else { return true };
            first.iter().any(|value| sets.iter().all(|set| set.contains(value)))
        }
        ValueRule::Distinct => {
            let apart = |(at, set): (usize, &BTreeSet<u32>)| {
                sets[..at].iter().all(|before| before.is_disjoint(set))
            };
            sets.iter().enumerate().all(apart)
        }
    }
}
