//! What is free and why, how long, and what it costs.
//!
//! [`what_is_free`] gives every milli-GPU of a cluster its place at one moment: unavailable, allocated, or
//! free by one [`FreeCause`](dovetail_model::FreeCause); `cause` says what each cause means. [`UsageIntegral`] follows an engine
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
//! | [`device_time`] | what each part of each device was over a period: free, held, active, idle, unknown |
//! | [`job_phases`] | where the allocated time of one job went |
//! | [`notices`] | what owners of GPUs are told, and when |
//! | [`signal`] | which exporter signal counts as active, and when none does |
//! | [`split`] | a node's price split over its pods by named methods |
//! | [`cost`] | a node's price as charges with one payer and one cause each |
//! | [`rollup`] | device-time by the hour, read again and again, with its money under every method |
//! | [`queue_wait`] | how long work waits for its first and for its last member |
//! | [`runs`] | attempts of one run, and what failed ones cost |
//! | [`utilisation`] | how busy devices were on average, and when they were hardly busy for long |
//! | `price` | GPU-time in money |
//! | `idle_runs` | the method `sampled-idle-runs`: long runs of low activity, from samples alone |

mod assign;
mod cause;
pub mod cost;
mod demand;
pub mod device_time;
mod idle_runs;
mod integral;
pub mod job_phases;
pub mod notices;
mod price;
pub mod queue_wait;
pub mod rollup;
pub mod runs;
pub mod signal;
pub mod split;
mod states;
mod survey;
mod tracker;
mod usage;
pub mod utilisation;
mod verdicts;
mod weight;

pub use idle_runs::{ActivitySample, IdleRule, IdleRuns, IdleTime, idle_runs};
pub use integral::{ClockError, UsageIntegral};
pub use price::{Amount, AssumedPrice, GpuPrice, ModelBill, Priced, PricedUsage, price};
pub use states::{Imbalance, States};
pub use tracker::{FreePiece, FreeTracker, Picture, what_is_free};
pub use usage::Usage;
