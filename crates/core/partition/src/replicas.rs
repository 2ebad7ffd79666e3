//! How many pods can share each GPU, by what they use.
//!
//! Neither the scheduler nor the device plugin chooses which pods meet on a GPU, so any of them
//! may: the answer is the largest number such that those that use most fit together.

/// Part of the memory of a GPU that may be in use, in millionths: the rest is for peaks, contexts
/// and fragmentation.
const MEMORY_LIMIT_PPM: u128 = 850_000;
/// Part of the time in which a GPU may compute, in millionths.
const ACTIVITY_LIMIT_PPM: u64 = 800_000;
/// Pods that may share a GPU: clients of one MPS server before compute capability 10.0.
const MOST_CLIENTS: usize = 48;

/// What one pod uses of the one GPU that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredUse {
    /// Memory in use, 99th percentile.
    pub memory_bytes: u64,
    /// Time in which the GPU computes, 95th percentile, in millionths.
    pub activity_ppm: u64,
}

/// What keeps more pods from sharing a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingLimit {
    /// 85% of its memory.
    Memory,
    /// 80% of its time.
    Activity,
    /// 48 clients.
    Clients,
    /// There are no more pods.
    Pods,
}

/// How many pods can share each GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBy {
    /// Pods on each GPU; 1 where they should not share, 0 without pods.
    pub replicas: usize,
    /// `None` where one pod alone uses more than a GPU should give to several.
    pub limit: Option<SharingLimit>,
    /// Memory that the largest of so many use together.
    pub memory_bytes: u128,
    /// Time that the busiest of so many use together, in millionths.
    pub activity_ppm: u64,
    /// GPUs for all pods.
    pub gpus: usize,
    /// No fewer GPUs can be within the limits, whoever chooses which pods meet.
    pub lower_bound: u128,
}

/// The largest number of replicas at which any pods that meet on a GPU stay within the limits.
pub fn shared_by(pods: &[MeasuredUse], gpu_memory_bytes: u64) -> SharedBy {
    let memory_limit = u128::from(gpu_memory_bytes) * MEMORY_LIMIT_PPM / 1_000_000;
    let mut memory: Vec<u128> = pods.iter().map(|pod| u128::from(pod.memory_bytes)).collect();
    let mut activity: Vec<u64> = pods.iter().map(|pod| pod.activity_ppm).collect();
    memory.sort_unstable_by(|one, other| other.cmp(one));
    activity.sort_unstable_by(|one, other| other.cmp(one));
    let all_memory: u128 = memory.iter().sum();
    let all_activity: u64 = activity.iter().sum();
    let lower_bound = at_least(all_memory, memory_limit)
        .max(at_least(u128::from(all_activity), u128::from(ACTIVITY_LIMIT_PPM)))
        .max(pods.len().div_ceil(MOST_CLIENTS) as u128);
    let (mut replicas, mut used) = (0, (0, 0));
    let limit = loop {
        if replicas == pods.len() {
            break SharingLimit::Pods;
        }
        let next = (used.0 + memory[replicas], used.1 + activity[replicas]);
        if next.0 > memory_limit {
            break SharingLimit::Memory;
        }
        if next.1 > ACTIVITY_LIMIT_PPM {
            break SharingLimit::Activity;
        }
        if replicas == MOST_CLIENTS {
            break SharingLimit::Clients;
        }
        (replicas, used) = (replicas + 1, next);
    };
    let is_too_large = replicas == 0 && !pods.is_empty();
    if is_too_large {
        (replicas, used) = (1, (memory[0], activity[0]));
    }
    SharedBy {
        replicas,
        limit: (!is_too_large).then_some(limit),
        memory_bytes: used.0,
        activity_ppm: used.1,
        gpus: pods.len().div_ceil(replicas.max(1)),
        lower_bound: lower_bound.min(pods.len() as u128),
    }
}

fn at_least(used: u128, limit: u128) -> u128 {
    if limit == 0 { u128::MAX } else { used.div_ceil(limit) }
}
