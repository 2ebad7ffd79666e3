//! Binds as values, what an answer to one means, and what follows from it.
//!
//! Every decided [`Bind`] ends in exactly one [`BindOutcome`]. It is sent once: what failed goes
//! back to the scheduler. Where the answer leaves open whether the write took effect, the
//! [`BindVerdict`] says when to read the pod.

mod answer;
mod binds;
mod body;
mod report;

pub use answer::{BindOutcome, BindVerdict, Cause, of_bind, of_pod};
pub(crate) use binds::Binds;
pub use report::BindReport;

pub use dovetail_cluster::world::{Bind, DECISION};

/// Annotation with the epoch, written by the bind itself.
pub const EPOCH: &str = "dovetail.dev/epoch";
