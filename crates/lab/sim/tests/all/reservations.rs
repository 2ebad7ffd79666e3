//! Reservations for the jobs that are next.

use dovetail_plan::{EngineConfig, Order, PolicySpec, ReserveConfig};
use dovetail_sim::timed::{Estimates, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};

const HOUR_MS: u64 = 3_600_000;

/// A job with this many GPUs, in pods of one GPU, that runs and is expected to run for so long.
fn job(id: &str, submit_ms: u64, gpus: u32, duration_ms: u64, estimate_ms: u64) -> TraceJob {
    TraceJob {
        id: id.into(),
        submit_ms,
        duration_ms: Some(duration_ms),
        estimate_ms: Some(estimate_ms),
        pod_count: gpus,
        gpu_count: 1,
        gpu_milli: 1000,
        ..TraceJob::default()
    }
}

/// Start of each job in hours, on one machine of 8 GPUs.
fn starts(jobs: Vec<TraceJob>, order: Order, reserve: ReserveConfig) -> Vec<(String, f64)> {
    let node = TraceNode { name: "n".into(), gpu_count: 8, ..TraceNode::default() };
    let world = TimedWorld { nodes: vec![node], jobs, ..TimedWorld::default() };
    let policy = PolicySpec::named("first-fit");
    let engine = EngineConfig { policy, order, reserve, ..EngineConfig::default() };
    let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
    let mut simulation = Simulation::new(world, config).unwrap();
    simulation.run(None, &mut ()).unwrap();
    let start = |view: dovetail_sim::timed::JobView<'_>| {
        let start_ms = view.outcome.start_ms.unwrap_or(u64::MAX);
        (view.job.id.clone(), start_ms as f64 / HOUR_MS as f64)
    };
    simulation.outcomes().map(start).collect()
}

fn reserve(lent_percent: u32) -> ReserveConfig {
    ReserveConfig { heads: 8, lent_percent, ..ReserveConfig::default() }
}

fn of(starts: &[(String, f64)], id: &str) -> f64 {
    starts.iter().find(|(name, _)| name == id).unwrap().1
}

/// Four GPUs are busy for 10 hours; then a job wants all eight, and one after the other come jobs
/// of one GPU for 2 or for 30 hours.
fn classic() -> Vec<TraceJob> {
    let mut jobs = vec![
        job("busy", 0, 4, 10 * HOUR_MS, 10 * HOUR_MS),
        job("wide", 1_000, 8, HOUR_MS, HOUR_MS),
    ];
    for number in 0..4 {
        let submit_ms = 2_000 + number * 1_000;
        jobs.push(job(&format!("short-{number}"), submit_ms, 1, 2 * HOUR_MS, 2 * HOUR_MS));
        jobs.push(job(&format!("long-{number}"), submit_ms, 1, 30 * HOUR_MS, 30 * HOUR_MS));
    }
    jobs
}

#[test]
fn short_jobs_pass_the_head_and_long_ones_do_not() {
    for order in [Order::Fifo, Order::FifoSkip] {
        let starts = starts(classic(), order, reserve(100));
        assert_eq!(of(&starts, "wide"), 10.0, "{order:?} {starts:?}");
        for number in 0..4 {
            assert!(of(&starts, &format!("short-{number}")) < 0.01, "{order:?} {starts:?}");
            assert!(of(&starts, &format!("long-{number}")) >= 11.0, "{order:?} {starts:?}");
        }
    }
}

#[test]
fn without_reservations_the_wide_job_waits_for_the_long_ones() {
    let starts = starts(classic(), Order::FifoSkip, ReserveConfig::default());
    assert!(of(&starts, "wide") > 30.0, "{starts:?}");
}

#[test]
fn work_that_lies_about_its_run_time_delays_the_head_by_no_more_than_the_bound() {
    // Every half hour a job comes that says 6 minutes and runs for 40 hours.
    const LIE_H: f64 = 40.0;
    for (percent, room) in [(100, 8), (50, 4), (25, 2), (12, 0)] {
        let mut jobs = vec![
            job("busy", 0, 4, 10 * HOUR_MS, 10 * HOUR_MS),
            job("wide", 1_000, 8, HOUR_MS, HOUR_MS),
        ];
        for number in 0..100 {
            let submit_ms = 2_000 + number * HOUR_MS / 2;
            jobs.push(job(&format!("liar-{number}"), submit_ms, 1, 40 * HOUR_MS, HOUR_MS / 10));
        }
        let starts = starts(jobs, Order::FifoSkip, reserve(percent));
        let wide = of(&starts, "wide");
        let passed = starts.iter().filter(|(id, start)| id.starts_with("liar") && *start < wide);
        let passed: Vec<f64> = passed.map(|(_, start)| *start).collect();
        // Those that were let into the room at a time: at most B of the eight.
        let runs_at = |time: f64| move |start: &&f64| (**start..**start + LIE_H).contains(&time);
        let at_once = |time: f64| passed.iter().filter(runs_at(time)).count();
        let most = passed.iter().map(|start| at_once(*start + 0.001)).max().unwrap_or(0);
        assert!(most <= room, "{percent} %: {most} at a time, {starts:?}");
        // What they hold between the hour at which the job was to start and its start delays it.
        let in_the_way = |start: &f64| ((start + LIE_H).min(wide) - start.max(10.0)).max(0.0);
        let delay: f64 = passed.iter().map(in_the_way).sum();
        assert!(delay <= f64::from(percent) / 100.0 * 8.0 * wide, "{percent} %: {delay}, {wide}");
        if room == 0 {
            assert_eq!(wide, 10.0, "{starts:?}");
        }
    }
}

#[test]
fn a_job_that_outlives_its_expected_end_moves_the_reservation_and_nothing_else() {
    let mut jobs = classic();
    // It runs for twice as long as it was expected to.
    jobs[0].duration_ms = Some(20 * HOUR_MS);
    jobs.push(job("later", 12 * HOUR_MS, 1, HOUR_MS, HOUR_MS));
    let starts = starts(jobs, Order::FifoSkip, reserve(100));
    assert_eq!(of(&starts, "wide"), 20.0, "{starts:?}");
    // The reservation was moved behind 13 hours: there is an hour for it.
    assert_eq!(of(&starts, "later"), 12.0, "{starts:?}");
}
