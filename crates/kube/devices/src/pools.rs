//! The pools whose devices a node reaches, by the rules of `GatherPools`.

use std::collections::BTreeMap;

use dovetail_objects::{CounterSet, DeviceReach, OfferedDevice, ResourceSlice};
use rustc_hash::FxHashSet;

use crate::catalog::{CandidateNode, Catalog, is_reached};

/// A pool, as far as a node reaches it.
#[derive(Debug)]
pub(crate) struct ReachablePool<'c> {
    pub(crate) driver: &'c str,
    pub(crate) name: &'c str,
    pub(crate) state: PoolState,
    /// Slices with devices that the node may reach, by name.
    pub(crate) slices: Vec<&'c ResourceSlice>,
    /// The other slices with devices.
    pub(crate) elsewhere: Vec<&'c ResourceSlice>,
    /// By name.
    pub(crate) counter_sets: BTreeMap<&'c str, &'c CounterSet>,
}

/// Whether devices of a pool may be allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PoolState {
    Usable,
    /// Slices are missing: its driver is replacing them.
    Incomplete,
    /// What it says contradicts itself.
    Invalid,
}

/// The pools in the order in which their devices are taken: by driver and name, those whose devices
/// await conditions last.
pub(crate) fn gather<'c>(catalog: &'c Catalog, place: CandidateNode<'_>) -> Vec<ReachablePool<'c>> {
    let mut pools: BTreeMap<(&str, &str), Vec<&ResourceSlice>> = BTreeMap::new();
    for slice in catalog.slices_for(place.node).filter(|slice| is_relevant(catalog, slice, place)) {
        let of_pool = pools.entry((&slice.driver, &slice.pool.name)).or_default();
        let newest = of_pool.first().map_or(slice.pool.generation, |one| one.pool.generation);
        match slice.pool.generation.cmp(&newest) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => of_pool.push(slice),
            std::cmp::Ordering::Greater => *of_pool = vec![slice],
        }
    }
    let build = |((driver, name), slices)| pool(catalog, driver, name, slices);
    let mut pools: Vec<ReachablePool<'c>> = pools.into_iter().filter_map(build).collect();
    pools.sort_by_key(|pool| {
        let mut devices = pool.slices.iter().flat_map(|slice| &slice.devices);
        devices.any(|device| !device.binding.awaited.is_empty())
    });
    pools
}

/// Whether a slice is understood, and has devices or counters for the node.
fn is_relevant(catalog: &Catalog, slice: &ResourceSlice, place: CandidateNode<'_>) -> bool {
    let is_partitioned = slice.reach == DeviceReach::EachDevice || !slice.counter_sets.is_empty();
    if (is_partitioned && !catalog.features().partitionable_devices) || is_grouped(slice) {
        return false;
    }
    match slice.reach {
        DeviceReach::EachDevice => {
            slice.devices.iter().any(|device| is_reached(&device.reach, place))
        }
        _ => is_reached(&slice.reach, place),
    }
}

/// Whether it says which devices may be allocated together, which is not understood.
fn is_grouped(slice: &ResourceSlice) -> bool {
    slice.devices.iter().any(|device| device.is_grouped)
}

/// `None` where a newer generation replaces it.
fn pool<'c>(
    catalog: &'c Catalog,
    driver: &'c str,
    name: &'c str,
    mut slices: Vec<&'c ResourceSlice>,
) -> Option<ReachablePool<'c>> {
    let (generation, expected) =
        slices.first().map(|one| (one.pool.generation, one.pool.slices))?;
    let mut pool = ReachablePool {
        driver,
        name,
        state: PoolState::Usable,
        slices: Vec::new(),
        elsewhere: Vec::new(),
        counter_sets: BTreeMap::new(),
    };
    let mut others: Vec<&ResourceSlice> = Vec::new();
    if slices.len() as i64 != expected {
        let all: Vec<&ResourceSlice> = catalog.slices_of_pool(driver, name).collect();
        if all.iter().any(|slice| slice.pool.generation > generation) {
            return None;
        }
        let is_of_it =
            |slice: &&&ResourceSlice| slice.pool.generation == generation && !is_grouped(slice);
        let all: Vec<&ResourceSlice> = all.iter().filter(is_of_it).copied().collect();
        if all.len() as i64 != expected {
            return Some(ReachablePool { state: PoolState::Incomplete, ..pool });
        }
        let is_here = |slice: &&ResourceSlice| slices.iter().any(|one| std::ptr::eq(*one, *slice));
        others.extend(all.into_iter().filter(|slice| !is_here(slice)));
    }
    slices.sort_by(|one, other| one.meta.name.cmp(&other.meta.name));
    let has_counters = |slice: &&ResourceSlice| {
        catalog.features().partitionable_devices && !slice.counter_sets.is_empty()
    };
    let (counters, devices): (Vec<_>, Vec<_>) = slices.into_iter().partition(has_counters);
    let (more_counters, elsewhere): (Vec<_>, Vec<_>) = others.into_iter().partition(has_counters);
    (pool.slices, pool.elsewhere) = (devices, elsewhere);
    let is_valid = has_unique_names(&pool.slices)
        && (!catalog.features().partitionable_devices
            || set_counters(&mut pool, counters.iter().chain(&more_counters)));
    if !is_valid {
        pool.state = PoolState::Invalid;
    }
    Some(pool)
}

fn has_unique_names(slices: &[&ResourceSlice]) -> bool {
    let mut names = FxHashSet::default();
    slices.iter().flat_map(|slice| &slice.devices).all(|device| names.insert(&*device.name))
}

/// Whether each counter set is there once, and each that a device draws from is there.
fn set_counters<'c: 's, 's>(
    pool: &mut ReachablePool<'c>,
    slices: impl Iterator<Item = &'s &'c ResourceSlice>,
) -> bool {
    for set in slices.flat_map(|slice| &slice.counter_sets) {
        if pool.counter_sets.insert(&set.name, set).is_some() {
            return false;
        }
    }
    let draws = pool.devices().chain(pool.devices_elsewhere()).flat_map(|device| &device.draws);
    let mut is_there = draws.map(|draw| {
        let set = pool.counter_sets.get(&*draw.name);
        // Both are sorted.
        let mut names = set.into_iter().flat_map(|set| set.counters.keys());
        set.is_some() && draw.counters.keys().all(|name| names.any(|of_set| of_set == name))
    });
    is_there.all(|is_there| is_there)
}

impl<'c> ReachablePool<'c> {
    fn devices(&self) -> impl Iterator<Item = &'c OfferedDevice> {
        self.slices.iter().flat_map(|slice| &slice.devices)
    }

    pub(crate) fn devices_elsewhere(&self) -> impl Iterator<Item = &'c OfferedDevice> {
        self.elsewhere.iter().flat_map(|slice| &slice.devices)
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.state == PoolState::Usable
    }
}
