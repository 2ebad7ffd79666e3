//! Queues: what they are given bounds what they hold, and who holds least for its weight goes
//! first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::{
    Action, Axis, BoundBy, Bounds, DeviceRequest, Event, Job, JobId, Node, PendingReason, Plan,
    PodSet, Queue, Requirement, Resources, Snapshot,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, Engine, Order, PreemptionConfig, QuotaBlock};
use proptest::prelude::*;

use crate::by_hand::{World, asks, placed, whole};
use crate::recipe::{cases, queue};

/// A node with so many CPUs and GPUs.
fn node(cpus: i64, gpus: u16) -> Node {
    Node::plain("n", cpus * 1_000, 1 << 40, usize::from(gpus), "H100")
}

fn world(queues: Vec<Queue>) -> World {
    World::of(&Snapshot { nodes: vec![node(100, 16)], queues, ..Snapshot::default() })
}

fn waits(plan: &Plan) -> Option<PendingReason> {
    plan.actions.iter().find_map(|action| match action {
        Action::Wait { reason, .. } => Some(*reason),
        _ => None,
    })
}

#[test]
fn a_queue_holds_what_it_is_guaranteed_and_borrows_only_if_it_may_and_up_to_its_limit() {
    let given = |borrows| Queue {
        guaranteed: Bounds { cpu_milli: Some(1_000), ..Bounds::gpus(Some(4_000)) },
        limit: Bounds::gpus(Some(6_000)),
        borrows,
        ..queue("team", Some("all"), None)
    };
    let mut world = world(vec![given(false), queue("all", None, None)]);
    let team = |job: &mut Job| job.queue = "team".to_owned();
    assert_eq!(placed(&world.submit(team, asks(whole(3)))).len(), 1);
    let over = world.submit(team, asks(whole(2)));
    assert_eq!(waits(&over), Some(PendingReason::WaitingForQuota));
    let block = QuotaBlock {
        queue: "team".to_owned(),
        axis: Axis::Gpu,
        used: 3_000,
        kept: 0,
        asked: 2_000,
        most: 4_000,
        by: BoundBy::Guaranteed,
    };
    assert_eq!(world.engines[0].list().quota_block(JobId(2)), Some(block.clone()));
    let lent = world.step(Event::QueueChanged(Box::new(given(true))));
    assert_eq!(placed(&lent).len(), 1, "it may borrow");
    world.submit(team, asks(whole(2)));
    let limited = QuotaBlock { used: 5_000, most: 6_000, by: BoundBy::Limit, ..block };
    assert_eq!(world.engines[0].list().quota_block(JobId(3)), Some(limited));
    // What asks for nothing of what is short is not held up by it.
    world
        .step(Event::QueueChanged(Box::new(Queue { limit: Bounds::gpus(Some(0)), ..given(true) })));
    let no_gpu = Requirement { resources: Resources::pod(900, 0), ..Requirement::default() };
    assert_eq!(placed(&world.submit(team, no_gpu.clone())).len(), 1);
    world.step(Event::QueueChanged(Box::new(given(false))));
    let cpu = world.submit(team, no_gpu);
    assert_eq!(waits(&cpu), Some(PendingReason::WaitingForQuota), "1,000 of 1,000 are held");
    // Without the queue nothing bounds its jobs.
    let gone = world.step(Event::QueueRemoved { name: "team".to_owned() });
    assert_eq!(placed(&gone).len(), 2);
}

/// Found by a rehearsal: while a job of its queue could be preempted, one that waited for its quota
/// waited for room, too, and was then tried only where something was freed.
#[test]
fn a_job_that_waited_for_its_quota_starts_where_room_was_all_the_time() {
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let small = Node::plain("small", 100_000, 1 << 40, 2, "T4");
    let guaranteed = Bounds::gpus(Some(8_000));
    let team = Queue { guaranteed, borrows: false, ..queue("team", None, None) };
    let nodes = vec![node(100, 8), small];
    let start = Snapshot { nodes, queues: vec![team], ..Snapshot::default() };
    let mut world = World::with(&start, preemption);
    let of_team = |priority: i32| {
        move |job: &mut Job| (job.queue, job.priority) = ("team".to_owned(), priority)
    };
    let mut on_small = asks(whole(1));
    on_small.gpu_models = ["T4".to_owned()].into();
    for priority in [10, 0] {
        assert_eq!(placed(&world.submit(of_team(priority), on_small.clone())).len(), 1);
    }
    let plan = world.submit(of_team(5), asks(whole(8)));
    assert_eq!(waits(&plan), Some(PendingReason::WaitingForQuota));
    assert_eq!(placed(&world.end(2)).len(), 0, "its queue still holds one");
    assert_eq!(placed(&world.end(1)).len(), 1, "on the node that was free");
}

#[test]
fn what_fits_is_as_much_as_there_is_room_for_and_the_queue_may_hold() {
    let team = Queue { limit: Bounds::gpus(Some(6_000)), ..queue("team", None, None) };
    let mut world = world(vec![team]);
    world.submit(|job| job.queue = "team".to_owned(), asks(whole(1)));
    let wants = |queue: &str, gpus: u16, pods: u32| {
        let set = PodSet::fixed("main", Arc::new(asks(whole(gpus))), pods);
        let job = Job::single(JobId(77), "asked", 0, Arc::default());
        Job { queue: queue.to_owned(), pod_sets: vec![set], ..job }
    };
    let before = world.engines[0].snapshot();
    let table = [("team", 1, 9, 5), ("team", 2, 9, 2), ("", 1, 9, 9), ("", 2, 9, 7), ("", 1, 0, 0)];
    for (queue, gpus, pods, expected) in table {
        for engine in &mut world.engines {
            let places = engine.ask().what_fits(&wants(queue, gpus, pods)).expect("known levels");
            assert_eq!(places.len(), expected, "{queue} {gpus} {pods}");
        }
    }
    assert_eq!(world.engines[0].snapshot(), before);
}

/// A job of the random worlds: queue, priority, GPUs, CPUs.
type Asked = (usize, i32, u16, i64);

/// Queues of the random worlds with their parents: a tree of two levels, and one queue with jobs of
/// its own and others below it.
const TREE: [(&str, Option<&str>); 6] = [
    ("a", None),
    ("b", None),
    ("a-one", Some("a")),
    ("a-two", Some("a")),
    ("b-one", Some("b")),
    ("c", None),
];

fn ancestors(name: &str) -> Vec<&str> {
    let parent = TREE.iter().find(|(queue, _)| *queue == name).and_then(|(_, parent)| *parent);
    parent.into_iter().chain([name]).collect()
}

/// The order in which jobs start, by pencil and paper: all fit, so every one changes only who is
/// next.
fn by_hand(weights: &[u32], jobs: &[Asked], capacity: (i64, i64)) -> Vec<usize> {
    let weight = |name: &str| {
        let at = TREE.iter().position(|(queue, _)| *queue == name).expect("a queue of the tree");
        i64::from(weights[at])
    };
    // (GPUs, CPUs) with everything below, and by jobs of its own.
    let mut all: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    let mut own = all.clone();
    let mut started = Vec::new();
    while started.len() < jobs.len() {
        let part = |held: &BTreeMap<&str, (i64, i64)>, name: &str| {
            let (gpus, cpus) = held.get(name).copied().unwrap_or_default();
            // Over the common denominator of both parts and all weights.
            let dominant = (gpus * capacity.1).max(cpus * capacity.0);
            dominant * 6 / weight(name)
        };
        let place = |at: &usize| {
            let (queue, priority, ..) = jobs[*at];
            let name = TREE[queue].0;
            let mut shares: Vec<i64> =
                ancestors(name).into_iter().map(|above| part(&all, above)).collect();
            shares.push(part(&own, name));
            (Reverse(priority), shares, *at)
        };
        let waiting = (0..jobs.len()).filter(|at| !started.contains(at));
        let next = waiting.min_by_key(place).expect("not all have started");
        let (queue, _, gpus, cpus) = jobs[next];
        let name = TREE[queue].0;
        for above in ancestors(name) {
            let held = all.entry(above).or_default();
            *held = (held.0 + i64::from(gpus), held.1 + cpus);
        }
        let held = own.entry(name).or_default();
        *held = (held.0 + i64::from(gpus), held.1 + cpus);
        started.push(next);
    }
    started
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn the_smallest_weighted_dominant_share_goes_first(
        weights in proptest::array::uniform6(1_u32..4),
        jobs in proptest::collection::vec((0_usize..6, 0_i32..2, 0_u16..5, 1_i64..9), 1..30),
    ) {
        let (gpus, cpus) = (160, 400);
        let queues = TREE.iter().zip(weights).map(|((name, parent), weight)| {
            Queue { weight, ..queue(name, *parent, None) }
        });
        let snapshot = Snapshot {
            nodes: vec![node(cpus, gpus)],
            queues: queues.collect(),
            ..Snapshot::default()
        };
        let config = EngineConfig { order: Order::DominantShare, ..EngineConfig::default() };
        let mut engine = Engine::new(config, &snapshot).expect("a good world");
        for (at, (queue, priority, gpus, cpus)) in jobs.iter().enumerate() {
            let resources = Resources::pod(cpus * 1_000, 0);
            let device = if *gpus == 0 { DeviceRequest::None } else { whole(*gpus) };
            let requirement = Requirement { resources, ..asks(device) };
            let mut job = Job::single(JobId(at as u64), "job", 0, Arc::new(requirement));
            (job.queue, job.priority) = (TREE[*queue].0.to_owned(), *priority);
            let submitted = Batch::pending(Event::Submitted(Box::new(job)));
            engine.step(submitted, 0).expect("a good job");
        }
        let plan = engine.step(Batch::decision(), 0).expect("a decision");
        let order: Vec<usize> = plan.actions.iter().filter_map(|action| match action {
            Action::Bind { pod, .. } => Some(pod.job.0 as usize),
            _ => None,
        }).collect();
        prop_assert_eq!(order, by_hand(&weights, &jobs, (i64::from(gpus), cpus)));
    }
}
