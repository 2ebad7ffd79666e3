//! What looking for victims takes on many nodes, in counted operations.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{
    Action, DeviceAmount, DeviceRequest, Event, Holding, HoldingId, HoldingPhase, Job, JobId, Node,
    Owner, PodId, Resources, Snapshot,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, Engine, PolicySpec, PreemptionConfig, SearchEffort};

use crate::by_hand::{asks, whole};

const NODES: u64 = 2_000;
const PER_NODE: u64 = 8;

/// Nodes that are full of pods of one GPU; the first pod of each is protected if `protects`.
fn full(protects: bool) -> Engine {
    let name = |node: u64| format!("n{node}");
    let nodes = (0..NODES).map(|node| Node::plain(&name(node), 64_000, 100, 8, "h100")).collect();
    let requirement = Arc::new(asks(whole(1)));
    let (mut jobs, mut holdings) = (Vec::new(), Vec::new());
    for number in 0..NODES * PER_NODE {
        let (id, index) = (JobId(number), number % PER_NODE);
        let mut job = Job::single(id, "low", 0, Arc::clone(&requirement));
        job.start_ms = Some(number * 7_919 % 10_007);
        job.pod_sets[0].present = 1;
        job.preemption.is_protected = protects && index == 0;
        jobs.push(job);
        holdings.push(Holding {
            id: HoldingId(number),
            node: name(number / PER_NODE).as_str().into(),
            owner: Owner::Pod(PodId { job: id, pod_set: 0, ordinal: 0 }),
            phase: HoldingPhase::Held { expected_end_ms: None },
            reservation: None,
            resources: Resources::pod(0, 0),
            devices: vec![(index as u16, DeviceAmount::share(1_000, 0))],
            counts_into: Default::default(),
            attachments: BTreeSet::new(),
        });
    }
    let snapshot = Snapshot { now_ms: 20_000, nodes, jobs, holdings, ..Snapshot::default() };
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let policy = PolicySpec::named("best-fit");
    let config = EngineConfig { policy, preemption, ..EngineConfig::default() };
    Engine::new(config, &snapshot).expect("a good world")
}

fn apply(engine: &mut Engine, id: u64, gpus: u16) {
    let mut job = Job::single(JobId(id), "high", 0, Arc::new(asks(whole(gpus))));
    job.priority = 9;
    engine.step(Batch::pending(Event::Submitted(Box::new(job))), 20_000).expect("a new job");
}

fn cycle(engine: &mut Engine) -> (usize, SearchEffort) {
    let plan = engine.step(Batch::decision(), 20_000).expect("a decision");
    let is_order = |action: &&Action| matches!(action, Action::Preempt { .. });
    let orders = plan.actions.iter().filter(is_order).count();
    (orders, engine.take_search_effort())
}

#[test]
fn jobs_that_ask_for_the_same_share_what_was_found_out() {
    let mut engine = full(false);
    apply(&mut engine, 1 << 20, 1);
    let (orders, effort) = cycle(&mut engine);
    assert_eq!((orders, effort.searches), (1, 1));
    assert!(effort.operations < 2 * NODES, "{effort:?}");
    for job in 1..101 {
        apply(&mut engine, (1 << 20) + job, 1);
    }
    let (orders, effort) = cycle(&mut engine);
    assert_eq!((orders, effort.searches), (100, 100));
    assert!(effort.operations < 2 * NODES + 100 * 200, "{effort:?}");
}

#[test]
fn what_cannot_be_is_not_looked_for_again_and_again() {
    let mut engine = full(true);
    apply(&mut engine, 1 << 20, 8);
    let (orders, effort) = cycle(&mut engine);
    assert_eq!((orders, effort.searches), (0, 1));
    assert!(effort.operations < 12 * NODES, "{effort:?}");
    for node in 0..100 {
        let end = |engine: &mut Engine, index: u64| {
            let pod = PodId { job: JobId(node * PER_NODE + index), pod_set: 0, ordinal: 0 };
            engine.step(Batch::pending(Event::pod_ended(pod)), 20_000).expect("a pod that runs");
        };
        end(&mut engine, 1);
        assert_eq!(cycle(&mut engine), (0, SearchEffort::default()));
    }
    // Without the protected pod there is a way.
    let pod = PodId { job: JobId(7 * PER_NODE), pod_set: 0, ordinal: 0 };
    engine.step(Batch::pending(Event::pod_ended(pod)), 20_000).expect("a pod that runs");
    assert_eq!(cycle(&mut engine).0, 1);
}

#[test]
fn a_decision_names_as_many_victims_as_it_may() {
    let mut engine = full(false);
    for job in 0..7 {
        apply(&mut engine, (1 << 20) + job, 1);
    }
    // Nobody is preempted for it: it starts beside the jobs that wait for the next decision.
    let job = Job::single(JobId(1 << 21), "cpu", 0, Arc::new(asks(DeviceRequest::None)));
    engine.step(Batch::pending(Event::Submitted(Box::new(job))), 20_000).expect("a new job");
    let decide = |engine: &mut Engine, most: u64| {
        let batch = Batch::decision().with_victims(most);
        let plan = engine.step(batch, 20_000).expect("a decision");
        let victims = |action: &Action| match action {
            Action::Preempt { victims, .. } => victims.len(),
            _ => 0,
        };
        let starts = plan.actions.iter().any(|action| matches!(action, Action::Bind { .. }));
        let victims: usize = plan.actions.iter().map(victims).sum();
        (victims, starts, engine.is_held_back, engine.due_ms() == Some(20_000))
    };
    assert_eq!(decide(&mut engine, 3), (3, true, true, false));
    assert_eq!(decide(&mut engine, 0), (0, false, true, false));
    assert_eq!(decide(&mut engine, 3), (3, false, true, false));
    assert_eq!(decide(&mut engine, 3), (1, false, false, false));
    // A job gets all victims that it needs, or none.
    apply(&mut engine, 1 << 22, 8);
    assert_eq!(decide(&mut engine, 3), (8, false, false, false));
}
