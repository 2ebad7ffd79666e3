//! Why here, why not, and what would help.

pub mod decision;
pub mod refusal;
pub mod relax;

pub use decision::{Alternative, DecisionRecord};
pub use refusal::Refusal;
pub use relax::{Relaxation, WaitingJob};
