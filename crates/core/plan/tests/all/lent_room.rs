//! Room that is reserved for the next job and lent to one that preempts others beside it.

use dovetail_model::job::EstimateSource;
use dovetail_model::{Action, Estimate, Event, HowEnded, JobId, Node, Plan, Queue, Snapshot};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, Order, PolicySpec, PreemptionConfig, ReserveConfig};

use crate::by_hand::{World, asks, whole};

fn config() -> EngineConfig {
    EngineConfig {
        policy: PolicySpec::named("first-fit"),
        order: Order::FifoSkip,
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        reserve: ReserveConfig { heads: 1, ..ReserveConfig::default() },
        ..EngineConfig::default()
    }
}

/// Submits a job of so many GPUs that is expected to run for so long, if that is known.
fn submit(world: &mut World, priority: i32, gpus: u16, run_s: Option<u64>) -> Plan {
    submit_to("q", world, priority, gpus, run_s)
}

/// The same in a queue.
fn submit_to(queue: &str, world: &mut World, priority: i32, gpus: u16, run_s: Option<u64>) -> Plan {
    let estimate = |run_s: u64| {
        let run_ms = run_s * 1_000;
        Estimate { p50_ms: run_ms, p90_ms: run_ms, source: EstimateSource::User }
    };
    world.submit(
        |job| {
            job.queue = queue.to_owned();
            job.priority = priority;
            job.estimate = run_s.map(estimate);
        },
        asks(whole(gpus)),
    )
}

fn started(plan: &Plan) -> Vec<u64> {
    let of = |action: &Action| match action {
        Action::Bind { pod, .. } => Some(pod.job.0),
        _ => None,
    };
    plan.actions.iter().filter_map(of).collect()
}

fn victims(plan: &Plan) -> Vec<u64> {
    let of = |action: &Action| match action {
        Action::Preempt { victims, .. } => victims.clone(),
        _ => Vec::new(),
    };
    plan.actions.iter().flat_map(of).map(|pod| pod.job.0).collect()
}

fn given_back(plan: &Plan) -> Vec<u64> {
    let of = |action: &Action| match action {
        Action::GivenBack { job } => Some(job.0),
        _ => None,
    };
    plan.actions.iter().filter_map(of).collect()
}

/// The second job has left, who was preempted.
fn victim_leaves(world: &mut World) -> Plan {
    world.now_ms = 220_000;
    world.step(Event::Ended { job: JobId(2), how: HowEnded::Preempted })
}

/// On a node of four GPUs two are held for 1,000 s, one is held by a job of low priority, and one
/// is free. It is reserved for a job that needs three after these 1,000 s.
fn with_head() -> World {
    let nodes = vec![Node::plain("n", 64_000, 1_000, 4, "h100")];
    let mut world = World::under(config(), &Snapshot { nodes, ..Snapshot::default() });
    assert_eq!(started(&submit(&mut world, 10, 2, Some(1_000))), [1]);
    assert_eq!(started(&submit(&mut world, 0, 1, None)), [2]);
    world.now_ms = 100_000;
    let plan = submit(&mut world, 10, 3, Some(600));
    assert_eq!((started(&plan), victims(&plan)), (vec![], vec![]));
    assert_eq!(world.engines[0].snapshot().reserved.len(), 1);
    world
}

#[test]
fn a_short_job_preempts_beside_what_is_lent_to_it_and_keeps_that_until_it_starts() {
    let mut world = with_head();
    world.now_ms = 200_000;
    let plan = submit(&mut world, 10, 2, Some(300));
    assert_eq!((started(&plan), victims(&plan)), (vec![], vec![2]));
    let snapshot = world.engines[0].snapshot();
    assert!(snapshot.reserved[0].lent.contains(&JobId(4)));
    // A later job gets none of that, short as it is.
    let plan = submit(&mut world, 10, 1, Some(60));
    assert_eq!((started(&plan), victims(&plan)), (vec![], vec![]));
    let mut restored = Engine::new(config(), &world.engines[0].snapshot()).expect("good");
    world.now_ms = 220_000;
    let left = Event::Ended { job: JobId(2), how: HowEnded::Preempted };
    let plan = world.step(left.clone());
    assert_eq!(started(&plan), [4]);
    assert_eq!(restored.step(left, world.now_ms).as_ref(), Ok(&plan));
    world.now_ms = 500_000;
    assert_eq!(started(&world.end(4)), [5]);
    world.now_ms = 560_000;
    assert_eq!(started(&world.end(5)), [] as [u64; 0]);
    // The reservation was lent, not given up.
    world.now_ms = 1_000_000;
    assert_eq!(started(&world.end(1)), [3]);
}

#[test]
fn a_job_that_may_not_leave_in_time_preempts_nobody_for_what_is_reserved() {
    // 800 s are left, of which its victim may take 90.
    for (run_s, preempts) in [(600, true), (780, false), (900, false)] {
        let mut world = with_head();
        world.now_ms = 200_000;
        let plan = submit(&mut world, 10, 2, Some(run_s));
        assert_eq!((started(&plan), victims(&plan) == [2]), (vec![], preempts), "{run_s}");
    }
}

/// It would hold that long beyond the time at which the head starts.
#[test]
fn a_higher_priority_does_not_take_what_is_lent_to_a_lower_one_alone() {
    let mut world = with_head();
    world.now_ms = 200_000;
    let plan = submit(&mut world, 5, 2, Some(300));
    assert_eq!((started(&plan), victims(&plan)), (vec![], vec![2]));
    let plan = submit(&mut world, 8, 2, None);
    assert_eq!((started(&plan), given_back(&plan)), (vec![], vec![]));
    assert_eq!(started(&victim_leaves(&mut world)), [4]);
    world.now_ms = 500_000;
    assert_eq!(started(&world.end(4)), [] as [u64; 0]);
    world.now_ms = 1_000_000;
    assert_eq!(started(&world.end(1)), [3]);
}

#[test]
fn who_takes_a_claim_in_lent_room_ends_the_reservation_that_lent_it() {
    let mut world = with_head();
    world.now_ms = 200_000;
    assert_eq!(victims(&submit(&mut world, 5, 2, Some(300))), [2]);
    let plan = submit(&mut world, 20, 1, None);
    assert_eq!((started(&plan), given_back(&plan)), (vec![5], vec![4]));
    // The head has other places by now, on which the victim still is.
    assert_eq!(started(&victim_leaves(&mut world)), [] as [u64; 0]);
    world.now_ms = 300_000;
    assert_eq!(started(&submit(&mut world, 5, 1, None)), [] as [u64; 0]);
    world.now_ms = 1_000_000;
    assert_eq!(started(&world.end(1)), [3]);
}

#[test]
fn what_was_lent_for_a_claim_that_is_given_back_is_reserved_again_at_once() {
    let mut world = with_head();
    world.now_ms = 200_000;
    let plan = submit_to("b", &mut world, 5, 2, Some(300));
    assert_eq!((started(&plan), victims(&plan)), (vec![], vec![2]));
    assert_eq!(started(&submit(&mut world, 0, 2, None)), [] as [u64; 0]);
    let mut queue = Queue { borrows: true, ..Queue::named("b") };
    queue.limit.by_model.insert("h100".to_owned(), 0);
    world.step(Event::QueueChanged(Box::new(queue)));
    // Its queue may not hold it any more, and the last job fits beside no reservation.
    let plan = victim_leaves(&mut world);
    assert_eq!((started(&plan), given_back(&plan)), (vec![], vec![4]));
    world.now_ms = 1_000_000;
    assert_eq!(started(&world.end(1)), [3]);
}
