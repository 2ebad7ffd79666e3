//! The room that a MIG slice takes from the slices that are expected.
//!
//! Room of a GPU: Σ over profiles of weight × compute slices × how many would still fit. A profile
//! weighs its share of the slices that arrived plus an equal part of one, so that a profile that is
//! new, or rare, keeps room; before anything is learnt all weigh the same, which is the rule of
//! arXiv 2511.18906. A slice goes to the GPU and the start that lose the least room.

use std::collections::BTreeMap;

use dovetail_model::{HeldDevices, MigProfile, NodeId};
use rustc_hash::FxHashMap;

use crate::learn::{Learnt, ONE};
use dovetail_state::State;
use dovetail_state::device::choice::LOST;
use dovetail_state::device::need::InternedRequest;
use dovetail_state::device::slices::best_slice;
use dovetail_state::shapes::ShapeId;

/// Expected room under one mix of slices.
#[derive(Debug)]
pub(crate) struct SliceRoom {
    /// Shares of profiles, by name, in 2^-20; they sum to one, or there is none.
    shares: BTreeMap<String, i64>,
    /// What the best slice of a need costs on a set of devices.
    known: FxHashMap<(u32, u32), i64>,
    remember: bool,
}

impl SliceRoom {
    pub(crate) fn of(learnt: &Learnt, remember: bool) -> Self {
        Self { shares: learnt.slice_shares(), known: FxHashMap::default(), remember }
    }

    /// Whether pods of a shape take a slice.
    #[inline]
    pub(crate) fn judges(state: &State, shape: ShapeId) -> bool {
        let need = state.shapes.get(shape).demand.need;
        matches!(state.devices.need(need).request, InternedRequest::Slice { .. })
    }

    /// Room that the best slice costs on a node that can give one, in milli-GPU · 2^20.
    pub(crate) fn loss(&mut self, state: &State, shape: ShapeId, node: NodeId) -> i64 {
        let key = (state.shapes.get(shape).demand.need, state.nodes.hot(node).set);
        if let Some(loss) = self.known.get(&key) {
            return *loss;
        }
        let cells = state.devices.set(key.1);
        let loss = self.best(state, key.0, cells).map_or(0, |(loss, _)| loss);
        if self.remember {
            self.known.insert(key, loss);
        }
        loss
    }

    /// The slice that a pod of the shape gets on a node that can give one.
    pub(crate) fn devices(&self, state: &State, shape: ShapeId, node: NodeId) -> HeldDevices {
        let need = state.shapes.get(shape).demand.need;
        let best = self.best(state, need, &state.nodes.cold(node).cells);
        best.expect("devices are chosen on a node that fits").1
    }

    fn best(&self, state: &State, need: u32, cells: &[u32]) -> Option<(i64, HeldDevices)> {
        let table = &state.devices;
        let need = table.need(need);
        let InternedRequest::Slice { profile } = &need.request else { return None };
        let mut best: Option<(i64, HeldDevices)> = None;
        for (index, number) in cells.iter().enumerate() {
            // An equal device was looked at before, and the first wins.
            if *number == LOST || cells[..index].contains(number) {
                continue;
            }
            let cell = table.cell(*number);
            let kind = table.kind(cell.kind);
            if !need.accepts_kind(kind) {
                continue;
            }
            let Some(of) = kind.mig_table else { continue };
            let of = &table.mig_tables[usize::from(of)];
            let each = ONE / of.profiles.len().max(1) as i64;
            let weight = |profile: &MigProfile| self.share(profile) + each;
            let found = best_slice(profile, cell, kind, &table.mig_tables, weight);
            let Some((cost, amount)) = found else { continue };
            // All weights together are 2 (1 before anything is learnt): a whole GPU is 1,000 milli.
            let loss = cost * 1000 / (i64::from(of.compute_slices.max(1)) * 2);
            if best.as_ref().is_none_or(|(least, _)| loss < *least) {
                best = Some((loss, vec![(index as u16, amount)]));
            }
        }
        best
    }

    fn share(&self, profile: &MigProfile) -> i64 {
        self.shares.get(&profile.name).copied().unwrap_or(0)
    }
}
