//! Live decisions: changes and outcomes in; binds, orders and news out.
//!
//! [`Scheduler`] is the loop without its wires and can be driven by a test.

mod blocked;
mod claiming;
mod comparison;
mod dispatch;
mod drift;
mod evictions;
mod exempt;
mod exemptions;
mod forecasts;
mod gpu_time;
mod known;
mod news;
mod no_room;
mod outbox;
mod pauses;
mod pending;
mod preempting;
mod provisioning;
mod questions;
mod receipts;
mod rechecks;
mod refused;
mod restarts;
mod resumes;
mod scheduler;

pub use comparison::{Compared, Comparison, IdleNode};
pub use forecasts::{ForecastEnd, StartForecast};
pub use gpu_time::{GpuMeter, GpuTime};
pub use news::{Evicted, EvictionRefused, News, Preempts};
pub use questions::Questions;
pub use rechecks::Rechecks;
pub use scheduler::{
    Modes, PodCounts, Scheduler, go_on_with, is_unschedulable, learned, start_corrections,
};
