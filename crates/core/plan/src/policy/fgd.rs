//! `fgd`: least growth of expected fragmentation, with the published integer scores and ties.
//!
//! Score = trunc(100 · sigmoid((F before − F after) / 1000)), 0 to 100. One step near the middle is about
//! 40 milli-GPU; the coarse steps and the fixed order of ties are part of the published results.

use dovetail_model::{HeldDevices, NodeId};
use rustc_hash::FxHashMap;

use crate::device::need::{DeviceNeed, Request};
use crate::policy::fragmentation::Fragmentation;
use crate::policy::target::TargetPod;
use crate::policy::{Policy, Term, default_devices};
use crate::state::State;
use crate::state::shapes::ShapeId;

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
    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i32 {
        self.scorer.score(state, shape, node)
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        let points = i64::from(self.score(state, shape, node));
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
    /// (need, devices, CPU rank before, after) → score.
    memo: FxHashMap<(u32, u32, u16, u16), i32>,
    remember: bool,
}

impl FgdScorer {
    pub(crate) fn new(fragmentation: Fragmentation, remember: bool) -> Self {
        Self { fragmentation, memo: FxHashMap::default(), remember }
    }

    #[inline]
    pub(crate) fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i32 {
        let hot = *state.nodes.hot(node);
        let demand = &state.shapes.get(shape).demand;
        let need = demand.need;
        let before = self.fragmentation.cpu_rank(hot.cpu_left_milli);
        let after = self.fragmentation.cpu_rank(hot.cpu_left_milli - demand.amounts.cpu_milli);
        let key = (need, hot.set, before, after);
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
    fn compute(&mut self, state: &mut State, need: u32, set: u32, before: u16, after: u16) -> i32 {
        let now = self.fragmentation.of(state, set, before);
        let sets_after = sets_after(state, need, set);
        sets_after
            .into_iter()
            .map(|set| integer_score(now - self.fragmentation.of(state, set, after)))
            .max()
            .unwrap_or(0)
    }

    /// A share goes to the first device with the highest integer score, anything else by the common rule.
    pub(crate) fn devices(
        &mut self,
        state: &mut State,
        shape: ShapeId,
        node: NodeId,
    ) -> HeldDevices {
        let hot = *state.nodes.hot(node);
        let demand = state.shapes.get(shape).demand.clone();
        let need = state.devices.need(demand.need).clone();
        if !matches!(need.request, Request::Share { .. }) {
            return default_devices(state, shape, node);
        }
        let before = self.fragmentation.cpu_rank(hot.cpu_left_milli);
        let after = self.fragmentation.cpu_rank(hot.cpu_left_milli - demand.amounts.cpu_milli);
        let now = self.fragmentation.of(state, hot.set, before);
        let mut best: Option<(i32, u16)> = None;
        for (index, cell) in state.nodes.cold(node).cells.clone().into_iter().enumerate() {
            let Some(set) = set_with_share(state, &need, hot.set, cell) else { continue };
            let score = integer_score(now - self.fragmentation.of(state, set, after));
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, index as u16));
            }
        }
        let (_, index) = best.expect("a share is chosen on a node that fits");
        let cell = state.nodes.cold(node).cells[usize::from(index)];
        let kind = state.devices.kind(state.devices.cell(cell).kind);
        vec![(index, need.amount(kind))]
    }
}

/// The score of a fall in fragmentation by `fall_milli`.
fn integer_score(fall_milli: f64) -> i32 {
    let sigmoid = 1.0 / (1.0 + libm::exp(-(fall_milli / 1000.0)));
    (100.0 * sigmoid) as i32
}

/// The device multisets that placing one pod can lead to: one per distinct device for a share, one else.
pub(crate) fn sets_after(state: &mut State, need: u32, set: u32) -> Vec<u32> {
    let need = state.devices.need(need).clone();
    let cells = state.devices.set(set).clone();
    if let Request::Share { .. } = need.request {
        let mut distinct = cells.clone();
        distinct.dedup();
        return distinct
            .into_iter()
            .filter_map(|cell| set_with_share(state, &need, set, cell))
            .collect();
    }
    let chosen = crate::device::choice::choose(&need, &cells, &state.devices);
    let mut after = set;
    for (index, amount) in chosen.expect("scored where it fits") {
        let old = cells[usize::from(index)];
        let new = state.devices.cell_after_hold(old, &amount);
        after = state.devices.set_after(after, old, new);
    }
    vec![after]
}

/// The multiset after a share was taken from a device in the given state; `None` if it does not fit there.
pub(crate) fn set_with_share(
    state: &mut State,
    need: &DeviceNeed,
    set: u32,
    cell: u32,
) -> Option<u32> {
    if cell == crate::device::choice::LOST {
        return None;
    }
    let kind = state.devices.kind(state.devices.cell(cell).kind);
    if !need.accepts_kind(kind) || !need.fits_cell(state.devices.cell(cell), kind) {
        return None;
    }
    let amount = need.amount(kind);
    let new = state.devices.cell_after_hold(cell, &amount);
    Some(state.devices.set_after(set, cell, new))
}
