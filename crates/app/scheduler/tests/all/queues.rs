//! Queues, from objects to binds: the loop of the scheduler without its wires.

use std::collections::BTreeMap;

use dovetail_cluster::world::{Change, Settings, World};
use dovetail_control::schedule::{News, Scheduler};
use dovetail_model::PendingReason;
use dovetail_objects::Kind;
use dovetail_plan::engine::EngineConfig;
use serde_json::{Value, json};

use crate::gangs::{Cluster, names, native, node, pod};
use crate::server::Server;

const LABEL: &str = "dovetail.dev/queue";

/// A pod that names a queue.
fn in_queue(queue: &str, gpus: usize) -> Value {
    let mut pod = pod(gpus);
    pod["metadata"]["labels"] = json!({LABEL: queue});
    pod
}

fn set_queue(cluster: &mut Cluster, name: &str, spec: Value) {
    cluster.server.apply(Kind::Queue, "", name, json!({"spec": spec}));
}

/// Everything that waits says why.
fn says(cluster: &mut Cluster) -> BTreeMap<String, String> {
    let mut said = BTreeMap::new();
    for news in cluster.scheduler.news() {
        let News::Pending { pod, job, .. } = news else { continue };
        let waiting = cluster.scheduler.ask().waiting(job);
        said.extend(waiting.map(|waiting| {
            (pod.name.to_string(), format!("{}: {}", waiting.word(), waiting.message))
        }));
    }
    said
}

#[test]
fn a_queue_says_who_may_submit_and_tells_the_others_which_rule_keeps_them_out() {
    let mut cluster = Cluster::of(1);
    cluster.create("p0", in_queue("team", 1));
    assert_eq!(cluster.run(), names(&[]));
    let missing = "pod blue/p0 is skipped: queue team does not exist: create it, or set another in label \
                   dovetail.dev/queue";
    assert_eq!(cluster.reports(), [missing]);
    set_queue(&mut cluster, "team", json!({}));
    assert_eq!(cluster.run(), names(&[]));
    let closed = "pod blue/p0 is skipped: queue team accepts no pods of namespace blue: it has no \
                  spec.namespaceSelector";
    assert_eq!(cluster.reports(), [closed]);
    let selector = json!({"namespaceSelector": {"matchLabels": {"team": "a"}}});
    set_queue(&mut cluster, "team", selector);
    assert_eq!(cluster.run(), names(&[]));
    let not_chosen = "pod blue/p0 is skipped: queue team accepts no pods of namespace blue: its \
                      spec.namespaceSelector is team=a";
    assert_eq!(cluster.reports(), [not_chosen]);
    let labels = json!({"metadata": {"labels": {"team": "a"}}});
    cluster.server.apply(Kind::Namespace, "", "blue", labels);
    assert_eq!(cluster.run(), names(&["p0"]));
    // The default queue takes everybody until it says whom.
    cluster.create("p1", pod(1));
    assert_eq!(cluster.run(), names(&["p1"]));
    set_queue(
        &mut cluster,
        "default",
        json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}),
    );
    cluster.create("p2", pod(1));
    assert_eq!(cluster.run(), names(&[]));
    cluster.server.delete(&(Kind::Queue, String::new(), "default".to_owned()));
    assert_eq!(cluster.run(), names(&["p2"]));
}

#[test]
fn a_broken_tree_is_told_on_the_queue_and_on_its_pods() {
    let mut cluster = Cluster::of(1);
    set_queue(&mut cluster, "a", json!({"parent": "b", "namespaceSelector": {}}));
    set_queue(&mut cluster, "b", json!({"parent": "a", "namespaceSelector": {}}));
    cluster.create("p0", in_queue("a", 1));
    assert_eq!(cluster.run(), names(&[]));
    let circle = "its parents form a cycle (a → b → a): remove spec.parent from one of them";
    let told = format!("pod blue/p0 is skipped: queue a is not ready: {circle}");
    assert_eq!(cluster.reports(), [told]);
    let status = |cluster: &mut Cluster, queue: &str| {
        let all = cluster.scheduler.ask().queue_statuses();
        let status = all.into_iter().find(|(name, _)| name == queue).map(|(_, status)| status);
        status.expect("a queue")["conditions"][0].clone()
    };
    let expected = json!({"type": "Ready", "status": "False", "reason": "CircleOfParents",
        "message": circle});
    assert_eq!(status(&mut cluster, "a"), expected);
    set_queue(&mut cluster, "b", json!({}));
    assert_eq!(cluster.run(), names(&["p0"]));
    assert_eq!(status(&mut cluster, "a")["status"], "True");
}

#[test]
fn what_a_queue_is_guaranteed_bounds_it_and_what_waits_says_the_numbers() {
    let mut cluster = Cluster::of(2);
    let gpus = |count: usize| json!({"nvidia.com/gpu": count});
    set_queue(&mut cluster, "all", json!({"guaranteed": gpus(12)}));
    let team = json!({"parent": "all", "guaranteed": gpus(6), "namespaceSelector": {}});
    set_queue(&mut cluster, "team", team.clone());
    for at in 0..3 {
        cluster.create(&format!("p{at}"), in_queue("team", 4));
    }
    assert_eq!(cluster.run(), names(&["p0"]));
    let bounded = "WaitingForQuota: queue team is guaranteed 6 nvidia.com/gpu and does not borrow: it uses \
                   4, and 4 more would be needed";
    let turn = "WaitingForTurn: other jobs that request the same resources go first; queue team \
                uses 4 nvidia.com/gpu (dominant share of the cluster: 25.0%)";
    let said = says(&mut cluster);
    assert_eq!((&*said["p1"], &*said["p2"]), (bounded, turn));
    let statuses: BTreeMap<String, Value> =
        cluster.scheduler.ask().queue_statuses().into_iter().collect();
    let of = |queue: &str, key: &str| statuses[queue][key].clone();
    assert_eq!(of("team", "used"), json!({"nvidia.com/gpu": "4"}));
    assert_eq!(of("all", "pending"), json!({"jobs": 2, "pods": 2}));
    assert_eq!(of("all", "share"), "25.0%");
    // It may borrow what is free, up to the bounds above it.
    let mut borrowing = team;
    borrowing["borrowing"] = json!("WhenFree");
    borrowing["limit"] = gpus(16);
    set_queue(&mut cluster, "team", borrowing);
    assert_eq!(cluster.run(), names(&["p1", "p2"]));
    let statuses: BTreeMap<String, Value> =
        cluster.scheduler.ask().queue_statuses().into_iter().collect();
    assert_eq!(statuses["team"]["borrowed"], json!({"nvidia.com/gpu": "6"}));
    cluster.create("p3", in_queue("team", 2));
    assert_eq!(cluster.run(), names(&[]));
    let above = "WaitingForQuota: queue all is guaranteed 12 nvidia.com/gpu and does not borrow: it uses \
                 12, and 2 more would be needed";
    assert_eq!(says(&mut cluster)["p3"], above);
    cluster.end("p0", "Succeeded");
    assert_eq!(cluster.run(), names(&["p3"]));
}

#[test]
fn the_label_of_a_namespace_or_of_a_group_names_the_queue_of_its_pods() {
    let mut cluster = Cluster::of(2);
    let open = |limit: usize| json!({"limit": {"nvidia.com/gpu": limit}, "namespaceSelector": {}});
    set_queue(&mut cluster, "none", open(0));
    set_queue(&mut cluster, "team", open(8));
    let labels = json!({"metadata": {"labels": {LABEL: "none"}}});
    cluster.server.apply(Kind::Namespace, "", "blue", labels);
    cluster.create("p0", pod(1));
    assert_eq!(cluster.run(), names(&[]));
    assert!(says(&mut cluster)["p0"].starts_with("WaitingForQuota: queue none is limited to 0"));
    let group = json!({"metadata": {"labels": {LABEL: "team"}},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}});
    cluster.server.apply(Kind::PodGroup, "blue", "train", group);
    for name in ["m0", "m1"] {
        cluster.create(name, native(4));
    }
    assert_eq!(cluster.run(), names(&["m0", "m1"]));
    let used = |cluster: &mut Cluster, queue: &str| {
        let all: BTreeMap<String, Value> =
            cluster.scheduler.ask().queue_statuses().into_iter().collect();
        all[queue]["gpus"]["used"].clone()
    };
    assert_eq!(used(&mut cluster, "team"), "8");
    // A pod that runs and is given another queue counts there, even beyond its limit.
    let key = (Kind::Pod, "blue".to_owned(), "m0".to_owned());
    cluster.server.change(&key, |pod| pod["metadata"]["labels"] = json!({LABEL: "none"}));
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!((used(&mut cluster, "team"), used(&mut cluster, "none")), (json!("4"), json!("4")));
    let told = "podgroup blue/train has all the pods that start together";
    assert_eq!(cluster.reports(), [told]);
}

/// `org` is guaranteed twelve GPUs, and `vision` and `text` below it share them; two nodes of
/// eight.
fn org() -> Cluster {
    let mut cluster = Cluster::of(2);
    let gpus = |count: usize| json!({"nvidia.com/gpu": count});
    set_queue(&mut cluster, "org", json!({"guaranteed": gpus(12)}));
    for name in ["vision", "text"] {
        let spec = json!({"parent": "org", "limit": gpus(8), "namespaceSelector": {}});
        set_queue(&mut cluster, name, spec);
    }
    cluster
}

fn delete_queue(cluster: &mut Cluster, name: &str) {
    cluster.delete(Kind::Queue, "", name);
}

/// Whole GPUs that a queue and all below it hold.
fn gpus_in(cluster: &mut Cluster, queue: &str) -> i64 {
    cluster.scheduler.ask().queue_use(queue).expect("an engine").used.gpu_milli / 1_000
}

#[test]
fn a_queue_that_is_deleted_counts_above_it_as_long_as_pods_run_in_it() {
    let mut cluster = org();
    cluster.create("v0", in_queue("vision", 7));
    assert_eq!(cluster.run(), names(&["v0"]));
    delete_queue(&mut cluster, "vision");
    cluster.create("v1", in_queue("vision", 1));
    cluster.create("t0", in_queue("text", 6));
    assert_eq!(cluster.run(), names(&[]));
    let full = "WaitingForQuota: queue org is guaranteed 12 nvidia.com/gpu and does not borrow: it uses 7, and 6 \
                more would be needed";
    assert_eq!(says(&mut cluster)["t0"], full);
    assert_eq!(["vision", "org"].map(|queue| gpus_in(&mut cluster, queue)), [7, 7]);
    // Made again with another limit, it takes over what runs there; deleted again, that is said
    // again.
    set_queue(&mut cluster, "vision", json!({"parent": "org", "namespaceSelector": {}}));
    assert_eq!(cluster.run(), names(&["v1"]));
    delete_queue(&mut cluster, "vision");
    assert_eq!(cluster.run(), names(&[]));
    let told = "queue vision does not exist, and 2 pods run in it or below it, with 8 \
                nvidia.com/gpu: they count toward its usage and that of its parent org until \
                they finish; create it again, or name another queue in label dovetail.dev/queue";
    assert_eq!(cluster.reports(), [told]);
    cluster.end("v0", "Succeeded");
    assert_eq!(cluster.run(), names(&["t0"]));
    assert_eq!(["vision", "org"].map(|queue| gpus_in(&mut cluster, queue)), [1, 7]);
    cluster.end("v1", "Succeeded");
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!(gpus_in(&mut cluster, "org"), 6);
    assert!(cluster.scheduler.world().queues().missing().is_empty());
    assert_eq!(cluster.reports(), names(&[]));
}

#[test]
fn what_runs_below_a_queue_that_is_deleted_counts_above_it_too() {
    let mut cluster = org();
    let below = json!({"parent": "vision", "namespaceSelector": {}});
    set_queue(&mut cluster, "eyes", below);
    cluster.create("e0", in_queue("eyes", 5));
    assert_eq!(cluster.run(), names(&["e0"]));
    delete_queue(&mut cluster, "vision");
    delete_queue(&mut cluster, "eyes");
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!(["eyes", "vision", "org"].map(|queue| gpus_in(&mut cluster, queue)), [5, 5, 5]);
    let missing = cluster.scheduler.world().queues().missing();
    let shown = missing.iter().map(|one| (&*one.name, one.parent.as_deref(), one.pods, one.gpus));
    let expected = [("eyes", Some("vision"), 1, 5), ("vision", Some("org"), 1, 5)];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    // A pod that runs and is given another queue counts there from then on.
    let key = (Kind::Pod, "blue".to_owned(), "e0".to_owned());
    cluster.server.change(&key, |pod| pod["metadata"]["labels"] = json!({LABEL: "text"}));
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!(["eyes", "text", "org"].map(|queue| gpus_in(&mut cluster, queue)), [0, 5, 5]);
    assert!(cluster.scheduler.world().queues().missing().is_empty());
}

#[test]
fn who_begins_after_a_queue_was_deleted_counts_what_runs_under_its_name_alone() {
    let mut cluster = org();
    cluster.create("v0", in_queue("vision", 8));
    assert_eq!(cluster.run(), names(&["v0"]));
    delete_queue(&mut cluster, "vision");
    let mut anew = Cluster::over(cluster.server);
    assert_eq!(anew.run(), names(&[]));
    let told = "queue vision does not exist, and 1 pod runs in it or below it, with 8 \
                nvidia.com/gpu: it counts under its name, but toward no parent queue; create it \
                again, or name another queue in label dovetail.dev/queue";
    assert_eq!(anew.reports(), [told]);
    assert_eq!(["vision", "org"].map(|queue| gpus_in(&mut anew, queue)), [8, 0]);
    anew.end("v0", "Succeeded");
    assert_eq!(anew.run(), names(&[]));
    assert!(anew.scheduler.world().queues().missing().is_empty());
}

#[test]
fn when_the_kind_goes_there_is_one_queue_again() {
    let mut cluster = Cluster::of(1);
    let limited = json!({"namespaceSelector": {}, "limit": {"nvidia.com/gpu": "2"}});
    set_queue(&mut cluster, "lim", limited);
    for (name, gpus) in [("p0", 2), ("p1", 3)] {
        cluster.create(name, in_queue("lim", gpus));
    }
    assert_eq!(cluster.run(), names(&["p0"]));
    let now_ms = cluster.now_ms;
    cluster.scheduler.change(Change::Absent(Kind::Queue), now_ms);
    assert!(!cluster.scheduler.world().queues().are_served());
    assert_eq!(cluster.scheduler.world().queues().all().count(), 0);
    assert_eq!(cluster.run(), names(&["p1"]), "what it was limited to is gone");
}

#[test]
fn without_the_kind_there_is_one_queue_whatever_labels_say() {
    let mut server = Server::default();
    node(&mut server, 0);
    let mut scheduler = Scheduler::new(World::new(Settings::default()), EngineConfig::default(), 1);
    let now_ms = 1_900_000_000_000;
    for kind in Kind::ALL {
        let changes = match kind {
            Kind::Queue => vec![Change::Absent(kind)],
            kind => server.list(kind),
        };
        changes.into_iter().for_each(|change| scheduler.change(change, now_ms));
    }
    assert!(scheduler.world().is_ready() && !scheduler.world().queues().are_served());
    let mut cluster = Cluster { server, scheduler, now_ms };
    cluster.create("p0", in_queue("team", 1));
    assert_eq!(cluster.run(), names(&["p0"]));
    cluster.create("p1", in_queue("team", 9));
    cluster.run();
    let said = cluster.scheduler.news();
    let reasons: Vec<PendingReason> = said
        .iter()
        .filter_map(|news| match news {
            News::Pending { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [PendingReason::Unschedulable]);
    // Somebody installs the definition, and makes a queue that may hold three GPUs.
    let spec = json!({"namespaceSelector": {}, "limit": {"nvidia.com/gpu": "3"}});
    set_queue(&mut cluster, "team", spec);
    for change in cluster.server.list(Kind::Queue) {
        cluster.scheduler.change(change, cluster.now_ms);
    }
    assert!(cluster.scheduler.world().queues().are_served());
    cluster.create("p2", in_queue("team", 3));
    assert_eq!(cluster.run(), names(&[]), "one that runs counts for it");
    cluster.create("p3", in_queue("team", 2));
    assert_eq!(cluster.run(), names(&["p3"]));
    assert!(!cluster.scheduler.news().iter().any(|news| matches!(news, News::Inconsistent(_))));
}

#[test]
fn a_queue_gets_no_more_gpus_of_a_model_than_its_limit_and_then_those_of_another() {
    let mut cluster = Cluster::of(0);
    let gpus = json!({"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"});
    for (name, model) in [("n0", "NVIDIA-H100"), ("n1", "NVIDIA-A100")] {
        let labels = json!({"kubernetes.io/hostname": name, "nvidia.com/gpu.product": model});
        let body = json!({"metadata": {"labels": labels},
            "status": {"allocatable": gpus, "capacity": gpus}});
        cluster.server.apply(Kind::Node, "", name, body);
    }
    let limit = json!({"NVIDIA-H100": 4});
    set_queue(&mut cluster, "all", json!({"limitByModel": limit}));
    set_queue(&mut cluster, "team", json!({"parent": "all", "namespaceSelector": {}}));
    for at in 0..3 {
        cluster.create(&format!("p{at}"), in_queue("team", 4));
    }
    // Four on the one model, eight on the other.
    assert_eq!(cluster.run(), names(&["p0", "p1", "p2"]));
    cluster.create("p3", in_queue("team", 4));
    cluster.create("other", pod(4));
    assert_eq!(cluster.run(), names(&["other"]));
    let bounded = "WaitingForQuota: queue all is limited to 4 NVIDIA-H100 and uses 4; 4 more GPUs of \
                   one model would be needed";
    assert_eq!(says(&mut cluster)["p3"], bounded);
}
