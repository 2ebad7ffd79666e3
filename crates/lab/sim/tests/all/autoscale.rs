//! A pool of machines that come and go with the work.

use std::collections::BTreeSet;

use dovetail_plan::{EngineConfig, PolicySpec};
use dovetail_sim::timed::{Autoscaler, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};

const MINUTE_MS: u64 = 60_000;

#[test]
fn a_pool_machine_comes_when_jobs_wait_and_goes_when_it_is_empty() {
    let node = |name: &str| TraceNode { name: name.into(), gpu_count: 4, ..TraceNode::default() };
    let job = |at_min: u64, minutes: u64| TraceJob {
        id: at_min.to_string(),
        submit_ms: at_min * MINUTE_MS,
        duration_ms: Some(minutes * MINUTE_MS),
        pod_count: 1,
        gpu_count: 4,
        gpu_milli: 1000,
        ..TraceJob::default()
    };
    let pool = Autoscaler {
        nodes: BTreeSet::from(["pool".to_owned()]),
        start_ms: 10 * MINUTE_MS,
        idle_ms: 5 * MINUTE_MS,
    };
    let world = TimedWorld {
        nodes: vec![node("pool"), node("always")],
        // The second finds no room, so the pool's machine is ordered at 1, there from 11 to 36; the
        // third finds it gone, and the fourth finds the other one free.
        jobs: vec![job(0, 90), job(1, 20), job(40, 5), job(200, 1)],
        autoscaler: Some(pool),
        ..TimedWorld::default()
    };
    let engine = EngineConfig { policy: PolicySpec::named("first-fit"), ..EngineConfig::default() };
    let config = TimedConfig { engine, ..TimedConfig::default() };
    let mut simulation = Simulation::new(world, config).unwrap();
    simulation.run(None, &mut ()).unwrap();
    let starts: Vec<u64> =
        simulation.outcomes().map(|view| view.outcome.start_ms.unwrap() / MINUTE_MS).collect();
    assert_eq!(starts, [0, 11, 50, 200]);
    // 11 to 31 and 5 more, then 50 to 55 and 5 more.
    let minutes = simulation.pool_node_hours().unwrap() * 60.0;
    assert!((minutes - 35.0).abs() < 1e-9, "{minutes}");
}
