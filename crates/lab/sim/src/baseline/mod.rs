//! Published preemptive baselines: shortest remaining time, shortest remaining service, and least
//! attained service.
//!
//! These three orders exist to be compared with published results, so they follow the published
//! simulations to the letter, quirks included, and stay apart from the decision engine. They are
//! the SRTF, SRSF and Tiresias columns of Muri (SIGCOMM 2022, artefact `Rivendile/Muri`).
//!
//! What the three have in common:
//!
//! * Time is whole microseconds on the trace's own clock. Microseconds are exact for the published
//!   traces and keep equal times equal; the published floating-point seconds agree with them to
//!   1e-9 relative.
//! * An event is a distinct instant with an arrival, a completion or (least attained service only)
//!   a demotion. Everything that happens at one instant is handled together: completions first,
//!   then progress, then arrivals in trace order, then one new choice of the running set.
//! * At every event the cluster is emptied and refilled, so the running set is chosen afresh; a job
//!   that stays in the set is neither stopped nor started.
//! * A start overhead is charged in **every** interval between two events in which a job runs, not
//!   once per start: the interval's length minus the overhead, but at least zero, is taken off the
//!   remaining service. The next completion is nevertheless expected at `now + remaining`, and a
//!   job whose expected completion is reached has ended. This is what the published simulation
//!   does.
//!
//! Beside what was published, any of them can charge for stops ([`BaselineJob::charged`]): work
//! since the last checkpoint is done again, and a restart takes time. `las-placed` is the order of
//! `las` on real nodes.

mod attained;
mod attempt;
mod cluster;
mod error;
mod event;
mod job;
mod metrics;
mod overhead;
mod placed;
mod replay;
mod room;
mod shortest;
#[cfg(test)]
mod tests;

use std::str::FromStr;

pub use cluster::BaselineCluster;
pub use error::BaselineError;
pub use event::{BaselineEvent, BaselineEventKind};
pub use job::BaselineJob;
pub use metrics::{BaselineMetrics, JobOutcome};
pub use overhead::StartOverheads;

use replay::Replay;
use shortest::Shortness;

/// Microseconds in a second.
pub const MICROS_PER_SECOND: u64 = 1_000_000;

/// Replays `jobs` on `cluster` in the given order and returns every job's times and the metrics.
///
/// `overheads`, when given, must hold a row for the GPU count and model of every job.
/// `on_event` receives every start, stop and end as it happens, in a fixed order (see
/// [`BaselineEvent`]), so that a hash over it identifies the schedule.
///
/// # Errors
/// An empty job list, a job without GPUs, a job larger than the cluster, a job whose start overhead
/// is unknown, or times too large to compute with. Each names the job.
pub fn replay_baseline(
    jobs: &[BaselineJob],
    cluster: &BaselineCluster,
    order: BaselineOrder,
    overheads: Option<&StartOverheads>,
    on_event: &mut dyn FnMut(BaselineEvent),
) -> Result<BaselineRun, BaselineError> {
    let queue = job::arrivals(jobs, cluster, overheads)?;
    let mut replay = Replay::new(jobs, &queue, on_event);
    match order {
        BaselineOrder::Srtf => shortest::run(&mut replay, cluster, Shortness::RemainingTime)?,
        BaselineOrder::Srsf => shortest::run(&mut replay, cluster, Shortness::RemainingService)?,
        BaselineOrder::Las => attained::run(&mut replay, cluster, false)?,
        BaselineOrder::LasPlaced => attained::run(&mut replay, cluster, true)?,
    }
    let (preemptions, lost_gpu_us) = replay.stops();
    let (outcomes, held_gpu_us) = replay.into_outcomes();
    let metrics = BaselineMetrics::of(&outcomes, held_gpu_us, cluster.total_gpus());
    Ok(BaselineRun { outcomes, metrics, preemptions, lost_gpu_us })
}

/// Result of one replay.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineRun {
    /// Times of every job, in the order of the input.
    pub outcomes: Vec<JobOutcome>,
    /// Figures over all jobs.
    pub metrics: BaselineMetrics,
    /// How often jobs were stopped.
    pub preemptions: u64,
    /// GPU-microseconds of work done again and of restarts; 0 where stops cost nothing.
    pub lost_gpu_us: u128,
}

/// A published preemptive order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BaselineOrder {
    /// `srtf`: shortest remaining time first.
    Srtf,
    /// `srsf`: shortest remaining service (remaining time × GPUs) first.
    Srsf,
    /// `las`: least attained service in three queues, as Tiresias (NSDI 2019) with two thresholds.
    Las,
    /// `las-placed`: the same on real nodes; jobs that run stay where they are.
    LasPlaced,
}

impl BaselineOrder {
    /// Every order, for listings.
    pub const ALL: [Self; 4] = [Self::Srtf, Self::Srsf, Self::Las, Self::LasPlaced];

    /// The name by which the order is chosen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Srtf => "srtf",
            Self::Srsf => "srsf",
            Self::Las => "las",
            Self::LasPlaced => "las-placed",
        }
    }
}

impl FromStr for BaselineOrder {
    type Err = BaselineError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|order| order.name() == name)
            .ok_or_else(|| BaselineError::UnknownOrder { name: name.to_owned() })
    }
}
