//! Orders that look at queues.

use dovetail_model::Queue;
use dovetail_plan::{EngineConfig, Order, PolicySpec};
use dovetail_sim::timed::{Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};

const HOUR_MS: u64 = 3_600_000;

/// Four GPUs; `many` jobs of an hour from queue `a` at 0, then as many from `b` a second later.
fn world(many: u64, weights: [u32; 2]) -> TimedWorld {
    let node = TraceNode { name: "n".into(), gpu_count: 4, ..TraceNode::default() };
    let job = |queue: &str, submit_ms: u64, number: u64| TraceJob {
        id: format!("{queue}{number}"),
        submit_ms,
        duration_ms: Some(HOUR_MS),
        pod_count: 1,
        gpu_count: 1,
        gpu_milli: 1000,
        queue: Some(queue.into()),
        ..TraceJob::default()
    };
    let of_a = (0..many).map(|number| job("a", 0, number));
    let of_b = (0..many).map(|number| job("b", 1000, number));
    let jobs: Vec<TraceJob> = of_a.chain(of_b).collect();
    let weighted = |(queue, weight): (Queue, u32)| Queue { weight, ..queue };
    let queues = TimedWorld::named_queues(&jobs).into_iter().zip(weights).map(weighted).collect();
    TimedWorld { nodes: vec![node], jobs, queues, ..TimedWorld::default() }
}

/// First starts of the jobs of each queue, in order of time.
fn starts(world: TimedWorld, order: Order) -> [Vec<u64>; 2] {
    let policy = PolicySpec::named("first-fit");
    let engine = EngineConfig { policy, order, ..EngineConfig::default() };
    let half = world.jobs.len() / 2;
    let config = TimedConfig { engine, ..TimedConfig::default() };
    let mut simulation = Simulation::new(world, config).unwrap();
    simulation.run(None, &mut ()).unwrap();
    let started = simulation.outcomes().map(|view| view.outcome.start_ms.unwrap());
    let all: Vec<u64> = started.collect();
    let sorted = |part: &[u64]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part
    };
    [sorted(&all[..half]), sorted(&all[half..])]
}

#[test]
fn dominant_share_lets_the_queue_with_less_go_first() {
    let [a, b] = starts(world(8, [1, 1]), Order::FifoSkip);
    assert!(a.iter().max() < b.iter().min(), "by submission, all of a goes before b");
    let [a, b] = starts(world(8, [1, 1]), Order::DominantShare);
    // Alone at first, a has all four GPUs; from then on each holds two of them.
    assert_eq!(a, [0, 0, 0, 0, 1, 1, 2, 2].map(|hour| hour * HOUR_MS));
    assert_eq!(b, [1, 1, 2, 2, 3, 3, 3, 3].map(|hour| hour * HOUR_MS));
}

#[test]
fn a_queue_of_three_times_the_weight_holds_three_times_as_much() {
    let [a, b] = starts(world(16, [1, 3]), Order::DominantShare);
    let started_at =
        |starts: &[u64], hour: u64| starts.iter().filter(|start| **start == hour * HOUR_MS).count();
    // All four GPUs fall free each hour: 3 go to b, which weighs 3, and 1 to a.
    for hour in [1, 2, 3, 4] {
        assert_eq!(
            (started_at(&a, hour), started_at(&b, hour)),
            (1, 3),
            "hour {hour}: {a:?} {b:?}"
        );
    }
}
