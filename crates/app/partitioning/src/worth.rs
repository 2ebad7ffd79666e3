//! How good a plan for the pods of a fleet is, compared with another one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use dovetail_partition::PartitionPlan;

use crate::fleet::Fleet;

/// How good a plan is, by the order of the planner: the greater is better.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Worth {
    /// Compute slices of the pods that it serves, by priority, the highest first.
    served: Vec<(i32, i64)>,
    /// Idle instances of GPUs that change, time for which GPUs are unavailable, and idle instances
    /// removed.
    pub(crate) cost: Reverse<(usize, i64, usize)>,
}

impl Worth {
    pub(crate) fn of(fleet: &Fleet, plan: &PartitionPlan) -> Self {
        let mut served: BTreeMap<i32, i64> = BTreeMap::new();
        for ((pods, _), count) in fleet.waiting.iter().zip(&plan.accepted) {
            if *count > 0 {
                let slices = fleet.slices(&pods.profile) * i64::from(*count);
                *served.entry(pods.priority).or_default() += slices;
            }
        }
        let changed = plan.gpus.iter().filter(|gpu| gpu.is_changed());
        let cleared: usize = changed.map(|gpu| gpu.kept.len() + gpu.removed.len()).sum();
        let cost = Reverse((cleared, plan.unavailable_gpu_ms(), plan.removed()));
        Self { served: served.into_iter().rev().collect(), cost }
    }
}
