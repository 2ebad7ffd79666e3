//! `kube-most-allocated`: how kube-scheduler packs when a GPU cluster configures it to.
//!
//! `NodeResourcesFit` with the scoring strategy MostAllocated and nothing beside it (balanced
//! allocation pulls the other way and is switched off for packing). As in kube-scheduler's
//! `most_allocated.go`, a resource scores 100 · min(asked with the pod, allocatable) / allocatable
//! in integers, and the node the weighted mean over the resources it has. Weights are those of the
//! Kubernetes documentation's example of bin packing: CPU 1, memory 1, the extended resource 3.
//! Pods without requests count as 100 milli-CPU and 200 MiB, and a pod that asks for no GPU is not
//! scored on GPUs, as in the original. kube-scheduler knows no shares; here a share counts as its
//! part of a GPU. Ties go to the lowest rank.

use dovetail_model::NodeId;

use crate::kube_default::Load;
use crate::{Policy, Term};
use dovetail_state::State;
use dovetail_state::device::choice::LOST;
use dovetail_state::shapes::ShapeId;

const MAX_SCORE: i128 = 100;
const CPU_WEIGHT: i64 = 1;
const MEMORY_WEIGHT: i64 = 1;
const GPU_WEIGHT: i64 = 3;
const DEVICE_MILLI: i64 = 1000;

#[derive(Debug, Default)]
pub(crate) struct KubeMostAllocated;

impl Policy for KubeMostAllocated {
    fn name(&self) -> &'static str {
        "kube-most-allocated"
    }

    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        let load = Load::of(state, shape, node);
        let gpu = gpu_load(state, shape, node);
        weighted([
            (load.counted[0], load.allocatable[0], CPU_WEIGHT),
            (load.counted[1], load.allocatable[1], MEMORY_WEIGHT),
            (gpu.0, gpu.1, GPU_WEIGHT),
        ])
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        vec![Term { name: "most_allocated", points: self.score(state, shape, node) }]
    }
}

/// Milli-GPU held with the pod, and milli-GPU there is; both 0 for a pod without GPUs.
fn gpu_load(state: &State, shape: ShapeId, node: NodeId) -> (i64, i64) {
    let asked_milli = state.shapes.get(shape).gpu_milli;
    if asked_milli == 0 {
        return (0, 0);
    }
    let usable = state.nodes.cold(node).cells.iter().filter(|cell| **cell != LOST).count();
    let has_milli = usable as i64 * DEVICE_MILLI;
    let left_milli = state.devices.facts(state.nodes.hot(node).set).gpu_left_milli;
    (has_milli - left_milli + asked_milli, has_milli)
}

/// Weighted mean, rounded down, of the percentages of the resources that the node has.
fn weighted(resources: [(i64, i64, i64); 3]) -> i64 {
    let (mut sum, mut weights) = (0, 0);
    for (asked, has, weight) in resources {
        if has > 0 {
            let percent = i128::from(asked.clamp(0, has)) * MAX_SCORE / i128::from(has);
            sum += percent as i64 * weight;
            weights += weight;
        }
    }
    if weights == 0 { 0 } else { sum / weights }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_the_weighted_mean_of_percentages_rounded_down() {
        // 6 of 12 cores, 16 of 64 GiB, 5 of 8 GPUs: (50 + 25 + 3 * 62) / 5 = 52.2.
        assert_eq!(weighted([(6, 12, 1), (16, 64, 1), (5_000, 8_000, 3)]), 52);
        // A pod without GPUs: (50 + 25) / 2; more than there is counts as all of it.
        assert_eq!(weighted([(6, 12, 1), (16, 64, 1), (0, 0, 3)]), 37);
        assert_eq!(weighted([(99, 12, 1), (0, 64, 1), (0, 0, 3)]), 50);
        assert_eq!(weighted([(1, 0, 1), (1, 0, 1), (0, 0, 3)]), 0);
    }
}
