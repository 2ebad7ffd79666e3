//! What a person asks first about a trace.
//!
//! A value that the trace does not tell is `None` and printed as `unknown`, never 0. Quantiles are
//! the element at index floor(q * n) of the ascending values.

mod arrivals;
mod breakdown;
mod demand;
mod machines;
mod quantiles;
mod table;

use serde::Serialize;

pub use arrivals::ArrivalStats;
pub use breakdown::{EstimateStats, GroupShare, GroupStats, OutcomeStats, SizeStats};
pub use demand::DemandStats;
pub use machines::{ClusterStats, GpuModelStats};
pub use quantiles::Quantiles;
pub use table::stats_table;

use crate::job::TraceJob;
use crate::node::TraceCluster;
use crate::trace::Trace;

/// Everything `trace stats` reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceStats {
    /// Where the jobs come from.
    pub source: String,
    pub jobs: u64,
    /// Number of pods of all jobs.
    pub pods: u64,
    /// Rows that were left out as bad.
    pub skipped_rows: u64,
    /// Jobs whose run time the trace does not tell; they count in no time or GPU-hour below.
    pub jobs_without_run_time: u64,
    /// GPU-hours of all jobs with a run time.
    pub gpu_hours: Option<f64>,
    /// Jobs by number of GPUs, smallest first.
    pub sizes: Vec<SizeStats>,
    /// Share of the GPU jobs that name the GPU models they can use.
    pub gpu_model_constrained_share: Option<f64>,
    /// When jobs come.
    pub arrivals: Option<ArrivalStats>,
    pub run_time_s: Option<Quantiles>,
    /// Waiting in the source's own cluster from submission to start, in s.
    pub waiting_s: Option<Quantiles>,
    /// What would run at once if no job ever waited.
    pub demand: Option<DemandStats>,
    /// How good the estimates of run times are.
    pub estimates: Option<EstimateStats>,
    /// How jobs ended.
    pub outcomes: Vec<OutcomeStats>,
    pub users: Option<GroupStats>,
    /// Queues, teams or virtual clusters.
    pub queues: Option<GroupStats>,
    /// Machine-learning models.
    pub models: Option<GroupStats>,
    /// The machines, when they were given.
    pub cluster: Option<ClusterStats>,
}

/// Describes a trace, and the machines it is meant for if there are any.
pub fn describe(trace: &Trace, cluster: Option<&TraceCluster>) -> TraceStats {
    let jobs = &trace.jobs[..];
    let gpu_jobs = jobs.iter().filter(|job| job.gpu_count > 0).count();
    let constrained = jobs.iter().filter(|job| !job.gpu_models.is_empty()).count();
    let times = |value: fn(&TraceJob) -> Option<u64>| {
        Quantiles::of_ms(jobs.iter().filter_map(value).collect())
    };
    let arrivals = if trace.known.submit_times { ArrivalStats::of(jobs) } else { None };
    let gpu_hours = gpu_hours(jobs);
    let demand = arrivals.as_ref().and_then(|_| DemandStats::of(trace));
    let mean_gpus = demand.as_ref().and_then(|demand| demand.mean_gpus);
    TraceStats {
        source: trace.source.clone(),
        jobs: jobs.len() as u64,
        pods: jobs.iter().map(|job| u64::from(job.pod_count)).sum(),
        skipped_rows: trace.skipped.len() as u64,
        jobs_without_run_time: jobs.iter().filter(|job| job.duration_ms.is_none()).count() as u64,
        gpu_hours,
        sizes: breakdown::sizes(jobs),
        gpu_model_constrained_share: ratio(constrained as f64, gpu_jobs as f64)
            .filter(|_| trace.known.gpu_models),
        run_time_s: times(|job| job.duration_ms),
        waiting_s: times(|job| job.start_ms.map(|start| start.saturating_sub(job.submit_ms))),
        demand,
        estimates: EstimateStats::of(jobs),
        outcomes: breakdown::outcomes(jobs),
        users: GroupStats::of(jobs, |job| job.user.as_deref()),
        queues: GroupStats::of(jobs, |job| job.queue.as_deref()),
        models: GroupStats::of(jobs, |job| job.model.as_deref()),
        cluster: cluster.map(|cluster| ClusterStats::of(cluster, mean_gpus)),
        arrivals,
    }
}

/// GPU-hours of the jobs with a run time; `None` when there is no such job.
fn gpu_hours<'j>(jobs: impl IntoIterator<Item = &'j TraceJob>) -> Option<f64> {
    let known = jobs.into_iter().filter_map(TraceJob::gpu_milli_ms);
    let milli_ms = known.fold(None, |sum: Option<u128>, value| Some(sum.unwrap_or(0) + value));
    milli_ms.map(|sum| sum as f64 / (1000.0 * 3_600_000.0))
}

/// The quotient, unless there is nothing to divide by.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
