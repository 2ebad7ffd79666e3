//! Time bounds of a list of jobs: the sum of completion times, and with it the average completion
//! time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::input::BoundError;
use crate::makespan::{BoundJob, gpu_ms, validate_jobs};

/// Lower bounds on the sum of all jobs' completion times, each on the trace's own clock.
///
/// Valid for every schedule, preemptive or not, with or without knowledge of the future, in which a
/// job runs on all its GPUs or not at all and at most the capacity is in use. They say nothing
/// about makespan: the schedules that come near each of them differ. Sums are in milliseconds,
/// rounded down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletionBounds {
    /// (a) `sum (r_j + p_j)`: every job starts when it is submitted and never waits.
    pub no_waiting_ms: i128,
    /// (b) Shortest remaining work first on one machine of the speed of all GPUs, where a job is
    /// `q_j p_j` of work that may spread over all of them. Any schedule becomes one on that machine
    /// with no job later, and shortest remaining first is optimal there (Schrage, "A proof of the
    /// optimality of the shortest remaining processing time discipline", Operations Research 16,
    /// 1968).
    pub fast_machine_ms: i128,
    /// (c) `sum M_j + 1/2 sum p_j`, where `M_j` is the mean busy time of job j on the fast machine
    /// when the waiting job with the least *total* work runs. A job of duration p has
    /// `M <= C - p/2` in any schedule, and that rule gives the least sum of mean busy times
    /// (Goemans, Queyranne, Schulz, Skutella, Wang, "Single machine scheduling with release dates",
    /// SIAM J. Discrete Mathematics 15, 2002).
    pub mean_busy_ms: i128,
    submit_sum_ms: i128,
    jobs: usize,
}

impl CompletionBounds {
    /// The largest of the bounds on the sum of completion times, in milliseconds.
    #[must_use]
    pub fn best_ms(&self) -> i128 {
        self.no_waiting_ms.max(self.fast_machine_ms).max(self.mean_busy_ms)
    }

    /// No schedule has a smaller average of completion minus submission; in milliseconds.
    #[must_use]
    pub fn average_completion_ms(&self) -> f64 {
        (self.best_ms() - self.submit_sum_ms) as f64 / self.jobs as f64
    }
}

/// Lower bounds on the sum of completion times of `jobs` on `capacity_gpus` equal GPUs of one pool;
/// `None` without jobs.
///
/// Jobs without GPU or duration take nothing from the pool; they count with submission plus
/// duration. O(n log n), in exact integers.
///
/// # Errors
/// [`BoundError::Job`] for a negative or too large field, or a job wider than the capacity.
pub fn completion_bounds(
    jobs: &[BoundJob],
    capacity_gpus: u32,
) -> Result<Option<CompletionBounds>, BoundError> {
    validate_jobs(jobs, capacity_gpus)?;
    if jobs.is_empty() {
        return Ok(None);
    }
    let end_ms = |job: &BoundJob| i128::from(job.submit_ms) + i128::from(job.duration_ms);
    let without_work = jobs.iter().filter(|job| gpu_ms(job) == 0).map(end_ms).sum::<i128>();
    let tasks = fast_machine_tasks(jobs, capacity_gpus);
    // A list whose jobs all do no work may come with a capacity of 0; then there is nothing to
    // divide.
    let speed = i128::from(capacity_gpus.max(1));
    let busy = busy_periods(&tasks, |task, _| task.work);
    let mean_busy: i128 = mean_busy_times(&tasks, &busy).into_iter().sum();
    let duration_ms: i128 = tasks.iter().map(|task| task.duration_ms).sum();
    Ok(Some(CompletionBounds {
        no_waiting_ms: jobs.iter().map(end_ms).sum(),
        fast_machine_ms: without_work + sum_of_ends(&tasks) / speed,
        mean_busy_ms: without_work + (2 * mean_busy + duration_ms * speed) / (2 * speed),
        submit_sum_ms: jobs.iter().map(|job| i128::from(job.submit_ms)).sum(),
        jobs: jobs.len(),
    }))
}

/// A job on the fast machine. Its clock ticks once per GPU-millisecond, so that all times are
/// whole.
#[derive(Debug, Clone, Copy)]
struct Task {
    release: i128,
    work: i128,
    duration_ms: i128,
}

/// A stretch of time in which the machine runs one task.
#[derive(Debug, Clone, Copy)]
struct BusyPeriod {
    task: usize,
    start: i128,
    end: i128,
}

/// Jobs with work, by release.
fn fast_machine_tasks(jobs: &[BoundJob], capacity_gpus: u32) -> Vec<Task> {
    let mut tasks: Vec<Task> = jobs
        .iter()
        .filter(|job| gpu_ms(job) > 0)
        .map(|job| Task {
            release: i128::from(job.submit_ms) * i128::from(capacity_gpus),
            work: gpu_ms(job),
            duration_ms: i128::from(job.duration_ms),
        })
        .collect();
    tasks.sort_by_key(|task| task.release);
    tasks
}

/// Runs the tasks on one machine, always the released one with the least
/// `key(task, remaining work)`.
fn busy_periods(tasks: &[Task], key: impl Fn(&Task, i128) -> i128) -> Vec<BusyPeriod> {
    let mut periods = Vec::new();
    let mut waiting: BinaryHeap<Reverse<(i128, usize, i128)>> = BinaryHeap::new();
    let mut released = 0;
    let mut now = 0;
    while released < tasks.len() || !waiting.is_empty() {
        if waiting.is_empty() {
            now = now.max(tasks[released].release);
        }
        while released < tasks.len() && tasks[released].release <= now {
            let task = &tasks[released];
            waiting.push(Reverse((key(task, task.work), released, task.work)));
            released += 1;
        }
        let Some(Reverse((_, index, remaining))) = waiting.pop() else { continue };
        let interruption = tasks.get(released).map_or(i128::MAX, |next| next.release);
        let end = interruption.min(now + remaining);
        periods.push(BusyPeriod { task: index, start: now, end });
        let left = remaining - (end - now);
        if left > 0 {
            waiting.push(Reverse((key(&tasks[index], left), index, left)));
        }
        now = end;
    }
    periods
}

fn sum_of_ends(tasks: &[Task]) -> i128 {
    let mut ends = vec![0; tasks.len()];
    for period in busy_periods(tasks, |_, remaining| remaining) {
        ends[period.task] = period.end;
    }
    ends.into_iter().sum()
}

/// The mean moment at which each task is worked on, rounded down.
fn mean_busy_times(tasks: &[Task], periods: &[BusyPeriod]) -> Vec<i128> {
    let mut doubled_moment = vec![0_i128; tasks.len()];
    for period in periods {
        // Relative to the release, so that the squares stay small on clocks that count from 1970.
        let release = tasks[period.task].release;
        let (start, end) = (period.start - release, period.end - release);
        doubled_moment[period.task] += (end - start) * (end + start);
    }
    let mean = |(task, doubled): (&Task, i128)| task.release + doubled / (2 * task.work);
    tasks.iter().zip(doubled_moment).map(mean).collect()
}
