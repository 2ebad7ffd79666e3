//! Prefix bounds and the exact optimum against trying every packing of tiny worlds.

use dovetail_exact::{
    BoundError, BoundNode, BoundPod, combined_prefix_bounds, fewest_gpus, max_allocation,
    prefix_bounds,
};
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

fn most_milli(nodes: &[BoundNode], pods: &[BoundPod], free: &mut Vec<Free>) -> i64 {
    let Some((pod, rest)) = pods.split_first() else { return 0 };
    let mut best = most_milli(nodes, rest, free);
    let gain = i64::from(pod.gpu_count) * pod.gpu_milli;
    each_placement(nodes, pod, free, &mut |free| {
        best = best.max(gain + most_milli(nodes, rest, free));
        false
    });
    best
}

/// The optimum by dynamic programming over sets of pods: for each node, every set that fits it.
fn most_milli_by_sets(nodes: &[BoundNode], pods: &[BoundPod]) -> i64 {
    let sets = 1_usize << pods.len();
    let chosen = |set: usize| (0..pods.len()).filter(move |pod| set >> pod & 1 == 1);
    let milli: Vec<i64> =
        (0..sets).map(|set| chosen(set).map(|pod| pods[pod].requested_milli()).sum()).collect();
    let mut best = vec![0; sets];
    for node in nodes {
        let node = std::slice::from_ref(node);
        let mut fits = vec![true; sets];
        for set in 1..sets {
            let members: Vec<BoundPod> = chosen(set).map(|pod| pods[pod].clone()).collect();
            fits[set] = chosen(set).all(|pod| fits[set ^ (1 << pod)])
                && milli[set] <= i64::from(node[0].gpu_count) * 1000
                && all_fit(node, &members, &mut empty(node));
        }
        let without_node = best.clone();
        for set in 0..sets {
            let mut part = set;
            while part > 0 {
                if fits[part] {
                    best[set] = best[set].max(without_node[set ^ part] + milli[part]);
                }
                part = (part - 1) & set;
            }
        }
    }
    best[sets - 1]
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

fn real_node() -> impl Strategy<Value = BoundNode> {
    let size = (8..97_i64, 64..400_i64, 1..9_u32);
    size.prop_map(|(cores, memory, gpu_count)| BoundNode {
        cpu_milli: cores * 1000,
        memory_bytes: memory << 30,
        gpu_count,
        model: None,
    })
}

fn real_pod() -> impl Strategy<Value = BoundPod> {
    let shares = vec![(1, 1000), (2, 1000), (4, 1000), (8, 1000), (1, 460), (1, 670), (2, 500)];
    let size = (1..33_i64, 1..200_i64, prop::sample::select(shares));
    size.prop_map(|(cores, memory, gpu)| BoundPod {
        cpu_milli: cores * 1000,
        memory_bytes: memory << 30,
        gpu_count: gpu.0,
        gpu_milli: gpu.1,
        models: Vec::new(),
    })
}

fn assert_is_packing(nodes: &[BoundNode], pods: &[BoundPod]) -> i64 {
    let exact = max_allocation(nodes, pods).unwrap();
    let mut free = empty(nodes);
    let mut placed_milli = 0;
    for (pod, placement) in pods.iter().zip(&exact.assignment) {
        let Some(placement) = placement else { continue };
        assert!(pod.fits_empty(&nodes[placement.node]));
        assert_eq!(placement.devices.len(), pod.gpu_count as usize);
        assert!(placement.devices.is_sorted_by(|a, b| a < b));
        let (cpu, memory, devices) = &mut free[placement.node];
        *cpu -= pod.cpu_milli;
        *memory -= pod.memory_bytes;
        placement.devices.iter().for_each(|&device| devices[device] -= pod.gpu_milli);
        placed_milli += pod.gpu_milli * i64::from(pod.gpu_count);
    }
    let not_over = |(cpu, memory, devices): &Free| {
        *cpu >= 0 && *memory >= 0 && devices.iter().all(|&milli| milli >= 0)
    };
    assert!(free.iter().all(not_over), "{exact:?}");
    assert_eq!(placed_milli, exact.gpu_milli);
    exact.gpu_milli
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

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

    #[test]
    fn the_exact_optimum_is_the_best_of_all_packings(
        nodes in prop::collection::vec(node(), 1..4),
        pods in prop::collection::vec(pod(), 0..6),
    ) {
        let found = assert_is_packing(&nodes, &pods);
        prop_assert_eq!(found, most_milli(&nodes, &pods, &mut empty(&nodes)));
    }

    #[test]
    fn no_packing_uses_fewer_gpus_than_the_bound(pods in prop::collection::vec(pod(), 0..6)) {
        let pods: Vec<BoundPod> = pods
            .into_iter()
            .map(|pod| BoundPod { cpu_milli: 0, memory_bytes: 0, models: vec![], ..pod })
            .collect();
        let node = |gpu_count| {
            vec![BoundNode { cpu_milli: 0, memory_bytes: 0, gpu_count, model: None }]
        };
        let used = (0..=12_u32)
            .find(|&gpus| all_fit(&node(gpus), &pods, &mut empty(&node(gpus))));
        let bound = fewest_gpus(&pods).unwrap();
        prop_assert!(bound <= u64::from(used.unwrap_or(18)), "{bound} {used:?}");
    }
}

proptest! {
    // At most one world in ten may end without proof.
    #![proptest_config(ProptestConfig { cases: 40, max_global_rejects: 4, ..ProptestConfig::default() })]

    #[test]
    fn the_exact_optimum_holds_at_the_size_it_is_made_for(
        nodes in prop::collection::vec(real_node(), 6),
        pods in prop::collection::vec(real_pod(), 10),
    ) {
        let unproven = matches!(max_allocation(&nodes, &pods), Err(BoundError::Solver { .. }));
        prop_assume!(!unproven, "the search ended without proof");
        let found = assert_is_packing(&nodes, &pods);
        prop_assert_eq!(found, most_milli_by_sets(&nodes, &pods));
    }
}

#[test]
fn bad_input_is_named_and_large_worlds_are_refused() {
    let node = BoundNode { cpu_milli: 1000, memory_bytes: 1, gpu_count: 8, model: None };
    let pod = BoundPod {
        cpu_milli: 0,
        memory_bytes: 0,
        gpu_count: 1,
        gpu_milli: 500,
        models: Vec::new(),
    };
    let wrong = BoundPod { gpu_milli: 1001, ..pod.clone() };
    let error = prefix_bounds(std::slice::from_ref(&node), &[pod.clone(), wrong]).unwrap_err();
    assert!(error.to_string().starts_with("pod 1: gpu_milli is 1001"), "{error}");
    let negative = BoundNode { memory_bytes: -1, ..node.clone() };
    let error = max_allocation(&[negative], &[]).unwrap_err();
    assert!(error.to_string().starts_with("node 0: memory_bytes is -1"), "{error}");
    let bare = BoundNode { gpu_count: 0, ..node.clone() };
    assert_eq!(prefix_bounds(&[bare], &[]).unwrap_err(), BoundError::NoGpus);
    let error = max_allocation(&vec![node; 20], &vec![pod; 20]).unwrap_err();
    assert!(matches!(error, BoundError::TooLarge { variables: 3600, .. }), "{error}");
}
