//! Why here, why not, and what would help.

pub mod decision;
pub mod relax;

pub use decision::{Alternative, DecisionRecord};
pub use relax::{Relaxation, Waiting};
