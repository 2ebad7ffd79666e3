//! One small world for every cause, with the figures worked out by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_capacity::what_is_free;
use dovetail_model::FreeCause::*;
use dovetail_model::requirement::Toleration;
use dovetail_model::topology::Level;
use dovetail_model::{
    Bounds, CounterRule, CounterScope, Device, DeviceAmount, DeviceRequest, Event, FreeCause,
    Holding, HoldingId, HoldingPhase, JobId, MigProfile, MigTable, Mode, Node, NodeAvailability,
    NodeCondition, Owner, Queue, Requirement, ReservationId, Resources, RuleCause, RuleKind,
    SelectorTerm, Snapshot, Taint, TaintEffect, Topology, TopologyRequest,
};

use crate::world::{cluster, engine, free, free_of, gang, node, share, submit, whole};

fn is(expected: &[(FreeCause, i64)]) -> BTreeMap<FreeCause, i64> {
    expected.iter().copied().collect()
}

fn hold(node: &str, owner: Owner, reservation: Option<u32>, device: DeviceAmount) -> Holding {
    Holding {
        id: HoldingId(0),
        node: node.into(),
        owner,
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: reservation.map(ReservationId),
        resources: Resources::pod(0, 0),
        devices: vec![(0, device)],
        counts_into: Default::default(),
        attachments: Default::default(),
    }
}

#[test]
fn nothing_waits_nothing_is_explained() {
    let mut engine = cluster(vec![node("n", 8)]);
    submit(&mut engine, gang(1, whole(3), 1));
    assert_eq!(free(&mut engine), is(&[(NoDemand, 5_000)]));
    // A pod without devices that waits is no demand for GPUs.
    let mut cpu = whole(1);
    cpu.device = DeviceRequest::None;
    cpu.resources.cpu_milli = 1_000_000;
    submit(&mut engine, gang(2, cpu, 1));
    assert_eq!(free(&mut engine), is(&[(NoDemand, 5_000)]));
}

#[test]
fn a_nodes_condition_comes_before_demand() {
    let conditions =
        [NodeAvailability::Cordoned, NodeAvailability::Starting, NodeAvailability::NotReady];
    let nodes = conditions.iter().enumerate().map(|(index, condition)| {
        let mut node = node(&format!("n{index}"), 2);
        node.condition = *condition;
        node
    });
    let mut engine = cluster(nodes.collect());
    submit(&mut engine, gang(1, whole(8), 1));
    assert_eq!(free(&mut engine), is(&[(DrainingOrCordoned, 2_000), (Starting, 2_000)]));
    assert_eq!(what_is_free(&mut engine, &[]).total_gpu_milli.unavailable, 2_000);
}

#[test]
fn a_lost_device_is_unavailable_even_while_held() {
    let mut engine = cluster(vec![node("n", 2)]);
    submit(&mut engine, gang(1, whole(1), 1));
    let mut broken = node("n", 2);
    broken.devices[0].healthy = false;
    engine.step(Event::NodeChanged(Box::new(broken)), 1).expect("a legal node");
    let picture = what_is_free(&mut engine, &[]);
    let total = &picture.total_gpu_milli;
    assert_eq!((total.unavailable, total.allocated, total.free), (1_000, 0, 1_000));
}

#[test]
fn a_reservation_keeps_what_it_keeps() {
    let kept = hold("n", Owner::Reservation, Some(1), DeviceAmount::share(1_000, 0));
    let nodes = vec![node("n", 2)];
    let world = Snapshot { nodes, holdings: vec![kept], ..Snapshot::default() };
    let mut engine = engine(&world, "fifo-skip");
    assert_eq!(free(&mut engine), is(&[(Reserved, 1_000), (NoDemand, 1_000)]));
}

#[test]
fn strict_order_keeps_pieces_for_the_head_of_the_line() {
    let world = Snapshot { nodes: vec![node("n", 4), node("m", 4)], ..Snapshot::default() };
    let mut engine = engine(&world, "fifo");
    submit(&mut engine, gang(1, whole(8), 1));
    // Alone the head finds pieces that are too small.
    assert_eq!(free(&mut engine), is(&[(Fragmented, 8_000)]));
    for id in 2..5 {
        submit(&mut engine, gang(id, whole(1), 1));
    }
    // Three pods that would fit wait behind it; the rest is too small for the head.
    assert_eq!(free(&mut engine), is(&[(Reserved, 3_000), (Fragmented, 5_000)]));
}

#[test]
fn taints_labels_and_names_keep_demand_away() {
    let mut tainted = node("tainted", 1);
    let (key, value) = ("team".to_owned(), "x".to_owned());
    tainted.taints = vec![Taint { key, value, effect: TaintEffect::NoSchedule }];
    let mut engine = cluster(vec![tainted]);
    submit(&mut engine, gang(1, whole(1), 1));
    assert_eq!(free(&mut engine), is(&[(Taint, 1_000)]));

    let mut tolerant = whole(2);
    tolerant.tolerations = vec![Toleration { any_value: true, ..Toleration::default() }];
    submit(&mut engine, gang(2, tolerant, 1));
    // Who tolerates the taint comes further: it finds too little.
    assert_eq!(free(&mut engine), is(&[(Fragmented, 1_000)]));

    let mut engine = cluster(vec![node("other", 2)]);
    let mut picky = whole(1);
    picky.node_conditions = vec![NodeCondition::node_affinity(vec![vec![SelectorTerm {
        key: "pool".to_owned(),
        operator: dovetail_model::requirement::Operator::Exists,
        values: Vec::new(),
    }]])];
    submit(&mut engine, gang(1, picky, 1));
    let mut named = whole(1);
    named.node_names.insert("elsewhere".to_owned());
    submit(&mut engine, gang(2, named, 1));
    // No taint is in the way: they want another kind of node, or another one.
    assert_eq!(free(&mut engine), is(&[(TypeMismatch, 2_000)]));
}

#[test]
fn the_wrong_model_is_told_per_device() {
    let mut mixed = node("mixed", 3);
    mixed.devices[2].model = "b".to_owned();
    let mut engine = cluster(vec![mixed]);
    let mut needs_a = whole(3);
    needs_a.gpu_models.insert("a".to_owned());
    submit(&mut engine, gang(1, needs_a, 1));
    assert_eq!(free(&mut engine), is(&[(TypeMismatch, 1_000), (Fragmented, 2_000)]));
    let models = what_is_free(&mut engine, &[]).models_gpu_milli;
    assert_eq!(models["b"].free_by(TypeMismatch), 1_000);

    let mut engine = cluster(vec![node("n", 1)]);
    let mut needs_memory = whole(1);
    needs_memory.min_device_memory_bytes = 1;
    submit(&mut engine, gang(1, needs_memory, 1));
    assert_eq!(free(&mut engine), is(&[(TypeMismatch, 1_000)]));
}

/// A node of another model explains nothing where the pod would not fit on it anyway; one where it
/// would does, whatever their order.
#[test]
fn the_wrong_model_is_a_cause_only_where_the_pod_would_fit_otherwise() {
    let of_model = |name: &str, gpus: usize| Node::plain(name, 96_000, 1_000, gpus, "b");
    let needs_a = |change: fn(&mut Requirement)| {
        let mut requirement = whole(8);
        requirement.gpu_models.insert("a".to_owned());
        change(&mut requirement);
        requirement
    };
    let pods: [(Requirement, &[(FreeCause, i64)]); 4] = [
        (needs_a(|_| {}), &[(TypeMismatch, 8_000), (NoDemand, 4_000)]),
        (needs_a(|pod| pod.resources.cpu_milli = 96_001), &[(NoDemand, 12_000)]),
        (needs_a(|pod| pod.device = whole(4).device), &[(TypeMismatch, 4_000), (NoDemand, 8_000)]),
        // No node holds so many.
        (needs_a(|pod| pod.device = whole(9).device), &[(NoDemand, 12_000)]),
    ];
    for (pod, expected) in pods {
        let mut engine = cluster(vec![of_model("a-small", 4), of_model("b-large", 8)]);
        submit(&mut engine, gang(1, pod, 1));
        assert_eq!(free(&mut engine), is(expected));
    }
}

fn labelled(name: &str, gpus: usize, rack: &str) -> dovetail_model::Node {
    let mut node = node(name, gpus);
    node.labels.insert("rack".to_owned(), rack.to_owned());
    node
}

#[test]
fn rules_and_levels_are_topology() {
    let mut engine = cluster(vec![labelled("n", 2, "r"), node("unlabelled", 2)]);
    let mut alone = whole(1);
    alone.counts_into.insert("app".to_owned());
    let (selector, label) = ("app".to_owned(), "rack".to_owned());
    alone.rules = vec![CounterRule {
        selector,
        label,
        kind: RuleKind::Spread { max_skew: 1, min_domains: Some(2) },
        scope: CounterScope::AllNodes,
        cause: RuleCause::Spread,
    }];
    submit(&mut engine, gang(1, alone.clone(), 1));
    submit(&mut engine, gang(2, alone.clone(), 1));
    submit(&mut engine, gang(3, alone, 1));
    assert_eq!(free(&mut engine), is(&[(Topology, 2_000), (NoDemand, 1_000)]));

    let levels = vec![Level { name: "rack".to_owned(), label: "rack".to_owned() }];
    let nodes = vec![labelled("n", 2, "r"), labelled("m", 2, "s"), node("unlabelled", 8)];
    let world = Snapshot { nodes, topology: Topology { levels }, ..Snapshot::default() };
    let mut engine = crate::world::engine(&world, "fifo-skip");
    let mut together = gang(1, whole(1), 3);
    together.topology = TopologyRequest { required: Some("rack".to_owned()), preferred: None };
    submit(&mut engine, together);
    // Three would fit if they did not have to share a rack; the unlabelled node is in none.
    assert_eq!(free(&mut engine), is(&[(Topology, 3_000), (NoDemand, 9_000)]));
}

#[test]
fn stranded_beside_too_little_of_something_else() {
    let ask = |change: fn(&mut Resources)| {
        let mut requirement = whole(2);
        change(&mut requirement.resources);
        requirement
    };
    let cases = [
        (ask(|r| r.cpu_milli = 96_001), StrandedByCpu),
        (ask(|r| r.memory_bytes = 1_001), StrandedByMemory),
        (ask(|r| r.ephemeral_bytes = 1), StrandedByOther),
        (ask(|r| r.pod_slots = 111), StrandedByOther),
        (ask(|r| r.extended.extend([("rdma/hca".to_owned(), 1)])), StrandedByOther),
    ];
    for (requirement, cause) in cases {
        let mut engine = cluster(vec![node("n", 2)]);
        submit(&mut engine, gang(1, requirement, 1));
        assert_eq!(free(&mut engine), is(&[(cause, 2_000)]));
    }
}

/// Four free GPUs beside too little CPU are no help to a pod that needs eight, whatever the CPU.
#[test]
fn too_few_devices_come_before_too_little_of_something_else() {
    for change in [
        (|r: &mut Resources| r.cpu_milli = 96_001) as fn(&mut Resources),
        |r| r.memory_bytes = 1_001,
        |r| r.pod_slots = 111,
    ] {
        let mut requirement = whole(8);
        change(&mut requirement.resources);
        let mut engine = cluster(vec![node("n", 4)]);
        submit(&mut engine, gang(1, requirement, 1));
        assert_eq!(free(&mut engine), is(&[(Fragmented, 4_000)]));
    }
}

#[test]
fn an_overcommitted_node_is_stranded_by_what_is_overcommitted() {
    let foreign = |resources: Resources| Holding {
        resources,
        devices: Vec::new(),
        ..hold("n", Owner::Foreign("static".to_owned()), None, DeviceAmount::default())
    };
    let slots = Resources { pod_slots: 111, ..Resources::default() };
    let cpu = Resources { cpu_milli: 96_001, ..Resources::default() };
    let memory = Resources { memory_bytes: 1_001, ..Resources::default() };
    for (held, cause) in
        [(slots, StrandedByOther), (cpu, StrandedByCpu), (memory, StrandedByMemory)]
    {
        let mut engine = cluster(vec![node("n", 1)]);
        engine.step(Event::ForeignHeld(Box::new(foreign(held))), 0).expect("a legal holding");
        submit(&mut engine, gang(1, whole(1), 1));
        assert_eq!(free(&mut engine), is(&[(cause, 1_000)]));
    }
}

#[test]
fn fragments_are_told_from_whole_pieces_of_the_same_node() {
    let mut engine = cluster(vec![node("n", 3)]);
    submit(&mut engine, gang(1, share(700), 1));
    let limited = Queue { limit: Bounds::gpus(Some(0)), ..Queue::named("q") };
    engine.step(Event::QueueChanged(Box::new(limited)), 0).expect("a legal queue");
    for id in 2..6 {
        let mut job = gang(id, whole(1), 1);
        job.queue = "q".to_owned();
        submit(&mut engine, job);
    }
    // Quota holds four pods up; two could have the empty devices, the 300 left over are a fragment.
    assert_eq!(free(&mut engine), is(&[(Fragmented, 300), (Quota, 2_000)]));
}

#[test]
fn a_gang_that_fits_in_parts_is_short() {
    let mut engine = cluster(vec![node("n", 2), node("m", 1)]);
    submit(&mut engine, gang(1, whole(1), 4));
    assert_eq!(free(&mut engine), is(&[(GangShort, 3_000)]));
    // Its sets count together: one large pod that fits nowhere keeps the small ones waiting.
    let mut engine = cluster(vec![node("n", 2)]);
    let mut mixed = gang(1, whole(1), 1);
    mixed.pod_sets.extend(gang(2, whole(8), 1).pod_sets);
    mixed.pod_sets[1].name = "large".to_owned();
    submit(&mut engine, mixed);
    assert_eq!(free(&mut engine), is(&[(Fragmented, 1_000), (GangShort, 1_000)]));
}

#[test]
fn a_gang_short_of_room_is_no_case_for_quota() {
    let limited = Queue { limit: Bounds::gpus(Some(1_000)), ..Queue::named("q") };
    let world =
        Snapshot { nodes: vec![node("n", 4)], queues: vec![limited], ..Snapshot::default() };
    for (pods, expected) in
        [(3, is(&[(Quota, 3_000), (NoDemand, 1_000)])), (5, is(&[(GangShort, 4_000)]))]
    {
        let mut engine = engine(&world, "fifo-skip");
        let mut job = gang(1, whole(1), pods);
        job.queue = "q".to_owned();
        submit(&mut engine, job);
        assert_eq!(free(&mut engine), expected);
    }
}

#[test]
fn demand_is_finite_and_the_nearest_explains_first() {
    // 400 GPUs that one pod lacks CPU for, beside backlog for a model that is not there.
    let mut engine = cluster((0..50).map(|i| node(&format!("n{i}"), 8)).collect());
    let mut hungry = whole(1);
    hungry.resources.cpu_milli = 100_000;
    let mut other = whole(1);
    other.gpu_models.insert("b".to_owned());
    for id in 0..100 {
        submit(&mut engine, gang(id, other.clone(), 1));
    }
    submit(&mut engine, gang(100, hungry, 1));
    let expected = is(&[(StrandedByCpu, 1_000), (TypeMismatch, 100_000), (NoDemand, 299_000)]);
    assert_eq!(free(&mut engine), expected);
}

#[test]
fn demand_that_was_turned_away_explains_while_it_does_not_fit() {
    let mut engine = cluster(vec![node("n", 2)]);
    submit(&mut engine, gang(1, share(400), 1));
    let away = [(Arc::new(whole(2)), 1), (Arc::new(whole(1)), 5)];
    // The empty device would take the smaller pod, which nobody brings back.
    let expected = is(&[(Fragmented, 1_600)]);
    assert_eq!(free_of(&what_is_free(&mut engine, &away)), expected);
    let expected = is(&[(Fragmented, 600), (NoDemand, 1_000)]);
    assert_eq!(free_of(&what_is_free(&mut engine, &away[1..])), expected);
}

#[test]
fn slices_replicas_and_counters_have_their_weight() {
    let profile = MigProfile {
        name: "2g".to_owned(),
        compute_slices: 2,
        memory_slices: 2,
        starts: vec![0, 2, 4],
    };
    let table = MigTable {
        name: "t".to_owned(),
        memory_slices: 8,
        compute_slices: 7,
        profiles: vec![profile],
    };
    let plain = Device::plain("a", 0);
    let mut world = node("n", 0);
    world.devices = vec![
        Device { mig_table: Some("t".to_owned()), ..plain.clone() },
        Device { replicas: 3, ..plain.clone() },
        Device { counters: vec![("x".to_owned(), 10), ("y".to_owned(), 4)], ..plain },
    ];
    let world = Snapshot { nodes: vec![world], mig_tables: vec![table], ..Snapshot::default() };
    let mut engine = engine(&world, "fifo-skip");
    let ask = |device| Requirement { device, ..whole(1) };
    let slice = ask(DeviceRequest::Slice { profile: "2g".to_owned() });
    submit(&mut engine, gang(1, slice.clone(), 1));
    submit(&mut engine, gang(2, ask(DeviceRequest::Replicas { count: 1 }), 1));
    let amounts = vec![("x".to_owned(), 2), ("y".to_owned(), 3)];
    submit(&mut engine, gang(3, ask(DeviceRequest::Counters { amounts }), 1));
    // Free: 5 of 7 compute slices, 2 of 3 replicas, 1 of 4 of the scarcest counter, each rounded
    // down.
    assert_eq!(free(&mut engine), is(&[(NoDemand, 714 + 666 + 250)]));
    assert_eq!(what_is_free(&mut engine, &[]).total_gpu_milli.allocated, 286 + 334 + 750);
    // Two more slices fit, a third does not: one compute slice is left. It wants 2/7, rounded up.
    for id in 4..7 {
        submit(&mut engine, gang(id, slice.clone(), 1));
    }
    let expected = is(&[(Fragmented, 142 + 144), (NoDemand, 666 + 250 - 144)]);
    assert_eq!(free(&mut engine), expected);
}

#[test]
fn holders_of_one_device_share_it_without_losing_a_unit() {
    let mut device = Device::plain("a", 0);
    device.replicas = 3;
    let mut world = node("n", 0);
    world.devices = vec![device];
    let mut engine = cluster(vec![world]);
    for (id, queue) in [(1, "p"), (2, "q"), (3, "")] {
        let mut job = gang(id, whole(1), 1);
        job.queue = queue.to_owned();
        let one = Requirement { device: DeviceRequest::Replicas { count: 1 }, ..whole(1) };
        job.pod_sets[0].requirement = Arc::new(one);
        submit(&mut engine, job);
    }
    let total = what_is_free(&mut engine, &[]).total_gpu_milli;
    assert_eq!(total.allocated, 1_000);
    assert_eq!(total.allocated_by_queue.values().copied().collect::<Vec<_>>(), [333, 334, 333]);
}

#[test]
fn others_hold_too_and_too_much() {
    let mut engine = cluster(vec![node("n", 2)]);
    submit(&mut engine, gang(1, whole(1), 1));
    let amount = DeviceAmount { mode: Mode::Shared, compute_milli: 1_000, ..Default::default() };
    let foreign = hold("n", Owner::Foreign("static".to_owned()), None, amount);
    engine.step(Event::ForeignHeld(Box::new(foreign)), 0).expect("a legal holding");
    let total = what_is_free(&mut engine, &[]).total_gpu_milli;
    total.check(i128::from).expect("the identity");
    assert_eq!((total.allocated, total.allocated_by_others, total.free), (1_000, 500, 1_000));
    engine.step(Event::ended(JobId(1)), 1).expect("it runs");
    assert_eq!(what_is_free(&mut engine, &[]).total_gpu_milli.allocated_by_others, 1_000);
}

#[test]
fn names_are_those_of_the_vocabulary() {
    let names = [
        "draining_or_cordoned",
        "starting",
        "reserved",
        "taint",
        "type_mismatch",
        "topology",
        "stranded_by_cpu",
        "stranded_by_memory",
        "stranded_by_other",
        "fragmented",
        "gang_short",
        "quota",
        "no_demand",
        "layout_rest",
    ];
    assert_eq!(names.len(), FreeCause::ALL.len());
    for (cause, name) in FreeCause::ALL.into_iter().zip(names) {
        assert_eq!(cause.name(), name);
        assert_eq!(serde_json::to_string(&cause).expect("a text"), format!("\"{name}\""));
    }
}
