//! `fgd`: least growth of expected fragmentation, with the published integer scores and ties.
//!
//! Score = trunc(100 · sigmoid((F before − F after) / 1000)), 0 to 100. One step near the middle is
//! about 40 milli-GPU; the coarse steps and the fixed order of ties are part of the published
//! results.

use dovetail_model::{HeldDevices, NodeId};
use rustc_hash::FxHashMap;

use crate::fragmentation::Fragmentation;
use crate::share_choice::{options_after, share_on_best};
use crate::target::TargetPod;
use crate::{Policy, Term};
use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

/// The policy with a fixed target mix.
#[derive(Debug)]
pub(crate) struct Fgd {
    scorer: FgdScorer,
}

impl Fgd {
    pub(crate) fn new(state: &mut State, mix: &[TargetPod], remember: bool) -> Self {
        Self { scorer: FgdScorer::new(Fragmentation::new(state, mix, remember), remember) }
    }
}

impl Policy for Fgd {
    fn name(&self) -> &'static str {
        "fgd"
    }

    #[inline]
    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        self.scorer.score(state, shape, node)
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        let points = self.score(state, shape, node);
        vec![Term { name: "fragmentation", points }]
    }

    fn devices(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> HeldDevices {
        self.scorer.devices(state, shape, node)
    }
}

/// The published score over any fragmentation measure.
#[derive(Debug)]
pub(crate) struct FgdScorer {
    pub(crate) fragmentation: Fragmentation,
    /// (need and devices, CPU rank before and after) → score.
    memo: FxHashMap<(u64, u32), i64>,
    remember: bool,
}

impl FgdScorer {
    pub(crate) fn new(fragmentation: Fragmentation, remember: bool) -> Self {
        Self { fragmentation, memo: FxHashMap::default(), remember }
    }

    #[inline]
    pub(crate) fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        let hot = *state.nodes.hot(node);
        let demand = &state.shapes.get(shape).demand;
        let need = demand.need;
        let before = self.fragmentation.cpu_rank(hot.cpu_left_milli);
        let after = self.fragmentation.cpu_rank(hot.cpu_left_milli - demand.amounts.cpu_milli);
        let ranks = u32::from(before) << 16 | u32::from(after);
        let key = (u64::from(need) << 32 | u64::from(hot.set), ranks);
        if self.remember
            && let Some(known) = self.memo.get(&key)
        {
            return *known;
        }
        let score = self.compute(state, need, hot.set, before, after);
        if self.remember {
            self.memo.insert(key, score);
        }
        score
    }

    #[cold]
    fn compute(&mut self, state: &mut State, need: u32, set: u32, before: u16, after: u16) -> i64 {
        let now = self.fragmentation.of(state, set, before);
        let options = options_after(state, need, set);
        options
            .into_iter()
            .map(|option| integer_score(now - self.fragmentation.of(state, option.set, after)))
            .max()
            .unwrap_or(0)
    }

    /// A share goes to the first device with the highest integer score, anything else by the common
    /// rule.
    pub(crate) fn devices(
        &mut self,
        state: &mut State,
        shape: ShapeId,
        node: NodeId,
    ) -> HeldDevices {
        let hot = *state.nodes.hot(node);
        let cpu_milli = state.shapes.get(shape).demand.amounts.cpu_milli;
        let before = self.fragmentation.cpu_rank(hot.cpu_left_milli);
        let after = self.fragmentation.cpu_rank(hot.cpu_left_milli - cpu_milli);
        let now = self.fragmentation.of(state, hot.set, before);
        share_on_best(state, shape, node, |state, option| {
            integer_score(now - self.fragmentation.of(state, option.set, after))
        })
    }
}

/// The score of a fall in fragmentation by `fall_milli`.
fn integer_score(fall_milli: f64) -> i64 {
    let sigmoid = 1.0 / (1.0 + libm::exp(-(fall_milli / 1000.0)));
    (100.0 * sigmoid) as i64
}
