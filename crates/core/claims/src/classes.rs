//! Devices that are equal for the requests at hand form a class: which of them is taken makes no
//! difference, so the search decides how many.

use std::collections::BTreeMap;

use crate::demand::{DeviceDemand, DeviceSupply, Draw};

#[derive(Debug)]
pub(crate) struct EqualDevices {
    /// Their numbers. A shared device is a class of its own: it has a history.
    pub(crate) devices: Vec<usize>,
    pub(crate) is_shared: bool,
    /// What each draws when it is given away for the first time.
    pub(crate) draws: Vec<Draw>,
    /// The values of each for each constraint.
    pub(crate) values: Vec<Vec<u32>>,
}

/// A class that a request may take devices from.
#[derive(Debug)]
pub(crate) struct CandidateClass {
    pub(crate) class: usize,
    /// What one device of it draws for this request, beside its own draws.
    pub(crate) draws: Vec<Draw>,
    /// All that a device draws that nobody has yet.
    pub(crate) first: Vec<Draw>,
    /// A counter that other options of the request draw from too, if there is one: together they
    /// give no more devices than it allows.
    pub(crate) bottleneck: Option<usize>,
}

/// A request with its alternative chosen.
#[derive(Debug)]
pub(crate) struct Need {
    pub(crate) count: usize,
    pub(crate) is_each_once: bool,
    pub(crate) only_looks_on: bool,
    /// In the order of their classes.
    pub(crate) options: Vec<CandidateClass>,
    /// Numbers of the constraints that it is under.
    pub(crate) constraints: Vec<usize>,
}

/// What tells devices apart.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    shared: Option<usize>,
    draws: Vec<Draw>,
    /// What each request draws of it, if it may have it.
    uses: Vec<Option<Vec<Draw>>>,
    values: Vec<&'a [u32]>,
}

/// Needs, and the classes they choose from, for the first requests with these alternatives.
pub(crate) fn classify(
    supply: &DeviceSupply,
    demand: &DeviceDemand,
    alternatives: &[usize],
) -> (Vec<EqualDevices>, Vec<Need>) {
    let chosen = || demand.requests.iter().zip(alternatives).map(|(request, at)| &request[*at]);
    let mut uses: BTreeMap<usize, Vec<Option<Vec<Draw>>>> = BTreeMap::new();
    for (number, alternative) in chosen().enumerate() {
        for candidate in &alternative.candidates {
            let of = uses.entry(candidate.device);
            let of = of.or_insert_with(|| vec![None; alternatives.len()]);
            of[number] = Some(joined(&candidate.draws));
        }
    }
    let mut numbers: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    let mut classes: Vec<EqualDevices> = Vec::new();
    let mut of_class: Vec<Vec<Option<Vec<Draw>>>> = Vec::new();
    for (device, uses) in uses {
        let it = &supply.devices[device];
        let key = Key {
            shared: it.is_shared.then_some(device),
            draws: joined(&it.draws),
            uses,
            values: demand.constraints.iter().map(|of| &*of.values[device]).collect(),
        };
        if let Some(number) = numbers.get(&key) {
            classes[*number].devices.push(device);
            continue;
        }
        of_class.push(key.uses.clone());
        classes.push(EqualDevices {
            devices: vec![device],
            is_shared: it.is_shared,
            draws: key.draws.clone(),
            values: key.values.iter().map(|values| values.to_vec()).collect(),
        });
        numbers.insert(key, classes.len() - 1);
    }
    let needs = chosen().enumerate().map(|(number, alternative)| {
        let covers =
            |(_, of): &(usize, &crate::Constraint)| of.covers(number, alternatives[number]);
        let constraints = demand.constraints.iter().enumerate().filter(covers);
        let option = |(class, uses): (usize, &Vec<Option<Vec<Draw>>>)| {
            let draws = uses[number].clone()?;
            let first = joined(&[&*classes[class].draws, &*draws].concat());
            Some(CandidateClass { class, draws, first, bottleneck: None })
        };
        let mut need = Need {
            count: alternative.count,
            is_each_once: alternative.is_each_once,
            only_looks_on: alternative.only_looks_on,
            options: of_class.iter().enumerate().filter_map(option).collect(),
            constraints: constraints.map(|(at, _)| at).collect(),
        };
        find_bottlenecks(&mut need);
        need
    });
    let needs = needs.collect();
    (classes, needs)
}

/// One draw for each counter, without those of nothing.
fn joined(draws: &[Draw]) -> Vec<Draw> {
    let mut sums: BTreeMap<usize, i128> = BTreeMap::new();
    for draw in draws {
        *sums.entry(draw.counter).or_default() += draw.amount;
    }
    let some = sums.into_iter().filter(|(_, amount)| *amount > 0);
    some.map(|(counter, amount)| Draw { counter, amount }).collect()
}

/// For each option the counter that most options of the need draw from.
fn find_bottlenecks(need: &mut Need) {
    let mut users: BTreeMap<usize, usize> = BTreeMap::new();
    for draw in need.options.iter().flat_map(|option| &option.first) {
        *users.entry(draw.counter).or_default() += 1;
    }
    for option in &mut need.options {
        let most = option.first.iter().map(|draw| (users[&draw.counter], draw.counter));
        option.bottleneck = most.max().filter(|(users, _)| *users > 1).map(|(_, counter)| counter);
    }
}
