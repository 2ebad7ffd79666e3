//! What keeps each waiting shape off each free piece, asked of the engine and remembered.
//!
//! An answer for a node holds until the node changes; one for a device state holds forever. Answers
//! are kept per shape that waits, within [`MAX_KEPT`]; beyond that they are asked anew each time.

use std::collections::BTreeMap;

use dovetail_model::{FreeCause, NodeId};
use dovetail_plan::engine::supply::PodProbe;
use dovetail_plan::{Engine, ShapeId};

use crate::cause::{CAUSES, of_obstacle};
use crate::survey::Piece;

/// Node answers kept, 8 bytes each.
const MAX_KEPT: usize = 1 << 22;

/// The shape could use the piece: stands behind every cause.
pub(crate) const FITS: u8 = CAUSES as u8;

const UNKNOWN: u8 = u8::MAX;

/// A piece with its node and the node's last change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenPiece {
    pub(crate) node: NodeId,
    /// Differs after every change of the node; never 0.
    pub(crate) stamp: u64,
    pub(crate) piece: Piece,
}

/// Answers by shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts {
    columns: BTreeMap<ShapeId, Column>,
    round: u64,
}

#[derive(Clone, Debug)]
struct Column {
    probe: PodProbe,
    /// Per slot: stamp of the node × 256 + answer.
    by_node: Vec<u64>,
    /// Per number of a device state.
    by_device: Vec<u8>,
    last_use: u64,
}

impl Verdicts {
    /// Begins a round of questions: shapes not asked for since the last one may be forgotten.
    pub(crate) fn begin_round(&mut self) {
        self.round += 1;
    }

    /// Per piece the first cause, as its number, that keeps the shape off it; [`FITS`] if none
    /// does.
    pub(crate) fn row(
        &mut self,
        engine: &mut Engine,
        shape: ShapeId,
        pieces: &[OpenPiece],
    ) -> Vec<u8> {
        let mut column = self.columns.remove(&shape).unwrap_or_else(|| Column {
            probe: PodProbe::new(engine, shape),
            by_node: Vec::new(),
            by_device: Vec::new(),
            last_use: 0,
        });
        column.last_use = self.round;
        if column.probe.refresh(engine) {
            column.by_node.clear();
        }
        let answer = |open: &OpenPiece| {
            let by_node = column.node_answer(engine, open);
            by_node.min(column.device_answer(engine, open.piece.device))
        };
        let row = pieces.iter().map(answer).collect();
        self.keep(shape, column, engine.supply().node_slots());
        row
    }

    fn keep(&mut self, shape: ShapeId, column: Column, slots: usize) {
        if (self.columns.len() + 1) * slots > MAX_KEPT {
            let round = self.round;
            self.columns.retain(|_, column| column.last_use == round);
        }
        if (self.columns.len() + 1) * slots <= MAX_KEPT {
            self.columns.insert(shape, column);
        }
    }
}

impl Column {
    fn node_answer(&mut self, engine: &mut Engine, open: &OpenPiece) -> u8 {
        let slot = open.node.index();
        if self.by_node.len() <= slot {
            self.by_node.resize(engine.supply().node_slots().max(slot + 1), 0);
        }
        let known = self.by_node[slot];
        if known >> 8 == open.stamp {
            return known as u8;
        }
        let answer = number(of_obstacle(self.probe.obstacle(engine, open.node)));
        self.by_node[slot] = open.stamp << 8 | u64::from(answer);
        answer
    }

    fn device_answer(&mut self, engine: &Engine, device: u32) -> u8 {
        let place = device as usize;
        if self.by_device.len() <= place {
            self.by_device.resize(place + 1, UNKNOWN);
        }
        if self.by_device[place] == UNKNOWN {
            let obstacle = self.probe.device_obstacle(engine, device);
            self.by_device[place] = number(of_obstacle(obstacle));
        }
        self.by_device[place]
    }
}

fn number(cause: Option<FreeCause>) -> u8 {
    cause.map_or(FITS, |cause| cause as u8)
}
