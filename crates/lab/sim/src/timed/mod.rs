//! The `timed` protocol: jobs are submitted, queue, run and end on a virtual clock.
//!
//! Everything of one instant is taken in first (ends, then what happens to the cluster, then
//! arrivals), then the engine decides once. A job with run time 0 ends in a second round of the
//! same instant.

mod attempts;
mod autoscale;
mod calibration;
pub mod cluster_events;
mod fair_share;
mod faults;
mod impossible;
mod metrics;
mod progress;
mod queues;
mod run;
mod starts;

use std::collections::BTreeSet;

use dovetail_model::{Booking, Queue, QueueUsage};
use dovetail_plan::{EngineConfig, EngineError};
use dovetail_trace::{StopCosts, TraceJob, TraceNode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use autoscale::Autoscaler;
pub use calibration::Calibration;
pub use faults::FaultModel;
pub use impossible::{Impossible, ImpossibleJob, impossible_jobs};
pub use metrics::{JobOutcome, TimedMetrics, lost_percent};
pub use progress::SimulationProgress;
pub use queues::{FinishTimes, QueueFigures, QueueWatch, QueueWatchState, QueueWeek};
pub use run::{JobView, Observer, Simulation};
pub use starts::{StartEstimate, StartWatch};

use crate::timed::cluster_events::ClusterEvent;

/// What the protocol runs on.
#[derive(Clone, Debug, Default)]
pub struct TimedWorld {
    /// Machines in tie-break order.
    pub nodes: Vec<TraceNode>,
    /// Jobs in any order; those submitted at one instant keep theirs.
    pub jobs: Vec<TraceJob>,
    /// What happens to machines, in order of time.
    pub cluster_events: Vec<ClusterEvent>,
    /// Queues with their weights and bounds. The order by dominant share compares these alone: jobs
    /// of other queues go in order of submission.
    pub queues: Vec<Queue>,
    /// What is booked, with when that was asked for, in order of time.
    pub bookings: Vec<(u64, Booking)>,
    /// What queues have used before the trace begins.
    pub usage: Vec<QueueUsage>,
    /// Topology level (`zone`, `rack`) of which all pods of a job must be in one domain; `None`
    /// lets them be anywhere.
    pub gang_level: Option<String>,
    /// Machines that come and go with the work; `None` has none.
    pub autoscaler: Option<Autoscaler>,
}

impl TimedWorld {
    /// The queues that jobs name, each with weight 1 and without bounds, in order of their names.
    pub fn named_queues(jobs: &[TraceJob]) -> Vec<Queue> {
        let names: BTreeSet<&str> = jobs.iter().filter_map(|job| job.queue.as_deref()).collect();
        names.into_iter().map(Queue::named).collect()
    }
}

/// How it runs.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct TimedConfig {
    pub engine: EngineConfig,
    /// What the engine is told about run times.
    pub estimates: Estimates,
    /// Random failures of machines; `None` has none.
    pub faults: Option<FaultModel>,
    /// What it costs to stop jobs where the trace does not say.
    #[serde(default, skip_serializing_if = "StopCosts::is_unknown")]
    pub stop_costs: StopCosts,
}

/// What the engine is told about run times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimates {
    None,
    /// The run times that users estimated, as recorded in the trace; nothing where it says nothing.
    #[default]
    Trace,
    /// Nothing: the engine learns from the runs that ended ([`EngineConfig::estimates`]).
    Learned,
    /// The true run time, as published experiments with `sjf` assume.
    Truth,
}

/// The last instant of a simulation, in ms: 31,700 years. A replay of jobs that each keep to the
/// limits of their file gets there if thousands of the longest run one after the other.
pub const LAST_MS: u64 = 1_000_000_000_000_000;

/// Why a simulation cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TimedError {
    /// There is nothing to run.
    #[error("the trace has no jobs: there is nothing to simulate")]
    NoJobs,
    #[error("job {job} has no run time: the timed protocol needs one for every job")]
    NoDuration { job: String },
    /// An event names a machine that does not exist.
    #[error("{action} at {at_ms} ms names the node `{node}`, which is not in the node list")]
    UnknownNode {
        node: String,
        /// What was to happen.
        action: &'static str,
        at_ms: u64,
    },
    /// The simulation goes on beyond [`LAST_MS`].
    #[error(
        "job {job} would end after {LAST_MS} ms: check the run times of the trace, or add nodes"
    )]
    TooLate {
        /// Place of the job in the world.
        row: usize,
        job: String,
    },
    /// The engine refused an event.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
