//! What is free and why, at one moment and over time.
//!
//! [`what_is_free`] gives every milli-GPU of a cluster its place at one moment: unavailable,
//! allocated, or free by one [`FreeCause`](dovetail_model::FreeCause); `cause` says what each cause
//! means. [`UsageIntegral`] follows an engine through time and adds up GPU-time. The identity
//! installed = unavailable + allocated + free by cause holds exactly.
//!
//! | module | what |
//! |---|---|
//! | `cause` | what each cause means, and which obstacle it comes from |
//! | `tracker` | the account of one moment, kept up to date from the engine's change log |
//! | `states` | unavailable, allocated, free, of any quantity |
//! | `survey` | one node: devices, holders, free pieces |
//! | `weight` | full-GPU equivalents of shares, slices, replicas and counters |
//! | `demand` | what waits, and what keeps it from starting as a whole |
//! | `verdicts` | what keeps each waiting shape off each free piece |
//! | `assign` | finite demand given to free pieces |
//! | `integral`, `usage` | GPU-time by state, model, queue and cause |

mod assign;
mod cause;
mod demand;
mod integral;
mod states;
mod survey;
mod tracker;
mod usage;
mod verdicts;
mod weight;

pub use integral::{CauseJudgement, ClockError, UsageIntegral};
pub use states::{Imbalance, States};
pub use tracker::{FreePiece, FreeTracker, Picture, what_is_free};
pub use usage::{Usage, gpu_hours};
