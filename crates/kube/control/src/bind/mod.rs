//! Binds as values, what an answer to one means, and what follows from it.
//!
//! Every decided [`Bind`] ends in exactly one [`Outcome`]. It is sent once: what failed goes back
//! to the scheduler. Where the answer leaves open whether the write took effect, the [`Verdict`]
//! says when to read the pod.

mod answer;
mod binds;
mod body;
mod report;

pub use answer::{Cause, Outcome, Verdict, of_bind, of_pod};
pub(crate) use binds::Binds;
pub use report::Report;

pub use dovetail_cluster::world::DECISION;
use dovetail_cluster::world::PodKey;

/// One decided bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Names the decision towards the caller; returned with the outcome.
    pub decision: u64,
    /// The pod: another one of the same name is never bound.
    pub pod: PodKey,
    /// Node it shall run on.
    pub node: String,
    /// Epoch of the leadership in which it was decided.
    pub epoch: u64,
    /// Text that names the decision across processes, such as the gang's decision id; written into
    /// the pod.
    pub tag: String,
}

/// Annotation with the epoch, written by the bind itself.
pub const EPOCH: &str = "dovetail.dev/epoch";
