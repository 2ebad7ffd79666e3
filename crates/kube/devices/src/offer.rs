//! What a node offers, whoever has it: its pools, the counters of these, and what each device draws
//! from them. It follows from slices alone, and is kept until one of them changes. Nodes that offer
//! the same share it.

use std::ops::Range;
use std::sync::Arc;

use dovetail_claims::Draw;
use dovetail_objects::{CounterSet, DeviceCapacity, OfferedDevice};

use crate::catalog::{CandidateNode, Catalog};
use crate::pools::{PoolState, ReachablePool, gather};

#[derive(Debug)]
pub(crate) struct NodeOffer {
    pub(crate) pools: Vec<OfferedPool>,
    /// Names of slices with devices.
    pub(crate) slices: Vec<Box<str>>,
    /// Devices of its pools that other nodes have, and that draw from its counters.
    pub(crate) elsewhere: Vec<DeviceElsewhere>,
    /// Its devices by number, those of each pool by name.
    pub(crate) by_name: Vec<u32>,
    pub(crate) shape: Arc<OfferShape>,
}

/// A pool of a node.
#[derive(Debug)]
pub(crate) struct OfferedPool {
    pub(crate) driver: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) state: PoolState,
}

/// A device that another node has.
#[derive(Debug)]
pub(crate) struct DeviceElsewhere {
    pub(crate) pool: usize,
    pub(crate) name: Box<str>,
    pub(crate) draws: Vec<Draw>,
}

/// The numbers of it, which nodes with equal hardware have in common.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct OfferShape {
    /// In the order in which drivers offer them.
    pub(crate) devices: Vec<NumberedDevice>,
    /// What is in each counter when nobody has a device.
    pub(crate) counters: Vec<i128>,
    /// For each pool the counters that its devices share.
    pub(crate) shared: Vec<Range<usize>>,
    /// For each pool the numbers of its devices.
    pub(crate) numbers: Vec<Range<usize>>,
}

/// A device of a node.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct NumberedDevice {
    pub(crate) pool: usize,
    /// The number of its slice among those of the node.
    pub(crate) slice: usize,
    /// Its number in the slice.
    pub(crate) at: usize,
    /// What it draws when it is given away for the first time.
    pub(crate) draws: Arc<[Draw]>,
    /// The counter of the first of its capacities, where it can be shared; the others follow by
    /// name.
    pub(crate) first_capacity: usize,
    /// Whether one claim at most can have it, and a request that states no amounts always takes
    /// what it has: where it is taken, it makes no difference to what is asked.
    pub(crate) is_plain: bool,
}

impl NodeOffer {
    /// What the slices of a catalog say.
    pub(crate) fn of(catalog: &Catalog, place: CandidateNode<'_>) -> Self {
        let (mut slices, mut elsewhere) = (Vec::new(), Vec::new());
        let (mut pools, mut shape) = (Vec::new(), OfferShape::default());
        let mut names: Vec<&str> = Vec::new();
        for (number, pool) in gather(catalog, place).into_iter().enumerate() {
            let first = shape.counters.len();
            let sets = if pool.is_usable() { shape.add_counters(&pool) } else { Vec::new() };
            shape.shared.push(first..shape.counters.len());
            let first = shape.devices.len();
            for slice in pool.slices.iter().filter(|_| pool.is_usable()) {
                for (at, device) in slice.devices.iter().enumerate() {
                    shape.add_device((number, slices.len(), at), device, &sets);
                    names.push(&device.name);
                }
                slices.push(slice.meta.name.clone());
            }
            shape.numbers.push(first..shape.devices.len());
            for device in pool.devices_elsewhere().filter(|_| pool.is_usable()) {
                let (name, draws) = (device.name.clone(), drawn(device, &sets));
                elsewhere.push(DeviceElsewhere { pool: number, name, draws });
            }
            let ReachablePool { driver, name, state, .. } = pool;
            pools.push(OfferedPool { driver: driver.into(), name: name.into(), state });
        }
        let mut by_name: Vec<u32> = (0..names.len() as u32).collect();
        for numbers in &shape.numbers {
            by_name[numbers.clone()].sort_unstable_by_key(|number| names[*number as usize]);
        }
        Self { pools, slices, elsewhere, by_name, shape: Arc::new(shape) }
    }
}

/// A counter set of a pool.
struct NumberedSet<'c> {
    set: &'c CounterSet,
    /// The number of its first counter; the others follow by name.
    first: usize,
}

impl OfferShape {
    /// The sets of a pool, by name.
    fn add_counters<'c>(&mut self, pool: &ReachablePool<'c>) -> Vec<NumberedSet<'c>> {
        let mut sets = Vec::new();
        for set in pool.counter_sets.values().copied() {
            sets.push(NumberedSet { set, first: self.counters.len() });
            self.counters.extend(set.counters.values().map(|value| value.to_billionths()));
        }
        sets
    }

    fn add_device(
        &mut self,
        (pool, slice, at): (usize, usize, usize),
        device: &OfferedDevice,
        sets: &[NumberedSet<'_>],
    ) {
        let draws = drawn(device, sets).into();
        let first_capacity = self.counters.len();
        if device.is_for_several {
            self.counters.extend(device.capacity.values().map(|of| of.value.to_billionths()));
        }
        let is_fixed = |of: &DeviceCapacity| of.policy.is_none() && of.value.to_billionths() >= 0;
        let is_plain = !device.is_for_several && device.capacity.values().all(is_fixed);
        self.devices.push(NumberedDevice { pool, slice, at, draws, first_capacity, is_plain });
    }
}

/// What a device draws from the counters of its pool.
fn drawn(device: &OfferedDevice, sets: &[NumberedSet<'_>]) -> Vec<Draw> {
    let mut draws = Vec::new();
    for drawn in &device.draws {
        let found = sets.binary_search_by(|one| one.set.name.cmp(&drawn.name));
        let Ok(NumberedSet { set, first }) = found.map(|at| &sets[at]) else { continue };
        // Both are sorted.
        let mut names = set.counters.keys().enumerate();
        for (name, amount) in &drawn.counters {
            if let Some((at, _)) = names.find(|(_, of_set)| *of_set == name) {
                draws.push(Draw { counter: first + at, amount: amount.to_billionths() });
            }
        }
    }
    draws
}

impl OfferedPool {
    pub(crate) fn is_usable(&self) -> bool {
        self.state == PoolState::Usable
    }

    /// As upstream writes it.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}", self.driver, self.name)
    }
}
