//! The kubelets of all nodes as a state machine: pods and nodes in, writes and delays out.
//!
//! Bound pods are admitted in the order of their binding by the kubelet's rules for pod slots,
//! processors, memory and extended resources; one that does not fit fails with the kubelet's reason
//! and message. Admitted pods run, end after a set time, and are taken away after a set time when
//! somebody deletes them. Nodes come and go as their objects do.
//!
//! Restarted containers, probes, volumes, leases and conditions of nodes are not played.

mod admission;
mod nodes;
mod options;
mod quantity;
mod requests;
mod seat;
mod status;

pub use admission::Rejection;
pub use nodes::{Kubelets, Wish};
pub use options::{EXIT_CODE, KubeletOptions, RUN_MS};
pub use requests::{Amounts, amounts, requests_of};
pub use seat::{KubeletWrite, PodTransition};
pub use status::{Exit, Identity};
