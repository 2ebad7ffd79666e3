//! `dovetail`, the default: least expected waste under a learnt mix.
//!
//! score = waste(node now) − waste(node with the pod) − opening − what is left − scarcity, where
//! waste is a potential of the node's own state: depth fragmentation ([`super::depth`]) plus
//! imbalance ([`super::balance`]). Imbalance and opening ([`super::opening`]) count as far as
//! nothing ends, what is left ([`super::residual`]) as far as jobs come and go; scarcity is the
//! price of the model ([`super::scarcity`]). Before anything is learnt the policy is `best-fit`. A
//! MIG slice goes where it takes the least room from other slices ([`super::slice_room`]); nothing
//! else of its node counts.
//!
//! All terms are integers in milli-GPU · 2^20. docs/reference/benchmarks/default-policy.md says on
//! which traces the weights were chosen.

use std::collections::BTreeMap;

use dovetail_model::{HeldDevices, NodeId};
use rustc_hash::FxHashMap;

use crate::balance::Balance;
use crate::best_fit::BestFit;
use crate::depth::{DepthFragmentation, Left, Steady};
use crate::learn::in_use::InUse;
use crate::learn::{Learnt, ONE};
use crate::opening::Opening;
use crate::other_resources::PLENTY;
use crate::residual::Residual;
use crate::share_choice::{After, options_after, share_on_best};
use crate::slice_room::SliceRoom;
use crate::weights::Weights;
use crate::{Policy, SCORE_LIMIT, Term, default_devices, scarcity};
use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

/// Waste that a point of a pod's preferences makes up for, in milli-GPU.
const POINT_MILLI: i64 = 5;
/// What a point of `best-fit` is worth before anything is learnt, in milli-GPU.
const BEST_FIT_MILLI: i64 = 160;

#[derive(Debug)]
pub(crate) struct Dovetail {
    learnt: Learnt,
    published: PolicyVersion,
    in_use: InUse,
    weights: Weights,
    remember: bool,
}

/// What scores read besides the state.
#[derive(Debug)]
struct PolicyVersion {
    /// Nothing is learnt yet.
    is_first: bool,
    depth: DepthFragmentation,
    balance: Balance,
    opening: Opening,
    residual: Residual,
    slices: SliceRoom,
    /// Price of a whole GPU by interned model.
    prices: FxHashMap<u32, i64>,
    gains: Gains,
    recent: Recent,
    /// How often the prices changed since the version of the mix.
    repriced: u32,
}

struct ScoreParts {
    /// Fall in depth fragmentation less scarcity.
    gain: i64,
    /// Fall in imbalance.
    balance: i64,
    opening: i64,
    left: i64,
}

impl ScoreParts {
    fn total(&self) -> i64 {
        let sum = self.gain + self.balance - self.opening - self.left;
        sum.clamp(1 - SCORE_LIMIT, SCORE_LIMIT - 1)
    }
}

/// All that a score reads of a shape and a node under one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ScoreInputs {
    demand: u32,
    set: u32,
    cpu_left_milli: i64,
    memory_left_bytes: i64,
    cpu_allocatable_milli: i64,
    is_open: bool,
}

/// The last few scores: many nodes are alike, above all empty ones. Small, so that a look costs
/// nothing.
#[derive(Debug)]
struct Recent {
    scores: Vec<(ScoreInputs, i64)>,
}

const RECENT_BITS: u32 = 8;

impl Default for Recent {
    fn default() -> Self {
        let nothing = ScoreInputs { demand: u32::MAX, ..ScoreInputs::default() };
        Self { scores: vec![(nothing, 0); 1 << RECENT_BITS] }
    }
}

impl Recent {
    #[inline]
    fn of(&mut self, seen: &ScoreInputs) -> &mut (ScoreInputs, i64) {
        let amounts = (seen.cpu_left_milli as u64) << 20 ^ (seen.memory_left_bytes as u64);
        let mixed = u64::from(seen.set) ^ amounts;
        let place = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - RECENT_BITS);
        &mut self.scores[place as usize]
    }
}

/// The latest gains on nodes with plenty of other resources, at one look each.
#[derive(Debug)]
struct Gains {
    latest: Vec<(GainKey, i64)>,
}

/// The need, and the node before and after; the devices before say what they are after. Last, which
/// prices were in force.
type GainKey = (u32, Steady, u32, u32);

/// Places, a power of two.
const LATEST_BITS: u32 = 16;

impl Gains {
    fn new(remember: bool) -> Self {
        let nothing = (u32::MAX, Steady { set: 0, cpu_step: 0, memory_step: 0 }, 0, 0);
        Self { latest: vec![(nothing, 0); if remember { 1 << LATEST_BITS } else { 0 }] }
    }

    #[inline]
    fn place(key: &GainKey) -> usize {
        let (need, before, after, _) = key;
        let steps = u64::from(before.cpu_step) << 16 | u64::from(before.memory_step);
        let mixed = u64::from(*need) ^ u64::from(before.set).rotate_left(32);
        let mixed = mixed ^ (steps << 13) ^ u64::from(*after).rotate_left(40);
        (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - LATEST_BITS)) as usize
    }
}

impl Dovetail {
    pub(crate) fn new(
        state: &mut State,
        learnt: Option<&Learnt>,
        weights: Weights,
        remember: bool,
    ) -> Self {
        let learnt = learnt.cloned().unwrap_or_default();
        let published = PolicyVersion::of(state, &learnt, &weights, remember);
        Self { learnt, published, in_use: InUse::default(), weights, remember }
    }

    #[inline]
    fn parts(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> ScoreParts {
        let version = &mut self.published;
        if SliceRoom::judges(state, shape) {
            let gain = -version.slices.loss(state, shape, node);
            return ScoreParts { gain, balance: 0, opening: 0, left: 0 };
        }
        if version.is_first {
            let left = -BestFit.score(state, shape, node).clamp(-BEST_FIT_MOST, BEST_FIT_MOST);
            return ScoreParts {
                gain: 0,
                balance: 0,
                opening: 0,
                left: left * BEST_FIT_MILLI * ONE,
            };
        }
        let hot = *state.nodes.hot(node);
        let info = state.shapes.get(shape);
        let (need, gpu_milli) = (info.demand.need, info.gpu_milli);
        let amounts = &info.demand.amounts;
        let cpu_after = hot.cpu_left_milli - amounts.cpu_milli;
        let memory_after = hot.memory_left_bytes - amounts.memory_bytes;
        let left_now = version.depth.left(state, node, None);
        let left_after = version.depth.left(state, node, Some(amounts));
        let idle = state.devices.facts(hot.set).gpu_left_milli;
        let before = version.balance.of_node(idle, hot.cpu_left_milli);
        let idle_after = idle - gpu_milli;
        ScoreParts {
            gain: version.gain(state, need, left_now, left_after),
            balance: before - version.balance.of_node(idle_after, cpu_after),
            opening: version.opening.of_node(state, &hot),
            left: version.residual.of_node(idle_after, memory_after),
        }
    }
}

/// Beyond this a score of `best-fit` is not told apart.
const BEST_FIT_MOST: i64 = (SCORE_LIMIT - 1) / (BEST_FIT_MILLI * ONE);

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
        if !self.published.depth.is_plenty(hot.slots_left) {
            return self.parts(state, shape, node).total();
        }
        let seen = ScoreInputs {
            demand: state.shapes.get(shape).demand_id,
            set: hot.set,
            cpu_left_milli: hot.cpu_left_milli,
            memory_left_bytes: hot.memory_left_bytes,
            cpu_allocatable_milli: hot.cpu_allocatable_milli,
            is_open: hot.pods_of_jobs > 0,
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
            Term { name: "cpu_gpu_balance", points: parts.balance },
            Term { name: "opening", points: -parts.opening },
            Term { name: "left", points: -parts.left },
            Term { name: "scarcity", points: -scarcity },
        ]
    }

    fn devices(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> HeldDevices {
        if SliceRoom::judges(state, shape) {
            return self.published.slices.devices(state, shape, node);
        }
        if self.published.is_first {
            return default_devices(state, shape, node);
        }
        let version = &mut self.published;
        let after = version.left_after(state, shape, node);
        share_on_best(state, shape, node, |state, option| version.value(state, after, &option))
    }

    fn observe_arrival(&mut self, state: &State, shape: ShapeId, pods: u32) {
        self.learnt.observe(state, shape, pods);
    }

    fn observe_end(&mut self, state: &State, shape: ShapeId, ran_ms: u64) {
        self.learnt.observe_end(state, shape, ran_ms);
    }

    fn publish(&mut self, state: &mut State) -> bool {
        let has_new_mix = self.learnt.publish(state);
        let has_new_use = self.learnt.publish_use(&mut self.in_use, state);
        if has_new_mix {
            self.published = PolicyVersion::of(state, &self.learnt, &self.weights, self.remember);
        } else if has_new_use {
            self.published.reprice(state, &self.learnt, &self.weights);
        }
        has_new_mix || has_new_use
    }

    fn published_values(&self) -> Vec<(String, i64)> {
        self.learnt.published_values()
    }

    fn learnt(&self) -> Option<&Learnt> {
        Some(&self.learnt)
    }
}

impl PolicyVersion {
    fn of(state: &mut State, learnt: &Learnt, weights: &Weights, remember: bool) -> Self {
        Self {
            is_first: learnt.version == 0,
            prices: interned(state, &scarcity::prices(learnt, weights.scarcity)),
            depth: DepthFragmentation::new(state, &learnt.expected_kinds(weights), remember),
            balance: Balance::of(learnt, weights.balance),
            opening: Opening::of(learnt, weights.opening),
            residual: Residual::of(learnt, weights.left),
            slices: SliceRoom::of(learnt, remember),
            gains: Gains::new(remember),
            recent: Recent::default(),
            repriced: 0,
        }
    }

    /// Takes over prices under the same mix.
    fn reprice(&mut self, state: &mut State, learnt: &Learnt, weights: &Weights) {
        self.prices = interned(state, &scarcity::prices(learnt, weights.scarcity));
        self.repriced += 1;
        self.recent = Recent::default();
    }

    /// Fall in depth fragmentation less scarcity, for the best choice of devices.
    #[inline]
    fn gain(&mut self, state: &mut State, need: u32, before: Left, after: Left) -> i64 {
        if before.others != PLENTY || after.others != PLENTY {
            return self.computed_gain(state, need, before, after);
        }
        let Steady { cpu_step, memory_step, .. } = after.steady;
        let after_steps = u32::from(cpu_step) << 16 | u32::from(memory_step);
        let key = (need, before.steady, after_steps, self.repriced);
        let place = Gains::place(&key);
        if let Some(known) = self.gains.latest.get(place)
            && known.0 == key
        {
            return known.1;
        }
        let gain = self.computed_gain(state, need, before, after);
        if let Some(latest) = self.gains.latest.get_mut(place) {
            *latest = (key, gain);
        }
        gain
    }

    fn computed_gain(&mut self, state: &mut State, need: u32, before: Left, after: Left) -> i64 {
        let now = self.depth.of(state, before);
        let options = options_after(state, need, before.steady.set);
        let best = options.into_iter().map(|option| self.value(state, after, &option)).max();
        best.map_or(0, |best| now + best)
    }

    /// A node after a pod of the shape took its amounts; its devices are as they are.
    fn left_after(&mut self, state: &State, shape: ShapeId, node: NodeId) -> Left {
        self.depth.left(state, node, Some(&state.shapes.get(shape).demand.amounts))
    }

    /// What choosing these devices is worth, on a node left with this CPU and memory.
    #[inline]
    fn value(&mut self, state: &State, after: Left, option: &After) -> i64 {
        let steady = Steady { set: option.set, ..after.steady };
        -self.depth.of(state, Left { steady, ..after }) - self.price(option)
    }

    /// Scarcity of the devices that an option takes.
    fn price(&self, option: &After) -> i64 {
        let of = |(model, milli): &(u32, i64)| {
            self.prices.get(model).copied().unwrap_or(0) * milli / 1000
        };
        option.taken.iter().map(of).sum()
    }

    fn scarcity_of_best(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        if self.is_first || SliceRoom::judges(state, shape) {
            return 0;
        }
        let after = self.left_after(state, shape, node);
        let need = state.shapes.get(shape).demand.need;
        let options = options_after(state, need, after.steady.set);
        let best = options.into_iter().max_by_key(|option| self.value(state, after, option));
        best.map_or(0, |option| self.price(&option))
    }
}

/// Prices by the number of the model.
fn interned(state: &mut State, prices: &BTreeMap<String, i64>) -> FxHashMap<u32, i64> {
    prices.iter().map(|(model, price)| (state.names.models.intern(model).0, *price)).collect()
}
