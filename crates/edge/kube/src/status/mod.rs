//! What people are told about pods: why no node takes one, in the words of kube-scheduler.

mod reason;

pub use reason::{plugin, reason, unschedulable_message};
