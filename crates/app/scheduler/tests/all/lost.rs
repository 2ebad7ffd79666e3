//! Members that a gang lost while nobody led: the leader that begins keeps room for them.

use dovetail_cluster::world::{Settings, World};
use dovetail_control::schedule::{Modes, Scheduler};
use dovetail_objects::Kind;
use dovetail_plan::engine::EngineConfig;
use dovetail_scheduler::Options;
use dovetail_testkit::FakeApi;
use serde_json::{Value, json};

use crate::gang_run::{bound_of_gangs, group, member as grouped};
use crate::gangs::{Cluster, member, names, node, pod};
use crate::schedule::{Running, config, fake_nodes, until};
use crate::server::Server;

/// What an earlier leader has bound, as one of so many pods.
fn bound(mut pod: Value, node: &str, size: usize) -> Value {
    pod["metadata"]["annotations"]["dovetail.dev/decision"] = json!(format!("0-7/{size}"));
    pod["spec"]["nodeName"] = json!(node);
    pod["status"] = json!({"conditions": [{"type": "PodScheduled", "status": "True",
        "lastTransitionTime": "2026-11-01T10:00:30Z"}]});
    pod
}

/// What is made next is made after that.
fn pass(server: &mut Server) {
    (0..60).for_each(|_| server.apply(Kind::Namespace, "", "blue", json!({})));
}

/// A gang of three pods with a node each that lost one, and a gang of two that would fit into the
/// room.
fn lost_one() -> Server {
    let mut server = Server::default();
    (0..3).for_each(|at| node(&mut server, at));
    for at in 0..2 {
        let pod = bound(member(8, 3, 3), &format!("n{at}"), 3);
        server.apply(Kind::Pod, "blue", &format!("p{at}"), pod);
    }
    for at in 0..2 {
        let mut other = member(4, 2, 2);
        other["metadata"]["labels"] = json!({"dovetail.dev/gang": "other"});
        server.apply(Kind::Pod, "blue", &format!("o{at}"), other);
    }
    pass(&mut server);
    server
}

#[test]
fn room_is_kept_for_a_member_that_was_lost_while_nobody_led() {
    let mut cluster = Cluster::over(lost_one());
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(29_999);
    assert_eq!(cluster.run(), names(&[]), "its owner has not noticed yet");
    cluster.create("p9", member(8, 3, 3));
    assert_eq!(cluster.run(), names(&["p9"]));
    // Nobody makes it anew.
    let mut cluster = Cluster::over(lost_one());
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(30_000);
    assert_eq!(cluster.run(), names(&["o0", "o1"]));
    // The next leader begins with a gang that was short before: what is taken is not kept.
    let mut again = Cluster::over(cluster.server);
    assert_eq!(again.run(), names(&[]));
    assert_eq!(again.reports(), names(&[]));
}

#[test]
fn a_question_about_the_cluster_keeps_nothing() {
    let mut server = lost_one();
    let world = World::new(Settings::default());
    let modes = Modes { only_asks: true, ..Modes::default() };
    let mut scheduler = Scheduler::new(world, EngineConfig::default(), 0).with(modes);
    for kind in Kind::ALL {
        for change in server.list(kind) {
            scheduler.change(change, 1_900_000_000_000);
        }
    }
    scheduler.decide(1_900_000_000_000);
    assert_eq!(scheduler.counts().to_send, 2);
}

#[test]
fn room_is_kept_in_the_domain_of_those_that_run() {
    let mut server = Server::default();
    for (at, rack) in ["a", "b", "b", "a"].into_iter().enumerate() {
        node(&mut server, at);
        let key = (Kind::Node, String::new(), format!("n{at}"));
        server.change(&key, |node| {
            node["metadata"]["labels"]["topology.kubernetes.io/rack"] = json!(rack);
        });
    }
    let in_rack = || {
        let mut pod = member(8, 2, 2);
        pod["metadata"]["annotations"]["dovetail.dev/topology-required"] = json!("rack");
        pod
    };
    server.apply(Kind::Pod, "blue", "p0", bound(in_rack(), "n0", 2));
    (0..3).for_each(|at| server.apply(Kind::Pod, "blue", &format!("o{at}"), pod(8)));
    pass(&mut server);
    let mut cluster = Cluster::over(server);
    assert_eq!(cluster.run(), names(&["o0", "o1"]), "n3 is in the rack of n0");
    cluster.create("p9", in_rack());
    assert_eq!(cluster.run(), names(&["p9"]));
    let key = (Kind::Pod, "blue".to_owned(), "p9".to_owned());
    assert_eq!(cluster.server.objects[&key]["spec"]["nodeName"], "n3");
}

#[test]
fn as_much_is_kept_as_one_of_the_same_role_asks_for() {
    let mut server = Server::default();
    (0..2).for_each(|at| node(&mut server, at));
    let spec = json!({"minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}});
    server.apply(Kind::VolcanoGroup, "blue", "train", json!({"spec": spec}));
    let of_task = |gpus: usize, task: &str| {
        let mut pod = pod(gpus);
        pod["metadata"]["labels"] = json!({"volcano.sh/task-spec": task});
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "train"});
        pod
    };
    server.apply(Kind::Pod, "blue", "ps", bound(of_task(1, "ps"), "n0", 3));
    server.apply(Kind::Pod, "blue", "w0", bound(of_task(6, "worker"), "n0", 3));
    server.apply(Kind::Pod, "blue", "large", pod(3));
    server.apply(Kind::Pod, "blue", "small", pod(2));
    pass(&mut server);
    let mut cluster = Cluster::over(server);
    assert_eq!(cluster.run(), names(&["small"]), "six of eight are kept");
    cluster.create("w1", of_task(6, "worker"));
    assert_eq!(cluster.run(), names(&["w1"]));
}

#[test]
fn nothing_is_kept_for_who_is_there_who_is_stopped_and_who_never_was() {
    // It is there: it waits, or it is ending and its room is kept when it has gone.
    let mut waits = lost_one();
    waits.apply(Kind::Pod, "blue", "p9", member(8, 3, 3));
    let mut cluster = Cluster::over(waits);
    assert_eq!(cluster.run(), names(&["p9"]));
    let mut ends = lost_one();
    node(&mut ends, 3);
    let mut ending = bound(member(8, 3, 3), "n2", 3);
    ending["metadata"]["deletionTimestamp"] = json!("2026-11-01T10:05:00Z");
    ends.apply(Kind::Pod, "blue", "p2", ending);
    let mut cluster = Cluster::over(ends);
    assert_eq!(cluster.run(), names(&["o0", "o1"]), "n3 is for nobody");
    cluster.create("late", pod(8));
    cluster.delete(Kind::Pod, "blue", "p2");
    assert_eq!(cluster.run(), names(&[]), "n2 is kept");
    // Its gang is stopped for others.
    let mut stopped = lost_one();
    let key = (Kind::Pod, "blue".to_owned(), "p1".to_owned());
    stopped.change(&key, |pod| {
        let target =
            json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"});
        pod["status"]["conditions"].as_array_mut().expect("conditions").push(target);
    });
    assert_eq!(Cluster::over(stopped).run(), names(&["o0", "o1"]));
    // Others bound its pods: how many there were nobody knows.
    let mut foreign = lost_one();
    foreign.change(&key, |pod| {
        let annotations = pod["metadata"]["annotations"].as_object_mut();
        annotations.expect("annotations").remove("dovetail.dev/decision");
    });
    assert_eq!(Cluster::over(foreign).run(), names(&["o0", "o1"]));
    // Another dovetail has, and keeps room where it likes.
    let mut others = lost_one();
    for name in ["p0", "p1"] {
        let key = (Kind::Pod, "blue".to_owned(), name.to_owned());
        others.change(&key, |pod| pod["spec"]["schedulerName"] = json!("another-dovetail"));
    }
    assert_eq!(Cluster::over(others).run(), names(&["o0", "o1"]));
}

#[test]
fn room_is_kept_for_each_of_several_that_were_lost_and_for_no_more() {
    let mut server = Server::default();
    (0..5).for_each(|at| node(&mut server, at));
    for at in 0..2 {
        let pod = bound(member(8, 4, 4), &format!("n{at}"), 4);
        server.apply(Kind::Pod, "blue", &format!("p{at}"), pod);
    }
    (0..3).for_each(|at| server.apply(Kind::Pod, "blue", &format!("o{at}"), pod(8)));
    pass(&mut server);
    let mut cluster = Cluster::over(server);
    assert_eq!(cluster.run(), names(&["o0"]), "two of three free nodes are kept");
    (8..10).for_each(|at| cluster.create(&format!("p{at}"), member(8, 4, 4)));
    assert_eq!(cluster.run(), names(&["p8", "p9"]));
}

/// Two gangs of two lost a pod each, and one node is free.
#[test]
fn the_more_important_gang_has_room_kept_first_then_the_older() {
    let of = |gang: &str, priority: i32| {
        let mut pod = member(8, 2, 2);
        pod["metadata"]["labels"] = json!({"dovetail.dev/gang": gang});
        pod["spec"]["priority"] = json!(priority);
        pod
    };
    // The other one has the first name, and is either older or as important.
    for (created, priority_of_first) in [(["first", "second"], 0), (["second", "first"], 5)] {
        let priority = |gang: &str| if gang == "first" { priority_of_first } else { 5 };
        let mut server = Server::default();
        (0..3).for_each(|at| node(&mut server, at));
        for (at, gang) in created.into_iter().enumerate() {
            let pod = bound(of(gang, priority(gang)), &format!("n{at}"), 2);
            server.apply(Kind::Pod, "blue", &format!("{gang}-0"), pod);
        }
        pass(&mut server);
        let mut cluster = Cluster::over(server);
        cluster.create("first-9", of("first", priority_of_first));
        assert_eq!(cluster.run(), names(&[]), "{created:?}");
        cluster.create("second-9", of("second", 5));
        assert_eq!(cluster.run(), names(&["second-9"]), "{created:?}");
    }
}

#[test]
fn nothing_is_kept_beyond_what_the_queue_of_a_gang_may_hold() {
    for (limit, started) in [(24, names(&[])), (16, names(&["o0", "o1"]))] {
        let mut server = lost_one();
        let spec = json!({"limit": {"nvidia.com/gpu": limit}, "namespaceSelector": {}});
        server.apply(Kind::Queue, "", "small", json!({"spec": spec}));
        for at in 0..2 {
            let key = (Kind::Pod, "blue".to_owned(), format!("p{at}"));
            server.change(&key, |pod| {
                pod["metadata"]["labels"]["dovetail.dev/queue"] = json!("small");
            });
        }
        assert_eq!(Cluster::over(server).run(), started, "{limit}");
    }
}

#[test]
fn without_roles_as_much_is_kept_as_most_of_a_gang_ask_for() {
    let mut server = Server::default();
    (0..3).for_each(|at| node(&mut server, at));
    for (name, gpus, at) in [("p0", 1, 0), ("p1", 6, 0), ("p2", 6, 1)] {
        server.apply(Kind::Pod, "blue", name, bound(member(gpus, 4, 4), &format!("n{at}"), 4));
    }
    (2..4).for_each(|gpus| server.apply(Kind::Pod, "blue", &format!("o{gpus}"), pod(gpus)));
    pass(&mut server);
    // One, two and eight are free, and six of the eight are kept.
    assert_eq!(Cluster::over(server).run(), names(&["o2"]));
}

#[test]
fn a_role_is_kept_room_once_and_what_is_missing_besides_as_most_ask_for() {
    let mut server = Server::default();
    (0..2).for_each(|at| node(&mut server, at));
    let spec = json!({"minMember": 4, "minTaskMember": {"worker": 2}});
    server.apply(Kind::VolcanoGroup, "blue", "train", json!({"spec": spec}));
    for (name, task, gpus) in [("x0", "other", 1), ("w0", "worker", 6)] {
        let mut pod = pod(gpus);
        pod["metadata"]["labels"] = json!({"volcano.sh/task-spec": task});
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "train"});
        server.apply(Kind::Pod, "blue", name, bound(pod, "n0", 4));
    }
    (1..4).for_each(|gpus| server.apply(Kind::Pod, "blue", &format!("o{gpus}"), pod(gpus)));
    pass(&mut server);
    // Nine are free: six are kept for a worker, one for another like the oldest.
    let mut cluster = Cluster::over(server);
    let started = cluster.run();
    assert!(started == names(&["o2"]) || started == names(&["o1"]), "{started:?}");
}

/// Each member has a claim of its own, which a lost one took with it.
#[test]
fn room_is_kept_wherever_the_volumes_of_those_that_are_left_may_be() {
    let mut server = lost_one();
    for at in 0..2 {
        let (claim, volume, node) = (format!("c{at}"), format!("v{at}"), format!("n{at}"));
        let of = json!({"namespace": "blue", "name": claim});
        let there = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
        let spec = json!({"accessModes": ["ReadWriteOncePod"], "claimRef": of,
            "csi": {"driver": "disk.example.com", "volumeHandle": volume},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}});
        server.apply(Kind::PersistentVolume, "", &volume, json!({"spec": spec}));
        let spec = json!({"accessModes": ["ReadWriteOncePod"], "volumeName": volume});
        let marks = json!({"annotations": {"pv.kubernetes.io/bind-completed": "yes"}});
        let bound = json!({"metadata": marks, "spec": spec, "status": {"phase": "Bound"}});
        server.apply(Kind::Claim, "blue", &claim, bound);
        let key = (Kind::Pod, "blue".to_owned(), format!("p{at}"));
        server.change(&key, |pod| {
            let source = json!({"claimName": claim});
            pod["spec"]["volumes"] = json!([{"name": "d", "persistentVolumeClaim": source}]);
        });
    }
    let mut cluster = Cluster::over(server);
    assert_eq!(cluster.run(), names(&[]), "n2 is kept");
    assert_eq!(cluster.reports(), names(&[]));
}

/// Three pods of eight GPUs on three nodes, and two of four that wait. The leader goes, then a pod.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_leader_keeps_room_for_who_was_lost_before_it_began() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 3);
    for (gang, size, gpus) in [(0, 3, 8), (1, 2, 4)] {
        api.create("podgroups", "default", &group(&format!("g{gang}"), size)).expect("a group");
        for at in 0..size {
            api.create("pods", "default", &grouped(gang, at, gpus)).expect("a pod");
        }
        if gang == 0 {
            let first = Running::start(config(&api), Options::default());
            until(&api, || bound_of_gangs(&api.all("pods"))["g0"] == 3).await;
            first.crash().await;
        }
    }
    let now = json!({"gracePeriodSeconds": 0});
    api.delete("pods", "default", "g0-1", &now).expect("a pod that was there");
    let second = Running::start(config(&api), Options::default());
    // It has decided about all who wait when they say why.
    let says = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|one| one["reason"] == "WaitingForReservation"))
    };
    until(&api, || api.all("pods").iter().filter(|pod| says(pod)).count() == 2).await;
    assert_eq!(bound_of_gangs(&api.all("pods"))["g1"], 0);
    api.create("pods", "default", &grouped(0, 9, 8)).expect("a new pod");
    until(&api, || bound_of_gangs(&api.all("pods"))["g0"] == 3).await;
    assert_eq!(bound_of_gangs(&api.all("pods"))["g1"], 0);
    second.stop().await;
}

/// The only one that is left came by itself, in place of one that was lost: that is done where the
/// gang has its size.
#[test]
fn a_gang_of_which_only_replacements_are_left_ran() {
    let mut server = Server::default();
    (0..3).for_each(|at| node(&mut server, at));
    let mut alone = bound(member(8, 3, 3), "n0", 3);
    alone["metadata"]["annotations"]["dovetail.dev/decision"] = json!("0-9+3");
    server.apply(Kind::Pod, "blue", "p9", alone);
    for at in 0..2 {
        server.apply(Kind::Pod, "blue", &format!("o{at}"), pod(8));
    }
    pass(&mut server);
    let mut cluster = Cluster::over(server);
    assert_eq!(cluster.run(), names(&[]), "both nodes are kept");
    cluster.create("p10", member(8, 3, 3));
    assert_eq!(cluster.run(), names(&["p10"]), "it does not wait for the third");
    // The same leader sees its first pods go.
    let mut cluster = Cluster::of(3);
    (0..3).for_each(|at| cluster.create(&format!("p{at}"), member(8, 3, 3)));
    assert_eq!(cluster.run().len(), 3);
    cluster.delete(Kind::Pod, "blue", "p2");
    cluster.create("p9", member(8, 3, 3));
    assert_eq!(cluster.run(), names(&["p9"]));
    (0..2).for_each(|at| cluster.delete(Kind::Pod, "blue", &format!("p{at}")));
    cluster.run();
    cluster.create("p10", member(8, 3, 3));
    assert_eq!(cluster.run(), names(&["p10"]));
}
