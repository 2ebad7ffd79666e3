//! Who gets the room of a member that a running gang lost: its replacement, whoever else waits.

use dovetail_control::bind::{BindOutcome, BindReport, Cause};
use dovetail_objects::Kind;
use dovetail_plan::PreemptionConfig;
use dovetail_plan::engine::EngineConfig;
use serde_json::{Value, json};

use crate::gangs::{Cluster, member, names, node, pod};
use crate::server::Server;

/// A gang of these sizes that runs, as p0, p1 and so on, on as few nodes as it fits on.
fn running(nodes: usize, gpus: &[usize]) -> Cluster {
    let mut cluster = Cluster::of(nodes);
    for (at, gpus_each) in gpus.iter().enumerate() {
        cluster.create(&format!("p{at}"), member(*gpus_each, gpus.len(), gpus.len()));
    }
    assert_eq!(cluster.run().len(), gpus.len());
    cluster
}

/// A pod that goes before any gang, and may stop others or not.
fn urgent(gpus: usize, policy: &str) -> Value {
    let mut urgent = pod(gpus);
    urgent["spec"]["priority"] = json!(9);
    urgent["spec"]["preemptionPolicy"] = json!(policy);
    urgent
}

fn lose(cluster: &mut Cluster, name: &str) {
    cluster.delete(Kind::Pod, "blue", name);
    assert_eq!(cluster.run(), names(&[]), "the room of {name} is kept");
}

#[test]
fn who_goes_first_in_any_order_does_not_get_it() {
    for policy in ["Never", "PreemptLowerPriority"] {
        let mut cluster = running(2, &[8, 8]);
        cluster.create("urgent", urgent(8, policy));
        assert_eq!(cluster.run(), names(&[]));
        lose(&mut cluster, "p1");
        cluster.create("p9", member(8, 2, 2));
        assert_eq!(cluster.run(), names(&["p9"]), "{policy}");
        assert_eq!(cluster.run(), names(&[]), "{policy}");
    }
}

#[test]
fn a_replacement_that_was_there_before_the_lost_one_had_gone_gets_it() {
    let mut cluster = running(2, &[8, 8]);
    cluster.create("urgent", urgent(8, "Never"));
    let key = (Kind::Pod, "blue".to_owned(), "p1".to_owned());
    cluster.server.change(&key, |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-01T11:00:00Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    });
    assert_eq!(cluster.run(), names(&[]));
    cluster.create("p9", member(8, 2, 2));
    assert_eq!(cluster.run(), names(&[]), "the old one is still there");
    cluster.delete(Kind::Pod, "blue", "p1");
    assert_eq!(cluster.run(), names(&["p9"]));
}

#[test]
fn each_replacement_gets_the_room_of_one_that_asked_for_the_same() {
    let mut cluster = running(3, &[8, 8, 2]);
    cluster.create("urgent", urgent(8, "Never"));
    assert_eq!(cluster.run(), names(&[]));
    lose(&mut cluster, "p1");
    lose(&mut cluster, "p2");
    cluster.create("small", member(2, 3, 3));
    assert_eq!(cluster.run(), names(&["small"]), "and not in the room of the large one");
    cluster.create("large", member(8, 3, 3));
    assert_eq!(cluster.run(), names(&["large"]));
}

#[test]
fn one_that_asks_for_something_else_gets_it_when_nobody_more_is_to_come() {
    let mut cluster = running(2, &[8, 8]);
    cluster.create("urgent", urgent(8, "Never"));
    cluster.create("waits", pod(2));
    assert_eq!(cluster.run(), names(&[]));
    lose(&mut cluster, "p1");
    cluster.create("p9", member(6, 2, 2));
    assert_eq!(cluster.run(), names(&["p9", "waits"]), "what it leaves is anybody's");
}

#[test]
fn who_may_start_in_it_and_cannot_keeps_it_no_longer_than_anybody() {
    let mut cluster = running(2, &[8, 8]);
    cluster.create("later", pod(8));
    assert_eq!(cluster.run(), names(&[]));
    lose(&mut cluster, "p1");
    let mut elsewhere = member(8, 2, 2);
    elsewhere["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "nowhere"});
    cluster.create("p9", elsewhere);
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(29_999);
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(1);
    assert_eq!(cluster.run(), names(&["later"]));
    // Its gang ends, and nothing is left behind.
    cluster.delete(Kind::Pod, "blue", "p0");
    cluster.create("last", pod(8));
    assert_eq!(cluster.run(), names(&["last"]));
}

/// The room is empty: who may stop the gang gets that first, and stops nobody for what it is given.
#[test]
fn a_higher_priority_that_stops_others_takes_the_room_and_not_the_gang() {
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let config = EngineConfig { preemption, ..EngineConfig::default() };
    let mut server = Server::default();
    (0..2).for_each(|at| node(&mut server, at));
    let mut cluster = Cluster::with(server, config);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 2)));
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
    lose(&mut cluster, "p1");
    cluster.create("mild", urgent(8, "Never"));
    assert_eq!(cluster.run(), names(&[]));
    cluster.create("urgent", urgent(8, "PreemptLowerPriority"));
    assert_eq!(cluster.run(), names(&["urgent"]));
    assert!(cluster.scheduler.next_order().is_none(), "nobody is stopped");
    cluster.create("p9", member(8, 2, 2));
    assert_eq!(cluster.run(), names(&[]));
    cluster.delete(Kind::Pod, "blue", "urgent");
    cluster.delete(Kind::Pod, "blue", "mild");
    assert_eq!(cluster.run(), names(&["p9"]));
}

#[test]
fn who_is_refused_by_the_server_keeps_it_no_longer_than_anybody() {
    let mut cluster = running(2, &[8, 8]);
    cluster.create("later", pod(8));
    assert_eq!(cluster.run(), names(&[]));
    lose(&mut cluster, "p1");
    cluster.pass(10_000);
    cluster.create("p9", member(8, 2, 2));
    // It is tried again after 1, 2, 4 and 8 s, and then not before the room is anybody's.
    for pause_ms in [1_000, 2_000, 4_000, 8_000, 4_999] {
        let bind = cluster.decide().pop().expect("a bind");
        let cause = Cause::Refused { code: 422, message: "a policy".to_owned() };
        let report =
            BindReport { bind, outcome: BindOutcome::NotBound(cause), answered_in_ms: Some(1) };
        cluster.scheduler.outcome(report, cluster.now_ms);
        assert_eq!(cluster.run(), names(&[]));
        cluster.pass(pause_ms);
    }
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(1);
    assert_eq!(cluster.run(), names(&["later"]));
}

/// A worker too many in the room of the only master would leave the gang without one for good.
#[test]
fn one_of_a_role_that_is_not_missing_does_not_get_it() {
    let mut cluster = Cluster::of(3);
    let spec = json!({"minMember": 3, "minTaskMember": {"master": 1, "worker": 2}});
    cluster.server.apply(Kind::VolcanoGroup, "blue", "train", json!({"spec": spec}));
    let of_task = |task: &str| {
        let mut pod = pod(8);
        pod["metadata"]["labels"] = json!({"volcano.sh/task-spec": task});
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "train"});
        pod
    };
    cluster.create("m", of_task("master"));
    (0..2).for_each(|at| cluster.create(&format!("w{at}"), of_task("worker")));
    assert_eq!(cluster.run(), names(&["m", "w0", "w1"]));
    cluster.create("w2", of_task("worker"));
    assert_eq!(cluster.run(), names(&[]));
    lose(&mut cluster, "m");
    cluster.create("m2", of_task("master"));
    assert_eq!(cluster.run(), names(&["m2"]));
    cluster.delete(Kind::Pod, "blue", "w0");
    assert_eq!(cluster.run(), names(&["w2"]), "of a role that is missing it is the replacement");
}

/// What it does not find in its room it gets from others, as any pod of its priority.
#[test]
fn a_larger_replacement_stops_others_beside_its_room() {
    let mut cluster = Cluster::of(1);
    cluster.create("low", {
        let mut low = pod(2);
        low["spec"]["priority"] = json!(-1);
        low
    });
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(3, 2, 2)));
    assert_eq!(cluster.run().len(), 3);
    lose(&mut cluster, "p1");
    cluster.create("p9", member(5, 2, 2));
    assert_eq!(cluster.run(), names(&[]));
    cluster.delete(Kind::Pod, "blue", "low");
    assert_eq!(cluster.run(), names(&["p9"]));
}

#[test]
fn who_would_start_in_it_says_for_whom_it_is_kept() {
    let mut cluster = running(2, &[8, 8]);
    cluster.create("later", pod(8));
    cluster.create("large", {
        let mut large = pod(8);
        large["spec"]["priority"] = json!(-1);
        large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("97");
        large
    });
    assert_eq!(cluster.run(), names(&[]));
    let unschedulable = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.";
    assert_eq!(said(&mut cluster, "later"), ("Unschedulable", unschedulable.to_owned()));
    cluster.scheduler.take_recheck();
    lose(&mut cluster, "p1");
    assert!(cluster.scheduler.take_recheck(), "it is asked again");
    let kept = "the free capacity is reserved for pods that gang blue/train has lost: this pod \
                starts when those pods have started elsewhere, or have not been recreated in time";
    assert_eq!(said(&mut cluster, "later"), ("WaitingForReservation", kept.to_owned()));
    assert_eq!(said(&mut cluster, "large").0, "Unschedulable", "it would not start there");
    cluster.create("p9", member(8, 2, 2));
    assert_eq!(cluster.run(), names(&["p9"]));
    assert!(cluster.scheduler.take_recheck(), "and when it is kept no longer");
    assert_eq!(said(&mut cluster, "later"), ("Unschedulable", unschedulable.to_owned()));
}

fn said(cluster: &mut Cluster, pod: &str) -> (&'static str, String) {
    let job = cluster.scheduler.world().pods().job_of("blue", pod).expect("a job");
    let waiting = cluster.scheduler.ask().waiting(job).expect("it waits");
    (waiting.word(), waiting.message)
}
