//! Room that is reserved for the next job and lent to one that preempts others beside it.

use std::sync::Arc;

use dovetail_check::Judge;
use dovetail_model::job::EstimateSource;
use dovetail_model::{
    Action, DeviceAmount, Estimate, Event, Holding, HoldingId, HoldingPhase, HowEnded, JobId, Node,
    Owner, Plan, PodSet, Queue, Resources, Snapshot,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, Order, PolicySpec, PreemptionConfig, ReserveConfig};

use crate::by_hand::{World, asks, started, victims, whole};

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
    world.submit(
        |job| {
            job.queue = queue.to_owned();
            job.priority = priority;
            job.estimate = run_s.map(estimate);
        },
        asks(whole(gpus)),
    )
}

fn estimate(run_s: u64) -> Estimate {
    let run_ms = run_s * 1_000;
    Estimate { p50_ms: run_ms, p90_ms: run_ms, source: EstimateSource::User }
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

/// Of two nodes of four GPUs one is reserved for a job that needs all of it after 1,000 s: one GPU
/// is held until then, and one is lent. Of the other node two GPUs are free.
fn with_head_on_a_node(lent_percent: u32) -> World {
    let node = |name: &str| Node::plain(name, 64_000, 1_000, 4, "h100");
    let reserve = ReserveConfig { heads: 1, lent_percent, ..ReserveConfig::default() };
    let config = EngineConfig { reserve, ..config() };
    let nodes = vec![node("n0"), node("n1")];
    let mut world = World::under(config, &Snapshot { nodes, ..Snapshot::default() });
    let held = [(1, 1_000), (3, 10), (2, 5_000), (2, 20)];
    for (number, (gpus, run_s)) in held.into_iter().enumerate() {
        assert_eq!(started(&submit(&mut world, 0, gpus, Some(run_s))), [number as u64 + 1]);
    }
    assert_eq!(started(&submit(&mut world, 0, 4, Some(600))), [] as [u64; 0]);
    world.now_ms = 10_000;
    assert_eq!(started(&world.end(2)), [] as [u64; 0]);
    assert_eq!(started(&submit(&mut world, 0, 1, Some(300))), [6]);
    world.now_ms = 20_000;
    assert_eq!(started(&world.end(4)), [] as [u64; 0]);
    let reserved = world.engines[0].snapshot().reserved;
    assert_eq!((reserved[0].claim.job, reserved[0].claim.until_ms), (JobId(5), 1_000_000));
    assert!(reserved[0].lent.contains(&JobId(6)));
    world
}

/// Two pods of two GPUs each, of which one fits outside of what is reserved.
#[test]
fn of_a_job_that_is_lent_room_the_gpus_count_that_are_inside() {
    for (lent_percent, starts) in [(100, true), (75, true), (74, false), (50, false)] {
        let mut world = with_head_on_a_node(lent_percent);
        let plan = world.submit(
            |job| {
                job.queue = "q".to_owned();
                job.estimate = Some(estimate(300));
                job.pod_sets = vec![PodSet::fixed("main", Arc::new(asks(whole(2))), 2)];
            },
            asks(whole(2)),
        );
        let expected = if starts { vec![7, 7] } else { vec![] };
        assert_eq!(started(&plan), expected, "{lent_percent}");
        if !starts {
            continue;
        }
        let snapshot = world.engines[0].snapshot();
        let lent = |percent: u32| {
            Judge::new(&snapshot).with_reserved_places(percent).compare(&snapshot).is_empty()
        };
        assert_eq!((lent(75), lent(74)), (true, false), "three of the four are lent");
        world.now_ms = 310_000;
        assert_eq!(started(&world.end(6)), [] as [u64; 0]);
        world.now_ms = 320_000;
        assert_eq!(started(&world.end(7)), [] as [u64; 0]);
        world.now_ms = 1_000_000;
        assert_eq!(started(&world.end(1)), [5]);
    }
}

/// A node of eight GPUs is reserved for a job that needs all of it after 1,000 s; four of them are
/// held until then. A short job of one to four pods starts in the others.
#[test]
fn a_job_grows_in_lent_room_as_far_as_that_may_be_lent() {
    for (lent_percent, pods) in [(100, 4), (50, 4), (49, 3), (25, 2), (13, 1), (12, 0)] {
        let reserve = ReserveConfig { heads: 1, lent_percent, ..ReserveConfig::default() };
        let nodes = vec![Node::plain("n", 64_000, 1_000, 8, "h100")];
        let snapshot = Snapshot { nodes, ..Snapshot::default() };
        let mut world = World::under(EngineConfig { reserve, ..config() }, &snapshot);
        assert_eq!(started(&submit(&mut world, 0, 4, Some(1_000))), [1]);
        assert_eq!(started(&submit(&mut world, 0, 8, Some(600))), [] as [u64; 0]);
        let plan = world.submit(
            |job| {
                job.queue = "q".to_owned();
                job.estimate = Some(estimate(300));
                (job.pod_sets[0].min, job.pod_sets[0].max) = (1, 4);
            },
            asks(whole(1)),
        );
        assert_eq!(started(&plan), vec![3; pods], "{lent_percent}");
        let snapshot = world.engines[0].snapshot();
        let lent = |percent: u32| {
            Judge::new(&snapshot).with_reserved_places(percent).compare(&snapshot).is_empty()
        };
        if pods == 4 {
            assert_eq!((lent(50), lent(49)), (true, false), "four of the eight are lent");
        }
        if pods > 0 {
            world.now_ms = 300_000;
            assert_eq!(started(&world.end(3)), [] as [u64; 0]);
        }
        world.now_ms = 1_000_000;
        assert_eq!(started(&world.end(1)), [2], "{lent_percent}");
    }
}

/// A GPU of a node of three is held by somebody outside, who stays longer than was expected.
fn held_outside(end_ms: u64) -> Event {
    Event::ForeignHeld(Box::new(Holding {
        id: HoldingId(0),
        node: "n0".into(),
        owner: Owner::Foreign("outside".into()),
        phase: HoldingPhase::Held { expected_end_ms: Some(end_ms) },
        reservation: None,
        resources: Resources::pod(0, 0),
        devices: vec![(0, DeviceAmount::share(1_000, 0))],
        counts_into: Default::default(),
        attachments: Default::default(),
    }))
}

/// What is reserved for a job counts on the end of another, which is spared for that. Once it is to
/// start elsewhere, and later, a job of a priority between theirs preempts the other.
#[test]
fn whom_no_reservation_counts_on_any_more_is_preempted_for_others() {
    let node = |name: &str| Node::plain(name, 64_000, 1_000, 3, "h100");
    let nodes = vec![node("n0"), node("n1")];
    let mut world = World::under(config(), &Snapshot { nodes, ..Snapshot::default() });
    world.step(held_outside(100_000));
    assert_eq!(started(&submit(&mut world, 0, 2, Some(200))), [1]);
    assert_eq!(started(&submit(&mut world, 10, 3, Some(1_000))), [2]);
    let plan = world.submit(
        |job| {
            job.queue = "q".to_owned();
            job.priority = 10;
            job.estimate = Some(estimate(600));
            job.preemption.never_preempts = true;
        },
        asks(whole(3)),
    );
    assert_eq!(started(&plan), [] as [u64; 0]);
    let until_ms = |world: &World| world.engines[0].snapshot().reserved[0].claim.until_ms;
    assert_eq!(until_ms(&world), 200_000);
    assert_eq!(victims(&submit(&mut world, 5, 2, None)), [] as [u64; 0]);
    world.now_ms = 101_000;
    assert_eq!(victims(&world.step(Event::Tick)), [1]);
    assert_eq!(until_ms(&world), 1_000_000);
}
