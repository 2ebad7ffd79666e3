//! Independent judges of the engine's invariants. They share no code with the engine and decide
//! nothing.
//!
//! | what | where |
//! |---|---|
//! | [`Judge`] | keeps books of its own, is told every event and judges every plan on what it touches |
//! | [`check_plan`] | one plan between two snapshots, everything from scratch |
//! | [`check_claims`] | the devices that claims are given, added up again |
//! | [`Watch`] | a judge beside a replay, which adds everything up again now and then |
//! | [`judge_device_time`] | that what devices are said to have been is the whole of them, at every moment |
//! | [`Violation`] | what an action of ours did that it must not do |
//!
//! What came from outside is never a violation: a node may hold more than it has after its
//! allocatable fell, a device was lost or a foreign pod came. A violation is what a decision made
//! worse: putting a pod where it does not fit, starting half a gang, losing or inventing a holding.

mod audit;
mod booked;
mod claims;
mod device_time;
mod devices;
mod gang;
mod judge;
mod limits;
mod node_books;
mod placing;
mod preempting;
mod reclaim;
mod reserved;
mod rules;
mod violation;
mod watch;
mod world;

pub use claims::{ClaimViolation, check_claims};
pub use device_time::{DeviceLife, DevicePiece, DeviceTimeViolation, judge_device_time};
pub use judge::{Judge, check_plan};
pub use violation::{DeviceProblem, VictimProblem, Violation};
pub use watch::{Violations, Watch};
