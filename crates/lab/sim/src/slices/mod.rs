//! The `slices` protocol: pods come for MIG slices of one GPU model, run and end. A pod that fits
//! nowhere when it comes is rejected: there is no queue.
//!
//! Arrivals are Poisson, run times exponential with a mean of one hour. The load is the compute
//! slices asked for at a time over those that the GPUs have. The first quarter of the requests
//! fills the cluster and counts for nothing.

mod by_engine;
mod by_rule;
mod mix;
mod run;
mod stream;

pub use by_engine::ByEngine;
pub use by_rule::{ByRule, RULES};
pub use mix::{MIXES, Mix};
pub use run::{Moves, Places, SlicePosition, SlicesError, SlicesRun, run_slices};
pub use stream::{SliceRequest, SlicesWorld};
