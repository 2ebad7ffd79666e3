//! Depth fragmentation: expected free GPU that the mix cannot use, also because CPU or memory runs
//! out first.
//!
//! For an expected pod that can run on the node, FGD counts the free GPU on devices too small for
//! it. Here a second amount is added: of the usable GPU all but the part that as many pods as the
//! free CPU, memory and devices carry would fill. For a pod that cannot run there all free GPU
//! counts twice, as it does once in FGD. The sum over the mix is in milli-GPU · 2^20.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::learn::PodKind;
use crate::policy::steps::Steps;
use crate::state::State;

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
    /// What the devices alone allow, by set; computed once.
    by_set: FxHashMap<u32, Box<[Room]>>,
    /// The latest results, at one look each.
    latest: Vec<(Left, i64)>,
    remember: bool,
}

/// The devices and how much of CPU and memory is free, as far as it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) set: u32,
    pub(crate) cpu_step: u16,
    pub(crate) memory_step: u16,
}

#[derive(Debug)]
struct Expected {
    gpu_count: i64,
    gpu_milli: i64,
    models: SmallVec<[u32; 4]>,
    weight: i64,
}

/// What the devices of a node allow for one kind of pod.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    /// Free milli-GPU on devices that are large enough.
    usable_milli: u32,
    /// The part of it that each pod takes.
    each_milli: u32,
    pods: u8,
}

/// Places of the latest results, a power of two.
const LATEST_BITS: u32 = 16;

impl DepthFragmentation {
    /// `remember` false computes everything anew each time: slow, for judging what is remembered.
    pub(crate) fn new(state: &mut State, mix: &[(PodKind, i64)], remember: bool) -> Self {
        let asked = |of: fn(&PodKind) -> i64| {
            let amounts: Vec<i64> = mix.iter().map(|(kind, _)| of(kind)).collect();
            Steps::new(&amounts, DEEPEST)
        };
        let nowhere = Left { set: u32::MAX, cpu_step: 0, memory_step: 0 };
        Self {
            cpu: asked(|kind| kind.cpu_milli),
            memory: asked(|kind| kind.memory_bytes),
            whole: mix.iter().map(|(_, weight)| weight).sum(),
            mix: mix.iter().map(|(kind, weight)| Expected::of(state, kind, *weight)).collect(),
            by_set: FxHashMap::default(),
            latest: vec![(nowhere, 0); if remember { 1 << LATEST_BITS } else { 0 }],
            remember,
        }
    }

    /// A node with so much free CPU and memory.
    #[inline]
    pub(crate) fn left(&self, set: u32, cpu_milli: i64, memory_bytes: i64) -> Left {
        let (cpu_step, memory_step) = (self.cpu.step(cpu_milli), self.memory.step(memory_bytes));
        Left { set, cpu_step, memory_step }
    }

    /// Depth fragmentation of a node that is left like this.
    #[inline]
    pub(crate) fn of(&mut self, state: &State, left: Left) -> i64 {
        if !self.remember {
            return self.compute(state, left, &self.rooms(state, left.set));
        }
        let place = left.place();
        if self.latest[place].0 == left {
            return self.latest[place].1;
        }
        if !self.by_set.contains_key(&left.set) {
            let rooms = self.rooms(state, left.set);
            self.by_set.insert(left.set, rooms);
        }
        let value = self.compute(state, left, &self.by_set[&left.set]);
        self.latest[place] = (left, value);
        value
    }

    fn compute(&self, state: &State, left: Left, rooms: &[Room]) -> i64 {
        let cpu = self.cpu.pods(left.cpu_step);
        let memory = self.memory.pods(left.memory_step);
        let kinds = self.mix.iter().zip(rooms).zip(cpu.iter().zip(memory));
        let used: i64 = kinds
            .map(|((expected, room), (by_cpu, by_memory))| {
                let pods = room.pods.min(*by_cpu).min(*by_memory);
                let usable = if pods > 0 { room.usable_milli } else { 0 };
                expected.weight * i64::from(usable + u32::from(pods) * room.each_milli)
            })
            .sum();
        2 * state.devices.facts(left.set).gpu_left_milli * self.whole - used
    }

    fn rooms(&self, state: &State, set: u32) -> Box<[Room]> {
        let devices = state.devices.alike(set);
        let of = |expected: &Expected| {
            let (mut fitting, mut usable, mut shares) = (0, 0, 0);
            for alike in devices.iter().filter(|alike| {
                alike.left_milli >= expected.gpu_milli && expected.accepts(alike.model)
            }) {
                fitting += alike.count;
                usable += alike.left_milli * alike.count;
                shares += alike.left_milli / expected.gpu_milli * alike.count;
            }
            let pods = if expected.gpu_count == 1 { shares } else { fitting / expected.gpu_count };
            if pods == 0 {
                return Room::default();
            }
            let (usable_milli, each_milli) = (usable as u32, (usable / pods) as u32);
            Room { usable_milli, each_milli, pods: pods.min(i64::from(u8::MAX)) as u8 }
        };
        self.mix.iter().map(of).collect()
    }
}

impl Left {
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
        let gpu_count = i64::from(kind.gpu_count).max(1);
        Self { gpu_count, gpu_milli: kind.gpu_milli.max(1), models, weight }
    }

    fn accepts(&self, model: u32) -> bool {
        self.models.is_empty() || self.models.binary_search(&model).is_ok()
    }
}
