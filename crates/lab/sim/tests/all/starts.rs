//! Expected starts of pending jobs, held against what comes.

use dovetail_model::{Bounds, JobId, Queue};
use dovetail_order::Turns;
use dovetail_plan::{EngineConfig, Foresight, Order, PolicySpec, PreemptionConfig, ReserveConfig};
use dovetail_sim::timed::{
    Estimates, Simulation, StartEstimate, StartWatch, TimedConfig, TimedWorld,
};
use dovetail_trace::{StopCosts, TraceJob, TraceNode};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const HOUR_MS: u64 = 3_600_000;

fn nodes(count: u32) -> Vec<TraceNode> {
    let node = |at: u32| TraceNode { name: format!("n{at}"), gpu_count: 8, ..TraceNode::default() };
    (0..count).map(node).collect()
}

fn job(id: &str, submit_ms: u64, duration_ms: u64, pods: u32, gpus: u32) -> TraceJob {
    TraceJob {
        id: id.to_owned(),
        submit_ms,
        duration_ms: Some(duration_ms),
        pod_count: pods,
        gpu_count: gpus,
        gpu_milli: 1000,
        ..TraceJob::default()
    }
}

/// Jobs of all sizes, half an hour apart on average, or all at once.
fn world(seed: u64, all_at_once: bool) -> TimedWorld {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut below = |most: u64| random.next_u64() % most;
    let mut submit_ms = 0;
    let mut jobs = Vec::new();
    for number in 0..80 {
        submit_ms += if all_at_once { 0 } else { below(HOUR_MS / 2) };
        let gpus = 1 << below(4);
        let pods = if gpus == 8 { 1 + below(3) as u32 } else { 1 };
        let duration_ms = 60_000 + below(12 * HOUR_MS);
        jobs.push(job(&number.to_string(), submit_ms, duration_ms, pods, gpus));
    }
    TimedWorld { nodes: nodes(4), jobs, ..TimedWorld::default() }
}

fn config(order: Order, heads: u32, policy: &str) -> TimedConfig {
    let turns = Turns::preset("latency").expect("a preset");
    let enabled = order == Order::Dovetail;
    let engine = EngineConfig {
        policy: PolicySpec::named(policy),
        order,
        turns,
        preemption: PreemptionConfig { enabled, ..PreemptionConfig::default() },
        reserve: ReserveConfig { heads, ..ReserveConfig::default() },
        ..EngineConfig::default()
    };
    let stop_costs = StopCosts {
        checkpoint_interval_ms: Some(600_000),
        checkpoint_cost_ms: Some(1_000),
        restart_cost_ms: Some(30_000),
        save_on_notice_ms: None,
    };
    TimedConfig { engine, estimates: Estimates::Truth, stop_costs, ..TimedConfig::default() }
}

fn judged(world: TimedWorld, config: TimedConfig) -> StartEstimate {
    let mut simulation = Simulation::new(world, config).expect("a good world");
    let mut watch = StartWatch::new(1, Foresight { max_steps: 1_000_000, ..Foresight::default() });
    assert!(simulation.run(None, &mut watch).expect("runs"));
    watch.figures()
}

#[test]
fn with_exact_run_times_and_nobody_later_every_start_comes_true() {
    let orders = [
        (Order::Fifo, 0, "dovetail"),
        (Order::FifoSkip, 0, "best-fit"),
        (Order::FifoSkip, 8, "dovetail"),
        (Order::ShortestFirst, 0, "dovetail"),
        (Order::Dovetail, 0, "first-fit"),
        (Order::Dovetail, 1, "dovetail"),
    ];
    for (order, heads, policy) in orders {
        for seed in 1..=5 {
            let starts = judged(world(seed, true), config(order, heads, policy));
            let told = format!("{order:?} {heads} {policy} {seed}: {starts:?}");
            assert!(starts.jobs > 50 && starts.unknown == 0, "{told}");
            assert_eq!(starts.worst_p50_error_s, Some(0.0), "{told}");
        }
    }
}

/// In that instant the engine is asked twice: when it has decided who is preempted, and when these
/// have left.
#[test]
fn a_forecast_in_the_instant_of_a_preemption_is_made_when_the_victims_have_left() {
    let of = |queue: &str, job: TraceJob| TraceJob { queue: Some(queue.to_owned()), ..job };
    let jobs = vec![
        of("lent", job("borrows", 0, 10 * HOUR_MS, 1, 8)),
        of("ours", job("reclaims", HOUR_MS, HOUR_MS, 1, 4)),
        of("ours", job("waits", HOUR_MS, HOUR_MS, 1, 8)),
    ];
    let queue = |name: &str| Queue {
        guaranteed: Bounds::gpus(Some(4_000)),
        borrows: true,
        ..Queue::named(name)
    };
    let queues = vec![queue("lent"), queue("ours")];
    let world = TimedWorld { nodes: nodes(1), jobs, queues, ..TimedWorld::default() };
    let mut config = config(Order::Dovetail, 0, "first-fit");
    config.engine.turns = Turns::preset("kai").expect("a preset");
    config.stop_costs = StopCosts::default();
    let starts = judged(world, config);
    // The first two start at once: only the last one is asked about while it is pending.
    assert_eq!((starts.jobs, starts.unknown), (1, 0), "{starts:?}");
    assert_eq!(starts.worst_p50_error_s, Some(0.0), "{starts:?}");
}

#[test]
fn in_the_order_of_submission_every_start_comes_true_whoever_comes_later() {
    for seed in 1..=10 {
        let starts = judged(world(seed, false), config(Order::Fifo, 0, "best-fit"));
        assert!(starts.jobs > 30 && starts.forecasts > 20, "{starts:?}");
        assert_eq!((starts.unknown, starts.worst_p50_error_s), (0, Some(0.0)), "{starts:?}");
        // Where later jobs pass, starts come later than expected.
        let passed = judged(world(seed, false), config(Order::FifoSkip, 0, "best-fit"));
        assert!(passed.worst_p50_error_s > Some(0.0), "{passed:?}");
    }
}

#[test]
fn a_job_waits_for_those_that_leave_its_nodes() {
    let jobs = vec![
        job("long", 0, 10 * HOUR_MS, 1, 4),
        job("short", 0, 5 * HOUR_MS, 1, 4),
        job("whole", 0, HOUR_MS, 1, 8),
        job("never", 0, HOUR_MS, 2, 8),
    ];
    let world = TimedWorld { nodes: nodes(1), jobs, ..TimedWorld::default() };
    let asked = |estimates: Estimates, foresight: Foresight| {
        let stop_costs = StopCosts::default();
        let config =
            TimedConfig { estimates, stop_costs, ..config(Order::FifoSkip, 0, "first-fit") };
        let mut simulation = Simulation::new(world.clone(), config).expect("a good world");
        assert!(!simulation.run(Some(HOUR_MS), &mut ()).expect("runs"));
        foresight.expected_starts(&simulation.engine)
    };
    let exact = asked(Estimates::Truth, Foresight::default());
    let [whole, never] = exact.as_slice() else { panic!("two jobs wait: {exact:?}") };
    assert_eq!((whole.p50_ms, whole.p90_ms), (Some(10 * HOUR_MS), Some(10 * HOUR_MS)));
    assert_eq!(whole.after, [JobId(0), JobId(1)], "the last first");
    assert_eq!(whole.nodes.iter().map(|node| &**node).collect::<Vec<_>>(), ["n0"]);
    assert_eq!((never.p50_ms, never.after.len(), never.nodes.len()), (None, 0, 0));
    // Where nothing is known, and within no steps, nothing is said.
    for starts in [
        asked(Estimates::None, Foresight::default()),
        asked(Estimates::Truth, Foresight { max_steps: 0, ..Foresight::default() }),
    ] {
        assert!(starts.iter().all(|start| start.p50_ms.is_none() && start.nodes.is_empty()));
    }
}
