//! How many pods can share a GPU, against every set of pods that could meet.

use dovetail_partition::{MeasuredUse, SharedBy, SharingLimit, shared_by};

const GIB: u64 = 1 << 30;

/// Whether all sets of so many pods stay within the limits.
fn all_fit(pods: &[MeasuredUse], size: usize, gpu_bytes: u64) -> bool {
    let sets = (0_u32..1 << pods.len()).filter(|set| set.count_ones() as usize == size);
    sets.into_iter().all(|set| {
        let of_set = || (0..pods.len()).filter(|at| set >> at & 1 == 1).map(|at| pods[at]);
        let memory: u64 = of_set().map(|pod| pod.memory_bytes).sum();
        let activity: u64 = of_set().map(|pod| pod.activity_ppm).sum();
        memory * 100 <= gpu_bytes * 85 && activity <= 800_000
    })
}

#[test]
fn any_pods_that_meet_fit_and_with_one_more_some_do_not() {
    let mut state = 7_u64;
    let mut below = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % most
    };
    let mut limits = [0; 3];
    for _ in 0..2_000 {
        let scale = 1 + below(20);
        let pods: Vec<MeasuredUse> = (0..1 + below(9))
            .map(|_| MeasuredUse {
                memory_bytes: below(4 * scale) * GIB,
                activity_ppm: below(40_000 * scale),
            })
            .collect();
        let SharedBy { replicas, limit, gpus, lower_bound, .. } = shared_by(&pods, 80 * GIB);
        let most = (1..=pods.len()).rev().find(|size| all_fit(&pods, *size, 80 * GIB));
        assert_eq!(replicas, most.unwrap_or(1), "{pods:?}");
        assert_eq!(limit.is_none(), most.is_none(), "{pods:?}");
        assert_eq!(gpus, pods.len().div_ceil(replicas));
        assert!(lower_bound <= gpus as u128, "{pods:?}: {lower_bound} > {gpus}");
        match limit {
            Some(SharingLimit::Memory) => limits[0] += 1,
            Some(SharingLimit::Activity) => limits[1] += 1,
            Some(SharingLimit::Pods) => limits[2] += 1,
            Some(SharingLimit::Clients) | None => {}
        }
    }
    assert!(limits.iter().all(|count| *count > 100), "{limits:?}");
}

#[test]
fn no_more_than_48_clients_share_a_gpu() {
    let pods = vec![MeasuredUse { memory_bytes: 0, activity_ppm: 0 }; 100];
    let found = shared_by(&pods, 80 * GIB);
    assert_eq!((found.replicas, found.limit), (48, Some(SharingLimit::Clients)));
    assert_eq!((found.gpus, found.lower_bound), (3, 3));
    assert_eq!(shared_by(&[], 80 * GIB).gpus, 0);
}
