//! Streams of jobs put together from published shapes and run times.
//!
//! Every stream asks for a stated load: the GPU-time that its jobs can use before it ends, if each
//! starts when it is submitted, over the GPU-time of the machines.

use dovetail_trace::synth::{Purpose, Random};
use dovetail_trace::{TraceJob, TraceNode};
use thiserror::Error;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// A burst takes so long.
const BURST_MS: u64 = 2 * HOUR_MS;
/// Share of the jobs that come in bursts.
const IN_BURSTS: f64 = 0.6;
/// Arrivals of a day: 1 + amplitude · cos, busiest at 15:00.
const DAILY_AMPLITUDE: f64 = 0.95;
const BUSIEST_HOUR: f64 = 15.0;

/// When the jobs of a stream come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tide {
    /// At any time.
    Even,
    /// Six of ten within two hours of each day, which two by seed.
    Bursts,
    /// Nearly all by day.
    Daily,
}

/// GPU-time in milli-GPU · ms that jobs can use before the end, each from its submission on.
pub fn demand_inside(jobs: &[TraceJob], end_ms: u64) -> u128 {
    jobs.iter().map(|job| inside(job, end_ms)).sum()
}

fn inside(job: &TraceJob, end_ms: u64) -> u128 {
    let left_ms = end_ms.saturating_sub(job.submit_ms);
    job.total_gpu_milli() * u128::from(job.duration_ms.unwrap_or(0).min(left_ms))
}

/// Milli-GPU of machines.
pub(crate) fn cluster_milli(nodes: &[TraceNode]) -> u128 {
    nodes.iter().map(|node| u128::from(node.gpu_count) * 1000).sum()
}

/// A stream that would need more jobs than this says nothing that a shorter one does not.
const MOST_JOBS: usize = 1_000_000;

/// Jobs of which no stream is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the GPU time is too small (number of jobs: {jobs}): the load would need more than {MOST_JOBS} \
     jobs; use jobs that request GPUs and run longer"
)]
pub struct Unfillable {
    /// Jobs to draw from.
    pub jobs: usize,
}

/// Jobs that come between two times, drawn again and again from a pool, until they ask for
/// `milli_ms` before the end of the stream.
pub(crate) fn fill(
    random: &mut Random,
    pool: &[TraceJob],
    tide: Tide,
    (from_ms, until_ms): (u64, u64),
    (milli_ms, end_ms): (u128, u64),
) -> Result<Vec<TraceJob>, Unfillable> {
    let unfillable = Unfillable { jobs: pool.len() };
    // What the first jobs can use, and so the most that any can.
    let most = |job: &TraceJob| inside(&TraceJob { submit_ms: from_ms, ..job.clone() }, end_ms);
    let pool_milli_ms: u128 = pool.iter().map(most).sum();
    if pool_milli_ms.saturating_mul(MOST_JOBS as u128) < milli_ms * pool.len().max(1) as u128 {
        return Err(unfillable);
    }
    let bursts: Vec<u64> =
        (from_ms / DAY_MS..=until_ms / DAY_MS).map(|_| random.below(22) as u64 * HOUR_MS).collect();
    let mut jobs = Vec::new();
    let mut asked = 0;
    while asked < milli_ms {
        if jobs.len() == MOST_JOBS {
            return Err(unfillable);
        }
        let submit_ms = tide.draw(random, &bursts, (from_ms, until_ms));
        let job = TraceJob { submit_ms, ..pool[random.below(pool.len())].clone() };
        asked += inside(&job, end_ms);
        jobs.push(job);
    }
    Ok(jobs)
}

impl Tide {
    fn draw(self, random: &mut Random, bursts: &[u64], (from_ms, end_ms): (u64, u64)) -> u64 {
        loop {
            let at_ms = from_ms + random.below((end_ms - from_ms) as usize) as u64;
            let drawn_ms = match self {
                Self::Even => at_ms,
                Self::Bursts if random.chance(IN_BURSTS) => {
                    let day = at_ms / DAY_MS;
                    let burst_ms = bursts[(day - from_ms / DAY_MS) as usize];
                    day * DAY_MS + burst_ms + random.below(BURST_MS as usize) as u64
                }
                Self::Bursts => at_ms,
                Self::Daily => {
                    let hour = (at_ms % DAY_MS) as f64 / HOUR_MS as f64;
                    let angle = 2.0 * std::f64::consts::PI * (hour - BUSIEST_HOUR) / 24.0;
                    let rate = 1.0 + DAILY_AMPLITUDE * libm::cos(angle);
                    if !random.chance(rate / (1.0 + DAILY_AMPLITUDE)) {
                        continue;
                    }
                    at_ms
                }
            };
            if (from_ms..end_ms).contains(&drawn_ms) {
                return drawn_ms;
            }
        }
    }
}

/// Jobs in order of submission, each with a name of its own.
pub(crate) fn in_order(mut jobs: Vec<TraceJob>) -> Vec<TraceJob> {
    jobs.sort_by_key(|job| job.submit_ms);
    for (number, job) in jobs.iter_mut().enumerate() {
        job.id = format!("job-{number:06}");
    }
    jobs
}

/// Jobs of a published trace from one that is drawn by seed until so many days later, on a clock
/// that begins there. Drawn from the jobs, not from the calendar, because the first weeks of some
/// traces hold next to nothing.
pub(crate) fn window(random: &mut Random, jobs: &[TraceJob], days: u32) -> Vec<TraceJob> {
    let length_ms = u64::from(days) * DAY_MS;
    let first_ms = jobs.iter().map(|job| job.submit_ms).min().unwrap_or(0);
    let last_ms = jobs.iter().map(|job| job.submit_ms).max().unwrap_or(0);
    let latest_ms = first_ms.max(last_ms.saturating_sub(length_ms));
    let mut starts: Vec<u64> =
        jobs.iter().map(|job| job.submit_ms).filter(|submit_ms| *submit_ms <= latest_ms).collect();
    starts.sort_unstable();
    let from_ms = if starts.is_empty() { 0 } else { starts[random.below(starts.len())] };
    let inside = jobs.iter().filter(|job| (from_ms..from_ms + length_ms).contains(&job.submit_ms));
    inside.map(|job| TraceJob { submit_ms: job.submit_ms - from_ms, ..job.clone() }).collect()
}

/// What jobs of a table without CPU and memory ask for, for each GPU: cores and GiB, and how often.
/// openb's pods with one GPU ask for 3 to 19 cores. The last is for jobs with one GPU alone: eight
/// of it fit nowhere.
const PER_GPU: [(i64, i64, f64); 3] = [(4, 16, 0.3), (7, 32, 0.3), (14, 64, 0.4)];

/// Gives CPU and memory to jobs that state none.
pub(crate) fn with_requests(seed: u64, mut jobs: Vec<TraceJob>) -> Vec<TraceJob> {
    let mut random = Random::new(seed, Purpose::Shapes);
    for job in &mut jobs {
        let kinds = if job.gpu_count > 1 { &PER_GPU[..2] } else { &PER_GPU[..] };
        let (cores, gib, _) = *random.weighted(kinds, |request| request.2);
        job.cpu_milli = cores * 1000 * i64::from(job.gpu_count.max(1));
        job.memory_bytes = (gib << 30) * i64::from(job.gpu_count.max(1));
    }
    jobs
}

/// Pods of a pool with run times of other jobs: those of one GPU and fewer from jobs of one GPU,
/// larger ones from jobs of several.
///
/// # Errors
/// Says which of these jobs are not there.
pub(crate) fn with_run_times(
    seed: u64,
    pods: &[TraceJob],
    timed: &[TraceJob],
) -> Result<Vec<TraceJob>, String> {
    let mut random = Random::new(seed, Purpose::RunTimes);
    let times = |many: bool| -> Vec<Option<u64>> {
        let alike = timed.iter().filter(|job| (job.total_gpus() > 1) == many);
        alike.map(|job| job.duration_ms).collect()
    };
    let by_size = [times(false), times(true)];
    for (times, (gpus, is_asked)) in by_size.iter().zip([
        ("at most one GPU", pods.iter().any(|pod| pod.gpu_count <= 1)),
        ("several GPUs", pods.iter().any(|pod| pod.gpu_count > 1)),
    ]) {
        if is_asked && times.is_empty() {
            return Err(format!("no job has {gpus}, so pods of {gpus} have no run times"));
        }
    }
    let given = pods.iter().map(|pod| {
        let times = &by_size[usize::from(pod.gpu_count > 1)];
        let duration_ms = times[random.below(times.len())];
        TraceJob { duration_ms, estimate_ms: None, start_ms: None, ..pod.clone() }
    });
    Ok(given.collect())
}

/// Estimates that are off by a factor exp(σ·z), z standard normal, σ = 1.
pub(crate) fn with_wrong_estimates(seed: u64, mut jobs: Vec<TraceJob>) -> Vec<TraceJob> {
    let mut random = Random::new(seed, Purpose::Estimates);
    for job in &mut jobs {
        let factor = libm::exp(random.normal());
        job.estimate_ms = job.duration_ms.map(|ms| (ms as f64 * factor).max(1.0) as u64);
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Vec<TraceJob> {
        let job = |gpus: u32| TraceJob {
            pod_count: 1,
            gpu_count: gpus,
            gpu_milli: 1000,
            duration_ms: Some(3 * HOUR_MS * u64::from(gpus)),
            ..TraceJob::default()
        };
        vec![job(1), job(2), job(4)]
    }

    #[test]
    fn a_filled_stream_asks_for_its_load_inside() {
        for tide in [Tide::Even, Tide::Bursts, Tide::Daily] {
            let mut random = Random::new(5, Purpose::Arrivals);
            let (end_ms, capacity) = (10 * DAY_MS, u128::from(10 * DAY_MS) * 64_000);
            let asked = (capacity * 9 / 10, end_ms);
            let jobs = fill(&mut random, &pool(), tide, (0, end_ms), asked).unwrap();
            let load = demand_inside(&jobs, end_ms) as f64 / capacity as f64;
            assert!((load - 0.9).abs() < 0.005, "{tide:?}: {load}");
            assert!(jobs.iter().all(|job| job.submit_ms < end_ms));
        }
    }

    #[test]
    fn a_window_begins_where_there_are_jobs() {
        // Ten days with a job a day, then ten with a hundred.
        let at = |submit_ms| TraceJob { submit_ms, ..TraceJob::default() };
        let few = (0..10).map(|day| at(day * DAY_MS));
        let many = (0..1_000).map(|number| at(10 * DAY_MS + number * DAY_MS / 100));
        let jobs: Vec<TraceJob> = few.chain(many).collect();
        let full = (0..50).filter(|seed| {
            let mut random = Random::new(*seed, Purpose::Arrivals);
            let window = window(&mut random, &jobs, 5);
            assert_eq!(window[0].submit_ms, 0, "its clock begins with a job");
            window.len() >= 500
        });
        assert!(full.count() >= 45);
        assert!(window(&mut Random::new(1, Purpose::Arrivals), &[], 5).is_empty());
    }

    #[test]
    fn bursts_and_days_bunch_arrivals_as_they_say() {
        let jobs = |tide: Tide| {
            let milli_ms = u128::from(10 * DAY_MS) * 640_000;
            let end_ms = 10 * DAY_MS;
            let mut random = Random::new(1, Purpose::Arrivals);
            fill(&mut random, &pool(), tide, (0, end_ms), (milli_ms, end_ms)).unwrap()
        };
        let busiest_two_hours = |jobs: &[TraceJob]| {
            let of_day = |day: u64| {
                let start = |hour: u64| day * DAY_MS + hour * HOUR_MS;
                let within = |hour: u64| {
                    let span = start(hour)..start(hour + 2);
                    jobs.iter().filter(|job| span.contains(&job.submit_ms)).count()
                };
                (0..23).map(within).max().unwrap_or(0)
            };
            (0..10).map(of_day).sum::<usize>() as f64 / jobs.len() as f64
        };
        let even = busiest_two_hours(&jobs(Tide::Even));
        let bursts = busiest_two_hours(&jobs(Tide::Bursts));
        assert!(even < 0.15 && (0.55..0.75).contains(&bursts), "{even} {bursts}");
        let by_day = jobs(Tide::Daily);
        let day = |job: &&TraceJob| (9..21).contains(&(job.submit_ms % DAY_MS / HOUR_MS));
        let share = by_day.iter().filter(day).count() as f64 / by_day.len() as f64;
        // 1/2 + 0.95 / pi.
        assert!((share - 0.802).abs() < 0.03, "{share}");
    }
}
