//! Where the GPU-time of a simulation went: exact sums, a series for plots, and money.
//!
//! [`Timeline`] watches a timed simulation. It asks the ledger for everything about capacity and
//! counts what waits by itself. [`UsageReport`] is its result in GPU-hours and money, [`Series`]
//! the curve of it.

mod gpu_time;
mod observer;
mod series;
#[cfg(test)]
mod tests;
mod usage_report;
mod waiting;

pub use observer::{Timeline, TimelineConfig, TimelineError, TimelineState};
pub use series::{MAX_POINTS, Series, SeriesPoint};
pub use usage_report::{AmountReport, ModelReport, StatesReport, UsageReport};
