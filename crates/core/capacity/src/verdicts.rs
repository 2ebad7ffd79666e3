//! What keeps each waiting shape off each free piece, asked of the engine and remembered.
//!
//! A taint or another type explains a piece only where nothing else is in the way: the shape is
//! asked about again, as one that tolerates every taint and takes any type.
//!
//! An answer for a node holds until the node changes; one for a device state holds forever. Answers
//! are kept per shape that waits, within [`MAX_KEPT`]; beyond that they are asked anew each time.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::requirement::{ConditionCause, Toleration};
use dovetail_model::{FreeCause, NodeId, Requirement};
use dovetail_plan::engine::probe::PodProbe;
use dovetail_plan::{Engine, ShapeId};

use crate::cause::{CAUSES, of_obstacle};
use crate::survey::FreeDevices;

/// Node answers kept, 8 bytes each.
const MAX_KEPT: usize = 1 << 22;

/// The shape could use the piece: stands behind every cause.
pub(crate) const FITS: u8 = CAUSES as u8;

/// The shape could not use the piece whatever its type and the taints of its node were: it does not
/// explain the piece.
pub(crate) const NO_DEMAND: u8 = FITS + 1;

/// Numbers of answers.
pub(crate) const ANSWERS: usize = NO_DEMAND as usize + 1;

/// Answers that hold only where nothing but these is in the way.
const WITH_NOTHING_ELSE: [u8; 2] = [FreeCause::Taint as u8, FreeCause::TypeMismatch as u8];

/// Whether an answer holds only where nothing but a taint or the type is in the way.
pub(crate) fn is_of_kind(answer: u8) -> bool {
    WITH_NOTHING_ELSE.contains(&answer)
}

const UNKNOWN: u8 = u8::MAX;

/// A piece with its node and the node's last change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenPiece {
    pub(crate) node: NodeId,
    /// Differs after every change of the node; never 0.
    pub(crate) stamp: u64,
    pub(crate) piece: FreeDevices,
}

/// Answers by shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts {
    columns: BTreeMap<ShapeId, VerdictColumn>,
    round: u64,
}

#[derive(Clone, Debug)]
struct VerdictColumn {
    probe: PodProbe,
    /// Per slot: stamp of the node × 256 + answer.
    by_node: Vec<u64>,
    /// Per number of a device state.
    by_device: Vec<u8>,
    /// The shape that takes any kind of node, once it was asked for.
    of_any_kind: Option<ShapeId>,
    last_use: u64,
}

impl Verdicts {
    /// Begins a round of questions: shapes not asked for since the last one may be forgotten.
    pub(crate) fn begin_round(&mut self) {
        self.round += 1;
    }

    /// Per piece the first cause, as its number, that keeps a shape with this requirement off it;
    /// [`FITS`] if none does. A piece that it could not use whatever its type and the taints of its
    /// node were has none of the numbers of causes.
    pub(crate) fn row(
        &mut self,
        engine: &mut Engine,
        (shape, requirement): (ShapeId, &Requirement),
        pieces: &[OpenPiece],
    ) -> Vec<u8> {
        let mut row = self.first_obstacles(engine, shape, pieces);
        if row.iter().any(|answer| is_of_kind(*answer)) {
            let any_kind = self.of_any_kind(engine, shape, requirement);
            let otherwise = self.first_obstacles(engine, any_kind, pieces);
            for (answer, otherwise) in row.iter_mut().zip(otherwise) {
                // A device or a volume that cannot be used there in any way stays what it is.
                if is_of_kind(*answer) && otherwise != FITS && !is_of_kind(otherwise) {
                    *answer = NO_DEMAND;
                }
            }
        }
        row
    }

    fn first_obstacles(
        &mut self,
        engine: &mut Engine,
        shape: ShapeId,
        pieces: &[OpenPiece],
    ) -> Vec<u8> {
        let mut column = self.columns.remove(&shape).unwrap_or_else(|| VerdictColumn {
            probe: PodProbe::new(engine, shape),
            by_node: Vec::new(),
            by_device: Vec::new(),
            of_any_kind: None,
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

    fn of_any_kind(
        &mut self,
        engine: &mut Engine,
        shape: ShapeId,
        requirement: &Requirement,
    ) -> ShapeId {
        let mut kept = self.columns.get_mut(&shape);
        if let Some(known) = kept.as_ref().and_then(|column| column.of_any_kind) {
            return known;
        }
        let any_kind = engine.ask().shape_of(&Arc::new(of_any_kind(requirement)));
        if let Some(column) = &mut kept {
            column.of_any_kind = Some(any_kind);
        }
        any_kind
    }

    fn keep(&mut self, shape: ShapeId, column: VerdictColumn, slots: usize) {
        if (self.columns.len() + 1) * slots > MAX_KEPT {
            let round = self.round;
            self.columns.retain(|_, column| column.last_use == round);
        }
        if (self.columns.len() + 1) * slots <= MAX_KEPT {
            self.columns.insert(shape, column);
        }
    }
}

impl VerdictColumn {
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

/// The same without what picks a kind of node: taints, and for types models, memory, and the names
/// and labels of nodes.
fn of_any_kind(requirement: &Requirement) -> Requirement {
    let mut any = requirement.clone();
    any.gpu_models.clear();
    any.min_device_memory_bytes = 0;
    any.node_names.clear();
    any.tolerations = vec![Toleration { any_value: true, ..Toleration::default() }];
    any.node_conditions.retain(|condition| condition.cause != ConditionCause::NodeAffinity);
    any
}

fn number(cause: Option<FreeCause>) -> u8 {
    cause.map_or(FITS, |cause| cause as u8)
}
