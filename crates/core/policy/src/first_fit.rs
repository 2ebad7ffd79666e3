//! `first-fit`: the first node with room, in index order; and `random`: any node with room.

use dovetail_model::{HeldDevices, NodeId};

use crate::random::RandomSequence;
use crate::{Pick, Policy, Term, default_devices};
use dovetail_state::State;
use dovetail_state::device::need::InternedRequest;
use dovetail_state::shapes::ShapeId;

/// The first node with room.
#[derive(Debug, Default)]
pub struct FirstFit;

impl Policy for FirstFit {
    fn name(&self) -> &'static str {
        "first-fit"
    }

    fn score(&mut self, _: &mut State, _: ShapeId, _: NodeId) -> i64 {
        0
    }

    fn terms(&mut self, _: &mut State, _: ShapeId, _: NodeId) -> Vec<Term> {
        Vec::new()
    }
}

/// Any node with room, and any device with room for a share.
#[derive(Debug)]
pub(crate) struct Random {
    seed: u64,
    devices: RandomSequence,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, devices: RandomSequence::default() }
    }
}

impl Policy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn pick(&self) -> Pick {
        Pick::Random { seed: self.seed }
    }

    fn score(&mut self, _: &mut State, _: ShapeId, _: NodeId) -> i64 {
        0
    }

    fn terms(&mut self, _: &mut State, _: ShapeId, _: NodeId) -> Vec<Term> {
        Vec::new()
    }

    fn draws(&self) -> u64 {
        self.devices.drawn
    }

    fn set_draws(&mut self, draws: u64) {
        self.devices.drawn = draws;
    }

    fn devices(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> HeldDevices {
        let need = state.devices.need(state.shapes.get(shape).demand.need);
        if !matches!(need.request, InternedRequest::Share { .. }) {
            return default_devices(state, shape, node);
        }
        let usable = state.nodes.cold(node).cells.iter().enumerate().filter_map(|(index, cell)| {
            let cell = (*cell != dovetail_state::device::choice::LOST)
                .then(|| state.devices.cell(*cell))?;
            let kind = state.devices.kind(cell.kind);
            let fits = need.accepts_kind(kind) && need.fits_cell(cell, kind);
            fits.then(|| (index as u16, need.amount(kind)))
        });
        let mut usable: Vec<_> = usable.collect();
        // Another stream than the picks of nodes, or device and node would be correlated.
        let place = self.devices.below(!self.seed, usable.len());
        vec![usable.swap_remove(place)]
    }
}
