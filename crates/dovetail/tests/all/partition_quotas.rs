//! Pending pods that the quotas of their queues do not let start are no demand of `dovetail
//! partition plan`.

use serde_json::{Value, json};

use crate::partition::{A100, changed, one_gpu, planned, pod};
use crate::program::Folder;

const HALF: &str = "nvidia.com/mig-3g.40gb";
const NO_QUOTA: &str = "waits for the quota of its queue";
const IN_PART: &str = "no plan was found that serves all pending pods of its gang";

/// Two GPUs, which have room for four halves together, in a namespace of queue `team`.
fn cluster() -> Vec<Value> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "team", "labels": {"dovetail.dev/queue": "team"}}});
    let small = |name: &str| one_gpu(name, A100, "nvidia.com/mig-1g.10gb", 7);
    vec![namespace, small("n0"), small("n1")]
}

/// A pending pod for one half.
fn half(name: &str) -> Value {
    pod(name, HALF, 1, None, &json!({"schedulerName": "dovetail"}))
}

fn halves(count: u32) -> Vec<Value> {
    (0..count).map(|n| half(&format!("half-{n}"))).collect()
}

/// Pending pods of a gang for one half each.
fn gang(count: u32) -> Vec<Value> {
    let member = |n: u32| {
        let mut pod = half(&format!("gang-{n}"));
        pod["metadata"]["labels"] = json!({"scheduling.x-k8s.io/pod-group": "gang"});
        pod
    };
    (0..count).map(member).collect()
}

/// A queue that uses so many halves.
fn queue(name: &str, spec: &Value, used: u32) -> Value {
    json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "Queue", "metadata": {"name": name},
        "spec": spec, "status": {"used": {(HALF): used.to_string()}}})
}

fn limit(halves: u32) -> Value {
    json!({"limit": {(HALF): halves.to_string()}})
}

fn plan(folder: &Folder, pods: &[Value], queues: &[Value]) -> Value {
    planned(folder, &[cluster(), pods.to_vec(), queues.to_vec()].concat(), "")
}

/// Instances of the pods that are served, and why others are not.
fn answer(plan: &Value) -> (u64, Value) {
    (plan["accepted"]["3g.40gb"].as_u64().unwrap_or(0), plan["not_planned"].clone())
}

#[test]
fn pods_beyond_the_quota_of_their_queue_cause_no_change() {
    let folder = Folder::new();
    let of = |queues: &[Value]| plan(&folder, &halves(4), queues);
    let without = of(&[]);
    assert_eq!(answer(&without), (4, json!({})), "{without}");
    let two_left = of(&[queue("team", &limit(3), 1)]);
    assert_eq!(answer(&two_left), (2, json!({(NO_QUOTA): 2})), "{two_left}");
    assert_eq!(changed(&two_left).len(), 1, "{two_left}");
    let spec = json!({"parent": "all"});
    let of_parent = of(&[queue("team", &spec, 0), queue("all", &limit(3), 2)]);
    assert_eq!(answer(&of_parent), (1, json!({(NO_QUOTA): 3})), "{of_parent}");
    let guaranteed = |borrowing: Value| {
        let spec = json!({"guaranteed": {(HALF): "1"}, "borrowing": borrowing});
        answer(&of(&[queue("team", &spec, 1)]))
    };
    assert_eq!(guaranteed(json!("Never")), (0, json!({(NO_QUOTA): 4})));
    // The settings of the scheduler decide.
    assert_eq!(guaranteed(json!(null)), (4, json!({})));
}

#[test]
fn quotas_that_keep_no_pod_pending_leave_the_plan_as_it_is() {
    let folder = Folder::new();
    let without = plan(&folder, &halves(4), &[]);
    let mut not_enforced = queue("team", &limit(0), 0);
    not_enforced["status"] = json!({});
    let mut of_volcano = queue("team", &limit(0), 0);
    of_volcano["apiVersion"] = json!("scheduling.volcano.sh/v1beta1");
    for queue in
        [queue("team", &limit(5), 1), queue("other", &limit(0), 0), not_enforced, of_volcano]
    {
        assert_eq!(plan(&folder, &halves(4), std::slice::from_ref(&queue)), without, "{queue}");
    }
    // Pods of other schedulers are in no queue.
    let mut pods = halves(4);
    pods.iter_mut().for_each(|pod| pod["spec"]["schedulerName"] = json!("default-scheduler"));
    assert_eq!(plan(&folder, &pods, &[queue("team", &limit(0), 0)]), without);
}

#[test]
fn the_rest_of_a_quota_goes_to_pods_of_a_higher_priority_then_to_older_ones() {
    let folder = Folder::new();
    let one_left = [queue("team", &limit(1), 0)];
    let mut pods = vec![half("a"), pod("b", "nvidia.com/mig-4g.40gb", 1, None, &json!({}))];
    pods[1]["spec"]["schedulerName"] = json!("dovetail");
    // A pod that does not use the scarce resource is not delayed.
    let both = plan(&folder, &pods, &one_left);
    assert_eq!(both["accepted"], json!({"3g.40gb": 1, "4g.40gb": 1}), "{both}");
    // The names of the other nodes say which of them is served.
    let on = |name: &str, node: &str| {
        let mut pod = half(name);
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        pod
    };
    let mut pods = vec![on("a", "n0"), on("b", "n1")];
    let first = plan(&folder, &pods, &one_left);
    assert_eq!(changed(&first), ["n0"], "{first}");
    pods[1]["metadata"]["creationTimestamp"] = json!("2026-11-20T10:00:00Z");
    let oldest = plan(&folder, &pods, &one_left);
    assert_eq!(changed(&oldest), ["n1"], "{oldest}");
    pods[0]["spec"]["priority"] = json!(10);
    let urgent = plan(&folder, &pods, &one_left);
    assert_eq!(changed(&urgent), ["n0"], "{urgent}");
}

#[test]
fn a_gang_fits_into_a_quota_as_a_whole_or_not_at_all() {
    let folder = Folder::new();
    let of = |gang_pods: u32, singles: u32, left: u32| {
        let pods = [gang(gang_pods), halves(singles)].concat();
        answer(&plan(&folder, &pods, &[queue("team", &limit(left), 0)]))
    };
    assert_eq!(of(3, 0, 3), (3, json!({})));
    // It is passed over.
    assert_eq!(of(3, 1, 2), (1, json!({(NO_QUOTA): 3})));
    // A gang without room takes nothing of the quota.
    assert_eq!(of(5, 2, 5), (2, json!({(IN_PART): 5})));
}
