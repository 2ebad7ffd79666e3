//! A pool of machines that are there only while they are used.
//!
//! As a cluster autoscaler does: while jobs wait, machines for the GPUs that they ask for are
//! ordered, and are there some time later; a machine on which nothing ran for a while is taken
//! away. How many machine-hours that takes depends on the policy, which may keep machines empty or
//! scatter pods.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_trace::TraceNode;
use serde::{Deserialize, Serialize};

/// What the pool is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Autoscaler {
    /// Names of its machines. None of them is there at first.
    pub nodes: BTreeSet<String>,
    /// From ordering a machine until pods can start on it.
    pub start_ms: u64,
    /// A machine on which nothing ran for so long is taken away.
    pub idle_ms: u64,
}

/// Where the pool stands; machines by position in the world.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PoolState {
    ordered: BTreeSet<u32>,
    present_since_ms: BTreeMap<u32, u64>,
    empty_since_ms: BTreeMap<u32, u64>,
    /// Machine-time of those that were taken away.
    gone_ms: u64,
}

/// What is to happen with a machine of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum PoolDue {
    /// It is there.
    Ready(u32),
    /// It is taken away, if it has been empty since then.
    Idle(u32, u64),
}

impl PoolState {
    /// Orders what waiting jobs need, and notes which machines are empty. Returns what follows, and
    /// when.
    pub(crate) fn follow(
        &mut self,
        pool: &Autoscaler,
        nodes: &[TraceNode],
        now_ms: u64,
        waiting_milli: u128,
        is_empty: impl Fn(&str) -> bool,
    ) -> Vec<(u64, PoolDue)> {
        let mut dues = Vec::new();
        for row in self.present_since_ms.keys() {
            if !is_empty(&nodes[*row as usize].name) {
                self.empty_since_ms.remove(row);
            } else if !self.empty_since_ms.contains_key(row) {
                self.empty_since_ms.insert(*row, now_ms);
                dues.push((now_ms + pool.idle_ms, PoolDue::Idle(*row, now_ms)));
            }
        }
        let milli = |row: u32| u128::from(nodes[row as usize].gpu_count) * 1000;
        let mut ordered_milli: u128 = self.ordered.iter().map(|row| milli(*row)).sum();
        for (row, node) in nodes.iter().enumerate() {
            if ordered_milli >= waiting_milli {
                break;
            }
            let row = row as u32;
            let is_there = self.present_since_ms.contains_key(&row) || self.ordered.contains(&row);
            if pool.nodes.contains(&node.name) && !is_there {
                self.ordered.insert(row);
                ordered_milli += milli(row);
                dues.push((now_ms + pool.start_ms, PoolDue::Ready(row)));
            }
        }
        dues
    }

    /// A machine is there.
    pub(crate) fn ready(&mut self, row: u32, now_ms: u64) {
        self.ordered.remove(&row);
        self.present_since_ms.insert(row, now_ms);
    }

    /// Takes a machine away if it has been empty since then; true if it has.
    pub(crate) fn leaves(&mut self, row: u32, since_ms: u64, now_ms: u64) -> bool {
        if self.empty_since_ms.get(&row) != Some(&since_ms) {
            return false;
        }
        self.empty_since_ms.remove(&row);
        let present_ms = self.present_since_ms.remove(&row).unwrap_or(now_ms);
        self.gone_ms += now_ms - present_ms;
        true
    }

    /// Machine-time of the pool up to now.
    pub(crate) fn node_ms(&self, now_ms: u64) -> u64 {
        let present =
            self.present_since_ms.values().map(|since_ms| now_ms.saturating_sub(*since_ms));
        self.gone_ms + present.sum::<u64>()
    }
}
