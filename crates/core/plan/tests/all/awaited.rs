//! Jobs on whose ends reservations count are not preempted for others, and free GPUs are reserved.
//! When a reservation ends, whatever ends it, others take both at once.

use std::sync::Arc;

use dovetail_model::job::EstimateSource;
use dovetail_model::{Booking, Estimate, Event, Job, Node, Plan, PodSet, Requirement, Snapshot};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, Engine, Order, PolicySpec, PreemptionConfig, ReserveConfig};

use crate::by_hand::{World, asks, started, victims, whole};

/// One job at a time has a reservation.
fn config() -> EngineConfig {
    EngineConfig {
        policy: PolicySpec::named("first-fit"),
        order: Order::FifoSkip,
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        reserve: ReserveConfig { heads: 1, ..ReserveConfig::default() },
        ..EngineConfig::default()
    }
}

/// Nodes with so many GPUs each.
fn world(gpus: &[usize]) -> World {
    let node =
        |(at, gpus): (usize, &usize)| Node::plain(&format!("n{at}"), 64_000, 1_000, *gpus, "h100");
    let nodes = gpus.iter().enumerate().map(node).collect();
    World::under(config(), &Snapshot { nodes, ..Snapshot::default() })
}

/// Submits a job of so many pods and GPUs that is expected to run for so long, if that is known.
fn submit(
    world: &mut World,
    priority: i32,
    (pods, gpus): (u32, u16),
    run_s: Option<u64>,
    preempts: bool,
) -> Plan {
    let requirement = asks(whole(gpus));
    let pod_set = PodSet::fixed("main", Arc::new(requirement.clone()), pods);
    let change = |job: &mut Job| {
        job.queue = "q".to_owned();
        job.priority = priority;
        job.estimate = run_s.map(|run_s| Estimate {
            p50_ms: run_s * 1_000,
            p90_ms: run_s * 1_000,
            source: EstimateSource::User,
        });
        job.preemption.never_preempts = !preempts;
        job.pod_sets = vec![pod_set];
    };
    world.submit(change, requirement)
}

/// Job 1 has all three GPUs of a node, job 2 the four of another one and job 3, of which the test
/// says when it ends, those of a third one. Of the jobs that wait, job 4 has the reservation, which
/// counts on the end of job 1, job 5 gets one on the node of job 2 after it, and job 6 may preempt
/// job 1 alone.
fn with_awaited() -> World {
    let mut world = world(&[3, 4, 3]);
    for (number, (priority, gpus, run_s)) in
        [(0, 3, 200), (10, 4, 1_000), (10, 3, 5_000)].into_iter().enumerate()
    {
        let plan = submit(&mut world, priority, (1, gpus), Some(run_s), true);
        assert_eq!(started(&plan), [number as u64 + 1]);
    }
    for (priority, gpus) in [(10, 3), (8, 4)] {
        let plan = submit(&mut world, priority, (1, gpus), Some(600), false);
        assert_eq!(started(&plan), [] as [u64; 0]);
    }
    assert_eq!(reserved(&world), [(4, 200_000)]);
    assert_eq!(victims(&submit(&mut world, 5, (1, 3), None, true)), [] as [u64; 0]);
    world
}

fn reserved(world: &World) -> Vec<(u64, u64)> {
    reserved_by(&world.engines[0])
}

fn reserved_by(engine: &Engine) -> Vec<(u64, u64)> {
    let reserved = engine.snapshot().reserved;
    reserved.iter().map(|reserved| (reserved.claim.job.0, reserved.claim.until_ms)).collect()
}

#[test]
fn whom_a_withdrawn_job_waited_for_is_preempted_for_others() {
    let mut world = with_awaited();
    world.now_ms = 10_000;
    assert_eq!(victims(&world.end(4)), [1]);
    assert_eq!(reserved(&world), [(5, 1_000_000)]);
}

#[test]
fn whom_a_job_waited_for_that_starts_elsewhere_is_preempted_for_others() {
    let mut world = with_awaited();
    world.now_ms = 10_000;
    let plan = world.end(3);
    assert_eq!((started(&plan), victims(&plan)), (vec![4], vec![1]));
}

/// Books three GPUs of a node from then on.
fn book(world: &mut World, from_ms: u64) {
    let requirement: Arc<Requirement> = Arc::new(asks(whole(3)));
    world.step(Event::BookingSet(Box::new(Booking {
        name: "booked".to_owned(),
        beneficiary: None,
        requirement,
        count: 1,
        from_ms,
        to_ms: 400_000,
        was_admitted: false,
    })));
}

fn removed() -> Event {
    Event::BookingRemoved { name: "booked".to_owned() }
}

/// All three GPUs are booked for later, job 1 has them, and job 2 may preempt no other job.
fn with_awaited_by_booking() -> World {
    let mut world = world(&[3]);
    assert_eq!(started(&submit(&mut world, 0, (1, 3), Some(200), true)), [1]);
    book(&mut world, 300_000);
    assert_eq!(victims(&submit(&mut world, 5, (1, 3), None, true)), [] as [u64; 0]);
    world
}

#[test]
fn whom_a_booking_counted_on_that_is_removed_is_preempted_for_others() {
    let mut world = with_awaited_by_booking();
    assert_eq!(victims(&world.step(removed())), [1]);
}

/// What each engine decides after the booking was removed, and who has a reservation then; the same
/// as an engine that is restored from a snapshot between the two.
fn decided_after_removal(world: &mut World) -> [(Plan, Vec<(u64, u64)>); 2] {
    let now_ms = world.now_ms;
    let mut naive = [false, true].into_iter();
    world.engines.each_mut().map(|engine| {
        engine.step(Batch::pending(removed()), now_ms).expect("a booking");
        let config = EngineConfig { naive: naive.next().expect("two engines"), ..config() };
        let mut restored = Engine::new(config, &engine.snapshot()).expect("a good world");
        let [live, again] = [engine, &mut restored].map(|engine| {
            let plan = engine.step(Batch::decision(), now_ms).expect("a decision");
            (plan, reserved_by(engine))
        });
        assert_eq!(live, again);
        live
    })
}

#[test]
fn whom_a_removed_booking_counted_on_is_preempted_by_an_engine_that_is_restored() {
    for (plan, _) in decided_after_removal(&mut with_awaited_by_booking()) {
        assert_eq!(victims(&plan), [1]);
    }
}

/// Job 2 waits for all GPUs of a node, of which job 1 has half and the other half is booked: a
/// booking is taken to stay.
#[test]
fn a_time_is_found_after_a_booking_was_removed_by_an_engine_that_is_restored() {
    let mut world = world(&[6]);
    assert_eq!(started(&submit(&mut world, 0, (1, 3), Some(200), true)), [1]);
    book(&mut world, 0);
    assert_eq!(started(&submit(&mut world, 0, (1, 6), Some(600), false)), [] as [u64; 0]);
    assert!(reserved(&world).is_empty());
    for (_, reserved) in decided_after_removal(&mut world) {
        assert_eq!(reserved, [(2, 200_000)]);
    }
}

/// Two pods wait for one node and have the other one reserved. A job of higher priority that waits
/// for all of the former is reserved its room there instead, and the latter is free.
#[test]
fn what_was_reserved_for_a_job_that_yields_is_used_in_the_same_cycle() {
    let mut world = world(&[6, 4]);
    assert_eq!(started(&submit(&mut world, 10, (1, 6), Some(260), true)), [1]);
    assert_eq!(started(&submit(&mut world, 5, (2, 4), Some(600), true)), [] as [u64; 0]);
    assert_eq!(reserved(&world), [(2, 260_000)]);
    assert_eq!(started(&submit(&mut world, 5, (1, 4), Some(700), true)), [] as [u64; 0]);
    assert_eq!(started(&submit(&mut world, 8, (1, 6), Some(200), true)), [3]);
    assert_eq!(reserved(&world), [(4, 260_000)]);
}
