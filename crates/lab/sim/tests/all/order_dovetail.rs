//! Order `dovetail`: who waits goes by expected GPU-time, running jobs make place for much shorter
//! ones, and what that costs is what the attempts say.

use dovetail_check::{Judge, Violation};
use dovetail_model::{Action, Event, Plan, PreemptReason};
use dovetail_plan::order::Turns;
use dovetail_plan::{Engine, EngineConfig, Order, PolicySpec, PreemptionConfig};
use dovetail_sim::baseline::{BaselineCluster, BaselineJob, BaselineOrder, replay_baseline};
use dovetail_sim::record::{Checkpoint, Recorder, replay};
use dovetail_sim::timed::{Observer, Simulation, TimedConfig, TimedMetrics, TimedWorld};
use dovetail_trace::{ReadOptions, StopCosts, Trace, TraceJob, TraceNode, read_trace};

const MINUTE_MS: u64 = 60_000;
const STOP_COSTS: StopCosts = StopCosts {
    checkpoint_interval_ms: Some(10 * MINUTE_MS),
    checkpoint_cost_ms: Some(0),
    restart_cost_ms: Some(30_000),
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

/// Between least attained service on real nodes and shortest remaining service, which knows how long
/// jobs run: only submission, GPUs and past run times are known to this order.
#[test]
fn without_estimates_jobs_end_sooner_than_by_attained_service() {
    let Some(folder) = super::traces::folder("without_estimates_jobs_end_sooner") else { return };
    let path = folder.join("jobs/itp_cluster01.csv");
    let trace = read_trace(&path, &ReadOptions::default()).expect("a good trace");
    let las = charged(&trace, vec![8; 8], BaselineOrder::LasPlaced);
    let srsf = charged(&trace, vec![8; 8], BaselineOrder::Srsf);
    let ours = simulated(&trace, nodes(8, 8), "latency");
    let mean = ours.average_jct_s.expect("jobs that ended");
    let part = (las - mean) / (las - srsf);
    println!("las-placed {las:.0} s, srsf {srsf:.0} s, ours {mean:.0} s: {part:.3}; {ours:?}");
    assert!(part > 0.15, "las-placed {las:.0} s, srsf {srsf:.0} s, ours {mean:.0} s: {part:.3}");
    assert!(ours.lost_percent < Some(1.0), "{ours:?}");
}
