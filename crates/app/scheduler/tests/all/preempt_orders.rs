//! What is ordered when pods of higher priority stop others: the loop of the scheduler without its
//! wires.

use dovetail_control::announce::PodCondition;
use dovetail_control::order::{OrderEnd, PodOrder};
use dovetail_objects::Kind;
use dovetail_plan::PreemptionConfig;
use dovetail_plan::engine::EngineConfig;
use serde_json::{Value, json};

use crate::gangs::{Cluster, member, names, native, node, pod};
use crate::server::Server;

/// Nodes of eight GPUs, and a scheduler that stops pods of lower priority.
pub(crate) fn preempting_cluster(nodes: usize) -> Cluster {
    let mut server = Server::default();
    (0..nodes).for_each(|at| node(&mut server, at));
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    Cluster::with(server, EngineConfig { preemption, ..EngineConfig::default() })
}

/// A pod of a higher priority than others.
pub(crate) fn high(gpus: usize) -> Value {
    let mut pod = pod(gpus);
    pod["spec"]["priority"] = json!(5);
    pod
}

/// Decides and binds; what is ordered besides, in order.
fn orders(cluster: &mut Cluster) -> Vec<String> {
    cluster.run();
    let told = std::iter::from_fn(|| cluster.scheduler.next_order());
    let said = told.map(|order| match order {
        PodOrder::Evict { pod, .. } => format!("stop {}", pod.name),
        PodOrder::Nominate { pod, node, says } => {
            assert_says_the_node(&node, says.as_deref());
            format!("{} to {node}", pod.name)
        }
        PodOrder::Unmark { pod } => format!("take back {}", pod.name),
        PodOrder::MayEvict { pod, .. } => format!("ask about {}", pod.name),
        PodOrder::SelectNode { claim, node, .. } => format!("{} on {node}", claim.name),
        PodOrder::WriteClaim(write) => format!("{}: {}", write.claim.name, write.patch),
        PodOrder::Resume(job) => format!("resume {}", job.job.name),
    });
    said.collect()
}

/// Who is told which node is freed for it says so in the same write.
pub(crate) fn assert_says_the_node(node: &str, says: Option<&PodCondition>) {
    let says = says.map(|says| (says.waiting.word(), says.waiting.message.as_str()));
    let (word, message) = says.unwrap_or_default();
    let kept = format!("capacity is reserved for it on {node} until ");
    let agrees = word == "WaitingForReservation" && message.starts_with(&kept);
    assert_eq!(agrees, !node.is_empty(), "{node} is freed, and it says: {message}");
}

#[test]
fn who_has_not_begun_to_stop_in_time_is_stopped_again() {
    let mut cluster = preempting_cluster(1);
    cluster.create("low", pod(8));
    assert_eq!(cluster.run(), names(&["low"]));
    cluster.create("high", high(8));
    assert_eq!(orders(&mut cluster), ["high to n0", "stop low"]);
    // The delete never reached the server. Its own 30 s, and a minute more:
    cluster.pass(89_999);
    assert_eq!(orders(&mut cluster), [""; 0]);
    cluster.pass(1);
    assert_eq!(orders(&mut cluster), ["high to n0", "stop low"]);
    cluster.delete(Kind::Pod, "blue", "low");
    assert_eq!(cluster.run(), names(&["high"]));
    // Who runs has no room kept.
    cluster.delete(Kind::Pod, "blue", "high");
    assert_eq!(orders(&mut cluster), [""; 0]);
}

#[test]
fn who_does_not_wait_any_more_gives_back_what_was_freed() {
    let mut cluster = preempting_cluster(1);
    cluster.create("low", pod(8));
    cluster.run();
    cluster.create("high", high(8));
    orders(&mut cluster);
    cluster.delete(Kind::Pod, "blue", "high");
    assert_eq!(orders(&mut cluster), [""; 0]);
    cluster.create("higher", high(4));
    assert_eq!(orders(&mut cluster), ["higher to n0", "stop low"], "it may be stopped again");
}

#[test]
fn a_group_is_stopped_pod_by_pod_down_to_its_size_or_whole_as_it_says() {
    // Of equals the one with the highest number goes first.
    let (last, all) = (&["stop p11"][..], &["stop p10", "stop p11", "stop p9"][..]);
    let cases = [(json!(null), last), (json!({"single": {}}), last), (json!({"all": {}}), all)];
    for (mode, stopped) in cases {
        let mut cluster = preempting_cluster(3);
        let policy = json!({"gang": {"minCount": 2}});
        let spec = json!({"schedulingPolicy": policy, "disruptionMode": mode});
        cluster.server.apply(Kind::PodGroup, "blue", "train", json!({"spec": spec}));
        (9..12).for_each(|at| cluster.create(&format!("p{at}"), native(8)));
        assert_eq!(cluster.run(), names(&["p10", "p11", "p9"]));
        cluster.create("high", high(8));
        let mut ordered = orders(&mut cluster).split_off(1);
        ordered.sort();
        assert_eq!(ordered, stopped, "{mode}");
    }
}

#[test]
fn a_gang_goes_with_the_pods_that_replaced_lost_ones() {
    let mut cluster = preempting_cluster(3);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 3)));
    cluster.watch();
    cluster.pass(2_000);
    assert_eq!(cluster.run().len(), 2);
    cluster.delete(Kind::Pod, "blue", "p1");
    cluster.create("p9", member(8, 2, 3));
    assert_eq!(cluster.run(), names(&["p9"]));
    cluster.pass(1_000);
    cluster.create("extra", member(8, 2, 3));
    assert_eq!(cluster.run(), names(&["extra"]));
    cluster.pass(1_000);
    // The one that the gang can do without goes first, then all of it, however few the room is for.
    cluster.create("high", high(1));
    let ordered = orders(&mut cluster);
    assert_eq!(&ordered[1..], ["stop extra"], "{ordered:?}");
    cluster.create("higher", high(8));
    let mut ordered = orders(&mut cluster).split_off(1);
    ordered.sort();
    assert_eq!(ordered, ["stop p0", "stop p9"]);
}

/// The room of the one that replaced another is needed, too: with what the gang had at first it is
/// not enough.
#[test]
fn all_room_of_a_gang_is_found_that_has_replaced_pods() {
    for asked in [7, 8] {
        let mut cluster = preempting_cluster(1);
        (0..4).for_each(|at| cluster.create(&format!("p{at}"), member(2, 4, 4)));
        assert_eq!(cluster.run().len(), 4);
        cluster.delete(Kind::Pod, "blue", "p3");
        cluster.create("p9", member(2, 4, 4));
        assert_eq!(cluster.run(), names(&["p9"]));
        cluster.create("high", high(asked));
        let mut ordered = orders(&mut cluster).split_off(1);
        ordered.sort();
        assert_eq!(ordered, ["stop p0", "stop p1", "stop p2", "stop p9"]);
    }
}

/// Another of its pods is ending when one was replaced: nobody waits for that.
#[test]
fn a_gang_of_which_one_is_ending_and_another_was_replaced_can_be_stopped() {
    let mut cluster = preempting_cluster(2);
    (0..5).for_each(|at| cluster.create(&format!("p{at}"), member(2, 5, 5)));
    assert_eq!(cluster.run().len(), 5);
    let node_of = |cluster: &Cluster, name: &str| {
        let key = (Kind::Pod, "blue".to_owned(), name.to_owned());
        cluster.server.objects[&key]["spec"]["nodeName"].clone()
    };
    let apart = (0..5).map(|at| format!("p{at}")).find(|name| {
        let node = node_of(&cluster, name);
        (0..5).filter(|at| node_of(&cluster, &format!("p{at}")) == node).count() == 1
    });
    let apart = apart.expect("four fit on a node, and one does not");
    let key = (Kind::Pod, "blue".to_owned(), apart.clone());
    cluster.server.change(&key, |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-01T12:00:00Z");
    });
    cluster.run();
    let lost = (0..5).map(|at| format!("p{at}")).find(|name| *name != apart).expect("another");
    cluster.delete(Kind::Pod, "blue", &lost);
    cluster.create("p9", member(2, 5, 5));
    assert_eq!(cluster.run(), names(&["p9"]));
    cluster.create("high", high(8));
    let ordered = orders(&mut cluster);
    assert_eq!(ordered.iter().filter(|order| order.starts_with("stop ")).count(), 4, "{ordered:?}");
}

/// Who leads next stops no more of a gang than who led before.
#[test]
fn an_elastic_gang_is_one_for_the_next_leader_too() {
    let mut cluster = preempting_cluster(3);
    (0..3).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 3)));
    assert_eq!(cluster.run().len(), 3);
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let config = EngineConfig { preemption, ..EngineConfig::default() };
    let mut next = Cluster::with(cluster.server, config);
    next.create("high", high(8));
    assert_eq!(orders(&mut next)[1..], ["stop p2"]);
    next.create("higher", high(8));
    let mut ordered = orders(&mut next).split_off(1);
    ordered.sort();
    assert_eq!(ordered, ["stop p0", "stop p1"]);
}

/// The pod starts as soon as one of the four has gone, and the rest of them could not go on alone.
#[test]
fn a_gang_of_which_one_has_gone_goes_whole_though_who_it_was_for_has_started() {
    let mut cluster = preempting_cluster(4);
    (0..4).for_each(|at| cluster.create(&format!("p{at}"), member(8, 4, 4)));
    assert_eq!(cluster.run().len(), 4);
    cluster.create("high", high(8));
    cluster.run();
    let first: Vec<PodOrder> = std::iter::from_fn(|| cluster.scheduler.next_order()).collect();
    let Some(PodOrder::Nominate { node, .. }) = first.first() else { panic!("{first:?}") };
    let key = |name: &str| (Kind::Pod, "blue".to_owned(), name.to_owned());
    let mut pods = (0..4).map(|at| format!("p{at}"));
    let is_there = |name: &String| cluster.server.objects[&key(name)]["spec"]["nodeName"] == **node;
    let gone = pods.find(is_there).expect("a pod on that node");
    let is_of = |order: &&PodOrder, name: &str| {
        let PodOrder::Evict { pod, .. } = order else { return false };
        *pod.name == *name
    };
    let done = first.iter().find(|order| is_of(order, &gone)).expect("a stop");
    cluster.scheduler.order_ended(done, OrderEnd::Done, cluster.now_ms);
    let mark =
        json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"});
    cluster.server.change(&key(&gone), |pod| pod["status"]["conditions"] = json!([mark]));
    cluster.delete(Kind::Pod, "blue", &gone);
    assert_eq!(cluster.run(), names(&["high"]));
    let left: Vec<String> =
        (0..4).map(|at| format!("p{at}")).filter(|name| *name != gone).collect();
    let stops: Vec<String> = left.iter().map(|name| format!("stop {name}")).collect();
    let mut ordered = orders(&mut cluster);
    ordered.sort();
    assert_eq!(ordered, stops);
    // What was ordered first is called off; that takes nothing back.
    for name in &left {
        let order = first.iter().find(|order| is_of(order, name)).expect("a stop");
        cluster.scheduler.order_ended(order, OrderEnd::CalledOff, cluster.now_ms);
    }
    assert_eq!(orders(&mut cluster), [""; 0]);
}
