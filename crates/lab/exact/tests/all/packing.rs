//! Prefix bounds against trying every packing of tiny worlds.

use dovetail_cases::cases;
use dovetail_exact::{BoundError, BoundNode, BoundPod, combined_prefix_bounds, prefix_bounds};
use proptest::prelude::*;

/// What is free on a node: CPU, memory and each device.
type Free = (i64, i64, Vec<i64>);

fn empty(nodes: &[BoundNode]) -> Vec<Free> {
    let free =
        |node: &BoundNode| (node.cpu_milli, node.memory_bytes, vec![1000; node.gpu_count as usize]);
    nodes.iter().map(free).collect()
}

/// Every way to put one pod on one node, as the set of devices it takes; of devices equally free,
/// the first.
fn device_sets(pod: &BoundPod, free: &[i64]) -> Vec<usize> {
    let takes = |set: usize, device: usize| set >> device & 1 == 1;
    let devices = 0..free.len();
    (0..1_usize << free.len())
        .filter(|set| set.count_ones() == pod.gpu_count)
        .filter(|&set| devices.clone().all(|d| !takes(set, d) || free[d] >= pod.gpu_milli))
        .filter(|&set| {
            devices.clone().all(|d| {
                !takes(set, d) || (0..d).all(|other| free[other] != free[d] || takes(set, other))
            })
        })
        .collect()
}

/// Calls `then` on each state that placing the pod can lead to; stops early when it says so.
fn each_placement(
    nodes: &[BoundNode],
    pod: &BoundPod,
    free: &mut Vec<Free>,
    then: &mut dyn FnMut(&mut Vec<Free>) -> bool,
) -> bool {
    for index in 0..nodes.len() {
        let model_fits = pod.gpu_count == 0
            || pod.models.is_empty()
            || nodes[index].model.as_ref().is_some_and(|model| pod.models.contains(model));
        if !model_fits || free[index].0 < pod.cpu_milli || free[index].1 < pod.memory_bytes {
            continue;
        }
        for set in device_sets(pod, &free[index].2) {
            let before = free[index].clone();
            free[index].0 -= pod.cpu_milli;
            free[index].1 -= pod.memory_bytes;
            for device in 0..before.2.len() {
                free[index].2[device] -= if set >> device & 1 == 1 { pod.gpu_milli } else { 0 };
            }
            let stop = then(free);
            free[index] = before;
            if stop {
                return true;
            }
        }
    }
    false
}

fn all_fit(nodes: &[BoundNode], pods: &[BoundPod], free: &mut Vec<Free>) -> bool {
    let Some((pod, rest)) = pods.split_first() else { return true };
    each_placement(nodes, pod, free, &mut |free| all_fit(nodes, rest, free))
}

fn model() -> impl Strategy<Value = Option<String>> {
    prop::sample::select(vec![None, Some("A".to_owned()), Some("B".to_owned())])
}

fn node() -> impl Strategy<Value = BoundNode> {
    (1..5_i64, 1..4_i64, 0..4_u32, model()).prop_map(|(cpu, memory, gpu_count, model)| BoundNode {
        cpu_milli: cpu * 1000,
        memory_bytes: memory << 30,
        gpu_count,
        model,
    })
}

fn pod() -> impl Strategy<Value = BoundPod> {
    let gpu = prop::sample::select(vec![
        (0, 0),
        (1, 1000),
        (1, 1000),
        (2, 1000),
        (1, 510),
        (1, 500),
        (1, 340),
        (1, 330),
        (2, 400),
        (1, 670),
        (3, 1000),
    ]);
    let models = prop::sample::select(vec![vec![], vec![], vec!["A"], vec!["B", "A"], vec!["C"]]);
    (0..5_i64, 0..3_i64, gpu, models).prop_map(|(half_cores, memory, gpu, models)| BoundPod {
        cpu_milli: half_cores * 500,
        memory_bytes: memory << 29,
        gpu_count: gpu.0,
        gpu_milli: gpu.1,
        models: models.into_iter().map(str::to_owned).collect(),
    })
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn no_packing_holds_more_pods_than_a_prefix_bound(
        nodes in prop::collection::vec(node(), 1..4),
        pods in prop::collection::vec(pod(), 0..8),
    ) {
        prop_assume!(nodes.iter().any(|node| node.gpu_count > 0));
        let held = (0..=pods.len())
            .rev()
            .find(|&count| all_fit(&nodes, &pods[..count], &mut empty(&nodes)))
            .unwrap();
        let bounds = combined_prefix_bounds(&nodes, &pods).unwrap();
        let combined = bounds.combined.unwrap();
        prop_assert!(bounds.limit().pods >= held, "{bounds:?} {held}");
        prop_assert!(combined.pods >= held && combined.tight, "{bounds:?} {held}");
        prop_assert!(combined.pods <= bounds.limit().pods);
        prop_assert_eq!(prefix_bounds(&nodes, &pods).unwrap().limit(), bounds.limit());
        prop_assert!(bounds.device.tight && bounds.lp.tight);
        prop_assert!(bounds.limit().pods <= pods.len());
    }
}

#[test]
fn bad_input_is_named() {
    let node = BoundNode { cpu_milli: 1000, memory_bytes: 1, gpu_count: 8, model: None };
    let pod = BoundPod {
        cpu_milli: 0,
        memory_bytes: 0,
        gpu_count: 1,
        gpu_milli: 500,
        models: Vec::new(),
    };
    let wrong = BoundPod { gpu_milli: 1001, ..pod.clone() };
    let error = prefix_bounds(std::slice::from_ref(&node), &[pod, wrong]).unwrap_err();
    assert!(error.to_string().starts_with("pod 1: gpu_milli is 1001"), "{error}");
    let negative = BoundNode { memory_bytes: -1, ..node.clone() };
    let error = prefix_bounds(&[negative], &[]).unwrap_err();
    assert!(error.to_string().starts_with("node 0: memory_bytes is -1"), "{error}");
    let bare = BoundNode { gpu_count: 0, ..node };
    assert_eq!(prefix_bounds(&[bare], &[]).unwrap_err(), BoundError::NoGpus);
}
