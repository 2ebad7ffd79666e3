//! Figures over a finished replay.

use super::MICROS_PER_SECOND;

/// When a job was submitted, first started and ended, in microseconds on the trace's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobOutcome {
    /// Submit time of the trace.
    pub submit_us: u64,
    /// First start; a preempted job started more than once.
    pub start_us: u64,
    pub end_us: u64,
}

/// The figures that published comparisons state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BaselineMetrics {
    pub jobs: usize,
    /// Mean job completion time (end − submit), in seconds.
    pub average_jct_s: f64,
    /// Completion time at position floor(0.99 × jobs), from 0, of the ascending list, in seconds.
    pub p99_jct_s: f64,
    /// End of the last job on the trace's own clock (not minus the first submit), in seconds.
    pub makespan_s: f64,
    /// Mean of first start − submit, in seconds.
    pub average_queue_s: f64,
    /// GPU-time held by running jobs over GPU-time of the cluster from the first submit to the end
    /// of the last job, 0 to 1; 0 when no time passed. Start overheads count as held.
    pub gpu_occupancy: f64,
}

impl BaselineMetrics {
    /// Figures over `outcomes`, which must not be empty.
    pub(super) fn of(outcomes: &[JobOutcome], held_gpu_us: u128, total_gpus: u32) -> Self {
        let jobs = outcomes.len();
        let mut jct_us: Vec<u64> =
            outcomes.iter().map(|outcome| outcome.end_us - outcome.submit_us).collect();
        jct_us.sort_unstable();
        let queue_us = outcomes.iter().map(|outcome| outcome.start_us - outcome.submit_us);
        let last_end_us = outcomes.iter().map(|outcome| outcome.end_us).max().unwrap_or(0);
        let first_submit_us = outcomes.iter().map(|outcome| outcome.submit_us).min().unwrap_or(0);
        let capacity_gpu_us = u128::from(last_end_us - first_submit_us) * u128::from(total_gpus);
        Self {
            jobs,
            average_jct_s: mean_s(jct_us.iter().copied(), jobs),
            p99_jct_s: seconds(u128::from(jct_us[jobs * 99 / 100])),
            makespan_s: seconds(u128::from(last_end_us)),
            average_queue_s: mean_s(queue_us, jobs),
            gpu_occupancy: if capacity_gpu_us == 0 {
                0.0
            } else {
                held_gpu_us as f64 / capacity_gpu_us as f64
            },
        }
    }
}

fn mean_s(times_us: impl Iterator<Item = u64>, count: usize) -> f64 {
    seconds(times_us.map(u128::from).sum()) / count as f64
}

fn seconds(micros: u128) -> f64 {
    micros as f64 / MICROS_PER_SECOND as f64
}
