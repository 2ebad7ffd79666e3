//! What is measured of one run.

use std::collections::BTreeMap;

use dovetail_trace::TraceJob;

use crate::fgd::FgdRun;
use crate::timed::JobView;

/// Figures of one run by key; a figure that the run does not have is absent.
pub type RunFigures = BTreeMap<String, f64>;

/// Share of the cluster's GPUs that is allocated when 130% of them have been asked for, in
/// percent.
pub const ALLOCATION: &str = "allocation_percent";
/// Mean wait of a GPU that was asked for: waits weighted with the GPUs of the job, in hours.
pub const GPU_WEIGHTED_WAIT: &str = "gpu_weighted_wait_hours";
/// Arrived percent from which more than 0.1% of the arrived GPU demand has been refused; absent
/// where that never happens.
pub(crate) const REFUSING_FROM: &str = "refusing_from_percent";
/// GPU-hours of work done between warm-up and end, without work that was lost.
pub const DELIVERED: &str = "delivered_gpu_hours";

/// Run times count as at least so long in the slowdown (Feitelson and Rudolph, JSSPP 1998).
const SLOWDOWN_BOUND_MS: u64 = 10_000;
/// Arrived percent at which allocation is read.
const FULL_PERCENT: usize = 130;
/// Refused demand over arrived demand that [`arrival_figures`] looks for, in thousandths.
const REFUSED_THOUSANDTHS: i64 = 1;
const HOUR_MS: f64 = 3_600_000.0;

/// The part of a run that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredWindow {
    /// End of the warm-up: jobs submitted before it are in no wait.
    pub from_ms: u64,
    /// Jobs submitted from then on are in no wait either.
    pub until_ms: u64,
    /// End of the stream, where the run ends.
    pub end_ms: u64,
}

/// Figures of pods that arrive and stay.
pub(crate) fn arrival_figures(run: &FgdRun, cluster_milli: i64) -> RunFigures {
    let percent = |milli: i64| 100.0 * milli as f64 / cluster_milli as f64;
    let last = run.samples.last().map_or(0.0, |sample| percent(sample.allocated_milli));
    let full = run.curves.allocation_percent.get(FULL_PERCENT).copied().flatten();
    let refused = run.samples.iter().find(|sample| {
        (sample.arrived_milli - sample.allocated_milli) * 1000
            > sample.arrived_milli * REFUSED_THOUSANDTHS
    });
    let mut figures = RunFigures::new();
    let mut set = |key: &str, value: f64| figures.insert(key.to_owned(), value);
    // Small clusters have no arrival near 130%: there it is what is allocated at the end.
    set(ALLOCATION, full.unwrap_or(last));
    if let Some(sample) = refused {
        set(REFUSING_FROM, percent(sample.arrived_milli));
    }
    figures
}

/// Figures of jobs that are submitted, wait, run and end.
pub(crate) fn timed_figures<'v>(
    jobs: impl Iterator<Item = JobView<'v>>,
    window: MeasuredWindow,
    cluster_milli: u128,
) -> RunFigures {
    let mut waits = JobWaits::default();
    let mut delivered_milli_ms = 0;
    let (mut restarts, mut repeated_milli_ms) = (0, 0);
    for view in jobs {
        restarts += u64::from(view.outcome.restarts);
        repeated_milli_ms += view.outcome.repeated_gpu_milli_ms;
        delivered_milli_ms += delivered(&view, window);
        if (window.from_ms..window.until_ms).contains(&view.outcome.submit_ms) {
            waits.add(&view, window.end_ms);
        }
    }
    let mut figures = waits.figures();
    let hours = delivered_milli_ms as f64 / 1000.0 / HOUR_MS;
    figures.insert(DELIVERED.to_owned(), hours);
    figures.insert("restarts".to_owned(), restarts as f64);
    let repeated_hours = repeated_milli_ms as f64 / 1000.0 / HOUR_MS;
    figures.insert("repeated_gpu_hours".to_owned(), repeated_hours);
    let span_ms = u128::from(window.end_ms - window.from_ms);
    let capacity = (cluster_milli * span_ms) as f64 / 1000.0 / HOUR_MS;
    figures.insert(ALLOCATION.to_owned(), 100.0 * hours / capacity);
    figures
}

/// Milli-GPU times ms that a job worked inside the window, in the attempt that was not lost.
fn delivered(view: &JobView<'_>, window: MeasuredWindow) -> u128 {
    let run_ms = view.job.duration_ms.unwrap_or(0);
    let attempt = match (view.outcome.end_ms, view.running_since_ms) {
        (Some(end_ms), _) => (end_ms.saturating_sub(run_ms), end_ms),
        (None, Some(since_ms)) => (since_ms, since_ms.saturating_add(run_ms)),
        (None, None) => return 0,
    };
    let (from_ms, to_ms) = (attempt.0.max(window.from_ms), attempt.1.min(window.end_ms));
    view.job.total_gpu_milli() * u128::from(to_ms.saturating_sub(from_ms))
}

/// Waits of the jobs that count. One that never started waits to the end.
#[derive(Default)]
struct JobWaits {
    all_ms: Vec<u64>,
    by_size: BTreeMap<&'static str, Vec<u64>>,
    slowdowns: Vec<f64>,
    weighted_milli_ms: u128,
    milli: u128,
}

impl JobWaits {
    fn add(&mut self, view: &JobView<'_>, end_ms: u64) {
        let started_ms = view.outcome.start_ms.unwrap_or(end_ms);
        let wait_ms = started_ms - view.outcome.submit_ms;
        let milli = view.job.total_gpu_milli();
        self.all_ms.push(wait_ms);
        self.weighted_milli_ms += milli * u128::from(wait_ms);
        self.milli += milli;
        if let Some(class) = size_class(view.job) {
            self.by_size.entry(class).or_default().push(wait_ms);
        }
        let run_ms = view.job.duration_ms.unwrap_or(0);
        let slowdown = (wait_ms + run_ms) as f64 / run_ms.max(SLOWDOWN_BOUND_MS) as f64;
        self.slowdowns.push(slowdown.max(1.0));
    }

    fn figures(mut self) -> RunFigures {
        let mut figures = RunFigures::new();
        if self.all_ms.is_empty() {
            return figures;
        }
        let mut set = |key: &str, value: f64| figures.insert(key.to_owned(), value);
        self.all_ms.sort_unstable();
        let sum_ms: u128 = self.all_ms.iter().map(|ms| u128::from(*ms)).sum();
        let count = self.all_ms.len();
        set("mean_wait_hours", sum_ms as f64 / count as f64 / HOUR_MS);
        set("p99_wait_hours", p99_hours(&self.all_ms));
        set("worst_wait_hours", self.all_ms[count - 1] as f64 / HOUR_MS);
        if self.milli > 0 {
            set(GPU_WEIGHTED_WAIT, self.weighted_milli_ms as f64 / self.milli as f64 / HOUR_MS);
        }
        for (class, mut waits_ms) in self.by_size {
            waits_ms.sort_unstable();
            set(&format!("p99_wait_{class}_hours"), p99_hours(&waits_ms));
        }
        self.slowdowns.sort_unstable_by(f64::total_cmp);
        set("bounded_slowdown_p95", self.slowdowns[count * 95 / 100]);
        figures
    }
}

/// The wait at position floor(0.99 n) of sorted ones.
fn p99_hours(sorted_ms: &[u64]) -> f64 {
    sorted_ms[sorted_ms.len() * 99 / 100] as f64 / HOUR_MS
}

/// Classes of jobs by size, in keys and in words.
const SIZE_CLASSES: [(&str, &str); 5] = [
    ("share", "shares of a GPU"),
    ("1_gpu", "1 GPU"),
    ("2_to_7_gpus", "2 to 7 GPUs"),
    ("8_gpus", "8 GPUs"),
    ("gang", "gangs"),
];

/// The class of jobs whose 99th percentile of waits a figure is, in words.
pub(crate) fn size_in_words(key: &str) -> Option<&'static str> {
    let class = key.strip_prefix("p99_wait_")?.strip_suffix("_hours")?;
    SIZE_CLASSES.iter().find(|(name, _)| *name == class).map(|(_, words)| *words)
}

/// Jobs by size: a part of a GPU, 1, 2 to 7 or 8 GPUs in one pod, and gangs.
fn size_class(job: &TraceJob) -> Option<&'static str> {
    match (job.pod_count, job.gpu_count) {
        (_, 0) => None,
        (2.., _) | (_, 9..) => Some("gang"),
        (_, 1) if job.is_share() => Some("share"),
        (_, 1) => Some("1_gpu"),
        (_, 8) => Some("8_gpus"),
        _ => Some("2_to_7_gpus"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timed::JobOutcome;

    const HOUR: u64 = 3_600_000;

    fn job(gpus: u32, hours: u64) -> TraceJob {
        TraceJob {
            pod_count: 1,
            gpu_count: gpus,
            gpu_milli: 1000,
            duration_ms: Some(hours * HOUR),
            ..TraceJob::default()
        }
    }

    fn outcome(submit: u64, start: Option<u64>, end: Option<u64>) -> JobOutcome {
        let at = |hour: u64| hour * HOUR;
        JobOutcome {
            submit_ms: at(submit),
            start_ms: start.map(at),
            end_ms: end.map(at),
            ..JobOutcome::default()
        }
    }

    /// Ten hours of eight GPUs, the first two for warming up.
    #[test]
    fn figures_of_a_worked_example() {
        let jobs = [job(8, 3), job(1, 2), job(2, 9), job(4, 1)];
        let outcomes = [
            outcome(1, Some(1), Some(4)), // before the window: no wait, two of its three hours
            // Waits 2 h; stopped twice before its last start, after half an hour in all.
            JobOutcome {
                restarts: 2,
                repeated_gpu_milli_ms: 1000 * u128::from(HOUR / 2),
                ..outcome(2, Some(4), Some(6))
            },
            outcome(3, Some(6), None), // waits 3 h and runs beyond the end: four hours
            outcome(6, None, None),    // never starts: waits 4 h
        ];
        let since = [None, None, Some(6 * HOUR), None];
        let views = jobs.iter().zip(&outcomes).zip(since);
        let views = views.map(|((job, outcome), running_since_ms)| JobView {
            job,
            outcome,
            running_since_ms,
        });
        let window = MeasuredWindow { from_ms: 2 * HOUR, until_ms: 10 * HOUR, end_ms: 10 * HOUR };
        let figures = timed_figures(views, window, 8_000);
        let is = |key: &str, value: f64| {
            assert!((figures[key] - value).abs() < 1e-12, "{key}: {}", figures[key]);
        };
        is("mean_wait_hours", 3.0);
        is("worst_wait_hours", 4.0);
        // (1 * 2 + 2 * 3 + 4 * 4) / 7 GPUs.
        is(GPU_WEIGHTED_WAIT, 24.0 / 7.0);
        is("p99_wait_1_gpu_hours", 2.0);
        is("p99_wait_2_to_7_gpus_hours", 4.0);
        assert!(!figures.contains_key("p99_wait_8_gpus_hours"), "that one came during warm-up");
        // Slowdowns 2, 4/3 and 5: the largest is at place floor(0.95 * 3).
        is("bounded_slowdown_p95", 5.0);
        // 8 * 2 + 1 * 2 + 2 * 4 GPU-hours of the 8 * 8 there are.
        is(DELIVERED, 26.0);
        is(ALLOCATION, 100.0 * 26.0 / 64.0);
        is("restarts", 2.0);
        is("repeated_gpu_hours", 0.5);
    }

    #[test]
    fn sizes_are_told_apart() {
        let share = TraceJob { gpu_milli: 500, ..job(1, 1) };
        let gang = TraceJob { pod_count: 2, ..job(1, 1) };
        let sized = [job(0, 1), share, job(1, 1), job(7, 1), job(8, 1), job(16, 1), gang];
        let classes: Vec<_> = sized.iter().map(size_class).collect();
        let (one, gang) = (Some("1_gpu"), Some("gang"));
        let many = [Some("2_to_7_gpus"), Some("8_gpus")];
        assert_eq!(classes, [None, Some("share"), one, many[0], many[1], gang, gang]);
    }
}
