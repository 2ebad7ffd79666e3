//! One small world for each hard constraint of kube-scheduler's default filters: both searches and
//! the judge agree, and both what is placed and what is said to be in the way are what its
//! documentation says.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::requirement::Operator;
use dovetail_model::{
    Attachment, ConditionCause, CounterRule, CounterScope, Event, Holding, HoldingId, HoldingPhase,
    Node, NodeCondition, Owner, PodId, Preference, Preferred, Requirement, Resources, RuleCause,
    RuleKind, SelectorTerm, Selectors, Taint, TaintEffect, Toleration,
};
use dovetail_plan::Cause;

use crate::by_hand::{World, placed};

const NAME: &str = "metadata.name";
const CLUSTER: &str = "dovetail.dev/cluster";

fn node(name: &str, labels: &[(&str, &str)]) -> Node {
    let mut node = Node::plain(name, 8000, 1000, 0, "");
    node.labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    node
}

fn pod() -> Requirement {
    Requirement { resources: Resources::pod(100, 10), ..Requirement::default() }
}

fn set<S: FromIterator<String>>(names: &[&str]) -> S {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn term(key: &str, operator: Operator, values: &[&str]) -> Vec<Vec<SelectorTerm>> {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    vec![vec![SelectorTerm { key: key.to_owned(), operator, values }]]
}

fn condition(cause: ConditionCause, any_of: Vec<Vec<SelectorTerm>>) -> NodeCondition {
    NodeCondition { any_of, cause }
}

fn rule(selector: &str, label: &str, kind: RuleKind, cause: RuleCause) -> CounterRule {
    let (selector, label) = (selector.to_owned(), label.to_owned());
    CounterRule { selector, label, kind, scope: CounterScope::AllNodes, cause }
}

fn none_of(selector: &str, label: &str, cause: RuleCause) -> CounterRule {
    rule(selector, label, RuleKind::AntiAffinity, cause)
}

/// A topology spread constraint with its defaults.
fn spread(label: &str, max_skew: u32) -> CounterRule {
    let kind = RuleKind::Spread { max_skew, min_domains: None };
    let scope = CounterScope::Eligible { honor_affinity: true, honor_taints: false };
    CounterRule { scope, ..rule("app", label, kind, RuleCause::Spread) }
}

/// Somebody else's pod without amounts.
fn others(name: &str, node: &str, counts_into: &[&str], volumes: &[&str]) -> Event {
    Event::ForeignHeld(Box::new(Holding {
        id: HoldingId(0),
        node: node.into(),
        owner: Owner::Foreign(name.to_owned()),
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: None,
        resources: Resources::default(),
        devices: Vec::new(),
        counts_into: set(counts_into),
        attachments: attachments(volumes),
    }))
}

/// Volumes as `limit/volume`.
fn attachments(volumes: &[&str]) -> BTreeSet<Attachment> {
    let attachment = |name: &&str| {
        let (limit, volume) = name.split_once('/').expect("limit/volume");
        Attachment { limit: limit.to_owned(), volume: volume.to_owned() }
    };
    volumes.iter().map(attachment).collect()
}

impl World {
    /// What keeps the pod off each node, as both searches say it.
    fn says(&mut self, pod: &Requirement, expected: &[(&str, &[Cause])]) {
        for engine in &mut self.engines {
            for (node, causes) in expected {
                let refusals = engine.ask().refusals(&Arc::new(pod.clone()), node);
                let said: Vec<Cause> =
                    refusals.expect("a node that is there").into_iter().map(|r| r.cause).collect();
                assert_eq!(said, *causes, "on node {node}");
            }
        }
    }

    /// Submits a pod; its node, or nothing if it waits.
    fn place(&mut self, pod: &Requirement) -> Option<String> {
        placed(&self.submit(|_| {}, pod.clone())).into_iter().next().map(|(_, node, _)| node)
    }

    fn others(&mut self, name: &str, node: &str, counts_into: &[&str], volumes: &[&str]) {
        self.step(others(name, node, counts_into, volumes));
    }
}

#[test]
fn node_affinity_by_label_and_by_name() {
    let mut world =
        World::nodes(vec![node("a", &[("disk", "hdd")]), node("b", &[("disk", "ssd")])]);
    let affinity = |any_of| NodeCondition::node_affinity(any_of);
    let with =
        |conditions: Vec<NodeCondition>| Requirement { node_conditions: conditions, ..pod() };
    let ssd = affinity(term("disk", Operator::In, &["ssd"]));
    let named_a = affinity(term(NAME, Operator::In, &["a"]));
    world.says(&with(vec![ssd.clone()]), &[("a", &[Cause::NodeAffinity]), ("b", &[])]);
    // Node selector and node affinity hold together.
    let both = with(vec![ssd.clone(), named_a.clone()]);
    world.says(&both, &[("a", &[Cause::NodeAffinity]), ("b", &[Cause::NodeAffinity])]);
    let either = affinity([ssd.any_of, named_a.any_of].concat());
    world.says(&with(vec![either]), &[("a", &[]), ("b", &[])]);
    world.says(&with(vec![affinity(Vec::new())]), &[("a", &[Cause::NodeAffinity])]);
    let of_cluster = affinity(term(CLUSTER, Operator::Exists, &[]));
    world.says(&with(vec![of_cluster]), &[("a", &[])]);
    assert_eq!(
        world.place(&with(vec![affinity(term(NAME, Operator::NotIn, &["a"]))])).unwrap(),
        "b"
    );
    let gone = with(vec![affinity(term(NAME, Operator::In, &["c"]))]);
    assert_eq!(world.place(&gone), None);
    let came = world.step(Event::NodeChanged(Box::new(node("c", &[]))));
    assert_eq!(placed(&came)[0].1, "c");
}

#[test]
fn unschedulable_goes_before_taints() {
    let taint = |key: &str| Taint {
        key: key.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    };
    let unschedulable = "node.kubernetes.io/unschedulable";
    let mut a = node("a", &[]);
    a.taints = vec![taint("gpu")];
    a.unschedulable = true;
    let mut world = World::nodes(vec![a]);
    let tolerates = |keys: &[&str]| {
        let tolerate = |key: &&str| Toleration {
            key: (*key).to_owned(),
            any_value: true,
            ..Toleration::default()
        };
        Requirement { tolerations: keys.iter().map(tolerate).collect(), ..pod() }
    };
    world.says(&tolerates(&[]), &[("a", &[Cause::Unschedulable])]);
    world.says(&tolerates(&["gpu"]), &[("a", &[Cause::Unschedulable])]);
    world.says(&tolerates(&[unschedulable]), &[("a", &[Cause::Taint])]);
    assert_eq!(world.place(&tolerates(&["gpu", unschedulable])).unwrap(), "a");
}

#[test]
fn a_host_port_is_used_once_per_node() {
    let mut world = World::nodes(vec![node("a", &[]), node("b", &[])]);
    // TCP/80 on every address, and on one: both count into the port, each looks at what it meets.
    let on = |own: &str, met: &[&str]| Requirement {
        counts_into: set(&[own]),
        rules: met.iter().map(|s| none_of(s, NAME, RuleCause::HostPort)).collect(),
        ..pod()
    };
    let any = on("port:TCP/80/any", &["port:TCP/80/any", "port:TCP/80/10.0.0.1"]);
    let one = on("port:TCP/80/10.0.0.1", &["port:TCP/80/any", "port:TCP/80/10.0.0.1"]);
    assert_eq!(world.place(&any).unwrap(), "a");
    world.says(&one, &[("a", &[Cause::HostPort]), ("b", &[])]);
    assert_eq!(world.place(&one).unwrap(), "b");
    world.says(&any, &[("a", &[Cause::HostPort]), ("b", &[Cause::HostPort])]);
    assert_eq!(world.place(&any), None);
    assert_eq!(world.place(&pod()).unwrap(), "a", "who asks for no port is free");
    assert_eq!(placed(&world.end(2))[0].1, "b", "the port is free again");
}

#[test]
fn every_short_amount_is_named_pods_first() {
    let mut a = node("a", &[]);
    a.allocatable =
        Resources { cpu_milli: 50, memory_bytes: 5, pod_slots: 0, ..Resources::default() };
    a.allocatable.extended.insert("rdma".into(), 1);
    let mut world = World::nodes(vec![a.clone()]);
    let mut asks = pod();
    asks.resources.ephemeral_bytes = 1;
    asks.resources.extended = [("rdma".to_owned(), 2), ("fpga".to_owned(), 1)].into();
    let short = [
        Cause::PodSlots,
        Cause::Cpu,
        Cause::Memory,
        Cause::Ephemeral,
        Cause::Extended,
        Cause::Extended,
    ];
    world.says(&asks, &[("a", &short)]);
    let named = world.engines[0].ask().refusals(&Arc::new(asks.clone()), "a").expect("it is there");
    let names: BTreeSet<String> = named.into_iter().filter_map(|r| r.resource).collect();
    assert_eq!(names, set::<BTreeSet<String>>(&["fpga", "rdma"]));
    a.allocatable.pod_slots = 1;
    a.allocatable.cpu_milli = 100;
    world.step(Event::NodeChanged(Box::new(a)));
    world.says(&asks, &[("a", &short[2..])]);
}

#[test]
fn disks_are_shared_by_readers_only() {
    let mut world = World::nodes(vec![node("a", &[])]);
    let conflicts = |own: &str, met: &[&str]| Requirement {
        counts_into: set(&[own]),
        rules: met.iter().map(|s| none_of(s, NAME, RuleCause::DiskConflict)).collect(),
        ..pod()
    };
    let reader = conflicts("disk:x/ro", &["disk:x/rw"]);
    let writer = conflicts("disk:x/rw", &["disk:x/ro", "disk:x/rw"]);
    assert!(world.place(&reader).is_some() && world.place(&reader).is_some());
    world.says(&writer, &[("a", &[Cause::DiskConflict])]);
    assert_eq!(world.place(&writer), None);
    assert_eq!(placed(&world.end(1)), []);
    assert_eq!(placed(&world.end(2)).len(), 1, "the last reader is gone");
    world.says(&reader, &[("a", &[Cause::DiskConflict])]);
}

#[test]
fn a_claim_for_one_pod_is_used_once_in_the_cluster() {
    let mut world = World::nodes(vec![node("a", &[]), node("b", &[])]);
    let owner = Requirement {
        counts_into: set(&["claim:ns/data"]),
        rules: vec![none_of("claim:ns/data", CLUSTER, RuleCause::ReadWriteOncePod)],
        ..pod()
    };
    assert_eq!(world.place(&owner).unwrap(), "a");
    let used: &[Cause] = &[Cause::ReadWriteOncePod];
    world.says(&owner, &[("a", used), ("b", used)]);
    assert_eq!(world.place(&owner), None);
    assert_eq!(placed(&world.end(1)).len(), 1);
}

#[test]
fn a_node_holds_each_volume_once_and_so_many() {
    let mut a = node("a", &[]);
    a.attach_limits.insert("csi".into(), 2);
    let mut world = World::nodes(vec![a.clone()]);
    let uses = |volumes: &[&str]| Requirement { attachments: attachments(volumes), ..pod() };
    let limit: &[Cause] = &[Cause::VolumeLimit];
    world.says(&uses(&["csi/u", "csi/v", "csi/w"]), &[("a", limit)]);
    world.says(&uses(&["other/u", "other/v", "other/w"]), &[("a", &[])]);
    assert!(world.place(&uses(&["csi/u", "csi/v"])).is_some());
    world.says(&uses(&["csi/w"]), &[("a", limit)]);
    assert!(world.place(&uses(&["csi/v"])).is_some(), "it is attached already");
    assert_eq!(world.place(&uses(&["csi/w"])), None);
    // Others attach it beyond the limit: it is there now, and costs nothing more.
    let more = world.step(others("static", "a", &[], &["csi/w"]));
    assert_eq!(placed(&more).len(), 1);
    // Two pods use `v`: the first to go frees nothing. With the second, there is still one too
    // many.
    world.end(1);
    world.says(&uses(&["csi/u"]), &[("a", limit)]);
    world.end(2);
    world.says(&uses(&["csi/u"]), &[("a", &[])]);
    a.attach_limits.insert("csi".into(), 1);
    world.step(Event::NodeChanged(Box::new(a)));
    world.says(&uses(&["csi/u"]), &[("a", limit)]);
    let driver = condition(ConditionCause::VolumeDriver, term("csi", Operator::Exists, &[]));
    let missing = Requirement { node_conditions: vec![driver], ..uses(&["csi/u"]) };
    world.says(&missing, &[("a", &[Cause::VolumeDriver])]);
}

#[test]
fn volumes_say_where_they_are() {
    let zone = |name: &str, zone: &str| node(name, &[("zone", zone)]);
    let mut world = World::nodes(vec![zone("a", "1"), zone("b", "2"), zone("c", "3")]);
    let there = |cause, zones: &[&str]| condition(cause, term("zone", Operator::In, zones));
    let bound = there(ConditionCause::VolumeNodeAffinity, &["2", "3"]);
    let provision = there(ConditionCause::StorageTopology, &["2"]);
    let space = there(ConditionCause::StorageCapacity, &["3"]);
    let zoned = there(ConditionCause::VolumeZone, &["1"]);
    let with = |conditions: &[&NodeCondition]| Requirement {
        node_conditions: conditions.iter().copied().cloned().collect(),
        ..pod()
    };
    use Cause::{StorageCapacity, StorageTopology, VolumeNodeAffinity, VolumeZone};
    // One filter names all of its reasons; the zone is another filter.
    world.says(
        &with(&[&zoned, &space, &provision, &bound]),
        &[
            ("a", &[VolumeNodeAffinity, StorageTopology]),
            ("b", &[StorageCapacity]),
            ("c", &[StorageTopology]),
        ],
    );
    world.says(&with(&[&zoned]), &[("a", &[]), ("b", &[VolumeZone])]);
    assert_eq!(world.place(&with(&[&bound, &provision])).unwrap(), "b");
}

#[test]
fn spread_as_documented() {
    // https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints: two
    // zones of two nodes, three pods on nodes 1, 2 and 3.
    let labels = |name: &'static str, zone: &'static str| {
        node(name, &[("zone", zone), ("kubernetes.io/hostname", name)])
    };
    let nodes = || vec![labels("n1", "A"), labels("n2", "A"), labels("n3", "B"), labels("n4", "B")];
    let full = |world: &mut World, on: &[&str]| {
        for (number, node) in on.iter().enumerate() {
            world.others(&format!("p{number}"), node, &["app"], &[]);
        }
    };
    let asks = |rules: Vec<CounterRule>| Requirement { counts_into: set(&["app"]), rules, ..pod() };
    let (skewed, open): (&[Cause], &[Cause]) = (&[Cause::Spread], &[]);
    let mut world = World::nodes(nodes());
    full(&mut world, &["n1", "n2", "n3"]);
    let by_zone = asks(vec![spread("zone", 1)]);
    world.says(&by_zone, &[("n1", skewed), ("n2", skewed), ("n3", open), ("n4", open)]);
    world.says(&asks(vec![spread("zone", 2)]), &[("n1", open)]);
    // With both constraints only node 4 is left.
    let both = asks(vec![spread("zone", 1), spread("kubernetes.io/hostname", 1)]);
    world.says(&both, &[("n1", skewed), ("n2", skewed), ("n3", skewed), ("n4", open)]);
    assert_eq!(world.place(&both).unwrap(), "n4");
    // The documentation's conflict: zone B would have to take it, and in zone B no node can.
    let mut world = World::nodes(nodes()[..3].to_vec());
    full(&mut world, &["n1", "n1", "n2", "n3", "n3"]);
    world.says(&both, &[("n1", skewed), ("n2", skewed), ("n3", skewed)]);
    assert_eq!(world.place(&both), None);
    let came = world.step(Event::NodeChanged(Box::new(labels("n4", "B"))));
    assert_eq!(placed(&came)[0].1, "n4");
    // A zone that the pod cannot use does not count.
    let mut world = World::nodes([nodes(), vec![labels("n5", "C")]].concat());
    full(&mut world, &["n1", "n2", "n3"]);
    world.says(&by_zone, &[("n3", skewed), ("n5", open)]);
    let not_c = NodeCondition::node_affinity(term("zone", Operator::NotIn, &["C"]));
    let outside = Requirement { node_conditions: vec![not_c], ..by_zone };
    world.says(&outside, &[("n3", open), ("n5", &[Cause::NodeAffinity])]);
}

#[test]
fn spread_counts_nodes_that_have_every_label_and_honours_taints_if_asked() {
    let zone = |name: &str, zone: &str| node(name, &[("zone", zone), ("rack", zone)]);
    let mut world = World::nodes(vec![zone("a", "1"), zone("b", "2"), node("c", &[("zone", "3")])]);
    world.others("first", "a", &["app"], &[]);
    let asks = |rules: Vec<CounterRule>| Requirement { counts_into: set(&["app"]), rules, ..pod() };
    let (skewed, open): (&[Cause], &[Cause]) = (&[Cause::Spread], &[]);
    let by_zone = asks(vec![spread("zone", 1)]);
    world.says(&by_zone, &[("a", skewed), ("b", open), ("c", open)]);
    // Node c has no rack: neither it nor its zone counts, and it is refused for what it lacks.
    let by_both = asks(vec![spread("zone", 1), spread("rack", 1)]);
    world.says(&by_both, &[("a", skewed), ("b", open), ("c", &[Cause::SpreadLabel])]);
    world.others("second", "b", &["app"], &[]);
    world.says(&by_both, &[("a", open)]);
    world.says(&by_zone, &[("a", skewed)]);
    // Zone 3 is tainted: it counts unless taints are honoured.
    let mut tainted = node("c", &[("zone", "3")]);
    let (key, effect) = ("k".to_owned(), TaintEffect::NoExecute);
    tainted.taints.push(Taint { key, value: String::new(), effect });
    let scope = CounterScope::Eligible { honor_affinity: true, honor_taints: true };
    let honouring = asks(vec![CounterRule { scope, ..spread("zone", 1) }]);
    world.says(&honouring, &[("a", skewed)]);
    assert_eq!(
        world.place(&Requirement { node_names: set(&["a"]), ..honouring.clone() }).as_deref(),
        Some("a"),
        "it may use no other node, so no other counts"
    );
    world.end(1);
    world.step(Event::NodeChanged(Box::new(tainted)));
    world.says(&by_zone, &[("a", skewed)]);
    world.says(&honouring, &[("a", open), ("c", &[Cause::Taint])]);
    // Fewer domains than wanted: the emptiest counts as 0.
    let kind = |min_domains| RuleKind::Spread { max_skew: 1, min_domains };
    let least = |min| asks(vec![CounterRule { kind: kind(min), scope, ..spread("zone", 1) }]);
    world.says(&least(Some(2)), &[("a", open)]);
    world.says(&least(Some(3)), &[("a", skewed), ("b", skewed)]);
}

#[test]
fn affinity_lets_the_first_of_its_kind_in() {
    let mut world = World::nodes(vec![
        node("a", &[("zone", "1"), ("rack", "1")]),
        node("b", &[("zone", "2"), ("rack", "2")]),
        node("c", &[("zone", "1")]),
    ]);
    let with = |label| rule("web", label, RuleKind::Affinity, RuleCause::Affinity);
    let (apart, open): (&[Cause], &[Cause]) = (&[Cause::Affinity], &[]);
    let stranger = Requirement { rules: vec![with("zone")], ..pod() };
    world.says(&stranger, &[("a", apart), ("b", apart), ("c", apart)]);
    let web = Requirement {
        counts_into: set(&["web"]),
        rules: vec![with("zone"), with("rack")],
        ..pod()
    };
    world.says(&web, &[("a", open), ("b", open), ("c", apart)]);
    let pinned = Requirement { node_names: set(&["b"]), ..web.clone() };
    assert_eq!(world.place(&pinned).unwrap(), "b");
    world.says(&web, &[("a", apart), ("b", open), ("c", apart)]);
    // One where only one of the two labels is: nobody is the first any more, nobody has both.
    world.end(1);
    world.others("half", "c", &["web"], &[]);
    world.says(&web, &[("a", apart), ("b", apart), ("c", apart)]);
    assert_eq!(world.place(&web), None);
    let gone = world.step(Event::ForeignReleased { name: "half".into() });
    assert_eq!(placed(&gone).len(), 1, "it is the first again");
}

#[test]
fn anti_affinity_works_both_ways_and_needs_the_label() {
    let mut world = World::nodes(vec![
        node("a", &[("zone", "1")]),
        node("b", &[("zone", "1")]),
        node("c", &[]),
    ]);
    let shy = Requirement { rules: vec![none_of("web", "zone", RuleCause::AntiAffinity)], ..pod() };
    world.others("web", "a", &["web", "carries:no-batch"], &[]);
    let (own, theirs): (&[Cause], &[Cause]) =
        (&[Cause::AntiAffinity], &[Cause::ExistingAntiAffinity]);
    world.says(&shy, &[("a", own), ("b", own), ("c", &[])]);
    let carried = none_of("carries:no-batch", "zone", RuleCause::ExistingAntiAffinity);
    let batch = Requirement { rules: vec![carried.clone()], ..pod() };
    world.says(&batch, &[("a", theirs), ("b", theirs), ("c", &[])]);
    let both = Requirement { rules: vec![carried, shy.rules[0].clone()], ..pod() };
    world.says(&both, &[("a", own)]);
    assert_eq!(world.place(&both).unwrap(), "c");
    // What is counted changes while it is held.
    let pinned = Requirement { node_names: set(&["b"]), ..both };
    assert_eq!(world.place(&pinned), None);
    let owner = Owner::Foreign("web".into());
    let now =
        |counts: &[&str]| Event::CountsChanged { owner: owner.clone(), counts_into: set(counts) };
    assert_eq!(placed(&world.step(now(&["carries:no-batch"]))), []);
    assert_eq!(placed(&world.step(now(&["other"])))[0].1, "b");
}

#[test]
fn counts_of_a_running_pod_change() {
    let mut world = World::nodes(vec![node("a", &[]), node("b", &[])]);
    assert_eq!(world.place(&pod()).unwrap(), "a");
    // A selector that nobody had used before appears, and the pod matches it.
    let job = dovetail_model::JobId(1);
    let owner = Owner::Pod(PodId { job, pod_set: 0, ordinal: 0 });
    let counts_into: Selectors = set(&["late"]);
    world.step(Event::CountsChanged { owner: owner.clone(), counts_into: counts_into.clone() });
    let near = rule("late", NAME, RuleKind::Affinity, RuleCause::Affinity);
    world.says(
        &Requirement { rules: vec![near], ..pod() },
        &[("a", &[]), ("b", &[Cause::Affinity])],
    );
    world.end(1);
    for engine in &mut world.engines {
        let event = Event::CountsChanged { owner: owner.clone(), counts_into: counts_into.clone() };
        let said = engine.step(event, 0).expect_err("the job is over").to_string();
        assert!(said.contains("never submitted or has already ended"), "{said}");
        let nobody = Owner::Foreign("nobody".into());
        let event = Event::CountsChanged { owner: nobody, counts_into: counts_into.clone() };
        let said = engine.step(event, 0).expect_err("nobody holds nothing").to_string();
        assert!(said.contains("placed by others, has no allocation"), "{said}");
    }
}

#[test]
fn the_first_filter_in_order_is_named() {
    let mut a = node("a", &[("zone", "1")]);
    a.allocatable =
        Resources { cpu_milli: 50, pod_slots: 110, memory_bytes: 100, ..Resources::default() };
    a.attach_limits.insert("csi".into(), 0);
    let (key, effect) = ("k".to_owned(), TaintEffect::NoSchedule);
    a.taints.push(Taint { key, value: String::new(), effect });
    let mut world = World::nodes(vec![a]);
    world.others("busy", "a", &["port:1", "disk:1", "claim:1", "app", "app2", "app3"], &[]);
    let elsewhere = |cause| condition(cause, term("zone", Operator::In, &["2"]));
    let mut asks = Requirement {
        node_conditions: vec![
            elsewhere(ConditionCause::DeclaredFeatures),
            elsewhere(ConditionCause::VolumeZone),
            elsewhere(ConditionCause::StorageTopology),
            elsewhere(ConditionCause::NodeAffinity),
        ],
        rules: vec![
            none_of("app3", "zone", RuleCause::ExistingAntiAffinity),
            none_of("app2", "zone", RuleCause::AntiAffinity),
            rule("nobody", "zone", RuleKind::Affinity, RuleCause::Affinity),
            CounterRule { scope: CounterScope::AllNodes, ..spread("zone", 0) },
            none_of("claim:1", CLUSTER, RuleCause::ReadWriteOncePod),
            none_of("disk:1", NAME, RuleCause::DiskConflict),
            none_of("port:1", NAME, RuleCause::HostPort),
        ],
        counts_into: set(&["app"]),
        attachments: attachments(&["csi/v"]),
        node_names: set(&["b"]),
        ..pod()
    };
    let mut first = |asks: &Requirement, cause| world.says(asks, &[("a", &[cause])]);
    // Each is given up in turn, from the first filter to the last.
    first(&asks, Cause::NodeName);
    asks.node_names.clear();
    first(&asks, Cause::Taint);
    asks.tolerations.push(Toleration { any_value: true, ..Toleration::default() });
    first(&asks, Cause::NodeAffinity);
    asks.node_conditions.pop();
    first(&asks, Cause::HostPort);
    asks.rules.pop();
    first(&asks, Cause::Cpu);
    asks.resources.cpu_milli = 0;
    first(&asks, Cause::DiskConflict);
    asks.rules.pop();
    first(&asks, Cause::ReadWriteOncePod);
    asks.rules.pop();
    first(&asks, Cause::VolumeLimit);
    asks.attachments.clear();
    first(&asks, Cause::StorageTopology);
    asks.node_conditions.pop();
    first(&asks, Cause::VolumeZone);
    asks.node_conditions.pop();
    first(&asks, Cause::Spread);
    asks.rules.pop();
    first(&asks, Cause::Affinity);
    asks.rules.pop();
    first(&asks, Cause::AntiAffinity);
    asks.rules.pop();
    first(&asks, Cause::ExistingAntiAffinity);
    asks.rules.pop();
    first(&asks, Cause::DeclaredFeatures);
    asks.node_conditions.pop();
    assert_eq!(world.place(&asks).unwrap(), "a");
}

#[test]
fn what_a_pod_prefers_chooses_among_the_nodes_that_fit() {
    let mut a = node("a", &[("zone", "1")]);
    let effect = TaintEffect::PreferNoSchedule;
    a.taints = vec![Taint { key: "spot".to_owned(), value: String::new(), effect }];
    let b = node("b", &[("zone", "1"), ("disk", "ssd")]);
    let mut world = World::nodes(vec![a, b, node("c", &[("zone", "2")])]);
    let prefers = |list: &[(i64, Preferred)]| {
        let preference =
            |(points, to): &(i64, Preferred)| Preference { points: *points, to: to.clone() };
        Requirement { preferences: list.iter().map(preference).collect(), ..pod() }
    };
    let ssd = Preferred::Nodes(term("disk", Operator::In, &["ssd"]).remove(0));
    let off_spot = (-150, Preferred::SoftTaints);
    assert_eq!(world.place(&prefers(&[(200, ssd.clone())])).unwrap(), "b");
    assert_eq!(world.place(&prefers(&[(-200, ssd.clone()), off_spot.clone()])).unwrap(), "c");
    let mut tolerant = prefers(&[(-200, ssd), off_spot, (-10, by_name("c"))]);
    tolerant.tolerations = vec![Toleration { any_value: true, ..Toleration::default() }];
    assert_eq!(world.place(&tolerant).unwrap(), "a");
    let crowd = Preferred::Counted {
        selector: "app".to_owned(),
        label: "zone".to_owned(),
        scope: CounterScope::AllNodes,
    };
    let spreads = prefers(&[(-20, crowd), (-1, by_name("b"))]);
    world.others("first", "b", &["app"], &[]);
    assert_eq!(world.place(&spreads).unwrap(), "c", "none is counted in its zone");
    world.others("first", "c", &["app"], &[]);
    assert_eq!(world.place(&spreads).unwrap(), "a", "nothing but the count of its zone is new");
}

fn by_name(name: &str) -> Preferred {
    Preferred::Nodes(term(NAME, Operator::In, &[name]).remove(0))
}
