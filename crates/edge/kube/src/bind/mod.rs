//! Sending decided binds, and learning what became of each.
//!
//! A [`Binder`] takes decisions, keeps a bounded number of requests in flight, and reports exactly
//! one [`Outcome`] per decision. It repeats no write: what failed goes back to whoever decides.
//! Where the answer leaves open whether the write took effect, the binder waits until the request
//! can no longer take effect, then looks at the pod. [`Orders`] stops pods, says
//! for which pods room is made, and for which nodes claims are to get their volumes.

mod answer;
mod ask;
mod binder;
mod mark;
mod nominate;
mod orders;
mod request;
mod step;
mod stop;
mod turns;

pub use answer::{Cause, Outcome};
pub use binder::{Binder, BinderSettings, Report};
pub use orders::{Order, OrderEnd, OrderReport, Orders};
pub use stop::{Stop, StopDecision};

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
