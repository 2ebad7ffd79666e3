//! Questions about a cluster as it is, which `dovetail why`, `queue` and `top` answer; what another
//! scheduler did beside what this one would have done; recordings of live decisions.
//!
//! Each question reads the cluster once, lets the engine decide once, and writes nothing. So the
//! answer is the one that a scheduler of the same settings gives at this moment.

mod cluster;
pub mod comparison;
mod gang;
mod not_in_line;
pub mod queue;
pub mod recording;
mod reservation;
mod reserved;
mod start;
pub mod top;
mod turn;
pub mod why;

pub use cluster::ClusterSnapshot;
