//! `dovetail`, the default: least expected waste under a learnt mix.
//!
//! score = waste(node now) − waste(node with the pod) − opening − scarcity, where waste is a potential of the
//! node's own state: depth fragmentation ([`super::depth`]) plus imbalance, the GPU that the free CPU cannot
//! carry and the CPU that the free GPU does not need, at the learnt CPU per GPU. Opening is charged where a
//! pod would be the first of ours on a node with all devices free: dear for the largest nodes, next to
//! nothing for others. Scarcity is the learnt price of the model ([`super::scarcity`]).
//!
//! All terms are integers in milli-GPU · 2^20. Weights were chosen on the openb traces (Apache-2.0, Alibaba
//! 2023), seeds 42–46, one set for all; docs/benchmarks.md has the figures for other seeds.

use std::collections::BTreeMap;

use dovetail_model::{HeldDevices, NodeId};
use rustc_hash::FxHashMap;

use crate::learn::{Learnt, ONE};
use crate::policy::depth::DepthFragmentation;
use crate::policy::share_choice::{After, options_after, share_on_best};
use crate::policy::{Policy, SCORE_LIMIT, Term, scarcity};
use crate::state::State;
use crate::state::nodes::Hot;
use crate::state::shapes::ShapeId;

/// Weight of a milli-GPU without CPU, in eighths.
const STRANDED_EIGHTHS: i64 = 16;
/// Weight of CPU without GPU, as the milli-GPU it could carry, in eighths.
const SURPLUS_EIGHTHS: i64 = 4;
/// CPU is surplus above this multiple, in eighths, of the learnt CPU per GPU.
const SURPLUS_FROM_EIGHTHS: i64 = 12;
/// Price of opening a node with the most CPU and GPUs, in milli-GPU.
const OPENING_MILLI: i64 = 2000;
/// Waste that a point of a pod's preferences makes up for, in milli-GPU.
const POINT_MILLI: i64 = 5;
/// How steeply the price of opening falls with the node's CPU.
const OPENING_POWER: u32 = 12;

/// The policy.
#[derive(Debug)]
pub(crate) struct Dovetail {
    learnt: Learnt,
    published: Version,
    remember: bool,
}

/// What scores read besides the state.
#[derive(Debug)]
struct Version {
    depth: DepthFragmentation,
    balance: Balance,
    /// Price of a whole GPU by interned model.
    prices: FxHashMap<u32, i64>,
    largest: (i64, i64),
    /// Gain in depth fragmentation less scarcity.
    gains: Gains,
    openings: FxHashMap<(i64, u16), i64>,
    recent: Recent,
}

/// The parts of a score.
struct Parts {
    gain: i64,
    imbalance: i64,
    opening: i64,
}

impl Parts {
    fn total(&self) -> i64 {
        (self.gain + self.imbalance - self.opening).clamp(1 - SCORE_LIMIT, SCORE_LIMIT - 1)
    }
}

/// All that a score reads of a shape and a node under one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    demand: u32,
    set: u32,
    cpu_left_milli: i64,
    cpu_allocatable_milli: i64,
    opened: bool,
}

/// The last few scores: many nodes are alike, above all empty ones. Small, so that a look costs nothing.
#[derive(Debug)]
struct Recent {
    scores: Vec<(Seen, i64)>,
}

const RECENT_BITS: u32 = 8;

impl Default for Recent {
    fn default() -> Self {
        let nothing = Seen { demand: u32::MAX, ..Seen::default() };
        Self { scores: vec![(nothing, 0); 1 << RECENT_BITS] }
    }
}

impl Recent {
    #[inline]
    fn of(&mut self, seen: &Seen) -> &mut (Seen, i64) {
        let mixed = u64::from(seen.set) ^ ((seen.cpu_left_milli as u64) << 20);
        let place = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - RECENT_BITS);
        &mut self.scores[place as usize]
    }
}

/// Gains known under one version: all of them, and in front the latest, at one look each.
#[derive(Debug)]
struct Gains {
    latest: Vec<(GainKey, i64)>,
    all: FxHashMap<GainKey, i64>,
}

/// (need, devices), (CPU step before, after).
type GainKey = (u64, u32);

/// Places in front, a power of two.
const LATEST_BITS: u32 = 16;

impl Default for Gains {
    fn default() -> Self {
        Self { latest: vec![((u64::MAX, 0), 0); 1 << LATEST_BITS], all: FxHashMap::default() }
    }
}

impl Gains {
    #[inline]
    fn place(key: GainKey) -> usize {
        let mixed = (key.0 ^ u64::from(key.1).rotate_left(20)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (u64::BITS - LATEST_BITS)) as usize
    }

    #[inline]
    fn find(&mut self, key: GainKey) -> Option<i64> {
        let latest = &mut self.latest[Self::place(key)];
        if latest.0 == key {
            return Some(latest.1);
        }
        let gain = *self.all.get(&key)?;
        *latest = (key, gain);
        Some(gain)
    }

    fn note(&mut self, key: GainKey, gain: i64) {
        self.latest[Self::place(key)] = (key, gain);
        self.all.insert(key, gain);
    }
}

impl Dovetail {
    pub(crate) fn new(state: &mut State, learnt: Option<&Learnt>, remember: bool) -> Self {
        let learnt = learnt.cloned().unwrap_or_default();
        let published = Version::of(state, &learnt, remember);
        Self { learnt, published, remember }
    }

    #[inline]
    fn parts(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Parts {
        let hot = *state.nodes.hot(node);
        let info = state.shapes.get(shape);
        let (need, cpu_milli, gpu_milli) =
            (info.demand.need, info.demand.amounts.cpu_milli, info.gpu_milli);
        let version = &mut self.published;
        let idle = state.devices.facts(hot.set).gpu_left_milli;
        let cpu_after = hot.cpu_left_milli - cpu_milli;
        let imbalance = version.balance.imbalance(idle, hot.cpu_left_milli)
            - version.balance.imbalance(idle - gpu_milli, cpu_after);
        Parts {
            gain: version.gain(state, need, &hot, cpu_after, self.remember),
            imbalance,
            opening: version.opening(state, &hot),
        }
    }
}

impl Policy for Dovetail {
    fn name(&self) -> &'static str {
        "dovetail"
    }

    fn version(&self) -> u64 {
        self.learnt.version
    }

    fn point(&self) -> i64 {
        POINT_MILLI * ONE
    }

    #[inline]
    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        if !self.remember {
            return self.parts(state, shape, node).total();
        }
        let hot = state.nodes.hot(node);
        let seen = Seen {
            demand: state.shapes.get(shape).demand_id,
            set: hot.set,
            cpu_left_milli: hot.cpu_left_milli,
            cpu_allocatable_milli: hot.cpu_allocatable_milli,
            opened: hot.pods_of_jobs > 0,
        };
        let known = self.published.recent.of(&seen);
        if known.0 == seen {
            return known.1;
        }
        let score = self.parts(state, shape, node).total();
        *self.published.recent.of(&seen) = (seen, score);
        score
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        let parts = self.parts(state, shape, node);
        let scarcity = self.published.scarcity_of_best(state, shape, node);
        vec![
            Term { name: "fragmentation", points: parts.gain + scarcity },
            Term { name: "cpu_gpu_balance", points: parts.imbalance },
            Term { name: "opening", points: -parts.opening },
            Term { name: "scarcity", points: -scarcity },
        ]
    }

    fn devices(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> HeldDevices {
        let after =
            state.nodes.hot(node).cpu_left_milli - state.shapes.get(shape).demand.amounts.cpu_milli;
        let version = &mut self.published;
        let step = version.depth.cpu_step(after);
        share_on_best(state, shape, node, |state, option| {
            -version.depth.of(state, option.set, step) - version.price(&option)
        })
    }

    fn observe_arrival(&mut self, state: &State, shape: ShapeId, pods: u32) {
        self.learnt.observe(state, shape, pods);
    }

    fn publish(&mut self, state: &mut State) -> bool {
        let published = self.learnt.publish(state);
        if published {
            self.published = Version::of(state, &self.learnt, self.remember);
        }
        published
    }

    fn published_values(&self) -> Vec<(String, i64)> {
        self.learnt.published_values()
    }

    fn learnt(&self) -> Option<&Learnt> {
        Some(&self.learnt)
    }
}

impl Version {
    fn of(state: &mut State, learnt: &Learnt, remember: bool) -> Self {
        let prices: BTreeMap<String, i64> = scarcity::prices(learnt);
        let prices = prices.iter().map(|(m, price)| (state.names.models.intern(m).0, *price));
        Self {
            prices: prices.collect(),
            depth: DepthFragmentation::new(state, &learnt.mix(), remember),
            balance: Balance::of(learnt),
            largest: (learnt.supply.largest_cpu_milli, learnt.supply.largest_gpu_count),
            gains: Gains::default(),
            openings: FxHashMap::default(),
            recent: Recent::default(),
        }
    }

    /// Fall in depth fragmentation less scarcity, for the best choice of devices.
    #[inline]
    fn gain(
        &mut self,
        state: &mut State,
        need: u32,
        hot: &Hot,
        cpu_after: i64,
        remember: bool,
    ) -> i64 {
        let before = self.depth.cpu_step(hot.cpu_left_milli);
        let after = self.depth.cpu_step(cpu_after);
        let steps = u32::from(before) << 16 | u32::from(after);
        let key = (u64::from(need) << 32 | u64::from(hot.set), steps);
        if remember && let Some(known) = self.gains.find(key) {
            return known;
        }
        let now = self.depth.of(state, hot.set, before);
        let options = options_after(state, need, hot.set);
        let gain = options
            .into_iter()
            .map(|option| now - self.depth.of(state, option.set, after) - self.price(&option))
            .max()
            .unwrap_or(0);
        if remember {
            self.gains.note(key, gain);
        }
        gain
    }

    /// Scarcity of the devices that an option takes.
    fn price(&self, option: &After) -> i64 {
        let of = |(model, milli): &(u32, i64)| {
            self.prices.get(model).copied().unwrap_or(0) * milli / 1000
        };
        option.taken.iter().map(of).sum()
    }

    fn scarcity_of_best(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        let hot = *state.nodes.hot(node);
        let demand = state.shapes.get(shape).demand.clone();
        let after = self.depth.cpu_step(hot.cpu_left_milli - demand.amounts.cpu_milli);
        let options = options_after(state, demand.need, hot.set);
        let best = options
            .into_iter()
            .max_by_key(|option| -self.depth.of(state, option.set, after) - self.price(option));
        best.map_or(0, |option| self.price(&option))
    }

    /// Price of being the first of ours on a node with all devices free.
    #[inline]
    fn opening(&mut self, state: &State, hot: &Hot) -> i64 {
        let facts = state.devices.facts(hot.set);
        if hot.pods_of_jobs > 0 || facts.empty != facts.devices || self.largest.1 == 0 {
            return 0;
        }
        let (largest_cpu, largest_gpus) = self.largest;
        let key = (hot.cpu_allocatable_milli, facts.devices);
        *self.openings.entry(key).or_insert_with(|| {
            // A node may be larger than any when the version was published.
            let cpu_milli = hot.cpu_allocatable_milli.clamp(0, largest_cpu);
            let fall = |part: i64, _| part * cpu_milli / largest_cpu.max(1);
            let cpu_part = (0..OPENING_POWER).fold(1024, fall);
            OPENING_MILLI * cpu_part * i64::from(facts.devices) / largest_gpus * (ONE / 1024)
        })
    }
}

/// More free CPU than this on one node is not told apart, so that amounts can be multiplied.
const MOST_CPU_MILLI: i64 = 1 << 32;

/// What the free CPU can carry and what it cannot fill, at the learnt CPU per GPU.
#[derive(Clone, Copy, Debug, Default)]
struct Balance {
    /// Milli-GPU per milli-CPU that the learnt mix asks for, 20 fractional bits; 0 is unknown.
    carried: i64,
    /// The same where surplus begins.
    filled: i64,
}

impl Balance {
    fn of(learnt: &Learnt) -> Self {
        let (mut cpu, mut gpu) = (0i128, 0i128);
        for (kind, share) in learnt.shares.iter().filter(|(kind, _)| kind.gpu_count > 0) {
            cpu += i128::from(kind.cpu_milli) * i128::from(*share);
            gpu += i128::from(kind.total_milli()) * i128::from(*share);
        }
        if gpu == 0 || cpu == 0 {
            return Self::default();
        }
        // At least a thousandth of a milli-CPU per milli-GPU, so that amounts of CPU can be multiplied.
        let carried = (gpu * i128::from(ONE) / cpu).min(i128::from(ONE) * 1000) as i64;
        Self { carried, filled: carried * 8 / SURPLUS_FROM_EIGHTHS }
    }

    /// GPU without CPU and CPU without GPU, weighed.
    #[inline]
    fn imbalance(self, idle_milli: i64, cpu_milli: i64) -> i64 {
        if self.carried == 0 {
            return 0;
        }
        let cpu_milli = cpu_milli.clamp(0, MOST_CPU_MILLI);
        let stranded =
            (idle_milli - ((cpu_milli * self.carried) >> 20)).clamp(0, SCORE_LIMIT >> 20);
        let surplus = (((cpu_milli * self.filled) >> 20) - idle_milli).clamp(0, SCORE_LIMIT >> 20);
        (stranded * STRANDED_EIGHTHS + surplus * SURPLUS_EIGHTHS) * (ONE / 8)
    }
}
