//! Shapes: equal requirements, known by number.

use std::sync::Arc;

use dovetail_model::{Charge, Requirement, RuleKind};
use smallvec::SmallVec;

use crate::cause::Cause;
use crate::holdings::Amounts;
use crate::intern::Interner;
use crate::preferences::Liking;

/// Number of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeId(pub u32);

impl ShapeId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A requirement with everything interned.
#[derive(Clone, Debug)]
pub struct Shape {
    pub requirement: Arc<Requirement>,
    /// What decides where it fits; shapes that agree in it share an index.
    pub demand: Demand,
    pub demand_id: u32,
    /// Number of the images it prefers to find; `None` if it names none.
    pub images: Option<u32>,
    /// The same requirement without a wish for images; its own number if it has none.
    pub imageless: ShapeId,
    pub gpu_milli: i64,
    /// What one such pod counts for its queue.
    pub charge: Charge,
    pub counts_into: SmallVec<[u32; 2]>,
}

/// What decides on which nodes a pod fits, and how well, images apart: who differs only in the
/// images it names shares everything as long as no node that has them is preferred for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Demand {
    pub amounts: Amounts,
    pub need: u32,
    pub mask: u32,
    /// In the order in which they are looked at.
    pub rules: SmallVec<[Rule; 1]>,
    /// Interned volumes, ascending.
    pub attachments: SmallVec<[u32; 2]>,
    /// What makes one node better than another.
    pub liking: Liking,
}

/// A [`dovetail_model::CounterRule`] with its counter interned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    pub counter: u32,
    pub kind: RuleKind,
    pub cause: Cause,
    /// How often the counter counts the pod itself.
    pub counts_itself: u32,
}

/// Requirements that have numbers.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    pub(crate) numbers: Interner<Arc<Requirement>>,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) demands: Interner<Demand>,
}

impl Demand {
    /// Whether amounts, devices and the node itself are all it asks for.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.rules.is_empty() && self.attachments.is_empty()
    }
}

impl Shapes {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.shapes.len()
    }

    /// The shape behind a number.
    #[inline]
    pub fn get(&self, shape: ShapeId) -> &Shape {
        &self.shapes[shape.index()]
    }
}
