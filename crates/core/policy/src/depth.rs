//! Depth fragmentation: expected free GPU that the mix cannot use, also because something else runs
//! out first: CPU, memory, device memory, pod slots, ephemeral storage, extended resources.
//!
//! For an expected pod that can run on the node, FGD counts the free GPU on devices too small for
//! it. Here a second amount is added: of the usable GPU all but the part that as many pods as the
//! free amounts and devices carry would fill. For a pod that cannot run there all free GPU
//! counts twice, as it does once in FGD. The sum over the mix is in milli-GPU · 2^20.

use dovetail_model::NodeId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::learn::PodKind;
use crate::other_resources::{OtherResources, PLENTY};
use crate::steps::Steps;
use dovetail_state::State;
use dovetail_state::device::need::{DeviceNeed, InternedRequest};
use dovetail_state::holdings::Amounts;

/// Pods beyond this number on one node are told apart by devices alone.
const DEEPEST: u8 = 16;

/// Depth fragmentation under one mix.
#[derive(Debug)]
pub(crate) struct DepthFragmentation {
    mix: Vec<Expected>,
    /// Sum of the weights.
    whole: i64,
    cpu: Steps,
    memory: Steps,
    others: OtherResources,
    /// What the devices alone allow, by set; computed once.
    by_set: FxHashMap<u32, Box<[PodCapacity]>>,
    /// The latest results of nodes with plenty of other resources, at one look each.
    latest: Vec<(Steady, i64)>,
    /// Results of other nodes.
    scarce: FxHashMap<Left, i64>,
    remember: bool,
}

/// The devices and how much of everything else is free, as far as it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) steady: Steady,
    /// Number of what is free of other resources.
    pub(crate) others: u32,
}

/// The devices, CPU and memory of a node: most nodes have plenty of all else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Steady {
    pub(crate) set: u32,
    pub(crate) cpu_step: u16,
    pub(crate) memory_step: u16,
}

#[derive(Debug)]
struct Expected {
    gpu_count: i64,
    gpu_milli: i64,
    device_memory_bytes: i64,
    need: DeviceNeed,
    weight: i64,
}

/// What the devices of a node allow for one kind of pod.
#[derive(Clone, Copy, Debug, Default)]
struct PodCapacity {
    /// Free milli-GPU on devices that are large enough.
    usable_milli: u32,
    /// The part of it that each pod takes.
    each_milli: u32,
    pods: u8,
}

/// Places of the latest results, a power of two.
const LATEST_BITS: u32 = 16;
/// Most results of nodes that are short of other resources.
const MOST_SCARCE: usize = 1 << 16;

impl DepthFragmentation {
    /// `remember` false computes everything anew each time: slow, for judging what is remembered.
    pub(crate) fn new(state: &mut State, mix: &[(PodKind, i64)], remember: bool) -> Self {
        let asked = |of: fn(&PodKind) -> i64| {
            let amounts: Vec<i64> = mix.iter().map(|(kind, _)| of(kind)).collect();
            Steps::new(&amounts, DEEPEST)
        };
        let nowhere = Steady { set: u32::MAX, cpu_step: 0, memory_step: 0 };
        Self {
            cpu: asked(|kind| kind.cpu_milli),
            memory: asked(|kind| kind.memory_bytes),
            others: OtherResources::new(state, mix, DEEPEST),
            whole: mix.iter().map(|(_, weight)| weight).sum(),
            mix: mix.iter().map(|(kind, weight)| Expected::of(state, kind, *weight)).collect(),
            by_set: FxHashMap::default(),
            latest: vec![(nowhere, 0); if remember { 1 << LATEST_BITS } else { 0 }],
            scarce: FxHashMap::default(),
            remember,
        }
    }

    /// Whether other resources than CPU, memory and devices make no difference on a node with so
    /// many free pod slots, also after one pod more.
    #[inline]
    pub(crate) fn is_plenty(&self, slots_left: i32) -> bool {
        self.others.is_plenty(slots_left)
    }

    /// A node from which so much is taken; its devices are as they are.
    #[inline]
    pub(crate) fn left(&mut self, state: &State, node: NodeId, taken: Option<&Amounts>) -> Left {
        let hot = state.nodes.hot(node);
        let (cpu_milli, memory_bytes) =
            taken.map_or((0, 0), |amounts| (amounts.cpu_milli, amounts.memory_bytes));
        let steady = Steady {
            set: hot.set,
            cpu_step: self.cpu.step(hot.cpu_left_milli - cpu_milli),
            memory_step: self.memory.step(hot.memory_left_bytes - memory_bytes),
        };
        Left { steady, others: self.others.of(state, node, taken) }
    }

    /// Depth fragmentation of a node that is left like this.
    #[inline]
    pub(crate) fn of(&mut self, state: &State, left: Left) -> i64 {
        if !self.remember {
            return self.compute(state, left, &self.rooms(state, left.steady.set));
        }
        match left.others {
            PLENTY => self.latest(state, left),
            _ => self.scarce(state, left),
        }
    }

    #[inline]
    fn latest(&mut self, state: &State, left: Left) -> i64 {
        let place = left.steady.place();
        if self.latest[place].0 == left.steady {
            return self.latest[place].1;
        }
        let value = self.by_rooms(state, left);
        self.latest[place] = (left.steady, value);
        value
    }

    #[cold]
    fn scarce(&mut self, state: &State, left: Left) -> i64 {
        if let Some(known) = self.scarce.get(&left) {
            return *known;
        }
        let value = self.by_rooms(state, left);
        if self.scarce.len() >= MOST_SCARCE {
            self.scarce.clear();
        }
        self.scarce.insert(left, value);
        value
    }

    fn by_rooms(&mut self, state: &State, left: Left) -> i64 {
        let set = left.steady.set;
        if !self.by_set.contains_key(&set) {
            let rooms = self.rooms(state, set);
            self.by_set.insert(set, rooms);
        }
        self.compute(state, left, &self.by_set[&set])
    }

    fn compute(&self, state: &State, left: Left, rooms: &[PodCapacity]) -> i64 {
        let cpu = self.cpu.pods(left.steady.cpu_step);
        let memory = self.memory.pods(left.steady.memory_step);
        let others = self.others.pods(left.others);
        let carried = cpu.iter().zip(memory).zip(others);
        let carried = carried.map(|((cpu, memory), others)| *cpu.min(memory).min(others));
        let used: i64 = self
            .mix
            .iter()
            .zip(rooms)
            .zip(carried)
            .map(|((expected, room), carried)| {
                let pods = room.pods.min(carried);
                let usable = if pods > 0 { room.usable_milli } else { 0 };
                expected.weight * i64::from(usable + u32::from(pods) * room.each_milli)
            })
            .sum();
        2 * state.devices.facts(left.steady.set).gpu_left_milli * self.whole - used
    }

    fn rooms(&self, state: &State, set: u32) -> Box<[PodCapacity]> {
        let devices = &state.devices;
        let cells = devices.set(set);
        let of = |expected: &Expected| {
            let (mut fitting, mut usable, mut filled, mut shares) = (0, 0, 0, 0);
            for number in cells {
                let cell = devices.cell(*number);
                let kind = devices.kind(cell.kind);
                if !expected.need.accepts_kind(kind) || !expected.need.fits_cell(cell, kind) {
                    continue;
                }
                let left_milli = cell.compute_left_milli;
                let by_compute = left_milli / expected.gpu_milli;
                let by_memory = match expected.device_memory_bytes {
                    0 => by_compute,
                    asked => by_compute.min(cell.memory_left_bytes / asked),
                };
                fitting += 1;
                usable += left_milli;
                filled += left_milli * by_memory / by_compute.max(1);
                shares += by_memory;
            }
            let pods = if expected.gpu_count == 1 { shares } else { fitting / expected.gpu_count };
            if pods == 0 {
                return PodCapacity::default();
            }
            let (usable_milli, each_milli) = (usable as u32, (filled / pods) as u32);
            PodCapacity { usable_milli, each_milli, pods: pods.min(i64::from(u8::MAX)) as u8 }
        };
        self.mix.iter().map(of).collect()
    }
}

impl Steady {
    #[inline]
    fn place(self) -> usize {
        let steps = u64::from(self.cpu_step) << 16 | u64::from(self.memory_step);
        let mixed = (u64::from(self.set) << 32 | steps).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (u64::BITS - LATEST_BITS)) as usize
    }
}

impl Expected {
    fn of(state: &mut State, kind: &PodKind, weight: i64) -> Self {
        let mut models: SmallVec<[u32; 4]> =
            kind.gpu_models.iter().map(|name| state.names.models.intern(name).0).collect();
        models.sort_unstable();
        let (gpu_count, gpu_milli) = (kind.gpu_count.max(1), kind.gpu_milli.max(1));
        let device_memory_bytes = kind.device_memory_bytes;
        let request = match kind.gpu_milli {
            1000 => InternedRequest::Whole { count: gpu_count, same_island: false },
            _ => InternedRequest::Share {
                compute_milli: gpu_milli,
                memory_bytes: device_memory_bytes,
            },
        };
        let need = DeviceNeed { request, models, min_memory_bytes: kind.min_device_memory_bytes };
        Self { gpu_count: i64::from(gpu_count), gpu_milli, device_memory_bytes, need, weight }
    }
}
