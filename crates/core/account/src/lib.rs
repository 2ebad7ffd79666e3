//! GPU-time and money: what every part of every device was, and who pays for it.
//!
//! | module | what |
//! |---|---|
//! | [`device_time`] | what each part of each device was over a period: free, held, active, idle, unknown |
//! | [`notices`] | what owners of GPUs are told, and when |
//! | [`signal`] | which exporter signal counts as active, and when none does |
//! | [`split`] | a node's price split over its pods by named methods |
//! | [`cost`] | a node's price as charges with one payer and one cause each |
//! | [`rollup`] | device-time by the hour, read again and again, with its money under every method |
//! | [`utilisation`] | how busy devices were on average, and when they were hardly busy for long |
//! | `price` | a period of a whole cluster in money |
//! | `idle_runs` | the method `sampled-idle-runs`: long runs of low activity, from samples alone |

pub mod cost;
pub mod device_time;
mod idle_runs;
pub mod notices;
mod price;
pub mod rollup;
pub mod signal;
pub mod split;
pub mod utilisation;

pub use idle_runs::{ActivitySample, IdleRule, IdleRuns, IdleTime, PodSamples, idle_runs};
pub use price::{Amount, AssumedPrice, GpuPrice, ModelBill, Priced, PricedUsage, price};
