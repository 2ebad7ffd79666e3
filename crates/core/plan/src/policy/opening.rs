//! Price of opening a node: of being the first of ours on a node with all devices free.
//!
//! Dear for the nodes with the most CPU and next to nothing for others, so that large pods that
//! come late find whole nodes. It counts as far as there are other nodes to use instead: nothing
//! where all nodes are alike. Where jobs come and go, nodes become empty by themselves and it
//! counts nothing.

use rustc_hash::FxHashMap;

use crate::learn::{Learnt, ONE, STEADY};
use crate::state::State;
use crate::state::nodes::Hot;

/// Price of opening a node with the most CPU, for each of its devices, in milli-GPU.
const OPENING_MILLI: i64 = 625;
/// How steeply the price falls with the node's CPU.
const POWER: u32 = 12;
/// One of [`part_of_largest`].
const PART_ONE: i64 = 1 << 10;

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
        let elsewhere = PART_ONE - learnt.supply.mean_part_of_largest(part_of_largest);
        let weight = ONE * (STEADY - learnt.turnover) * percent / (100 * STEADY);
        Self {
            largest_cpu_milli: learnt.supply.largest_cpu_milli,
            weight: weight * elsewhere / PART_ONE,
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
            let part = part_of_largest(cpu_milli, most_milli);
            OPENING_MILLI * part * i64::from(facts.devices) * weight / PART_ONE
        })
    }
}

/// Part of the price that a node with so much CPU has, in 2^-10: all of it for the largest.
fn part_of_largest(cpu_milli: i64, most_milli: i64) -> i64 {
    (0..POWER).fold(PART_ONE, |part, _| part * cpu_milli / most_milli)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::supply::Supply;

    #[test]
    fn it_costs_as_much_as_there_is_elsewhere() {
        let weight = |nodes: &[(i64, i64, i64)]| {
            let mut learnt = Learnt::default();
            learnt.supply = Supply::of_nodes(nodes);
            Opening::of(&learnt, 100).weight
        };
        // (CPU, devices, how many nodes); half the CPU has 2^-12 of the price.
        assert_eq!(weight(&[(96_000, 8, 20)]), 0, "nothing to keep one for");
        assert_eq!(weight(&[(96_000, 8, 3), (48_000, 2, 12)]), ONE / 2, "half of the devices");
        assert_eq!(weight(&[(96_000, 8, 1), (48_000, 8, 3)]), ONE / 4 * 3, "three quarters");
    }
}
