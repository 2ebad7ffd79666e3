//! Time bounds of a list of jobs: the earliest end of the last one.

use crate::input::BoundError;

/// One rigid job: it holds `gpu_count` GPUs for `duration_ms` in total, not before `submit_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundJob {
    /// Time of submission on the trace's clock, in milliseconds.
    pub submit_ms: i64,
    /// Run time on its GPUs without interruption, in milliseconds.
    pub duration_ms: i64,
    /// GPUs held while it runs; 0 for a job without GPU.
    pub gpu_count: u32,
}

/// Lower bounds on the end of the last job, on the trace's own clock.
///
/// Valid for every schedule, preemptive or not, with or without knowledge of the future, in which a
/// job runs on all its GPUs or not at all and at most the capacity is in use. Bounds that are not
/// whole milliseconds are rounded up: they hold for the makespan rounded up to a whole millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MakespanBounds {
    /// `max_j (r_j + p_j)`: no job ends before it ran.
    pub longest_job_ms: i64,
    /// `max_t [t + sum_{r_j >= t} q_j p_j / C]`: the work submitted from t on, at full speed.
    pub work_ms: i64,
    /// `max_t [t + sum_{r_j >= t, q_j > C/2} p_j]`: jobs on more than half of the GPUs run one by
    /// one.
    pub wide_jobs_ms: i64,
}

impl MakespanBounds {
    /// The largest of the bounds: no schedule ends before it.
    #[must_use]
    pub fn best_ms(&self) -> i64 {
        self.longest_job_ms.max(self.work_ms).max(self.wide_jobs_ms)
    }
}

/// Lower bounds on the makespan of `jobs` on `capacity_gpus` equal GPUs of one pool; `None` without
/// jobs.
///
/// These are the classical bounds for parallel tasks (longest job, area, pairwise exclusive jobs),
/// each taken over every suffix of the submissions. O(n log n).
///
/// # Errors
/// [`BoundError::Job`] for a negative or too large field, or a job wider than the capacity.
pub fn makespan_bounds(
    jobs: &[BoundJob],
    capacity_gpus: u32,
) -> Result<Option<MakespanBounds>, BoundError> {
    validate_jobs(jobs, capacity_gpus)?;
    let mut latest_first: Vec<&BoundJob> = jobs.iter().collect();
    latest_first.sort_by_key(|job| std::cmp::Reverse(job.submit_ms));
    let Some(latest) = latest_first.first() else { return Ok(None) };
    let mut bounds = MakespanBounds {
        longest_job_ms: latest.submit_ms,
        work_ms: latest.submit_ms,
        wide_jobs_ms: latest.submit_ms,
    };
    let capacity = i128::from(capacity_gpus);
    let (mut work, mut wide_ms) = (0_i128, 0_i128);
    for job in latest_first {
        // A prefix of equally late jobs gives a smaller bound than all of them: no harm.
        work += gpu_ms(job);
        if 2 * u64::from(job.gpu_count) > u64::from(capacity_gpus) {
            wide_ms += i128::from(job.duration_ms);
        }
        let submit_ms = i128::from(job.submit_ms);
        let full_speed_ms = if capacity == 0 { 0 } else { (work + capacity - 1) / capacity };
        bounds.longest_job_ms = bounds.longest_job_ms.max(job.submit_ms + job.duration_ms);
        bounds.work_ms = bounds.work_ms.max(to_ms(submit_ms + full_speed_ms));
        bounds.wide_jobs_ms = bounds.wide_jobs_ms.max(to_ms(submit_ms + wide_ms));
    }
    Ok(Some(bounds))
}

/// Work of a job in GPU-milliseconds.
pub(crate) fn gpu_ms(job: &BoundJob) -> i128 {
    i128::from(job.gpu_count) * i128::from(job.duration_ms)
}

/// Saturates: a smaller lower bound is still one.
fn to_ms(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The largest time accepted (2^42 ms, 139 years), pool (2^20 GPUs) and sum of work: squares of
/// times counted in GPU-milliseconds then stay inside `i128`.
const TIME_LIMIT_MS: i64 = 1 << 42;
const TIME_RANGE: &str = "0 to 2^42 ms";
/// Largest pool whose times can be bounded, in GPUs (or in whatever unit the jobs are counted).
pub const CAPACITY_LIMIT: u32 = 1 << 20;
const WORK_LIMIT: i128 = 1 << 61;

pub(crate) fn validate_jobs(jobs: &[BoundJob], capacity_gpus: u32) -> Result<(), BoundError> {
    if capacity_gpus > CAPACITY_LIMIT {
        return Err(BoundError::Capacity { capacity_gpus, limit: CAPACITY_LIMIT });
    }
    let out_of_range = |time_ms: i64| !(0..=TIME_LIMIT_MS).contains(&time_ms);
    let mut work = 0;
    for (index, job) in jobs.iter().enumerate() {
        let (field, value, expected) = if out_of_range(job.submit_ms) {
            ("submit_ms", job.submit_ms, TIME_RANGE)
        } else if out_of_range(job.duration_ms) {
            ("duration_ms", job.duration_ms, TIME_RANGE)
        } else if job.gpu_count > capacity_gpus {
            ("gpu_count", i64::from(job.gpu_count), "at most the GPUs of the cluster")
        } else if work + gpu_ms(job) > WORK_LIMIT {
            ("the sum of GPU-ms up to it", to_ms(work + gpu_ms(job)), "at most 2^61")
        } else {
            work += gpu_ms(job);
            continue;
        };
        return Err(BoundError::Job { index, field, value, expected });
    }
    Ok(())
}
