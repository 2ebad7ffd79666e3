//! Binds and orders as values, and what an answer to each means.
//!
//! Every decided [`Bind`] ends in exactly one [`Outcome`]. Where the answer leaves open whether the write took effect,
//! the [`Verdict`] says when to look at the pod. An [`Order`] stops a pod, says for which pod room is made, or for which
//! node a claim is to get its volume.

mod answer;
mod order;
mod report;
mod step;
mod stop;

pub use answer::{Cause, Outcome, Verdict, of_bind, of_pod};
pub use order::{Order, OrderEnd, OrderReport};
pub use report::Report;
pub use step::{Next, Step, judge};
pub use stop::{Kept, Stop, StopDecision, Told};

pub use dovetail_cluster::world::DECISION;

/// One decided bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Names the decision towards the caller; returned with the outcome.
    pub decision: u64,
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// UID of the pod: another pod of the same name is never bound.
    pub uid: String,
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
