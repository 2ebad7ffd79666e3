//! Every violation provoked by a plan made wrong on purpose; the same world with the right plan
//! passes.

use std::sync::Arc;

use dovetail_check::{DeviceProblem, Judge, Violation, check_plan};
use dovetail_model::node::DrainWindow;
use dovetail_model::requirement::Operator;
use dovetail_model::{
    Action, Attachment, Axis, Bounds, ConditionCause, CounterRule, CounterScope, Device,
    DeviceAmount, DeviceRequest, Event, HeldDevices, Holding, HoldingId, HoldingPhase, Job, JobId,
    Knowledge, MigProfile, MigTable, Mode, Node, NodeAvailability, NodeCondition, Owner,
    PendingReason, Plan, PodId, PodSet, Queue, Requirement, ReservationId, Resources, RuleCause,
    RuleKind, SelectorTerm, Snapshot, Taint, TaintEffect, Topology, TopologyRequest,
};

fn world(nodes: Vec<Node>, jobs: Vec<Job>) -> Snapshot {
    let level = dovetail_model::topology::Level { name: "rack".into(), label: "rack".into() };
    let starts = |starts: &[u8]| starts.to_vec();
    Snapshot {
        topology: Topology { levels: vec![level] },
        mig_tables: vec![MigTable {
            name: "A100".into(),
            memory_slices: 8,
            compute_slices: 7,
            profiles: vec![
                MigProfile {
                    name: "1g".into(),
                    compute_slices: 1,
                    memory_slices: 1,
                    starts: starts(&[0, 1, 2, 3, 4, 5, 6]),
                },
                MigProfile {
                    name: "3g".into(),
                    compute_slices: 3,
                    memory_slices: 4,
                    starts: starts(&[0, 4]),
                },
                MigProfile {
                    name: "4g".into(),
                    compute_slices: 4,
                    memory_slices: 4,
                    starts: starts(&[0]),
                },
            ],
        }],
        nodes,
        jobs,
        ..Snapshot::default()
    }
}

fn node(name: &str) -> Node {
    let mut node = Node::plain(name, 8000, 1000, 2, "A");
    node.labels.insert("rack".into(), format!("rack-of-{name}"));
    node
}

fn asks(device: DeviceRequest) -> Requirement {
    Requirement { resources: Resources::pod(1000, 100), device, ..Requirement::default() }
}

fn whole(count: u16) -> Requirement {
    asks(DeviceRequest::Whole { count, same_island: false })
}

fn share(milli: i64) -> Requirement {
    asks(DeviceRequest::Share { compute_milli: milli, memory_bytes: 0 })
}

fn job(id: u64, requirement: Requirement) -> Job {
    Job::single(JobId(id), "job", 0, Arc::new(requirement))
}

fn pod(job: u64, ordinal: u32) -> PodId {
    PodId { job: JobId(job), pod_set: 0, ordinal }
}

fn bind(pod: PodId, node: &str, devices: HeldDevices) -> Action {
    Action::Bind { pod, node: node.into(), devices }
}

fn one(index: u16, milli: i64) -> HeldDevices {
    vec![(index, DeviceAmount::share(milli, 0))]
}

fn judged(world: &Snapshot, actions: Vec<Action>) -> Vec<Violation> {
    let mut judge = Judge::new(world);
    let found = judge.plan(&Plan { actions });
    assert_eq!(judge.recheck_all(), [], "the running sums follow even a wrong plan");
    found
}

/// The only violation of a plan.
fn fault(world: &Snapshot, actions: Vec<Action>) -> Violation {
    let mut found = judged(world, actions);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn problem(world: &Snapshot, devices: HeldDevices) -> DeviceProblem {
    let found = judged(world, vec![bind(pod(1, 0), "a", devices)]);
    match found.as_slice() {
        [Violation::Device { problem, .. }] => *problem,
        other => panic!("one wrong device, not {other:?}"),
    }
}

fn holding(owner: Owner, node: &str, resources: Resources, devices: HeldDevices) -> Holding {
    Holding {
        id: HoldingId(0),
        node: node.into(),
        owner,
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: None,
        resources,
        devices,
        counts_into: Default::default(),
        attachments: Default::default(),
    }
}

fn foreign(node: &str, cpu_milli: i64, devices: HeldDevices) -> Holding {
    holding(Owner::Foreign("static".into()), node, Resources::pod(cpu_milli, 0), devices)
}

macro_rules! assert_fault {
    ($world:expr, $actions:expr, $pattern:pat) => {{
        let found = fault(&$world, $actions);
        assert!(matches!(found, $pattern), "{found}");
    }};
}

#[test]
fn a_right_plan_passes_and_the_message_names_everything() {
    let world = world(vec![node("a")], vec![job(1, whole(1)), job(2, whole(2))]);
    assert_eq!(judged(&world, vec![bind(pod(1, 0), "a", one(1, 1000))]), []);
    let devices = vec![(0, DeviceAmount::share(1000, 0)), (1, DeviceAmount::share(1000, 0))];
    let both = vec![bind(pod(1, 0), "a", one(1, 1000)), bind(pod(2, 0), "a", devices)];
    let found = judged(&world, both);
    let message = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(message.contains("pod 2/0/0") && message.contains("device 1 of node a"), "{message}");
}

#[test]
fn who_is_bound() {
    let gang =
        Job { pod_sets: vec![PodSet::fixed("w", Arc::new(whole(1)), 2)], ..job(1, whole(1)) };
    let world = world(vec![node("a")], vec![gang]);
    let (first, second) = (bind(pod(1, 0), "a", one(0, 1000)), bind(pod(1, 1), "a", one(1, 1000)));
    assert_eq!(judged(&world, vec![first.clone(), second.clone()]), []);
    assert_fault!(world, vec![bind(pod(9, 0), "a", one(0, 1000))], Violation::UnknownJob { .. });
    let other_set = PodId { pod_set: 3, ..pod(1, 0) };
    assert_fault!(world, vec![bind(other_set, "a", vec![])], Violation::UnknownPodSet { .. });
    assert_fault!(world, vec![bind(pod(1, 0), "z", vec![])], Violation::UnknownNode { .. });
    assert_fault!(world, vec![first.clone()], Violation::GangSize { pods: 1, min: 2, .. });
    let gap = bind(pod(1, 2), "a", one(1, 1000));
    assert_fault!(world, vec![first.clone(), gap], Violation::Ordinals { .. });
    let twice = vec![first.clone(), second.clone(), bind(pod(1, 1), "a", one(1, 1000))];
    assert_fault!(world, twice, Violation::HeldTwice { .. });
    let wait = Action::Wait { job: JobId(1), reason: PendingReason::Unschedulable };
    assert_fault!(world, vec![first.clone(), second.clone(), wait], Violation::NotWaiting { .. });
    let mut judge = Judge::new(&world);
    assert_eq!(judge.plan(&Plan { actions: vec![first, second.clone()] }), []);
    let again = judge.plan(&Plan { actions: vec![second] });
    assert!(matches!(again.as_slice(), [Violation::NotWaiting { .. }]), "{again:?}");
}

#[test]
fn which_node() {
    let start = |world: &Snapshot| fault(world, vec![bind(pod(1, 0), "a", one(0, 1000))]);
    let with = |change: &dyn Fn(&mut Node), requirement: Requirement| {
        let mut here = node("a");
        change(&mut here);
        world(vec![here], vec![job(1, requirement)])
    };
    for condition in
        [NodeAvailability::Starting, NodeAvailability::Cordoned, NodeAvailability::NotReady]
    {
        let closed = with(&|node| node.condition = condition, whole(1));
        assert!(matches!(start(&closed), Violation::Closed { .. }));
    }
    let window = DrainWindow { from_ms: 0, to_ms: 5 };
    let draining = with(&|node| node.drain_window = Some(window), whole(1));
    assert!(matches!(start(&draining), Violation::Closed { .. }));
    let taint = Taint { key: "k".into(), value: "v".into(), effect: TaintEffect::NoExecute };
    let tainted = with(&|node| node.taints.push(taint.clone()), whole(1));
    assert!(matches!(start(&tainted), Violation::Taint { .. }));
    let names = ["b".to_owned()].into();
    let named = with(&|_| {}, Requirement { node_names: names, ..whole(1) });
    assert!(matches!(start(&named), Violation::Selector { .. }));
    let term = SelectorTerm { key: "zone".into(), operator: Operator::Exists, values: vec![] };
    let selected = with(
        &|_| {},
        Requirement {
            node_conditions: vec![NodeCondition::node_affinity(vec![vec![term]])],
            ..whole(1)
        },
    );
    let excluded = start(&selected);
    let cause = ConditionCause::NodeAffinity;
    assert!(matches!(excluded, Violation::Condition { cause: c, .. } if c == cause), "{excluded}");
    let nowhere = NodeCondition { any_of: Vec::new(), cause: ConditionCause::VolumeZone };
    let nowhere = with(&|_| {}, Requirement { node_conditions: vec![nowhere], ..whole(1) });
    assert!(matches!(start(&nowhere), Violation::Condition { .. }));
    let term = |key: &str, value: &str| {
        let (key, values) = (key.to_owned(), vec![value.to_owned()]);
        vec![vec![SelectorTerm { key, operator: Operator::In, values }]]
    };
    let here = [term("metadata.name", "a"), term(dovetail_model::node::CLUSTER_LABEL, "")];
    let node_conditions = here.map(NodeCondition::node_affinity).to_vec();
    let named = with(&|_| {}, Requirement { node_conditions, ..whole(1) });
    assert_eq!(judged(&named, vec![bind(pod(1, 0), "a", one(0, 1000))]), []);
}

#[test]
fn how_much_of_a_node() {
    let amounts = |change: &dyn Fn(&mut Resources), axis: &str| {
        let mut requirement = whole(1);
        change(&mut requirement.resources);
        let world = world(vec![node("a")], vec![job(1, requirement)]);
        let found = fault(&world, vec![bind(pod(1, 0), "a", one(0, 1000))]);
        assert!(matches!(&found, Violation::Amount { axis: a, .. } if a == axis), "{found}");
    };
    amounts(&|r| r.cpu_milli = 8001, "cpu_milli");
    amounts(&|r| r.memory_bytes = 1001, "memory_bytes");
    amounts(&|r| r.ephemeral_bytes = 1, "ephemeral_bytes");
    amounts(&|r| r.pod_slots = 111, "pod_slots");
    amounts(&|r| _ = r.extended.insert("rdma".into(), 1), "rdma");
    let mut over = world(vec![node("a")], vec![job(1, whole(1))]);
    over.jobs[0].pod_sets[0].requirement =
        Arc::new(Requirement { resources: Resources::default(), ..whole(1) });
    over.holdings.push(foreign("a", 9000, vec![]));
    assert_eq!(judged(&over, vec![bind(pod(1, 0), "a", one(0, 1000))]), [], "it asks for no CPU");
    over.holdings[0] = foreign("a", 0, one(7, 1000));
    assert_fault!(over, vec![bind(pod(1, 0), "a", one(0, 1000))], Violation::Overcommitted { .. });
    over.holdings[0] = foreign("a", 0, one(1, 1000));
    over.nodes[0].devices[1].healthy = false;
    assert_fault!(over, vec![bind(pod(1, 0), "a", one(0, 1000))], Violation::Overcommitted { .. });
    over.nodes[0].devices[1].healthy = true;
    assert_eq!(judged(&over, vec![bind(pod(1, 0), "a", one(0, 1000))]), []);
}

#[test]
fn which_devices() {
    let with = |change: &dyn Fn(&mut Node), requirement: Requirement| {
        let mut here = node("a");
        change(&mut here);
        world(vec![here], vec![job(1, requirement)])
    };
    let plain = with(&|_| {}, whole(1));
    assert_eq!(problem(&plain, one(7, 1000)), DeviceProblem::Missing);
    assert_eq!(problem(&plain, one(0, 999)), DeviceProblem::Amount);
    let lost = with(&|node| node.devices[0].healthy = false, whole(1));
    assert_eq!(problem(&lost, one(0, 1000)), DeviceProblem::Lost);
    let other_model = Requirement { gpu_models: ["B".to_owned()].into(), ..whole(1) };
    assert_eq!(problem(&with(&|_| {}, other_model), one(0, 1000)), DeviceProblem::Kind);
    let more_memory = Requirement { min_device_memory_bytes: 1, ..whole(1) };
    assert_eq!(problem(&with(&|_| {}, more_memory), one(0, 1000)), DeviceProblem::Kind);
    let two = vec![(0, DeviceAmount::share(1000, 0)), (0, DeviceAmount::share(1000, 0))];
    assert_eq!(problem(&with(&|_| {}, whole(2)), two), DeviceProblem::Twice);
    let island = with(
        &|node| node.devices[1].island = 1,
        asks(DeviceRequest::Whole { count: 2, same_island: true }),
    );
    let both = vec![(0, DeviceAmount::share(1000, 0)), (1, DeviceAmount::share(1000, 0))];
    assert_eq!(problem(&island, both.clone()), DeviceProblem::Island);
    let found = fault(&plain, vec![bind(pod(1, 0), "a", both)]);
    assert!(matches!(found, Violation::DeviceCount { got: 2, asked: 1, .. }), "{found}");
}

#[test]
fn how_much_of_a_device() {
    let shares =
        world(vec![node("a")], vec![job(1, share(600)), job(2, share(500)), job(3, whole(1))]);
    let first = bind(pod(1, 0), "a", one(0, 600));
    assert_fault!(
        shares,
        vec![first.clone(), bind(pod(2, 0), "a", one(0, 500))],
        Violation::DeviceAmount { free: 400, asked: 500, .. }
    );
    let found = judged(&shares, vec![first, bind(pod(3, 0), "a", one(0, 1000))]);
    assert!(
        found.iter().any(|v| matches!(v, Violation::Device { problem: DeviceProblem::Mode, .. }))
    );
    let rest = DeviceRequest::Share { compute_milli: 1, memory_bytes: 11 };
    let mut memory = world(vec![node("a")], vec![job(1, asks(rest))]);
    memory.nodes[0].devices[0].memory_bytes = 10;
    let devices = vec![(0, DeviceAmount::share(1, 11))];
    let found = fault(&memory, vec![bind(pod(1, 0), "a", devices)]);
    assert!(matches!(&found, Violation::DeviceAmount { axis, .. } if axis == "memory_bytes"));
    let mut replicas =
        world(vec![node("a")], vec![job(1, asks(DeviceRequest::Replicas { count: 3 }))]);
    replicas.nodes[0].devices[0].replicas = 2;
    let amount = DeviceAmount { mode: Mode::Replicated, replicas: 3, ..Default::default() };
    let found = fault(&replicas, vec![bind(pod(1, 0), "a", vec![(0, amount)])]);
    assert!(matches!(&found, Violation::DeviceAmount { axis, .. } if axis == "replicas"));
    let amounts = vec![("mem".to_owned(), 5)];
    let mut counters =
        world(vec![node("a")], vec![job(1, asks(DeviceRequest::Counters { amounts }))]);
    counters.nodes[0].devices[0].counters = vec![("mem".into(), 4)];
    let amount = DeviceAmount { mode: Mode::Counted, counters: vec![5], ..Default::default() };
    let found = fault(&counters, vec![bind(pod(1, 0), "a", vec![(0, amount)])]);
    assert!(matches!(&found, Violation::DeviceAmount { axis, .. } if axis == "mem"));
}

#[test]
fn slices() {
    let slice = |profile: &str| asks(DeviceRequest::Slice { profile: profile.into() });
    let at = |mask: u16, compute_slices: u8| {
        vec![(
            0,
            DeviceAmount {
                mode: Mode::Sliced,
                slice_mask: mask,
                compute_slices,
                ..Default::default()
            },
        )]
    };
    let mut here = node("a");
    here.devices[0].mig_table = Some("A100".into());
    let jobs =
        vec![job(1, slice("1g")), job(2, slice("4g")), job(3, slice("3g")), job(4, slice("3g"))];
    let world = world(vec![here], jobs);
    assert_eq!(judged(&world, vec![bind(pod(1, 0), "a", at(1 << 6, 1))]), []);
    assert_eq!(problem(&world, at(1 << 7, 1)), DeviceProblem::SliceStart);
    assert_eq!(problem(&world, at(0, 1)), DeviceProblem::SliceStart);
    assert_eq!(problem(&world, at(1, 2)), DeviceProblem::Amount);
    let over = vec![bind(pod(1, 0), "a", at(1 << 4, 1)), bind(pod(3, 0), "a", at(0xf0, 3))];
    let found = fault(&world, over);
    let overlap = DeviceProblem::SliceOverlap;
    assert!(matches!(found, Violation::Device { problem, .. } if problem == overlap), "{found}");
    let full = vec![bind(pod(2, 0), "a", at(0x0f, 4)), bind(pod(3, 0), "a", at(0xf0, 3))];
    assert_eq!(judged(&world, full.clone()), []);
    // Memory slices would do, compute slices do not.
    let mut narrow = world.clone();
    narrow.mig_tables[0].compute_slices = 6;
    let found = fault(&narrow, full);
    assert!(matches!(&found, Violation::DeviceAmount { axis, .. } if axis == "compute_slices"));
    let mixed = vec![bind(pod(1, 0), "a", at(1, 1))];
    let mut shared = world;
    shared.holdings.push(foreign("a", 0, one(0, 100)));
    let found = fault(&shared, mixed);
    assert!(matches!(found, Violation::Device { problem: DeviceProblem::Mode, .. }), "{found}");
}

#[test]
fn counted_devices() {
    let mut here = node("a");
    here.knowledge = Knowledge::Counted;
    let mut world = world(vec![here], vec![job(1, whole(1)), job(2, whole(2)), job(3, share(300))]);
    let both = vec![(0, DeviceAmount::share(1000, 0)), (1, DeviceAmount::share(1000, 0))];
    let plan = vec![bind(pod(1, 0), "a", one(0, 1000)), bind(pod(2, 0), "a", both.clone())];
    let found = judged(&world, plan);
    assert!(
        found
            .iter()
            .any(|v| matches!(v, Violation::DeviceAmount { axis, .. } if axis == "compute_milli"))
    );
    assert_eq!(judged(&world, vec![bind(pod(2, 0), "a", both.clone())]), []);
    let mut one_model = world.clone();
    let narrow = Requirement { gpu_models: ["B".to_owned()].into(), ..whole(2) };
    one_model.jobs[1] = job(2, narrow);
    let found = judged(&one_model, vec![bind(pod(2, 0), "a", both.clone())]);
    assert!(
        found.iter().any(|v| matches!(v, Violation::Device { problem: DeviceProblem::Kind, .. }))
    );
    world.nodes[0].devices[1].island = 1;
    world.jobs[1] = job(2, asks(DeviceRequest::Whole { count: 2, same_island: true }));
    let found = fault(&world, vec![bind(pod(2, 0), "a", both)]);
    assert!(matches!(found, Violation::Device { problem: DeviceProblem::Island, .. }), "{found}");
    let found = fault(&world, vec![bind(pod(3, 0), "a", one(0, 301))]);
    assert!(matches!(found, Violation::Device { problem: DeviceProblem::Amount, .. }), "{found}");
    // The whole node held by others and one device lost: nothing new, though nothing is wrong.
    world.holdings.push(foreign(
        "a",
        0,
        vec![(5, DeviceAmount::share(1000, 0)), (9, DeviceAmount::share(1000, 0))],
    ));
    world.nodes[0].devices[0].healthy = false;
    assert_eq!(judged(&world, vec![]), []);
    let found = judged(&world, vec![bind(pod(3, 0), "a", one(0, 300))]);
    assert!(found.iter().any(|v| matches!(v, Violation::Overcommitted { .. })), "{found:?}");
}

#[test]
fn volumes_count_once_per_node() {
    let volumes = |names: &[&str]| -> std::collections::BTreeSet<Attachment> {
        let limit = || "csi".to_owned();
        names.iter().map(|name| Attachment { limit: limit(), volume: (*name).into() }).collect()
    };
    let limited = |held: &[&str], asked: &[&str], most: i64| {
        let pod = Requirement { attachments: volumes(asked), ..whole(1) };
        let mut world = world(vec![node("a")], vec![job(1, pod)]);
        world.nodes[0].attach_limits.insert("csi".into(), most);
        let owner = Owner::Foreign("static".into());
        let mut holding = holding(owner, "a", Resources::default(), vec![]);
        holding.attachments = volumes(held);
        world.holdings.push(holding);
        world
    };
    let here = || vec![bind(pod(1, 0), "a", one(0, 1000))];
    assert_eq!(judged(&limited(&["v"], &["v", "w"], 2), here()), []);
    assert_eq!(judged(&limited(&["v", "w"], &["w"], 1), here()), [], "it adds nothing");
    assert_fault!(limited(&["v"], &["v", "w"], 1), here(), Violation::Volumes { after: 2, .. });
    assert_fault!(limited(&[], &["v"], 0), here(), Violation::Volumes { most: 0, .. });
}

#[test]
fn scopes_of_rules() {
    let spread = |scope, min_domains| {
        let rule = CounterRule {
            selector: "s".into(),
            label: "metadata.name".into(),
            kind: RuleKind::Spread { max_skew: 1, min_domains },
            scope,
            cause: RuleCause::Spread,
        };
        let counts_into = ["s".to_owned()].into();
        Requirement { counts_into, rules: vec![rule], ..whole(1) }
    };
    // Node `b` is empty, tainted and outside: whether it counts as a domain decides about `a`.
    let on_a = |scope, min_domains| {
        let mut pod = spread(scope, min_domains);
        let any_of = vec![vec![SelectorTerm {
            key: "metadata.name".into(),
            operator: Operator::In,
            values: vec!["a".into()],
        }]];
        pod.node_conditions = vec![NodeCondition::node_affinity(any_of)];
        let mut world = world(vec![node("a"), node("b")], vec![job(1, pod)]);
        let effect = TaintEffect::NoSchedule;
        world.nodes[1].taints.push(Taint { key: "k".into(), value: "".into(), effect });
        let owner = Owner::Foreign("static".into());
        let mut held = holding(owner, "a", Resources::default(), vec![]);
        held.counts_into.insert("s".into());
        world.holdings.push(held);
        judged(&world, vec![bind(self::pod(1, 0), "a", one(0, 1000))])
    };
    let eligible =
        |honor_affinity, honor_taints| CounterScope::Eligible { honor_affinity, honor_taints };
    assert_eq!(on_a(eligible(true, false), None), []);
    assert_eq!(on_a(eligible(false, true), None), []);
    for scope in [CounterScope::AllNodes, eligible(false, false)] {
        assert!(matches!(on_a(scope, None).as_slice(), [Violation::Rule { .. }]));
    }
    // One domain where two are wanted: the emptiest counts as 0.
    assert_eq!(on_a(eligible(true, false), Some(1)), []);
    assert!(matches!(on_a(eligible(true, false), Some(2)).as_slice(), [Violation::Rule { .. }]));
}

#[test]
fn rules() {
    let rule = |kind| CounterRule {
        selector: "s".into(),
        label: "rack".into(),
        kind,
        scope: CounterScope::AllNodes,
        cause: RuleCause::Spread,
    };
    let counted = |kind| Requirement {
        counts_into: ["s".to_owned()].into(),
        rules: vec![rule(kind)],
        ..whole(1)
    };
    let two = |kind| {
        let set = PodSet::fixed("w", Arc::new(counted(kind)), 2);
        let gang = Job { pod_sets: vec![set], ..job(1, whole(1)) };
        world(vec![node("a"), node("b")], vec![gang])
    };
    let together = || vec![bind(pod(1, 0), "a", one(0, 1000)), bind(pod(1, 1), "a", one(1, 1000))];
    let apart = || vec![bind(pod(1, 0), "a", one(0, 1000)), bind(pod(1, 1), "b", one(0, 1000))];
    let at_most = |most: &[(&str, u32)]| RuleKind::AtMost {
        most: Arc::new(most.iter().map(|(value, most)| ((*value).to_owned(), *most)).collect()),
    };
    let one_each = at_most(&[("rack-of-a", 1), ("rack-of-b", 1)]);
    let spread = RuleKind::Spread { max_skew: 1, min_domains: None };
    for kind in [RuleKind::AntiAffinity, spread, one_each] {
        assert_eq!(judged(&two(kind.clone()), apart()), []);
        assert_fault!(two(kind), together(), Violation::Rule { .. });
    }
    assert_eq!(judged(&two(at_most(&[("rack-of-a", 2)])), together()), []);
    assert_fault!(two(at_most(&[("rack-of-a", 2)])), apart(), Violation::Rule { .. });
    assert_eq!(judged(&two(RuleKind::Affinity), together()), []);
    assert_fault!(two(RuleKind::Affinity), apart(), Violation::Rule { .. });
    let mut unlabelled = two(RuleKind::Spread { max_skew: 2, min_domains: None });
    unlabelled.nodes[1].labels.clear();
    assert_fault!(unlabelled, apart(), Violation::Rule { .. });
    let mut unlabelled = two(RuleKind::AntiAffinity);
    unlabelled.nodes[1].labels.clear();
    assert_eq!(judged(&unlabelled, apart()), []);
}

#[test]
fn levels_and_limits() {
    let set = |required: Option<&str>| PodSet {
        topology: TopologyRequest { required: required.map(str::to_owned), preferred: None },
        ..PodSet::fixed("w", Arc::new(whole(1)), 2)
    };
    let apart = || vec![bind(pod(1, 0), "a", one(0, 1000)), bind(pod(1, 1), "b", one(0, 1000))];
    for level in ["rack", "node"] {
        let by_set = Job { pod_sets: vec![set(Some(level))], ..job(1, whole(1)) };
        let topology = TopologyRequest { required: Some(level.into()), preferred: None };
        let by_job = Job { pod_sets: vec![set(None)], topology, ..job(1, whole(1)) };
        for gang in [by_set, by_job] {
            assert_fault!(
                world(vec![node("a"), node("b")], vec![gang]),
                apart(),
                Violation::Level { .. }
            );
        }
    }
    let gang = Job { pod_sets: vec![set(None)], queue: "team".into(), ..job(1, whole(1)) };
    let mut world = world(vec![node("a"), node("b")], vec![gang]);
    let queue = |name: &str, parent: Option<&str>, limit| Queue {
        parent: parent.map(str::to_owned),
        limit: Bounds::gpus(limit),
        ..Queue::named(name)
    };
    // A circle of parents ends where it closes.
    world.queues = vec![queue("team", Some("all"), None), queue("all", Some("team"), Some(2000))];
    assert_eq!(judged(&world, apart()), []);
    world.queues[1].limit = Bounds::gpus(Some(1999));
    assert_fault!(world, apart(), Violation::Quota { used: 2000, most: 1999, .. });
    // Quota bounds those that do not borrow; every amount counts, of what the job holds.
    world.queues[1].limit = Bounds { extended: [("other".into(), 0)].into(), ..Bounds::default() };
    world.queues[0].guaranteed = Bounds { cpu_milli: Some(1999), ..Bounds::gpus(Some(2000)) };
    assert_fault!(world, apart(), Violation::Quota { axis: Axis::Cpu, used: 2000, .. });
    world.queues[0].borrows = true;
    assert_eq!(judged(&world, apart()), []);
}

#[test]
fn nodes_that_go() {
    let world = world(vec![node("a")], vec![job(1, whole(1)), job(2, whole(1))]);
    let removed = Event::NodeRemoved { node: "a".into() };
    let started = || {
        let mut judge = Judge::new(&world);
        let plan = Plan { actions: vec![bind(pod(1, 0), "a", one(0, 1000))] };
        assert_eq!(judge.plan(&plan), []);
        judge
    };
    let lost = |job| Plan { actions: vec![Action::Lost { job: JobId(job) }] };
    let mut judge = started();
    judge.event(&removed, 1);
    assert_eq!(judge.plan(&lost(1)), []);
    assert_eq!(judge.recheck_all(), []);
    let mut silent = started();
    silent.event(&removed, 1);
    assert!(matches!(silent.plan(&Plan::default()).as_slice(), [Violation::NotGivenUp { .. }]));
    assert!(matches!(started().plan(&lost(1)).as_slice(), [Violation::GivenUpWrongly { .. }]));
    assert!(matches!(started().plan(&lost(9)).as_slice(), [Violation::UnknownJob { .. }]));
}

#[test]
fn snapshots_that_lie() {
    let before = world(vec![node("a")], vec![job(1, whole(1)), job(2, whole(1))]);
    let plan = Plan { actions: vec![bind(pod(1, 0), "a", one(0, 1000))] };
    let mut after = before.clone();
    after.jobs[0].start_ms = Some(0);
    after.jobs[0].pod_sets[0].present = 1;
    let resources = Resources::pod(1000, 100);
    after.holdings.push(holding(Owner::Pod(pod(1, 0)), "a", resources.clone(), one(0, 1000)));
    assert_eq!(check_plan(&before, &plan, &after), []);
    let lie = |change: &dyn Fn(&mut Snapshot)| {
        let mut wrong = after.clone();
        change(&mut wrong);
        let found = check_plan(&before, &plan, &wrong);
        assert!(!found.is_empty());
        found
    };
    lie(&|s| s.holdings[0].devices = one(1, 1000));
    lie(&|s| s.holdings[0].resources.cpu_milli = 999);
    lie(&|s| s.nodes[0].allocatable.cpu_milli += 1);
    lie(&|s| s.queues.push(Queue::named("q")));
    lie(&|s| _ = s.jobs.pop());
    let lost = lie(&|s| s.holdings.clear());
    assert!(lost.iter().any(|v| matches!(v, Violation::Present { held: 0, present: 1, .. })));
    let waiting = lie(&|s| s.jobs[0].start_ms = None);
    assert!(waiting.iter().any(|v| matches!(v, Violation::Present { held: 1, present: 0, .. })));
    let twice = lie(&|s| s.holdings.push(s.holdings[0].clone()));
    assert!(twice.iter().any(|v| matches!(v, Violation::HeldTwice { .. })));
    for owner in [Owner::Pod(pod(7, 0)), Owner::Reservation] {
        let stray = holding(owner, "a", resources.clone(), vec![]);
        let found = lie(&|s| s.holdings.push(stray.clone()));
        assert!(found.iter().any(|v| matches!(v, Violation::Stray { .. })), "{found:?}");
    }
    let set = PodId { pod_set: 4, ..pod(1, 0) };
    let found = lie(&|s| s.holdings.push(holding(Owner::Pod(set), "a", resources.clone(), vec![])));
    assert!(found.iter().any(|v| matches!(v, Violation::UnknownPodSet { .. })));
    let found = lie(&|s| s.holdings[0].node = "z".into());
    assert!(found.iter().any(|v| matches!(v, Violation::Stray { .. })));
    let found = lie(&|s| s.holdings.push(foreign("a", 1, vec![])));
    assert!(found.iter().any(|v| matches!(v, Violation::Differs { .. })));
}

#[test]
fn what_comes_from_outside_is_booked() {
    let mut kept = holding(Owner::Reservation, "a", Resources::pod(3000, 0), one(0, 1000));
    kept.reservation = Some(ReservationId(4));
    let mut start = world(vec![node("a")], vec![job(1, whole(2))]);
    start.holdings = vec![kept.clone(), kept];
    let both = || vec![(0, DeviceAmount::share(1000, 0)), (1, DeviceAmount::share(1000, 0))];
    let plan = Plan { actions: vec![bind(pod(1, 0), "a", both())] };
    assert!(!Judge::new(&start).plan(&plan).is_empty());
    let mut judge = Judge::new(&start);
    judge.event(&Event::ReservationEnded { reservation: ReservationId(4) }, 1);
    judge.event(&Event::ForeignHeld(Box::new(foreign("b", 8000, one(0, 1000)))), 2);
    judge.event(&Event::NodeChanged(Box::new(node("b"))), 3);
    judge.event(&Event::Submitted(Box::new(job(2, share(10)))), 4);
    assert_eq!(judge.recheck_all(), []);
    let on_b = Plan { actions: vec![bind(pod(2, 0), "b", one(1, 10))] };
    assert!(matches!(judge.clone().plan(&on_b).as_slice(), [Violation::Amount { free: 0, .. }]));
    judge.event(&Event::ForeignReleased { name: "static".into() }, 5);
    assert_eq!(judge.plan(&on_b), []);
    assert_eq!(judge.plan(&plan), []);
    judge.event(&Event::ended(JobId(2)), 6);
    judge.event(
        &Event::NodeCondition { node: "b".into(), condition: NodeAvailability::NotReady },
        7,
    );
    judge.event(&Event::QueueChanged(Box::new(Queue::named("q"))), 8);
    let device = Device { healthy: false, ..Device::plain("A", 0) };
    judge.event(&Event::NodeChanged(Box::new(Node { devices: vec![device], ..node("a") })), 9);
    assert_eq!(judge.recheck_all(), []);
    assert_eq!(judge.plan(&Plan::default()), [], "over-commitment from outside is legal");
}
