//! Order `dovetail`: who waits goes by expected GPU-time, running jobs make place where many more
//! end then, and what that costs is what the attempts say.

use dovetail_check::{Judge, Violation};
use dovetail_model::{Action, Event, Plan, PreemptReason};
use dovetail_order::Turns;
use dovetail_plan::{Engine, EngineConfig, Order, PolicySpec, PreemptionConfig};
use dovetail_sim::baseline::{BaselineCluster, BaselineJob, BaselineOrder, replay_baseline};
use dovetail_sim::record::{Checkpoint, Recorder, replay};
use dovetail_sim::timed::{Observer, Simulation, TimedConfig, TimedMetrics, TimedWorld};
use dovetail_trace::{ReadOptions, StopCosts, Trace, TraceJob, TraceNode, read_trace};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const MINUTE_MS: u64 = 60_000;
const STOP_COSTS: StopCosts = StopCosts {
    checkpoint_interval_ms: Some(10 * MINUTE_MS),
    checkpoint_cost_ms: Some(0),
    restart_cost_ms: Some(30_000),
    save_on_notice_ms: None,
};

fn config(preset: &str) -> TimedConfig {
    let turns = Turns::preset(preset).expect("a preset");
    let preemption = PreemptionConfig { enabled: turns.preempts, ..PreemptionConfig::default() };
    let policy = PolicySpec::named("first-fit");
    let engine = EngineConfig {
        policy,
        order: Order::Dovetail,
        preemption,
        turns,
        ..EngineConfig::default()
    };
    TimedConfig { engine, stop_costs: STOP_COSTS, ..TimedConfig::default() }
}

fn nodes(count: u32, gpu_count: u32) -> Vec<TraceNode> {
    let node = |at: u32| TraceNode { name: format!("n{at}"), gpu_count, ..TraceNode::default() };
    (0..count).map(node).collect()
}

fn job(id: &str, submit_min: u64, minutes: u64, gpus: u32, estimate_min: Option<u64>) -> TraceJob {
    TraceJob {
        id: id.to_owned(),
        submit_ms: submit_min * MINUTE_MS,
        duration_ms: Some(minutes * MINUTE_MS),
        estimate_ms: estimate_min.map(|minutes| minutes * MINUTE_MS),
        pod_count: 1,
        gpu_count: gpus,
        gpu_milli: 1000,
        ..TraceJob::default()
    }
}

#[test]
fn a_long_job_makes_place_for_a_short_one_and_goes_on_from_its_checkpoint() {
    let jobs = vec![job("long", 0, 300, 8, Some(300)), job("short", 25, 5, 8, Some(5))];
    let world = TimedWorld { jobs, nodes: nodes(1, 8), ..TimedWorld::default() };
    let mut simulation = Simulation::new(world, config("latency")).expect("a good world");
    assert!(simulation.run(None, &mut ()).expect("runs"));
    let ends: Vec<_> = simulation.outcomes().map(|view| view.outcome.end_ms).collect();
    // Of 25 minutes 20 are kept. The short one ends at 30; 280 and half a minute follow.
    assert_eq!(ends, [Some(310 * MINUTE_MS + 30_000), Some(30 * MINUTE_MS)]);
    let metrics = simulation.metrics();
    assert_eq!((metrics.preemptions, metrics.restarts), (1, 1));
    assert_eq!(metrics.lost_gpu_s, 8.0 * (5.0 * 60.0 + 30.0));
}

#[test]
fn jobs_that_write_no_checkpoint_make_place_for_nobody() {
    let jobs = vec![job("long", 0, 300, 8, Some(300)), job("short", 25, 5, 8, Some(5))];
    let world = TimedWorld { jobs, nodes: nodes(1, 8), ..TimedWorld::default() };
    let config = TimedConfig { stop_costs: StopCosts::default(), ..config("latency") };
    let mut simulation = Simulation::new(world, config).expect("a good world");
    assert!(simulation.run(None, &mut ()).expect("runs"));
    assert_eq!(simulation.metrics().preemptions, 0);
}

/// When each of these jobs ended with the preset `latency` on one node of eight GPUs, in minutes,
/// and how many preemptions there were.
fn ends(jobs: Vec<TraceJob>) -> (Vec<f64>, u64) {
    let world = TimedWorld { jobs, nodes: nodes(1, 8), ..TimedWorld::default() };
    let mut simulation = Simulation::new(world, config("latency")).expect("a good world");
    assert!(simulation.run(None, &mut ()).expect("runs"));
    let end_ms = simulation.outcomes().map(|view| view.outcome.end_ms.expect("all end"));
    let ends = end_ms.map(|end_ms| end_ms as f64 / MINUTE_MS as f64).collect();
    (ends, simulation.metrics().preemptions)
}

#[test]
fn what_nobody_uses_counts_for_nobody() {
    // The gang asks for more GPU time than a third of what is expected of the other. But half of
    // its GPUs are idle, and it ends in less than a third of the time.
    let jobs = vec![job("half", 0, 300, 4, Some(300)), job("gang", 25, 60, 8, Some(60))];
    assert_eq!(ends(jobs), (vec![365.5, 85.0], 1));
}

#[test]
fn a_gang_makes_place_for_smaller_jobs_if_enough_of_them_wait() {
    let gang = job("gang", 0, 150, 8, Some(150));
    let small = |id: &str, submit_min: u64| job(id, submit_min, 60, 1, Some(60));
    // For one of them, seven GPUs would be idle.
    let jobs = vec![gang.clone(), small("one", 25)];
    assert_eq!(ends(jobs), (vec![150.0, 210.0], 0));
    // The second wakes the first.
    let jobs = vec![gang, small("one", 25), small("two", 26)];
    assert_eq!(ends(jobs), (vec![216.5, 86.0, 86.0], 1));
}

/// Every step is judged.
struct Judged {
    judge: Judge,
    found: Vec<Violation>,
    by_order: usize,
}

impl Observer for Judged {
    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        events.iter().for_each(|event| self.judge.event(event, now_ms));
        self.found.extend(self.judge.plan(plan));
        let by_order = |action: &&Action| {
            matches!(action, Action::Preempt { reason: PreemptReason::Order, .. })
        };
        let count = plan.actions.iter().filter(by_order).count();
        if count > 0 {
            self.found.extend(self.judge.compare(&engine.snapshot()));
        }
        self.by_order += count;
    }
}

/// Bursts of jobs that last alike, some short, some long, of one GPU or several.
fn bursts() -> TimedWorld {
    let mut jobs = Vec::new();
    for burst in 0..40_u64 {
        let minutes = [4, 300, 45, 900, 9][burst as usize % 5];
        let gpus = [1, 2, 8, 1, 4][burst as usize / 2 % 5];
        for at in 0..6 {
            let id = format!("{burst}-{at}");
            jobs.push(job(&id, burst * 35 + at, minutes + at * 7 % 5, gpus, None));
        }
    }
    TimedWorld { jobs, nodes: nodes(3, 8), ..TimedWorld::default() }
}

#[test]
fn steps_are_judged_and_replay_and_a_pause_changes_nothing() {
    for preset in ["fair", "throughput", "latency"] {
        let config = config(preset);
        let mut simulation = Simulation::new(bursts(), config.clone()).expect("a good world");
        let judge = Judge::new(&simulation.engine.snapshot());
        let mut judged = Judged { judge, found: Vec::new(), by_order: 0 };
        assert!(simulation.run(None, &mut judged).expect("runs"));
        assert_eq!(judged.found, [], "{preset}");
        assert_eq!(judged.by_order > 10, preset == "latency", "{preset}: {}", judged.by_order);
        let hash = simulation.event_log_hash();

        let mut again = Simulation::new(bursts(), config.clone()).expect("a good world");
        let mut recorder =
            Recorder::start("log", Vec::new(), "test", &config.engine, &again.engine);
        assert!(again.run(None, &mut recorder).expect("runs"));
        let recording = recorder.finish().expect("written");
        let report = replay("log", recording.as_slice()).expect("its own recording");
        assert_eq!((report.divergence, &report.event_log_hash), (None, &hash), "{preset}");

        let mut first = Simulation::new(bursts(), config.clone()).expect("a good world");
        assert!(!first.run(Some(500 * MINUTE_MS), &mut ()).expect("runs"));
        let paused = Checkpoint::of(&first, &bursts(), &config, "test");
        let text = serde_json::to_string(&paused).expect("plain data");
        let paused: Checkpoint = serde_json::from_str(&text).expect("its own text");
        let mut second = paused.resume(bursts()).expect("the same world");
        assert!(second.run(None, &mut ()).expect("runs"));
        assert_eq!(second.event_log_hash(), hash, "{preset}");
    }
}

/// Mean time to the end in seconds of a published order that pays for stops.
fn charged(trace: &Trace, gpus: Vec<u32>, order: BaselineOrder) -> f64 {
    let jobs = BaselineJob::charged(trace, STOP_COSTS).expect("jobs with times");
    let pool = BaselineCluster::new(gpus).expect("GPUs");
    let run = replay_baseline(&jobs, &pool, order, None, &mut |_| {}).expect("runs");
    run.metrics.average_jct_s
}

fn simulated(trace: &Trace, nodes: Vec<TraceNode>, preset: &str) -> TimedMetrics {
    let world = TimedWorld { jobs: trace.jobs.clone(), nodes, ..TimedWorld::default() };
    let mut simulation = Simulation::new(world, config(preset)).expect("a good world");
    assert!(simulation.run(None, &mut ()).expect("runs"));
    simulation.metrics()
}

/// How much of the way from least attained service on real nodes to shortest remaining service,
/// which knows how long jobs run, this order goes: only submission, GPUs and past run times are
/// known to it. Also what it lost, in percent of the GPU time used.
#[expect(clippy::print_stdout, reason = "a measurement that people read")]
fn part_of_the_way(file: &str, count: u32) -> Option<(f64, f64)> {
    let folder = super::traces::folder("without_estimates_jobs_end_sooner")?;
    let path = folder.join("jobs").join(file);
    let mut trace = read_trace(&path, &ReadOptions::default()).expect("a good trace");
    trace.jobs.retain(|job| (1..=u64::from(count) * 8).contains(&job.total_gpus()));
    let pool = vec![8; count as usize];
    let las = charged(&trace, pool.clone(), BaselineOrder::LasPlaced);
    let srsf = charged(&trace, pool, BaselineOrder::Srsf);
    let ours = simulated(&trace, nodes(count, 8), "latency");
    let mean = ours.average_jct_s.expect("jobs that ended");
    let part = (las - mean) / (las - srsf);
    println!(
        "{file}: las-placed {las:.0} s, srsf {srsf:.0} s, ours {mean:.0} s: {part:.3}; {ours:?}"
    );
    Some((part, ours.lost_percent.expect("work")))
}

#[test]
fn without_estimates_jobs_end_sooner_than_by_attained_service() {
    for (file, count) in [("itp_cluster01.csv", 8), ("muri_trace3.csv", 8)] {
        let Some((part, lost_percent)) = part_of_the_way(file, count) else { return };
        assert!(part > 0.15, "{file}: {part:.3}");
        assert!(lost_percent < 1.5, "{file}: {lost_percent:.2}%");
    }
}

/// The other rows of the table; these take minutes.
#[test]
#[ignore = "minutes: a measurement"]
fn the_rest_of_the_table() {
    let rest = [
        ("muri_trace4.csv", 8),
        ("itp_cluster05.csv", 3),
        ("itp_cluster04.csv", 64),
        ("itp_cluster07.csv", 34),
    ];
    for (file, count) in rest {
        part_of_the_way(file, count);
    }
}

/// Small jobs, and gangs of a higher priority; checkpoints from ten minutes to eight hours apart,
/// and of three in ten jobs none.
fn gangs_over_small(seed: u64) -> TimedWorld {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut between = |low: f64, high: f64| {
        let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        (low.ln() + uniform * (high / low).ln()).exp()
    };
    let mut jobs = Vec::new();
    let mut at_min = 0.0;
    for number in 0..600_u32 {
        let is_gang = number % 10 == 9;
        at_min += between(1.0, 8.0);
        let gpus = if is_gang { 8 } else { 1 << (number % 3) };
        let minutes = between(20.0, if is_gang { 120.0 } else { 900.0 }) as u64;
        let mut job = job(&number.to_string(), at_min as u64, minutes, gpus, None);
        job.pod_count = if is_gang { 1 + number / 10 % 4 } else { 1 };
        job.priority = i32::from(is_gang);
        let interval_ms = (between(10.0, 480.0) * MINUTE_MS as f64) as u64;
        job.stop_costs = StopCosts {
            checkpoint_interval_ms: Some(interval_ms).filter(|_| number % 10 >= 3),
            checkpoint_cost_ms: None,
            restart_cost_ms: Some(60_000),
            save_on_notice_ms: None,
        };
        jobs.push(job);
    }
    TimedWorld { jobs, nodes: nodes(8, 8), ..TimedWorld::default() }
}

/// Victims by work lost cost less than by number and start time, as kube-scheduler chooses, and
/// those that they make place for do not wait longer.
#[test]
fn gangs_of_higher_priority_cost_less_work() {
    let run = |order: Order, seed: u64| {
        let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
        let policy = PolicySpec::named("first-fit");
        let engine = EngineConfig { policy, order, preemption, ..EngineConfig::default() };
        let config = TimedConfig { engine, ..TimedConfig::default() };
        let mut simulation = Simulation::new(gangs_over_small(seed), config).expect("a good world");
        assert!(simulation.run(None, &mut ()).expect("runs"));
        let gangs = simulation.outcomes().filter(|view| view.job.priority > 0);
        let wait_ms = |view: dovetail_sim::timed::JobView<'_>| {
            view.outcome.start_ms.expect("it started") - view.outcome.submit_ms
        };
        (simulation.metrics().lost_gpu_s, gangs.map(wait_ms).sum::<u64>())
    };
    let mut totals = [(0.0, 0); 2];
    for seed in 1..=3 {
        for (total, order) in totals.iter_mut().zip([Order::FifoSkip, Order::Dovetail]) {
            let (lost_gpu_s, wait_ms) = run(order, seed);
            *total = (total.0 + lost_gpu_s, total.1 + wait_ms);
        }
    }
    let [as_kube, ours] = totals;
    assert!(as_kube.0 > 0.0 && ours.0 < 0.95 * as_kube.0, "{as_kube:?} {ours:?}");
    assert!(ours.1 <= as_kube.1 * 11 / 10, "{as_kube:?} {ours:?}");
}

/// Jobs that save their work when they are told to stop: a preemption loses that time at most, also
/// of a job without checkpoints.
#[test]
fn a_preemption_with_notice_loses_the_time_to_save() {
    const SAVE_MS: u64 = 30_000;
    let mut world = gangs_over_small(1);
    for job in &mut world.jobs {
        job.stop_costs.save_on_notice_ms = Some(SAVE_MS);
    }
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let engine = EngineConfig {
        policy: PolicySpec::named("first-fit"),
        order: Order::Dovetail,
        preemption,
        ..EngineConfig::default()
    };
    let config = TimedConfig { engine, ..TimedConfig::default() };
    let mut simulation = Simulation::new(world, config).expect("a good world");
    assert!(simulation.run(None, &mut ()).expect("runs"));
    let mut preempted = 0;
    for view in simulation.outcomes() {
        let most = u128::from(view.outcome.preemptions) * u128::from(SAVE_MS);
        let repeated = view.outcome.repeated_gpu_milli_ms;
        assert!(repeated <= most * view.job.total_gpu_milli(), "{}: {repeated}", view.job.id);
        preempted += view.outcome.preemptions;
    }
    assert!(preempted > 20, "{preempted} preemptions");
}
