//! What came out for the jobs.

use serde::{Deserialize, Serialize};

/// What happened to one job. Times on the trace's clock; `None` did not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutcome {
    pub submit_ms: u64,
    /// First start.
    pub start_ms: Option<u64>,
    pub end_ms: Option<u64>,
    /// Times it was preempted or lost with a machine, and started again.
    pub restarts: u32,
    /// Starts again after a preemption, among `restarts`.
    #[serde(default)]
    pub preemptions: u32,
    /// GPU time spent on work that was lost, in milli-GPU·ms.
    pub repeated_gpu_milli_ms: u128,
    /// GPU time of attempts that was neither work nor checkpoints, in milli-GPU·ms.
    #[serde(default)]
    pub restart_gpu_milli_ms: u128,
}

/// Figures over all jobs. Means and quantiles are over the jobs that ended, those of the queue over
/// the jobs that started.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedMetrics {
    pub jobs: u64,
    pub unfinished_jobs: u64,
    /// Jobs that started at least once.
    pub started_jobs: u64,
    /// Mean of end − submission; `None` if none ended.
    pub average_jct_s: Option<f64>,
    /// The job completion time at position floor(0.99 n) of the sorted ones.
    pub p99_jct_s: Option<f64>,
    /// End of the last job on the trace's own clock.
    pub makespan_s: Option<f64>,
    /// Mean of first start − submission, over the jobs that started.
    pub average_queue_s: Option<f64>,
    /// Median of first start − submission.
    pub p50_queue_s: Option<f64>,
    /// First start − submission at position floor(0.99 n).
    pub p99_queue_s: Option<f64>,
    /// The longest of first start − submission.
    pub worst_queue_s: Option<f64>,
    /// GPU time of the work done over GPUs × (end of the last job − first submission).
    pub gpu_occupancy: Option<f64>,
    /// Times a job was lost with a machine.
    pub restarts: u64,
    /// GPU-hours of work that was lost and done again.
    pub repeated_gpu_hours: f64,
    pub preemptions: u64,
    /// GPU time of work that was done again, and of restarts.
    pub lost_gpu_s: f64,
    /// The same as a part of it and of the work of the jobs that ended; `None` without either.
    pub lost_percent: Option<f64>,
}

impl TimedMetrics {
    /// Sums up. `work_milli_ms` is milli-GPU × ms of all jobs that ended.
    pub(crate) fn of(outcomes: &[JobOutcome], work_milli_ms: u128, cluster_milli: u128) -> Self {
        let between = |from: u64, to: Option<u64>| to.map(|to| to - from);
        let jct = sorted(outcomes.iter().filter_map(|o| between(o.submit_ms, o.end_ms)));
        let queue = sorted(outcomes.iter().filter_map(|o| between(o.submit_ms, o.start_ms)));
        let first_submit_ms = outcomes.iter().map(|outcome| outcome.submit_ms).min().unwrap_or(0);
        let last_end_ms = outcomes.iter().filter_map(|outcome| outcome.end_ms).max();
        let repeated: u128 = outcomes.iter().map(|outcome| outcome.repeated_gpu_milli_ms).sum();
        let restarting: u128 = outcomes.iter().map(|outcome| outcome.restart_gpu_milli_ms).sum();
        let lost = repeated + restarting;
        Self {
            jobs: outcomes.len() as u64,
            unfinished_jobs: (outcomes.len() - jct.len()) as u64,
            started_jobs: queue.len() as u64,
            average_jct_s: mean_s(&jct),
            p99_jct_s: at_s(&jct, 99, 100),
            makespan_s: last_end_ms.map(|ms| ms as f64 / 1000.0),
            average_queue_s: mean_s(&queue),
            p50_queue_s: at_s(&queue, 1, 2),
            p99_queue_s: at_s(&queue, 99, 100),
            worst_queue_s: queue.last().map(|ms| *ms as f64 / 1000.0),
            gpu_occupancy: last_end_ms
                .map(|end_ms| u128::from(end_ms - first_submit_ms) * cluster_milli)
                .filter(|capacity| *capacity > 0)
                .map(|capacity| work_milli_ms as f64 / capacity as f64),
            restarts: outcomes.iter().map(|outcome| u64::from(outcome.restarts)).sum(),
            repeated_gpu_hours: repeated as f64 / 3.6e9,
            preemptions: outcomes.iter().map(|outcome| u64::from(outcome.preemptions)).sum(),
            lost_gpu_s: lost as f64 / 1e6,
            lost_percent: lost_percent(lost, work_milli_ms),
        }
    }
}

/// Lost GPU-time as a part of it and of the work done.
pub fn lost_percent(lost: u128, work: u128) -> Option<f64> {
    (lost + work > 0).then(|| lost as f64 * 100.0 / (lost + work) as f64)
}

fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values
}

fn mean_s(values: &[u64]) -> Option<f64> {
    let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
    (!values.is_empty()).then(|| sum as f64 / values.len() as f64 / 1000.0)
}

fn at_s(values: &[u64], numerator: usize, denominator: usize) -> Option<f64> {
    values.get(values.len() * numerator / denominator).map(|ms| *ms as f64 / 1000.0)
}
