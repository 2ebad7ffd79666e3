//! Depth fragmentation: expected free GPU that the mix cannot use, also because the CPU runs out first.
//!
//! For an expected pod that can run on the node, FGD counts the free GPU on devices too small for it. Here
//! the mean of that and a second amount is taken: of the usable GPU only the part that as many pods as the
//! free CPU carries could fill. For a pod that cannot run there (or needs no GPU) all free GPU counts, as in FGD.
//! The sum over the mix is in milli-GPU · 2^20 · 2 (both halves added, not averaged).

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::device::table::Alike;
use crate::learn::PodKind;
use crate::state::State;

/// Pods beyond this number on one node are not told apart.
const DEEPEST: i64 = 16;

/// Least CPU told apart by the first look-up of a step.
const BUCKET_MILLI: i64 = 256;
/// Most such buckets, however much CPU somebody asks for.
const MOST_BUCKETS: i64 = 1 << 14;

/// Depth fragmentation under one mix, computed once per (devices, CPU step).
#[derive(Debug)]
pub(crate) struct DepthFragmentation {
    mix: Vec<Expected>,
    /// Free CPU is told apart only where one more expected pod fits, ascending.
    cpu_steps: Vec<i64>,
    /// Steps at or below the lower end of each bucket of CPU, so that few are compared.
    first_step: Vec<u16>,
    bucket_milli: i64,
    memo: FxHashMap<u64, i64>,
    remember: bool,
}

#[derive(Debug)]
struct Expected {
    cpu_milli: i64,
    gpu_count: i64,
    gpu_milli: i64,
    models: SmallVec<[u32; 4]>,
    weight: i64,
}

impl DepthFragmentation {
    pub(crate) fn new(state: &mut State, mix: &[(PodKind, i64)], remember: bool) -> Self {
        let mut cpu_steps: Vec<i64> = Vec::new();
        for (kind, _) in mix.iter().filter(|(kind, _)| kind.cpu_milli > 0) {
            let deepest = if kind.gpu_count > 0 { DEEPEST } else { 1 };
            cpu_steps.extend((1..=deepest).map(|pods| kind.cpu_milli.saturating_mul(pods)));
        }
        cpu_steps.sort_unstable();
        cpu_steps.dedup();
        let mix = mix.iter().map(|(kind, weight)| Expected::of(state, kind, *weight)).collect();
        let last = cpu_steps.last().copied().unwrap_or(0);
        let bucket_milli = BUCKET_MILLI.max(last / MOST_BUCKETS + 1);
        let steps_below = |milli: i64| cpu_steps.partition_point(|step| *step <= milli) as u16;
        let first_step =
            (0..=last / bucket_milli).map(|bucket| steps_below(bucket * bucket_milli)).collect();
        Self { mix, cpu_steps, first_step, bucket_milli, memo: FxHashMap::default(), remember }
    }

    /// The step of an amount of free CPU.
    #[inline]
    pub(crate) fn cpu_step(&self, cpu_left_milli: i64) -> u16 {
        let bucket = usize::try_from(cpu_left_milli / self.bucket_milli).unwrap_or(0);
        let Some(first) = self.first_step.get(bucket) else { return self.cpu_steps.len() as u16 };
        let mut step = usize::from(*first);
        while self.cpu_steps.get(step).is_some_and(|next| *next <= cpu_left_milli) {
            step += 1;
        }
        step as u16
    }

    /// Depth fragmentation of a node with these devices at this CPU step.
    #[inline]
    pub(crate) fn of(&mut self, state: &State, set: u32, cpu_step: u16) -> i64 {
        let key = u64::from(set) << 16 | u64::from(cpu_step);
        if self.remember
            && let Some(known) = self.memo.get(&key)
        {
            return *known;
        }
        let value = self.compute(state, set, cpu_step);
        if self.remember {
            self.memo.insert(key, value);
        }
        value
    }

    fn compute(&self, state: &State, set: u32, cpu_step: u16) -> i64 {
        let cpu_left = match cpu_step {
            0 => 0,
            step => self.cpu_steps[usize::from(step) - 1],
        };
        let idle = state.devices.facts(set).gpu_left_milli;
        let devices = state.devices.alike(set);
        self.mix.iter().map(|pod| pod.weight * pod.wasted(&devices, cpu_left, idle)).sum()
    }
}

impl Expected {
    fn of(state: &mut State, kind: &PodKind, weight: i64) -> Self {
        let mut models: SmallVec<[u32; 4]> =
            kind.gpu_models.iter().map(|name| state.names.models.intern(name).0).collect();
        models.sort_unstable();
        Self {
            cpu_milli: kind.cpu_milli,
            gpu_count: i64::from(kind.gpu_count),
            gpu_milli: kind.gpu_milli,
            models,
            weight,
        }
    }

    /// Twice the milli-GPU that this pod would leave unused.
    fn wasted(&self, devices: &[Alike], cpu_left: i64, idle: i64) -> i64 {
        if self.gpu_count == 0 || cpu_left < self.cpu_milli {
            return 2 * idle;
        }
        let (mut fitting, mut usable, mut shares) = (0, 0, 0);
        for alike in devices {
            if alike.left_milli >= self.gpu_milli
                && (self.models.is_empty() || self.models.binary_search(&alike.model).is_ok())
            {
                let each =
                    if self.gpu_milli == 1000 { 1 } else { alike.left_milli / self.gpu_milli };
                fitting += alike.count;
                usable += alike.left_milli * alike.count;
                shares += each * alike.count;
            }
        }
        if fitting < self.gpu_count {
            return 2 * idle;
        }
        let by_gpu = if self.gpu_count == 1 { shares } else { fitting / self.gpu_count };
        let by_cpu = match self.cpu_milli {
            0 => by_gpu,
            cpu => by_gpu.min(cpu_left / cpu).min(DEEPEST),
        };
        (idle - usable) + (idle - usable * by_cpu / by_gpu)
    }
}
