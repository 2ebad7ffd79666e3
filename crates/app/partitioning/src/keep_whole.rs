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
use crate::stays::has_vgpus;
use crate::together::node_of_gpu;

pub(crate) const FOR_PODS: &str = "pending pods request these whole GPUs";
pub(crate) const BY_POLICY: &str = "the policy keeps free GPUs whole (keepWhole)";

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

/// The GPUs that stay whole for pending pods, which get what they request before any is cut, on
/// nodes that they can use: first those where they fit now, of these those with the fewest whole
/// GPUs. Pods with a higher priority come first, then those that request more GPUs of one node.
pub(crate) fn for_pods(
    fleet: &Fleet,
    objects: &Objects,
    targets: &[Target],
    pods: &[&Pod],
) -> Vec<usize> {
    let asking = pods.iter().filter_map(|pod| Asking::of(pod, objects));
    let mut asking: Vec<Asking> = asking.collect();
    let mut kept = Vec::new();
    if asking.is_empty() {
        return kept;
    }
    asking.sort_by_key(|pod| (Reverse(pod.priority), Reverse(pod.gpus)));
    let mut nodes = WholeNode::all(fleet, objects, targets);
    for alike in asking.chunk_by(|one, other| one == other) {
        let mut left = alike.len();
        for is_beside_pods in [true, false] {
            nodes.sort_by_key(|node| node.gpus.len());
            for node in &mut nodes {
                while left > 0
                    && let Some(gpus) = node.take(&alike[0], is_beside_pods)
                {
                    left -= 1;
                    kept.extend(gpus);
                }
            }
        }
    }
    kept
}

/// The GPUs of each product that stay whole by policy, so many further free ones: those on nodes
/// that do not change because pods use some of their GPUs, and the last ones that could be cut. Two
/// products can share one MIG table, and a pod that needs one of them cannot use the other.
pub(crate) fn of_each_product(
    fleet: &Fleet,
    objects: &Objects,
    holders: &BTreeMap<&str, Vec<&Pod>>,
    count: u32,
) -> Vec<usize> {
    let free = free_beside_pods(fleet, objects, holders);
    let mut left: BTreeMap<&str, i64> = BTreeMap::new();
    let mut kept = Vec::new();
    for number in (0..fleet.world.gpus.len()).rev() {
        let gpu = &fleet.world.gpus[number];
        if !gpu.is_whole || gpu.change == Change::Never {
            continue;
        }
        let seen = objects.nodes.get(&fleet.names[number].0);
        let product = seen.and_then(product_of).unwrap_or_default();
        let there = free.get(product).copied().unwrap_or(0);
        let left = left.entry(product).or_insert_with(|| i64::from(count) - there);
        if *left > 0 {
            *left -= 1;
            kept.push(number);
        }
    }
    kept
}

/// By product, the whole GPUs that no pod uses on nodes that do not change because pods use others.
fn free_beside_pods<'o>(
    fleet: &Fleet,
    objects: &'o Objects,
    holders: &BTreeMap<&str, Vec<&Pod>>,
) -> BTreeMap<&'o str, i64> {
    let mut whole: BTreeMap<&str, i64> = BTreeMap::new();
    for (gpu, (node, _)) in fleet.world.gpus.iter().zip(&fleet.names) {
        if gpu.is_whole && fleet.in_use.contains(node) {
            *whole.entry(node).or_default() += 1;
        }
    }
    let mut free: BTreeMap<&str, i64> = BTreeMap::new();
    for (node, whole) in whole {
        let Some(seen) = objects.nodes.get(node) else { continue };
        let pods = holders.get(node).map_or(&[][..], Vec::as_slice);
        // Which GPUs claims and virtual GPUs are on is not in the API.
        if has_vgpus(seen, pods) || pods.iter().any(|pod| pod.has_resource_claims) {
            continue;
        }
        let used = |pod: &&Pod| pod.holds().extended.get(NVIDIA_GPU).copied().unwrap_or(0);
        let used: i64 = pods.iter().map(used).sum();
        let product = product_of(seen).unwrap_or_default();
        *free.entry(product).or_default() += (whole - used).max(0);
    }
    free
}
