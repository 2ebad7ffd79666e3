//! Whole GPUs that a plan does not cut: those that pending pods request, and those that the policy
//! keeps.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use dovetail_model::Requirement;
use dovetail_model::labels::NVIDIA_GPU;
use dovetail_objects::Pod;
use dovetail_partition::Change;

use crate::eligible::{Target, requirement};
use crate::fleet::{Fleet, product_of};
use crate::objects::Objects;
use crate::together::node_of_gpu;

/// A pending pod that requests whole GPUs.
#[derive(PartialEq)]
struct Asking {
    priority: i32,
    gpus: usize,
    /// `None` if it is not known where it may go.
    needs: Option<Requirement>,
}

impl Asking {
    fn of(pod: &Pod, objects: &Objects) -> Option<Self> {
        let gpus = pod.requests.extended.get(NVIDIA_GPU).copied().filter(|gpus| *gpus > 0)?;
        let (gpus, needs) = (usize::try_from(gpus).ok()?, requirement(pod, objects).ok());
        Some(Self { priority: pod.priority, gpus, needs })
    }
}

/// A node with whole GPUs that could be cut.
struct WholeNode {
    now: Target,
    /// The same without its pods.
    empty: Target,
    /// Places of these GPUs in the world.
    gpus: Vec<usize>,
}

impl WholeNode {
    /// `targets`: the nodes of the fleet, in its order.
    fn all(fleet: &Fleet, objects: &Objects, targets: &[Target]) -> Vec<Self> {
        let mut gpus: Vec<Vec<usize>> = vec![Vec::new(); targets.len()];
        for (number, node) in node_of_gpu(fleet).into_iter().enumerate() {
            let gpu = &fleet.world.gpus[number];
            if gpu.is_whole && gpu.change != Change::Never {
                gpus[node].push(number);
            }
        }
        let node = |(gpus, now): (Vec<usize>, &Target)| {
            let (name, _) = &fleet.names[*gpus.first()?];
            let empty = Target::of(objects.nodes.get(name)?, name, objects, &[]);
            Some(Self { now: now.clone(), empty, gpus })
        };
        gpus.into_iter().zip(targets).filter_map(node).collect()
    }

    /// Takes the GPUs for a pod, if it can use them: beside the pods that are there, or without
    /// them.
    fn take(&mut self, pod: &Asking, is_beside_pods: bool) -> Option<Vec<usize>> {
        let left = self.gpus.len().checked_sub(pod.gpus)?;
        if let Some(needs) = &pod.needs {
            let target = if is_beside_pods { &self.now } else { &self.empty };
            if !target.takes(needs) {
                return None;
            }
            self.now.take(needs);
            self.empty.take(needs);
        }
        Some(self.gpus.split_off(left))
    }
}

/// Pending pods get the whole GPUs that they request before any is cut, on nodes that they can use:
/// first those where they fit now, of these those with the fewest whole GPUs. Pods with a higher
/// priority come first, then those that request more GPUs of one node.
pub(crate) fn keep_for_pods(
    fleet: &mut Fleet,
    objects: &Objects,
    targets: &[Target],
    pods: &[&Pod],
) {
    let asking = pods.iter().filter_map(|pod| Asking::of(pod, objects));
    let mut asking: Vec<Asking> = asking.collect();
    if asking.is_empty() {
        return;
    }
    asking.sort_by_key(|pod| (Reverse(pod.priority), Reverse(pod.gpus)));
    let mut nodes = WholeNode::all(fleet, objects, targets);
    for alike in asking.chunk_by(|one, other| one == other) {
        let mut left = alike.len();
        for is_beside_pods in [true, false] {
            nodes.sort_by_key(|node| node.gpus.len());
            for node in &mut nodes {
                while left > 0
                    && let Some(kept) = node.take(&alike[0], is_beside_pods)
                {
                    left -= 1;
                    kept.iter().for_each(|gpu| fleet.world.gpus[*gpu].change = Change::Never);
                }
            }
        }
    }
}

/// Of each product, so many further free GPUs stay whole: the last ones that could be cut. Two
/// products can share one MIG table, and a pod that needs one of them cannot use the other.
pub(crate) fn keep_of_each_product(fleet: &mut Fleet, objects: &Objects, count: u32) {
    let mut left: BTreeMap<&str, u32> = BTreeMap::new();
    for (gpu, (node, _)) in fleet.world.gpus.iter_mut().zip(&fleet.names).rev() {
        if !gpu.is_whole || gpu.change == Change::Never {
            continue;
        }
        let product = objects.nodes.get(node).and_then(product_of).unwrap_or_default();
        let left = left.entry(product).or_insert(count);
        if *left > 0 {
            *left -= 1;
            gpu.change = Change::Never;
        }
    }
}
