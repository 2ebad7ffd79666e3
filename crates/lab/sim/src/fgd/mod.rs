//! The `fgd` protocol: pods arrive one at a time, none leaves, a pod that fits nowhere is dropped.
//!
//! The experiment of Weng et al. (USENIX ATC 2023): no time, no retries, no preemption. After every
//! arrival, allocation and fragmentation are noted against the GPU requested so far; [`curve`]
//! turns the notes into 131 figures as published.

pub mod curve;
mod prefixes;
mod run;

pub use prefixes::prefixes;
pub use run::{FgdRun, FgdWorld, run_fgd};
