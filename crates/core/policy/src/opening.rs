//! Price of opening a node: of being the first of ours on a node with all devices free.
//!
//! Dear for the nodes with the most CPU and many devices, and next to nothing for others, so that
//! large pods that come late find whole nodes. Where jobs come and go, nodes become empty by
//! themselves and it counts nothing.

use rustc_hash::FxHashMap;

use crate::learn::{Learnt, ONE, STEADY};
use dovetail_state::State;
use dovetail_state::nodes::Hot;

/// Price of opening a large node with the most CPU, for each of its devices, in milli-GPU.
const OPENING_MILLI: i64 = 625;
/// A node with so many devices has the whole price. That of a smaller one falls with the square of
/// its devices: there are more places for its largest pods, and to keep it free strands others.
const WHOLE_DEVICES: i64 = 8;
/// How steeply the price falls with the node's CPU.
const POWER: u32 = 12;

/// Prices under one version.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    largest_cpu_milli: i64,
    /// Of a milli-GPU of the price.
    weight: i64,
    /// By (CPU, devices) of a node.
    prices: FxHashMap<(i64, u16), i64>,
}

impl Opening {
    pub(crate) fn of(learnt: &Learnt, percent: i64) -> Self {
        Self {
            largest_cpu_milli: learnt.supply.largest_cpu_milli,
            weight: ONE * (STEADY - learnt.turnover) * percent / (100 * STEADY),
            prices: FxHashMap::default(),
        }
    }

    /// Price of placing a pod on a node, in milli-GPU · 2^20.
    #[inline]
    pub(crate) fn of_node(&mut self, state: &State, hot: &Hot) -> i64 {
        let facts = state.devices.facts(hot.set);
        let is_open = hot.pods_of_jobs > 0 || facts.empty != facts.devices;
        if is_open || self.weight == 0 || self.largest_cpu_milli == 0 {
            return 0;
        }
        let most_milli = self.largest_cpu_milli;
        let key = (hot.cpu_allocatable_milli, facts.devices);
        let weight = self.weight;
        *self.prices.entry(key).or_insert_with(|| {
            // A node may be larger than any when the version was published.
            let cpu_milli = hot.cpu_allocatable_milli.clamp(0, most_milli);
            let cpu_part = (0..POWER).fold(1024, |part, _| part * cpu_milli / most_milli);
            let devices = i64::from(facts.devices);
            let price_milli = OPENING_MILLI * devices * devices.min(WHOLE_DEVICES) / WHOLE_DEVICES;
            price_milli * cpu_part * weight / 1024
        })
    }
}
