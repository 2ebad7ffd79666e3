//! Random worlds and events: followed, computed from nothing, and read off the definition, the
//! account is the same, and it always adds up.

use std::collections::BTreeMap;

use dovetail_capacity::{FreeTracker, Picture, what_is_free};
use dovetail_cases::cases;
use dovetail_model::requirement::{Operator, Toleration};
use dovetail_model::topology::Level;
use dovetail_model::{
    Bounds, CounterRule, CounterScope, DeviceAmount, Event, FreeCause, Holding, HoldingId,
    HoldingPhase, Job, JobId, Knowledge, Node, NodeAvailability, NodeCondition, Owner, PodSet,
    Queue, Requirement, ReservationId, Resources, RuleCause, RuleKind, SelectorTerm, Snapshot,
    Taint, TaintEffect, Topology, TopologyRequest,
};
use dovetail_plan::Engine;
use proptest::prelude::*;

use crate::oracle::{Verdict, judge};
use crate::world::{engine, share, whole};

/// A draw of numbers that a world or an event is made of.
type Draw = Vec<u32>;

/// Reads a draw number by number; beyond its end everything is 0.
pub(crate) struct Reader<'d>(pub(crate) std::slice::Iter<'d, u32>);

impl Reader<'_> {
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0.next().copied().unwrap_or(0) % bound
    }

    pub(crate) fn one_in(&mut self, chance: u32) -> bool {
        self.below(chance) == chance - 1
    }
}

fn random_node(draw: &mut Reader<'_>, name: u32) -> Node {
    let gpus = draw.below(5) as usize;
    let mut node = Node::plain(&format!("n{name}"), 8_000, 16, gpus, "a");
    node.allocatable.pod_slots = i64::from(2 + draw.below(5));
    if draw.one_in(4) {
        node.knowledge = Knowledge::Counted;
    }
    for device in &mut node.devices {
        if draw.one_in(4) {
            device.model = "b".to_owned();
        }
        device.healthy = !draw.one_in(8);
        device.memory_bytes = if draw.one_in(3) { 80 } else { 40 };
    }
    if draw.one_in(4) {
        let (key, value) = ("t".to_owned(), String::new());
        node.taints = vec![Taint { key, value, effect: TaintEffect::NoSchedule }];
    }
    if !draw.one_in(5) {
        node.labels.insert("zone".to_owned(), format!("z{}", draw.below(2)));
        if !draw.one_in(5) {
            node.labels.insert("rack".to_owned(), format!("r{}", draw.below(2)));
        }
    }
    let conditions = [
        NodeAvailability::Ready,
        NodeAvailability::Cordoned,
        NodeAvailability::Starting,
        NodeAvailability::NotReady,
    ];
    node.condition =
        if draw.one_in(4) { conditions[draw.below(4) as usize] } else { NodeAvailability::Ready };
    node
}

fn random_requirement(draw: &mut Reader<'_>) -> Requirement {
    let mut pod = match draw.below(3) {
        0 => share(i64::from(1 + draw.below(9)) * 100),
        _ => whole(1 + draw.below(4) as u16),
    };
    pod.resources = Resources::pod(i64::from(draw.below(6)) * 1_000, i64::from(draw.below(8)));
    if draw.one_in(4) {
        pod.gpu_models.insert(["a", "b"][draw.below(2) as usize].to_owned());
    }
    if draw.one_in(6) {
        pod.min_device_memory_bytes = 80;
    }
    if draw.one_in(3) {
        pod.tolerations = vec![Toleration { any_value: true, ..Toleration::default() }];
    }
    if draw.one_in(6) {
        let (key, values) = ("zone".to_owned(), vec!["z1".to_owned()]);
        let any_of = vec![vec![SelectorTerm { key, operator: Operator::In, values }]];
        pod.node_conditions = vec![NodeCondition::node_affinity(any_of)];
    }
    if draw.one_in(4) {
        pod.counts_into.insert("app".to_owned());
    }
    if draw.one_in(4) {
        let spread = RuleKind::Spread { max_skew: 1, min_domains: None };
        let kinds = [RuleKind::AntiAffinity, RuleKind::Affinity, spread];
        pod.rules = vec![CounterRule {
            selector: "app".to_owned(),
            label: ["zone", "rack"][draw.below(2) as usize].to_owned(),
            kind: kinds[draw.below(3) as usize].clone(),
            scope: CounterScope::AllNodes,
            cause: RuleCause::Spread,
        }];
    }
    pod
}

fn random_job(draw: &mut Reader<'_>, id: u64) -> Job {
    let requirement = std::sync::Arc::new(random_requirement(draw));
    let mut job = Job::single(JobId(id), &format!("job-{id}"), 0, requirement);
    job.queue = ["", "q", "r"][draw.below(3) as usize].to_owned();
    job.priority = i32::from(draw.one_in(5));
    if draw.one_in(2) {
        job.pod_sets[0] =
            PodSet::fixed("main", job.pod_sets[0].requirement.clone(), 1 + draw.below(4));
    }
    if draw.one_in(5) {
        let requirement = std::sync::Arc::new(random_requirement(draw));
        job.pod_sets.push(PodSet::fixed("more", requirement, 1 + draw.below(2)));
    }
    if draw.one_in(3) {
        let level = ["zone", "rack", "node"][draw.below(3) as usize].to_owned();
        job.topology = TopologyRequest { required: Some(level), preferred: None };
    }
    job
}

fn queue(name: &str, limit_gpu_milli: Option<i64>) -> Queue {
    Queue { limit: Bounds::gpus(limit_gpu_milli), ..Queue::named(name) }
}

pub(crate) fn random_world(draw: &mut Reader<'_>) -> Engine {
    let nodes: Vec<Node> = (0..1 + draw.below(5)).map(|number| random_node(draw, number)).collect();
    let level = |name: &str| Level { name: name.to_owned(), label: name.to_owned() };
    let kept = nodes.iter().filter(|node| !node.devices.is_empty()).take(1);
    let holdings = kept.filter(|_| draw.one_in(2)).map(|node| Holding {
        id: HoldingId(0),
        node: node.name.clone(),
        owner: Owner::Reservation,
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: Some(ReservationId(1)),
        resources: Resources::default(),
        devices: vec![(0, DeviceAmount::share(1_000, 0))],
        counts_into: Default::default(),
        attachments: Default::default(),
    });
    let holdings = holdings.collect();
    let limit = draw.one_in(2).then(|| i64::from(draw.below(5)) * 1_000);
    let world = Snapshot {
        nodes,
        holdings,
        topology: Topology { levels: vec![level("zone"), level("rack")] },
        queues: vec![queue("q", limit)],
        ..Snapshot::default()
    };
    let order = ["fifo-skip", "fifo"][draw.below(2) as usize];
    engine(&world, order)
}

/// Lets something random happen, if it can.
pub(crate) fn happen(engine: &mut Engine, draw: &mut Reader<'_>, next_job: &mut u64, now_ms: u64) {
    let world = engine.snapshot();
    let any_node = |draw: &mut Reader<'_>| {
        let count = world.nodes.len() as u32;
        (count > 0).then(|| world.nodes[draw.below(count.max(1)) as usize].clone())
    };
    let event = match draw.below(10) {
        0..=4 => {
            *next_job += 1;
            Some(Event::Submitted(Box::new(random_job(draw, *next_job))))
        }
        5 | 6 => {
            let count = world.jobs.len() as u32;
            let any = (count > 0).then(|| world.jobs[draw.below(count.max(1)) as usize].id);
            any.map(Event::ended)
        }
        7 => any_node(draw).map(|node| {
            let conditions = [
                NodeAvailability::Ready,
                NodeAvailability::Cordoned,
                NodeAvailability::Starting,
                NodeAvailability::NotReady,
            ];
            let condition = conditions[draw.below(4) as usize];
            Event::NodeCondition { node: node.name, condition }
        }),
        8 => {
            let number = draw.below(6);
            Some(Event::NodeChanged(Box::new(random_node(draw, number))))
        }
        _ => match draw.below(4) {
            0 => any_node(draw).map(|node| Event::NodeRemoved { node: node.name }),
            1 => Some(Event::ReservationEnded { reservation: ReservationId(1) }),
            2 => Some(Event::QueueChanged(Box::new(queue(
                "q",
                Some(i64::from(draw.below(9)) * 1_000),
            )))),
            _ => any_node(draw).map(|node| {
                let resources = Resources::pod(i64::from(draw.below(10)) * 1_000, 3);
                Event::ForeignHeld(Box::new(Holding {
                    id: HoldingId(0),
                    node: node.name,
                    owner: Owner::Foreign(format!("static-{}", draw.below(2))),
                    phase: HoldingPhase::Held { expected_end_ms: None },
                    reservation: None,
                    resources,
                    devices: Vec::new(),
                    counts_into: ["app".to_owned()].into(),
                    attachments: Default::default(),
                }))
            }),
        },
    };
    if let Some(event) = event {
        engine.step(event, now_ms).expect("a legal event");
    }
}

/// The picture in the words of the oracle.
pub(crate) fn verdict_of(picture: &Picture) -> Verdict {
    let total = &picture.total_gpu_milli;
    let queues = total.allocated_by_queue.iter().map(|(q, milli)| (Some(q.clone()), *milli));
    let mut holders: BTreeMap<Option<String>, i64> = queues.collect();
    holders.insert(None, total.allocated_by_others);
    holders.retain(|_, milli| *milli > 0);
    let mut free = BTreeMap::new();
    for (model, states) in &picture.models_gpu_milli {
        for (cause, milli) in states.free_by_cause.iter().filter(|(_, milli)| **milli > 0) {
            free.insert((model.clone(), *cause), *milli);
        }
    }
    Verdict {
        installed: total.installed,
        unavailable: total.unavailable,
        allocated: total.allocated,
        holders,
        free,
    }
}

fn check_identity(picture: &Picture) -> Result<(), TestCaseError> {
    for states in picture.models_gpu_milli.values().chain([&picture.total_gpu_milli]) {
        prop_assert_eq!(states.check(i128::from), Ok(()));
    }
    let demanded: i64 = FreeCause::ALL
        .into_iter()
        .map(|cause| picture.pieces.iter().filter_map(|p| p.gpu_milli.get(&cause)).sum::<i64>())
        .sum();
    let total = &picture.total_gpu_milli;
    let conditions = [FreeCause::DrainingOrCordoned, FreeCause::Starting];
    let by_condition: i64 = conditions.into_iter().map(|cause| total.free_by(cause)).sum();
    prop_assert!(demanded + by_condition <= total.free);
    Ok(())
}

fn check_run(draw: &Draw) -> Result<(), TestCaseError> {
    let mut draw = Reader(draw.iter());
    let mut engine = random_world(&mut draw);
    let mut tracker = FreeTracker::new();
    let mut next_job = 0;
    for step in 0..12 {
        happen(&mut engine, &mut draw, &mut next_job, step);
        let followed = tracker.picture(&mut engine);
        check_identity(&followed)?;
        let anew = what_is_free(&mut engine, &[]);
        // Who once held anything stays listed with nothing.
        prop_assert_eq!(verdict_of(&followed), verdict_of(&anew));
        prop_assert_eq!(&followed.pieces, &anew.pieces);
        prop_assert_eq!(verdict_of(&followed), judge(&mut engine));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..cases(4_000) })]

    #[test]
    fn followed_anew_and_by_definition_are_the_same(
        draw in prop::collection::vec(any::<u32>(), 60..400),
    ) {
        check_run(&draw)?;
    }
}

/// The generator reaches every cause, or the property above would say little.
#[test]
fn the_random_worlds_provoke_every_cause() {
    let mut seen: BTreeMap<FreeCause, u32> = BTreeMap::new();
    for seed in 0..2_000u32 {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let draw: Draw = (0..400)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 8
            })
            .collect();
        let mut draw = Reader(draw.iter());
        let mut engine = random_world(&mut draw);
        let mut next_job = 0;
        for step in 0..12 {
            happen(&mut engine, &mut draw, &mut next_job, step);
        }
        for (cause, milli) in what_is_free(&mut engine, &[]).total_gpu_milli.free_by_cause {
            *seen.entry(cause).or_default() += u32::from(milli > 0);
        }
    }
    // Nobody asks the engine for what a MIG layout leaves over.
    for cause in FreeCause::ALL.into_iter().filter(|cause| *cause != FreeCause::LayoutRest) {
        assert!(seen[&cause] >= 5, "{} appears {} times", cause.name(), seen[&cause]);
    }
}
