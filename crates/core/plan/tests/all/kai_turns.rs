//! Preset `kai`: who starts where a queue would hold more than it should, and who is preempted for
//! that.

use dovetail_model::job::EstimateSource;
use dovetail_model::{
    Bounds, Estimate, Event, Job, JobId, Node, Plan, Queue, Requirement, Snapshot,
};
use dovetail_order::Turns;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, Engine, Order, PolicySpec, PreemptionConfig, ReserveConfig};
use std::sync::Arc;

use crate::by_hand::{World, asks, started, victims, whole};

fn config(heads: u32) -> EngineConfig {
    EngineConfig {
        policy: PolicySpec::named("first-fit"),
        order: Order::Dovetail,
        turns: Turns::preset("kai").expect("a preset"),
        preemption: PreemptionConfig {
            enabled: true,
            by_priority: false,
            ..PreemptionConfig::default()
        },
        reserve: ReserveConfig { heads, ..ReserveConfig::default() },
        ..EngineConfig::default()
    }
}

/// Nodes of four GPUs.
fn nodes(count: usize) -> Vec<Node> {
    let node = |at: usize| Node::plain(&format!("n{at}"), 64_000, 1_000, 4, "h100");
    (0..count).map(node).collect()
}

fn queue(name: &str, quota: i64) -> Queue {
    let guaranteed = Bounds::gpus(Some(quota * 1_000));
    Queue { guaranteed, borrows: true, ..Queue::named(name) }
}

/// Submits a job of so many GPUs that is expected to run for so long.
fn submit(world: &mut World, queue: &str, gpus: u16, run_s: u64) -> Plan {
    let run_ms = run_s * 1_000;
    let estimate = Estimate { p50_ms: run_ms, p90_ms: run_ms, source: EstimateSource::User };
    let change = |job: &mut Job| {
        job.queue = queue.to_owned();
        job.estimate = Some(estimate);
    };
    world.submit(change, asks(whole(gpus)))
}

/// Two queues should have two of four GPUs each. The first job of one asks for all four, that of
/// the other for six: the former goes first, and the next one of the latter asks for one.
#[test]
fn a_job_does_not_start_where_another_would_reclaim_its_place_at_once() {
    let job = |number: u64, queue: &str, gpus: u16, priority: i32| {
        let requirement: Arc<Requirement> = Arc::new(asks(whole(gpus)));
        let job = Job::single(JobId(number), "job", 0, requirement);
        Event::Submitted(Box::new(Job { queue: queue.to_owned(), priority, ..job }))
    };
    let events = vec![job(1, "wide", 4, 0), job(2, "small", 6, 1), job(3, "small", 1, 0)];
    for naive in [false, true] {
        let config = EngineConfig { naive, ..config(0) };
        let snapshot = Snapshot { nodes: nodes(1), ..Snapshot::default() };
        let mut engine = Engine::new(config, &snapshot).expect("a good world");
        let plan = engine.step(Batch::of(events.clone()), 0).expect("good events");
        assert_eq!((started(&plan), victims(&plan)), (vec![3], vec![]), "{naive}");
    }
}

/// Two departments share a node, each with a quota for all of it. The first team of one asks for
/// all, the second, without a quota, for a quarter. The other department asks for half.
#[test]
fn a_department_is_compared_by_the_first_job_of_its_teams() {
    let team = |name: &str, quota: i64, parent: Option<&str>| {
        let guaranteed = Bounds { cpu_milli: Some(64_000), ..Bounds::gpus(Some(quota * 1_000)) };
        Queue { guaranteed, parent: parent.map(str::to_owned), ..queue(name, quota) }
    };
    let queues = vec![
        team("ours", 4, None),
        team("first", 4, Some("ours")),
        team("second", 0, Some("ours")),
        team("theirs", 4, None),
    ];
    let job = |number: u64, queue: &str, gpus: u16| {
        let job = Job::single(JobId(number), "job", 0, Arc::new(asks(whole(gpus))));
        Event::Submitted(Box::new(Job { queue: queue.to_owned(), ..job }))
    };
    let events = vec![job(1, "first", 4), job(2, "second", 1), job(3, "theirs", 2)];
    for naive in [false, true] {
        let config = EngineConfig { naive, ..config(0) };
        let snapshot = Snapshot { nodes: nodes(1), queues: queues.clone(), ..Snapshot::default() };
        let mut engine = Engine::new(config, &snapshot).expect("a good world");
        let plan = engine.step(Batch::of(events.clone()), 0).expect("good events");
        assert_eq!((started(&plan), victims(&plan)), (vec![3, 2], vec![]), "{naive}");
    }
}

/// One queue holds its quota of four, the other three of its four, and its first job, which asks
/// for four more, has a reservation on the node of the former. Then a GPU is free.
#[test]
fn a_head_with_a_reservation_does_not_stand_for_those_of_its_queue_that_stay_within_its_quota() {
    let queues = vec![queue("ours", 4), queue("theirs", 4)];
    let snapshot = Snapshot { nodes: nodes(2), queues, ..Snapshot::default() };
    let mut world = World::under(config(1), &snapshot);
    for (number, (queue, gpus, run_s)) in
        [("ours", 2, 1_000), ("ours", 1, 1_000), ("ours", 1, 100), ("theirs", 4, 800)]
            .into_iter()
            .enumerate()
    {
        let plan = submit(&mut world, queue, gpus, run_s);
        assert_eq!(started(&plan), [number as u64 + 1]);
    }
    for (at_ms, queue, gpus, run_s) in
        [(10_000, "ours", 4, 60), (20_000, "theirs", 1, 5_000), (30_000, "ours", 1, 50)]
    {
        world.now_ms = at_ms;
        let plan = submit(&mut world, queue, gpus, run_s);
        assert_eq!((started(&plan), victims(&plan)), (vec![], vec![]), "{at_ms}");
    }
    let reserved = world.engines[0].snapshot().reserved;
    let heads: Vec<(u64, u64)> =
        reserved.iter().map(|reserved| (reserved.claim.job.0, reserved.claim.until_ms)).collect();
    assert_eq!(heads, [(5, 800_000)]);
    world.now_ms = 100_000;
    let plan = world.end(3);
    assert_eq!((started(&plan), victims(&plan)), (vec![7], vec![]));
}

#[test]
fn whoever_has_started_in_this_instant_is_preempted_in_the_next() {
    let queues = vec![queue("ours", 4), queue("theirs", 1)];
    let snapshot = Snapshot { nodes: nodes(1), queues, ..Snapshot::default() };
    let mut world = World::under(config(0), &snapshot);
    world.now_ms = 20_000;
    // Alone, it should have all of the node.
    assert_eq!(started(&submit(&mut world, "theirs", 4, 600)), [1]);
    let plan = submit(&mut world, "ours", 4, 600);
    assert_eq!((started(&plan), victims(&plan)), (vec![], vec![]));
    assert_eq!(world.engines[0].due_ms(), Some(20_001));
    world.now_ms = 20_001;
    assert_eq!(victims(&world.step(Event::Tick)), [1]);
}
