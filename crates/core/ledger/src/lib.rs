//! What is free and why, how long, and what it costs.
//!
//! [`what_is_free`] gives every milli-GPU of a cluster its place at one moment: unavailable, allocated, or
//! free by one [`FreeCause`]; that module says what each cause means. [`UsageIntegral`] follows an engine
//! through time and adds up GPU-time; [`price`] turns that into money. The identity
//! installed = unavailable + allocated + free by cause holds exactly, in GPU-time and in money.
//!
//! | module | what |
//! |---|---|
//! | `cause` | the causes and their definitions |
//! | `tracker` | the account of one moment, kept up to date from the engine's change log |
//! | `states` | unavailable, allocated, free, of any quantity |
//! | `survey` | one node: devices, holders, free pieces |
//! | `weight` | full-GPU equivalents of shares, slices, replicas and counters |
//! | `demand` | what waits, and what keeps it from starting as a whole |
//! | `verdicts` | what keeps each waiting shape off each free piece |
//! | `assign` | finite demand given to free pieces |
//! | `integral`, `usage` | GPU-time by state, model, queue and cause |
//! | `price` | GPU-time in money |
//! | `idle_runs` | the method `sampled-idle-runs`: long runs of low activity, from samples alone |
//! | `proportion` | splitting without losing a unit |

mod assign;
mod cause;
mod demand;
mod idle_runs;
mod integral;
mod price;
mod proportion;
mod states;
mod survey;
mod tracker;
mod usage;
mod verdicts;
mod weight;

pub use cause::FreeCause;
pub use idle_runs::{ActivitySample, IdleRule, IdleRuns, IdleTime, idle_runs};
pub use integral::{ClockError, UsageIntegral};
pub use price::{Amount, AssumedPrice, GpuPrice, ModelBill, Priced, PricedUsage, price};
pub use states::{Imbalance, States};
pub use tracker::{FreePiece, FreeTracker, Picture, what_is_free};
pub use usage::Usage;
