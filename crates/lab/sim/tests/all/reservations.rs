//! Reservations for the jobs that are next.

use dovetail_check::{Judge, Violation};
use dovetail_model::{Event, Plan, Reserved, Snapshot};
use dovetail_plan::{Engine, EngineConfig, Order, PolicySpec, ReserveConfig};
use dovetail_sim::timed::{Estimates, Observer, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

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
        assert!(most <= room, "{percent}%: {most} at a time, {starts:?}");
        // What they hold between the hour at which the job was to start and its start delays it.
        let in_the_way = |start: &f64| ((start + LIE_H).min(wide) - start.max(10.0)).max(0.0);
        let delay: f64 = passed.iter().map(in_the_way).sum();
        assert!(delay <= f64::from(percent) / 100.0 * 8.0 * wide, "{percent}%: {delay}, {wide}");
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

/// Every step is judged, and so is what is reserved after it.
struct Judged {
    judge: Judge,
    found: Vec<Violation>,
    reserved: usize,
    lent: usize,
    /// A world in which something is lent.
    kept: Option<(Judge, Snapshot)>,
}

impl Observer for Judged {
    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        events.iter().for_each(|event| self.judge.event(event, now_ms));
        self.found.extend(self.judge.plan(plan));
        let snapshot = engine.snapshot();
        self.found.extend(self.judge.compare(&snapshot));
        self.reserved += snapshot.reserved.len();
        let lends = |reserved: &&Reserved| !reserved.lent.is_empty();
        self.lent += snapshot.reserved.iter().filter(lends).count();
        if self.kept.is_none() && snapshot.reserved.iter().any(|reserved| lends(&reserved)) {
            self.kept = Some((self.judge.clone(), snapshot));
        }
    }
}

/// Jobs of three queues and two priorities, from one GPU to four nodes, whose users are right about
/// run times, or wrong by up to four times.
fn busy(seed: u64) -> TimedWorld {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut below = |most: u64| random.next_u64() % most;
    let mut submit_ms = 0;
    let mut jobs = Vec::new();
    for number in 0..150 {
        submit_ms += below(HOUR_MS / 3);
        let pods = [1, 2, 4, 8, 16, 32][below(6) as usize];
        let duration_ms = 60_000 + below(8 * HOUR_MS);
        let estimate_ms = duration_ms * (1 + below(16)) / 4;
        let mut job = job(&number.to_string(), submit_ms, pods, duration_ms, estimate_ms);
        job.queue = Some(["a", "b", "c"][below(3) as usize].to_owned());
        job.priority = i32::from(below(10) == 0);
        jobs.push(job);
    }
    let node = |at: u64| TraceNode { name: format!("n{at}"), gpu_count: 8, ..TraceNode::default() };
    TimedWorld { nodes: (0..4).map(node).collect(), jobs, ..TimedWorld::default() }
}

#[test]
fn what_is_reserved_is_free_once_those_have_gone_that_it_counts_on() {
    let mut kept = None;
    let (mut reserved, mut lent) = (0, 0);
    for seed in 1..=6 {
        let engine = EngineConfig {
            policy: PolicySpec::named("best-fit"),
            order: Order::FifoSkip,
            reserve: reserve(50),
            ..EngineConfig::default()
        };
        let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
        let mut simulation = Simulation::new(busy(seed), config).unwrap();
        let judge = Judge::new(&simulation.engine.snapshot()).with_reserved_places(50);
        let mut judged = Judged { judge, found: Vec::new(), reserved: 0, lent: 0, kept: None };
        simulation.run(None, &mut judged).unwrap();
        assert_eq!(judged.found, [], "seed {seed}");
        (reserved, lent) = (reserved + judged.reserved, lent + judged.lent);
        kept = kept.or(judged.kept);
    }
    assert!(reserved > 1_000 && lent > 50, "{reserved} {lent}");

    // What would be wrong is found.
    let (judge, good) = kept.expect("something was lent");
    let lie = |change: &dyn Fn(&mut Reserved)| {
        let mut snapshot = good.clone();
        let lends = |reserved: &&mut Reserved| !reserved.lent.is_empty();
        change(snapshot.reserved.iter_mut().find(lends).unwrap());
        judge.compare(&snapshot)
    };
    assert_eq!(lie(&|_| {}), []);
    let is_reservation = |found: &Violation| matches!(found, Violation::Reservation { .. });
    for found in [
        lie(&|reserved| reserved.claim.awaited.clear()),
        lie(&|reserved| drop(reserved.claim.places.pop())),
        lie(&|reserved| reserved.claim.places[0].node = "nowhere".into()),
    ] {
        assert!(found.iter().any(is_reservation), "{found:?}");
    }
    let strict = judge.clone().with_lent_percent(0);
    assert!(strict.compare(&good).iter().any(is_reservation));
}
