//! `kube-default`: how kube-scheduler 1.37 scores with its default plugins.
//!
//! `NodeResourcesFit` (LeastAllocated, weight 1) plus `NodeResourcesBalancedAllocation` (weight 1),
//! both over CPU and memory. LeastAllocated counts pods without requests as 100 milli-CPU and 200
//! MiB; the balance score is 50 + (50 + balance with the pod − balance without it) / 2. Plugins
//! that read pod preferences are equal on all nodes here, and GPUs play no part, as in the
//! original. kube-scheduler breaks ties at random; here the lowest rank wins.

use dovetail_model::NodeId;

use crate::{Policy, Term};
use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

const DEFAULT_CPU_MILLI: i64 = 100;
const DEFAULT_MEMORY_BYTES: i64 = 200 << 20;
const MAX_SCORE: i64 = 100;

#[derive(Debug, Default)]
pub(crate) struct KubeDefault;

/// CPU and memory of one node: what it has, what is asked of it without and with the pod.
pub(crate) struct Load {
    pub(crate) allocatable: [i64; 2],
    before: [i64; 2],
    after: [i64; 2],
    /// As `after`, with the defaults for pods without requests.
    pub(crate) counted: [i64; 2],
}

impl Policy for KubeDefault {
    fn name(&self) -> &'static str {
        "kube-default"
    }

    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        let load = Load::of(state, shape, node);
        load.least_allocated() + load.balanced()
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        let load = Load::of(state, shape, node);
        vec![
            Term { name: "least_allocated", points: load.least_allocated() },
            Term { name: "balanced_allocation", points: load.balanced() },
        ]
    }
}

impl Load {
    pub(crate) fn of(state: &State, shape: ShapeId, node: NodeId) -> Self {
        let (hot, cold) = (state.nodes.hot(node), state.nodes.cold(node));
        let asked = &state.shapes.get(shape).demand.amounts;
        let allocatable = [cold.node.allocatable.cpu_milli, cold.node.allocatable.memory_bytes];
        let before = [allocatable[0] - hot.cpu_left_milli, allocatable[1] - hot.memory_left_bytes];
        let after = [before[0] + asked.cpu_milli, before[1] + asked.memory_bytes];
        let mut counted = after;
        let held = cold.holdings.iter().map(|id| &state.holdings.get(*id).amounts);
        for amounts in held.chain([asked]) {
            counted[0] += if amounts.cpu_milli == 0 { DEFAULT_CPU_MILLI } else { 0 };
            counted[1] += if amounts.memory_bytes == 0 { DEFAULT_MEMORY_BYTES } else { 0 };
        }
        Self { allocatable, before, after, counted }
    }

    fn least_allocated(&self) -> i64 {
        let (mut sum, mut weights) = (0, 0);
        for (asked, has) in self.counted.iter().zip(self.allocatable) {
            if has > 0 {
                weights += 1;
                let free = (i128::from(has) - i128::from(*asked)).max(0);
                sum += (free * i128::from(MAX_SCORE) / i128::from(has)) as i64;
            }
        }
        if weights == 0 { 0 } else { sum / weights }
    }

    fn balanced(&self) -> i64 {
        let (with, without) = (self.balance(&self.after), self.balance(&self.before));
        MAX_SCORE / 2 + (MAX_SCORE / 2 + with - without) / 2
    }

    /// 100 · (1 − standard deviation of the two fractions), truncated.
    fn balance(&self, asked: &[i64; 2]) -> i64 {
        if self.allocatable.contains(&0) {
            return MAX_SCORE;
        }
        let fraction = |i: usize| (asked[i] as f64 / self.allocatable[i] as f64).min(1.0);
        let deviation = ((fraction(0) - fraction(1)) / 2.0).abs();
        ((1.0 - deviation) * MAX_SCORE as f64) as i64
    }
}
