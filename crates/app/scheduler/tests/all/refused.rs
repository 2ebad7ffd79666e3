//! What the server refuses for good: stops of pods, and binds. Those concerned say so, and others
//! are tried.

use dovetail_cluster::world;
use dovetail_control::bind::{BindOutcome, BindReport, Cause};
use dovetail_control::order::{EvictionCause, OrderEnd, PodOrder};
use dovetail_control::schedule::News;
use dovetail_objects::Kind;
use dovetail_plan::PreemptionConfig;
use dovetail_plan::engine::EngineConfig;
use dovetail_scheduler::Options;
use dovetail_testkit::fake_api::{ApiFault, FaultRule, On, Verb};
use dovetail_testkit::{ControlPlane, FakeApi};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::gangs::{Cluster, member, names, pod};
use crate::preempt::{condition, create_classes, preempting};
use crate::preempt_orders::{assert_says_the_node, high, preempting_cluster};
use crate::queue_objects::create;
use crate::schedule::{PATIENCE, Running, config, create_nodes, fake_nodes, pause, until};

/// Decides and binds; who is to be stopped. The server refuses it.
fn refused(cluster: &mut Cluster) -> Vec<String> {
    assert_eq!(cluster.run(), names(&[]));
    let mut victims = Vec::new();
    while let Some(order) = cluster.scheduler.next_order() {
        if let PodOrder::Nominate { node, says, .. } = &order {
            assert_says_the_node(node, says.as_deref());
        }
        let PodOrder::Evict { pod, why: EvictionCause::Preempted(_), .. } = &order else {
            continue;
        };
        victims.push(pod.name.to_string());
        let end = OrderEnd::Refused { code: 422, message: "a policy".to_owned() };
        cluster.scheduler.order_ended(&order, end, cluster.now_ms);
    }
    for news in cluster.scheduler.news() {
        assert!(!matches!(news, News::Inconsistent(_)), "{news:?}");
    }
    victims
}

#[test]
fn who_cannot_be_stopped_is_not_tried_again_for_a_while_and_others_are() {
    let mut cluster = preempting_cluster(2);
    for name in ["v0", "v1"] {
        cluster.create(name, pod(8));
        cluster.run();
    }
    cluster.create("high", high(8));
    let mut tried = refused(&mut cluster);
    assert_eq!(tried.len(), 1);
    tried.extend(refused(&mut cluster));
    tried.sort();
    assert_eq!(tried, ["v0", "v1"]);
    assert_eq!(refused(&mut cluster), [""; 0]);
    cluster.pass(599_999);
    assert_eq!(refused(&mut cluster), [""; 0]);
    cluster.pass(1);
    assert_eq!(refused(&mut cluster).len(), 1);
    // It is left in peace anew; the other one may be stopped.
    assert_eq!(cluster.run(), names(&[]));
    let next = std::iter::from_fn(|| cluster.scheduler.next_order());
    let stops = next.filter(|order| matches!(order, PodOrder::Evict { .. }));
    assert_eq!(stops.count(), 1);
}

#[test]
fn a_gang_of_which_one_cannot_be_stopped_is_spared_as_a_whole() {
    let mut cluster = preempting_cluster(2);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 2)));
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
    cluster.create("high", high(8));
    assert_eq!(refused(&mut cluster).len(), 1, "what was not ordered yet is not");
    assert_eq!(refused(&mut cluster), [""; 0]);
    ["p0", "p1"].iter().for_each(|name| cluster.delete(Kind::Pod, "blue", name));
    assert_eq!(cluster.run(), names(&["high"]));
    cluster.pass(600_000);
    assert_eq!(cluster.run(), names(&[]));
    cluster.reports();
}

#[test]
fn who_is_not_bound_says_so_and_so_does_its_gang() {
    let mut cluster = preempting_cluster(2);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 2)));
    let mut binds = cluster.decide();
    let (bind, other) = (binds.remove(0), binds.remove(0));
    let (node, name) = (bind.node.clone(), bind.pod.name.to_string());
    let cause = Cause::Refused { code: 422, message: "no".to_owned() };
    let not_bound = |bind, cause| BindReport {
        bind,
        outcome: BindOutcome::NotBound(cause),
        answered_in_ms: Some(1),
    };
    cluster.scheduler.outcome(not_bound(bind, cause), cluster.now_ms);
    cluster.scheduler.outcome(not_bound(other, Cause::Conflict), cluster.now_ms);
    cluster.pass(300);
    cluster.decide();
    let said: Vec<String> = cluster
        .scheduler
        .news()
        .into_iter()
        .filter_map(|news| match news {
            News::Object(report @ world::ObjectReport::Refused { .. }) => Some(report.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(
        said,
        [format!(
            "pod blue/{name} could not start: the API server refused to bind the pod to node \
             {node} (422): no; dovetail retries"
        )]
    );
    cluster.pass(700);
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
}

/// Who begins anew, or only asks, reads from the pod that it was not let go; how long ago counts.
#[test]
fn whoever_comes_new_leaves_in_peace_who_was_not_let_go() {
    for (since, spared_ms) in [("2030-03-17T17:46:40Z", 600_000), ("2030-03-17T17:41:40Z", 300_000)]
    {
        let mut cluster = preempting_cluster(1);
        cluster.create("kept", pod(8));
        assert_eq!(cluster.run(), names(&["kept"]));
        let told = json!([{"type": "DisruptionTarget", "status": "False", "reason": "NotStopped",
            "lastTransitionTime": since}]);
        let key = (Kind::Pod, "blue".to_owned(), "kept".to_owned());
        cluster.server.change(&key, |pod| pod["status"]["conditions"] = told);
        cluster.create("high", high(8));
        let server = std::mem::take(&mut cluster.server);
        let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
        let config = EngineConfig { preemption, ..EngineConfig::default() };
        let mut cluster = Cluster::with(server, config);
        assert_eq!(refused(&mut cluster), [""; 0]);
        cluster.pass(spared_ms - 1);
        assert_eq!(refused(&mut cluster), [""; 0]);
        cluster.pass(1);
        assert_eq!(refused(&mut cluster), names(&["kept"]));
    }
}

fn of_priority(name: &str, priority: i32, node: Option<&str>) -> Value {
    let mut pod = crate::schedule::pod(name, 8);
    pod["spec"]["priority"] = json!(priority);
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
    }
    pod
}

/// Waits until so many events are written.
async fn are_told(scheduler: &Running, events: u64) {
    let written = format!("{{what=\"event\",outcome=\"written\"}} {events}");
    let waiting = async {
        while !scheduler.metrics.open_metrics().contains(&written) {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("events in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_keeps_a_victim_costs_another_its_place() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 2);
    for (name, node) in [("v0", "n0"), ("v1", "n1")] {
        api.create("pods", "default", &of_priority(name, 0, Some(node))).expect("a new pod");
    }
    let policy =
        FaultRule::first(On::new(&[Verb::Delete], "pods"), 1, ApiFault::ServerError { code: 422 });
    api.set_faults(1, vec![policy]);
    api.create("pods", "default", &of_priority("high", 5, None)).expect("a new pod");
    let scheduler = Running::start(config(&api), preempting(Options::default()));
    let is_ending = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
    until(&api, || {
        assert_names_one_node(&api.get("pods", "default", "high").expect("the pod"));
        api.all("pods").iter().any(is_ending)
    })
    .await;
    let text = scheduler.metrics.open_metrics();
    assert!(text.contains("dovetail_stops_refused_total 1"), "{text}");
    let (ending, left): (Vec<Value>, Vec<Value>) = api
        .all("pods")
        .into_iter()
        .filter(|pod| pod["metadata"]["name"] != "high")
        .partition(is_ending);
    assert_eq!((ending.len(), left.len()), (1, 1));
    let high = api.get("pods", "default", "high").expect("the pod");
    assert_eq!(high["status"]["nominatedNodeName"], ending[0]["spec"]["nodeName"]);
    assert_names_one_node(&high);
    // The other one is stopped by nobody, and says so.
    let target = |pod: &Value| condition(pod, "DisruptionTarget").cloned().expect("a condition");
    let left =
        || api.get("pods", "default", left[0]["metadata"]["name"].as_str().unwrap_or_default());
    until(&api, || target(&left().expect("the pod"))["status"] == "False").await;
    assert_eq!(target(&left().expect("the pod"))["reason"], "NotStopped");
    assert_eq!(target(&ending[0])["status"], "True");
    scheduler.stop().await;
}

/// The node that is freed for a pod is the one that its message names.
fn assert_names_one_node(pod: &Value) {
    let node = pod["status"]["nominatedNodeName"].as_str().unwrap_or_default();
    let says = condition(pod, "PodScheduled").and_then(|says| says["message"].as_str());
    let kept = says.and_then(|text| text.strip_prefix("capacity is reserved for it on "));
    if let Some(kept) = kept.filter(|_| !node.is_empty()) {
        assert!(
            kept.starts_with(&format!("{node} until ")),
            "{node} is freed, and it says: {kept}"
        );
    }
}

/// Pods with label `keep` cannot be deleted.
fn create_policy(control_plane: &ControlPlane) {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"],
        "resources": ["pods"]});
    let kept = json!({"expression": "!has(oldObject.metadata.labels) || !('keep' in oldObject.metadata.labels)",
        "message": "pods with label keep stay"});
    let of_kind = |kind: &str, spec: Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "keep"}, "spec": spec})
    };
    let policy = json!({"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
        "validations": [kept]});
    let binding = json!({"policyName": "keep", "validationActions": ["Deny"]});
    create(control_plane, &of_kind("ValidatingAdmissionPolicy", policy));
    create(control_plane, &of_kind("ValidatingAdmissionPolicyBinding", binding));
}

/// A pod on a node, and of a gang of two. It cannot be deleted if it is kept.
async fn create_pod(pods: &Api<Pod>, name: &str, node: &str, gang: Option<&str>, is_kept: bool) {
    let mut pod = crate::schedule::pod(name, 8);
    pod["spec"]["nodeName"] = json!(node);
    let mut labels = json!({});
    match gang {
        Some(gang) => {
            labels["dovetail.dev/gang"] = json!(gang);
            pod["metadata"]["annotations"] =
                json!({"dovetail.dev/decision": "0-1", "dovetail.dev/min-members": "2"});
        }
        None if !is_kept => pod["spec"]["priorityClassName"] = json!("low"),
        None => {}
    }
    if is_kept {
        labels["keep"] = json!("yes");
    }
    pod["metadata"]["labels"] = labels;
    let pod = serde_json::from_value(pod).expect("a pod");
    pods.create(&PostParams::default(), &pod).await.expect("a new pod");
}

/// `v0` cannot be deleted, and would be the cheaper one to stop; so would be the gang of `g0` and
/// `g1`, of which the second cannot.
async fn create_kept(control_plane: &ControlPlane, client: &Client) {
    create_policy(control_plane);
    create_classes(client).await;
    create_nodes(&Api::<Node>::all(client.clone()), 4).await;
    let pods = Api::<Pod>::default_namespaced(client.clone());
    create_pod(&pods, "v0", "n0", None, true).await;
    create_pod(&pods, "v1", "n1", None, false).await;
    create_pod(&pods, "g0", "n2", Some("gang"), false).await;
    create_pod(&pods, "g1", "n3", Some("gang"), true).await;
    // A server takes a moment to learn of a policy.
    let trial = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let is_kept = async {
        while pods.delete("v0", &trial).await.is_ok() {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, is_kept).await.expect("a policy in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_on_a_real_server_keeps_a_victim_and_another_is_stopped() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    create_kept(&control_plane, &client).await;
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let mut high = crate::schedule::pod("high", 8);
    high["spec"]["priorityClassName"] = json!("high");
    let high = serde_json::from_value(high).expect("a pod");
    pods.create(&PostParams::default(), &high).await.expect("a new pod");
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, preempting(Options::default()));
    let get = async |name: &str| {
        serde_json::to_value(pods.get(name).await.expect("a pod")).expect("JSON")
    };
    let settled = async {
        loop {
            let (kept, stopped) = (get("v0").await, get("v1").await);
            let target =
                condition(&kept, "DisruptionTarget").map(|target| target["status"].clone());
            if stopped["metadata"]["deletionTimestamp"].is_string()
                && target == Some(json!("False"))
            {
                return;
            }
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, settled).await.expect("another victim in time");
    for name in ["v0", "g0", "g1"] {
        assert_eq!(get(name).await["metadata"]["deletionTimestamp"], json!(null), "{name}");
    }
    // The gang was asked about as a whole, and nothing was done to the one that the server would
    // let go.
    let reason = |pod: &Value| condition(pod, "DisruptionTarget").map(|one| one["reason"].clone());
    assert_eq!(reason(&get("g0").await), None);
    assert_eq!(reason(&get("g1").await), Some(json!("NotStopped")));
    let high = get("high").await;
    assert_eq!(high["status"]["nominatedNodeName"], "n1");
    assert_names_one_node(&high);
    let events = Api::<Event>::default_namespaced(client);
    let refused = ListParams::default().fields("reason=FailedPreemption");
    let begin =
        "pod default/v0 was not evicted to make room: the API server refused the eviction (422): ";
    let is_told = |event: &Event| {
        let told = event.message.as_deref().unwrap_or_default();
        told.starts_with(begin) && told.contains("pods with label keep stay")
    };
    let told = async {
        while !events.list(&refused).await.expect("events").items.iter().any(is_told) {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.expect("an event in time");
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_the_server_does_not_bind_says_so() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 1);
    let policy = FaultRule::some(On::binds(), 1_000_000, ApiFault::ServerError { code: 422 });
    api.set_faults(1, vec![policy]);
    api.create("pods", "default", &of_priority("p", 0, None)).expect("a new pod");
    let scheduler = Running::start(config(&api), Options::default());
    let says = || {
        let pod = api.get("pods", "default", "p").expect("the pod");
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|one| one["reason"] == "SchedulerError")
    };
    until(&api, || says().is_some()).await;
    are_told(&scheduler, 1).await;
    let message = says().expect("a condition")["message"].clone();
    assert!(
        message
            .as_str()
            .is_some_and(|text| text.contains("refused to bind the pod to node n0 (422)"))
    );
    scheduler.stop().await;
}
