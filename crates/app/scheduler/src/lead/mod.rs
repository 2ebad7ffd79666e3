//! Keeps the lease of [`dovetail_control::lead`], or waits for it.
//!
//! The crate `kube-lease-manager` was looked at first. It compares the other holder's wall clock
//! with its own, tells only whether it leads and not until when, and counts no epochs for its user;
//! so it cannot give what [`Candidate`](dovetail_control::lead::Candidate) promises.

mod clock;
mod keeper;
mod leadership;

pub use clock::Clock;
pub use dovetail_control::lead::LeaseName;
pub use keeper::Keeper;
pub use leadership::{Alone, Leadership};
