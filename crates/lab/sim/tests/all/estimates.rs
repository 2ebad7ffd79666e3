//! Learned run times.

use dovetail_plan::{EngineConfig, EstimatesConfig, Order, PolicySpec};
use dovetail_sim::timed::{Estimates, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};

const MINUTE_MS: u64 = 60_000;

/// 32 GPUs, and two users whose jobs come in turn: those of one run for about 5 minutes, those of
/// the other for about 8 hours.
fn world(jobs: u64) -> TimedWorld {
    let node =
        |number| TraceNode { name: format!("n{number}"), gpu_count: 8, ..TraceNode::default() };
    let job = |number: u64| TraceJob {
        id: format!("{number}"),
        submit_ms: number * 2 * MINUTE_MS,
        duration_ms: Some([5, 480][number as usize % 2] * MINUTE_MS * (75 + number % 50) / 100),
        pod_count: 1,
        gpu_count: 1 + (number % 3) as u32,
        gpu_milli: 1000,
        user: Some(["short", "long"][number as usize % 2].into()),
        ..TraceJob::default()
    };
    TimedWorld {
        nodes: (0..4).map(node).collect(),
        jobs: (0..jobs).map(job).collect(),
        ..TimedWorld::default()
    }
}

/// Shortest job first, by learned run times.
fn simulation(world: TimedWorld) -> Simulation {
    let engine = EngineConfig {
        policy: PolicySpec::named("first-fit"),
        order: Order::ShortestFirst,
        estimates: EstimatesConfig { learn: true, ..EstimatesConfig::default() },
        ..EngineConfig::default()
    };
    let config = TimedConfig { engine, estimates: Estimates::Learned, ..TimedConfig::default() };
    Simulation::new(world, config).unwrap()
}

fn starts_by(simulation: &Simulation, until_ms: u64) -> Vec<u64> {
    let starts = simulation.outcomes().filter_map(|view| view.outcome.start_ms);
    starts.filter(|start_ms| *start_ms <= until_ms).collect()
}

#[test]
fn a_trace_that_is_cut_decides_the_same_up_to_the_cut() {
    let mut whole = simulation(world(600));
    whole.run(None, &mut ()).unwrap();
    for cut in [20, 100, 400] {
        let until_ms = cut * 2 * MINUTE_MS;
        let mut short = simulation(world(cut));
        short.run(Some(until_ms - 1), &mut ()).unwrap();
        assert_eq!(starts_by(&short, until_ms - 1), starts_by(&whole, until_ms - 1), "cut {cut}");
    }
}

#[test]
fn jobs_of_each_user_are_expected_to_run_as_long_as_those_before() {
    let mut simulation = simulation(world(600));
    simulation.run(None, &mut ()).unwrap();
    let learned = simulation.calibrations()["learned"];
    assert!(learned.jobs > 550, "{learned:?}");
    assert!((0.4..0.9).contains(&learned.within_p50), "{learned:?}");
    assert!((0.8..1.0).contains(&learned.within_p90), "{learned:?}");
    // The median of the newest runs of all is wrong about one user or the other.
    let recent_s = learned.recent_median_loss_s.unwrap();
    assert!(learned.p50_loss_beside_s.unwrap() < 0.8 * recent_s, "{learned:?}");
}

#[test]
fn a_simulation_goes_on_with_what_it_had_learned() {
    let mut whole = simulation(world(300));
    whole.run(None, &mut ()).unwrap();
    let mut first = simulation(world(300));
    first.run(Some(200 * MINUTE_MS), &mut ()).unwrap();
    let snapshot = first.engine.snapshot();
    assert!(snapshot.run_times.as_ref().is_some_and(|tables| tables.version > 0));
    let config = TimedConfig {
        engine: EngineConfig {
            policy: PolicySpec::named("first-fit"),
            order: Order::ShortestFirst,
            estimates: EstimatesConfig { learn: true, ..EstimatesConfig::default() },
            ..EngineConfig::default()
        },
        estimates: Estimates::Learned,
        ..TimedConfig::default()
    };
    let progress = first.progress().clone();
    let mut then = Simulation::resume(world(300), config, &snapshot, progress).unwrap();
    then.run(None, &mut ()).unwrap();
    assert_eq!(then.event_log_hash(), whole.event_log_hash());
}
