//! Expected fragmentation of a node (Weng et al., “Beware of Fragmentation”, USENIX ATC 2023, §4).
//!
//! For one expected pod `m`, all free GPU of a node counts as fragmented if `m` cannot run there
//! (CPU, GPU or model) or needs no GPU, else the free GPU on devices with less than `m` needs. The
//! expectation is over the target mix. The order of additions follows the published simulator,
//! because its integer scores turn on the last bits.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::target::TargetPod;
use dovetail_state::State;
use dovetail_state::device::table::Alike;

/// Fragmentation under one target mix, computed once per (devices, CPU rank).
#[derive(Debug)]
pub struct Fragmentation {
    mix: Vec<Expected>,
    /// Distinct CPU requests of the mix, ascending: only the rank of the free CPU among them
    /// matters.
    cpu_thresholds: Vec<i64>,
    memo: FxHashMap<(u32, u16), f64>,
    remember: bool,
}

#[derive(Debug)]
struct Expected {
    cpu_milli: i64,
    gpu_count: u16,
    gpu_milli: i64,
    /// Interned model names, ascending; empty is any.
    models: SmallVec<[u32; 4]>,
    weight: f64,
}

/// Classes of the published analysis, in the order in which their sums are added.
#[derive(Clone, Copy)]
enum FragmentClass {
    LackBoth,
    LackGpu,
    LackCpu,
    NoGpuWanted,
    NoGpuWantedLackCpu,
    NoAccess,
}

impl Fragmentation {
    /// `remember` false computes everything anew each time: slow, for judging the memo.
    pub fn new(state: &mut State, mix: &[TargetPod], remember: bool) -> Self {
        let mut cpu_thresholds: Vec<i64> = mix.iter().map(|pod| pod.cpu_milli).collect();
        cpu_thresholds.sort_unstable();
        cpu_thresholds.dedup();
        let mix = mix.iter().map(|pod| Expected::of(state, pod)).collect();
        Self { mix, cpu_thresholds, memo: FxHashMap::default(), remember }
    }

    /// How many CPU requests of the mix the free CPU satisfies.
    #[inline]
    pub fn cpu_rank(&self, cpu_left_milli: i64) -> u16 {
        self.cpu_thresholds.partition_point(|threshold| *threshold <= cpu_left_milli) as u16
    }

    /// Expected fragmented milli-GPU of a node with these devices and this CPU rank.
    #[inline]
    pub fn of(&mut self, state: &State, set: u32, cpu_rank: u16) -> f64 {
        if !self.remember {
            return self.compute(state, set, cpu_rank);
        }
        if let Some(known) = self.memo.get(&(set, cpu_rank)) {
            return *known;
        }
        let value = self.compute(state, set, cpu_rank);
        self.memo.insert((set, cpu_rank), value);
        value
    }

    fn compute(&self, state: &State, set: u32, cpu_rank: u16) -> f64 {
        let cpu_left = match cpu_rank {
            0 => i64::MIN,
            rank => self.cpu_thresholds[usize::from(rank) - 1],
        };
        let idle = state.devices.facts(set).gpu_left_milli;
        let devices = state.devices.alike(set);
        let mut sums = [0.0; 6];
        for pod in &self.mix {
            let (class, amount) = pod.fragmented(&devices, cpu_left, idle);
            sums[class as usize] += pod.weight * amount as f64;
        }
        sums.iter().sum()
    }
}

impl Expected {
    fn of(state: &mut State, pod: &TargetPod) -> Self {
        let mut models: SmallVec<[u32; 4]> =
            pod.gpu_models.iter().map(|name| state.names.models.intern(name).0).collect();
        models.sort_unstable();
        Self {
            cpu_milli: pod.cpu_milli,
            gpu_count: pod.gpu_count,
            gpu_milli: pod.gpu_milli,
            models,
            weight: pod.weight,
        }
    }

    fn fragmented(&self, devices: &[Alike], cpu_left: i64, idle: i64) -> (FragmentClass, i64) {
        let enough_cpu = cpu_left >= self.cpu_milli;
        if self.gpu_count == 0 {
            let class = if enough_cpu {
                FragmentClass::NoGpuWanted
            } else {
                FragmentClass::NoGpuWantedLackCpu
            };
            return (class, idle);
        }
        let (mut accessible, mut fitting, mut too_small_milli) = (0, 0, 0);
        for alike in devices {
            if !self.models.is_empty() && self.models.binary_search(&alike.model).is_err() {
                continue;
            }
            accessible += 1;
            if alike.left_milli >= self.gpu_milli {
                fitting += alike.count;
            } else {
                too_small_milli += alike.left_milli * alike.count;
            }
        }
        let enough_gpu = fitting >= i64::from(self.gpu_count);
        match (accessible == 0, enough_gpu, enough_cpu) {
            (true, _, _) => (FragmentClass::NoAccess, idle),
            (false, false, false) => (FragmentClass::LackBoth, idle),
            (false, false, true) => (FragmentClass::LackGpu, idle),
            (false, true, false) => (FragmentClass::LackCpu, idle),
            (false, true, true) => (FragmentClass::LackGpu, too_small_milli),
        }
    }
}
