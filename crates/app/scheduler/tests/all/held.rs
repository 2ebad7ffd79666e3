//! Pods that somebody else holds back: scheduling gates of anybody, those of Kueue, gangs of which
//! some pods are held.

use dovetail_objects::Kind;
use serde_json::{Value, json};

use crate::gangs::{Cluster, member, names, pod};

fn gated(mut pod: Value, gate: &str) -> Value {
    pod["spec"]["schedulingGates"] = json!([{"name": gate}]);
    pod
}

/// A queueing system admits a pod.
fn release(cluster: &mut Cluster, name: &str) {
    let key = (Kind::Pod, "blue".to_owned(), name.to_owned());
    cluster.server.change(&key, |pod| pod["spec"]["schedulingGates"] = json!([]));
}

#[test]
fn a_gated_pod_is_left_alone_until_its_gates_are_gone() {
    // Kueue's own gates, its topology's, Volcano's queue admission, and anybody's.
    let gates = [
        "kueue.x-k8s.io/admission",
        "kueue.x-k8s.io/topology",
        "scheduling.volcano.sh/queue-allocation-gate",
        "example.com/wait",
    ];
    for gate in gates {
        let mut cluster = Cluster::of(1);
        let mut held = gated(pod(1), gate);
        held["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "team"});
        cluster.create("p", held);
        assert_eq!(cluster.run(), names(&[]), "{gate}");
        assert_eq!(cluster.reports(), names(&[]), "others say why");
        release(&mut cluster, "p");
        assert_eq!(cluster.run(), names(&["p"]), "{gate}");
    }
}

#[test]
fn a_group_of_kueue_starts_when_all_its_pods_are_admitted() {
    let member = || {
        let mut pod = gated(pod(2), "kueue.x-k8s.io/admission");
        pod["metadata"] = json!({
            "labels": {"kueue.x-k8s.io/pod-group-name": "train", "kueue.x-k8s.io/managed": "true",
                "kueue.x-k8s.io/queue-name": "team"},
            "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"}});
        pod
    };
    let mut cluster = Cluster::of(1);
    (0..3).for_each(|at| cluster.create(&format!("p{at}"), member()));
    for at in 0..3 {
        assert_eq!(cluster.run(), names(&[]));
        release(&mut cluster, &format!("p{at}"));
    }
    assert_eq!(cluster.run(), names(&["p0", "p1", "p2"]));
}

#[test]
fn a_gang_that_could_start_with_fewer_waits_for_members_that_are_held() {
    let mut cluster = Cluster::of(1);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(1, 2, 4)));
    (2..4).for_each(|at| cluster.create(&format!("p{at}"), gated(member(1, 2, 4), "x.io/hold")));
    cluster.watch();
    cluster.pass(60_000);
    assert_eq!(cluster.run(), names(&[]));
    let text = "pod blue/p0 waits for members: gang blue/train has 2 of the 2 pods that start together, \
                and scheduling gates block 2 of its pods";
    assert_eq!(cluster.reports().first().map(String::as_str), Some(text));
    release(&mut cluster, "p2");
    assert_eq!(cluster.run(), names(&[]));
    // One that is gone holds nobody.
    cluster.delete(Kind::Pod, "blue", "p3");
    assert_eq!(cluster.run(), names(&["p0", "p1", "p2"]));
    // A gang that runs is not held up by those that come later.
    cluster.create("p4", gated(member(1, 2, 4), "x.io/hold"));
    cluster.delete(Kind::Pod, "blue", "p0");
    cluster.create("p5", member(1, 2, 4));
    assert_eq!(cluster.run(), names(&["p5"]));
}
