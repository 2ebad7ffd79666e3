//! What people are told about pods: why no node takes one, in the words of kube-scheduler, and what those
//! wait for that have to.

mod reason;
mod waiting;

pub use reason::{plugin, reason, unschedulable_message};
pub use waiting::{Waiting, waiting};
