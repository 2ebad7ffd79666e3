//! Pods that are not let go when they are to be stopped: how many are tried, what is told, who else
//! waits for it, and when they are tried again.

use dovetail_control::order::{EvictionCause, OrderEnd, PodOrder};
use dovetail_objects::Kind;
use dovetail_scheduler::Options;
use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::{ApiFault, FaultRule, On, Verb};
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::gangs::{Cluster, pod};
use crate::preempt::{condition, preempting};
use crate::preempt_orders::{high, preempting_cluster};
use crate::schedule::{PATIENCE, Running, config, fake_nodes, pause, until};

/// What API servers say of an account without the right.
pub(crate) const NO_RIGHT: &str = "pods \"low0\" is forbidden: User \"system:serviceaccount:dovetail:dovetail-scheduler\" cannot \
     delete resource \"pods\" in API group \"\" in the namespace \"blue\"";

/// Decides and binds; who is to be stopped, which the server answers like this.
fn tried(cluster: &mut Cluster, end: &OrderEnd) -> Vec<String> {
    cluster.run();
    let mut tried = Vec::new();
    while let Some(order) = cluster.scheduler.next_order() {
        if let PodOrder::Evict { pod, why: EvictionCause::Preempted(_), .. } = &order {
            tried.push(pod.name.to_string());
            cluster.scheduler.order_ended(&order, end.clone(), cluster.now_ms);
        }
    }
    tried
}

/// As long as anybody is.
fn all_tried(cluster: &mut Cluster, end: &OrderEnd) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let more = tried(cluster, end);
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

fn policy() -> OrderEnd {
    OrderEnd::Refused { code: 422, message: "a policy".to_owned() }
}

/// So many nodes, each with a pod of low priority.
fn full(nodes: usize) -> Cluster {
    let mut cluster = preempting_cluster(nodes);
    for at in 0..nodes {
        cluster.create(&format!("low{at:02}"), pod(8));
        assert_eq!(cluster.run().len(), 1);
    }
    cluster
}

#[test]
fn sixteen_are_tried_in_a_row_for_one_pod_which_says_so() {
    let mut cluster = full(20);
    cluster.create("high", high(8));
    let mut first = all_tried(&mut cluster, &policy());
    assert_eq!(first.len(), 16);
    first.sort();
    // Time is 17:46:40.
    let says = format!(
        "0/20 nodes are available: 20 Insufficient nvidia.com/gpu. It would start if pods of lower \
         priority were evicted, which the API server refuses: blue/{}, blue/{}, blue/{} and 13 \
         more; dovetail does not retry them until 2030-03-17T17:56:40Z. The API server refused \
         several evictions for this pod in a row: dovetail waits until 2030-03-17T17:47:40Z before \
         it tries to evict other pods.",
        first[0], first[1], first[2]
    );
    assert_eq!(cluster.says("high"), says);
    cluster.pass(59_999);
    assert_eq!(all_tried(&mut cluster, &policy()), [""; 0]);
    assert_eq!(cluster.scheduler.due_ms(), Some(cluster.now_ms + 1));
    cluster.pass(1);
    let rest = all_tried(&mut cluster, &policy());
    assert!(rest.len() == 4 && rest.iter().all(|name| !first.contains(name)), "{rest:?}");
    // One that stops nobody does not speak of them.
    let mut never = high(8);
    never["spec"]["preemptionPolicy"] = json!("Never");
    cluster.create("never", never);
    assert_eq!(all_tried(&mut cluster, &policy()), [""; 0]);
    let says = cluster.says("never");
    assert_eq!(says, "0/20 nodes are available: 20 Insufficient nvidia.com/gpu.");
}

#[test]
fn who_says_no_more_that_it_was_not_let_go_is_tried_again_at_once() {
    let mut cluster = full(1);
    let says = |cluster: &mut Cluster, status: &str, reason: &str| {
        let key = (Kind::Pod, "blue".to_owned(), "low00".to_owned());
        let target = json!([{"type": "DisruptionTarget", "status": status, "reason": reason,
            "lastTransitionTime": "2030-03-17T17:46:40Z"}]);
        let target = if status.is_empty() { json!([]) } else { target };
        cluster.server.change(&key, |pod| pod["status"]["conditions"] = target);
    };
    cluster.create("high", high(8));
    assert_eq!(tried(&mut cluster, &policy()), ["low00"]);
    // What the scheduler itself writes says nothing of the kind, also when it is seen late.
    for (status, reason) in [
        ("True", "PreemptionByScheduler"),
        ("False", "NotStopped"),
        ("True", "PreemptionByScheduler"),
        ("False", "StopCalledOff"),
        ("False", "NotStopped"),
    ] {
        says(&mut cluster, status, reason);
        assert_eq!(tried(&mut cluster, &policy()), [""; 0], "{status} {reason}");
    }
    says(&mut cluster, "", "");
    assert_eq!(tried(&mut cluster, &policy()), ["low00"]);
    assert_eq!(tried(&mut cluster, &policy()), [""; 0]);
}

/// The pods that are marked no more, by the orders that wait.
fn taken_back(cluster: &mut Cluster) -> Vec<String> {
    let orders = std::iter::from_fn(|| cluster.scheduler.next_order());
    let taken = orders.filter_map(|order| match order {
        PodOrder::Unmark { pod } => Some(pod.name.to_string()),
        _ => None,
    });
    taken.collect()
}

/// It was marked, what became of its delete is not known, and another one is stopped in its place.
#[test]
fn who_was_marked_and_is_stopped_by_nobody_is_marked_no_more() {
    let mut cluster = full(2);
    cluster.create("high", high(8));
    let silence = OrderEnd::Unanswered { problem: "silence".to_owned() };
    let first = tried(&mut cluster, &silence).remove(0);
    is_seen_marked(&mut cluster, &first);
    let second = tried(&mut cluster, &OrderEnd::Done);
    assert!(second.len() == 1 && second[0] != first, "{second:?}");
    cluster.pass(999);
    assert_eq!(taken_back(&mut cluster), [""; 0]);
    cluster.pass(1);
    assert_eq!(taken_back(&mut cluster), [first]);
}

fn is_seen_marked(cluster: &mut Cluster, name: &str) {
    let target =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]);
    let key = (Kind::Pod, "blue".to_owned(), name.to_owned());
    cluster.server.change(&key, |pod| pod["status"]["conditions"] = target);
}

/// The watch shows the mark only after the server refused: the pod says already that it stays, and
/// why, which a second write would hide from the next leader.
#[test]
fn who_is_not_let_go_says_so_although_its_mark_is_seen_late() {
    let mut cluster = full(2);
    cluster.create("high", high(8));
    let first = tried(&mut cluster, &policy()).remove(0);
    is_seen_marked(&mut cluster, &first);
    cluster.run();
    assert_eq!(taken_back(&mut cluster), [""; 0]);
    cluster.pass(1_000);
    assert_eq!(taken_back(&mut cluster), [""; 0]);
}

/// The cheaper victim is where the scheduler may stop nobody.
#[test]
fn a_right_that_lacks_in_one_namespace_spares_the_pods_of_that_one_alone() {
    let mut cluster = preempting_cluster(2);
    cluster.create("low0", pod(8));
    cluster.run();
    let mut other = pod(8);
    other["spec"]["priority"] = json!(1);
    cluster.server.apply(Kind::Pod, "green", "low1", other);
    assert_eq!(cluster.run().len(), 1);
    cluster.create("high", high(8));
    let no_right = OrderEnd::Refused { code: 403, message: NO_RIGHT.to_owned() };
    assert_eq!(tried(&mut cluster, &no_right), ["low0"]);
    assert_eq!(tried(&mut cluster, &OrderEnd::Done), ["low1"]);
    cluster.delete(Kind::Pod, "green", "low1");
    assert_eq!(cluster.run(), ["high"]);
}

fn running(name: &str, node: usize) -> Value {
    let mut pod = crate::schedule::pod(name, 8);
    pod["spec"]["priority"] = json!(0);
    pod["spec"]["nodeName"] = json!(format!("n{node}"));
    pod["metadata"]["annotations"] = json!({"dovetail.dev/decision": "0-1"});
    pod
}

/// A pod of high priority, for one node alone if that is said.
fn wanting(name: &str, priority: i32, node: Option<usize>) -> Value {
    let mut pod = crate::schedule::pod(name, 8);
    pod["spec"]["priority"] = json!(priority);
    if let Some(node) = node {
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": format!("n{node}")});
    }
    pod
}

fn is_ending(api: &FakeApi, name: &str) -> bool {
    let pod = api.get("pods", "default", name);
    pod.is_ok_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
}

/// Waits until requests are held whose answer does not come.
async fn until_held(api: &FakeApi) -> String {
    let held = async {
        loop {
            let faults = api.faults();
            if let Some(held) = faults.iter().find(|record| record.fault == ApiFault::Hold) {
                return held.request.clone();
            }
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, held).await.expect("a request in time")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_is_not_answered_holds_up_no_other() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 2);
    for at in 0..2 {
        api.create("pods", "default", &running(&format!("low{at}"), at)).expect("a new pod");
        // The one whose victim hangs goes first.
        let pod = wanting(&format!("high{at}"), 9 - at as i32, Some(at));
        api.create("pods", "default", &pod).expect("a new pod");
    }
    let on = On { name: Some("low0".to_owned()), ..On::new(&[Verb::Delete], "pods") };
    api.set_faults(1, vec![FaultRule::some(on, 1_000_000, ApiFault::Hold)]);
    let scheduler = Running::start(config(&api), preempting(Options::default()));
    until(&api, || is_ending(&api, "low1")).await;
    // Nobody has given the first one up by then.
    let text = scheduler.metrics.open_metrics();
    assert!(text.contains("dovetail_stops_refused_total 0"), "{text}");
    assert!(!is_ending(&api, "low0"));
    api.release();
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_refusal_nobody_is_marked_before_the_server_lets_it_go_and_one_event_tells_of_all()
{
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 4);
    for at in 0..4 {
        api.create("pods", "default", &running(&format!("low{at}"), at)).expect("a new pod");
    }
    let deletes = || On::new(&[Verb::Delete], "pods");
    let refused = |count| FaultRule::first(deletes(), count, ApiFault::ServerError { code: 422 });
    api.set_faults(1, vec![refused(1), FaultRule::some(deletes(), 1_000_000, ApiFault::Hold)]);
    api.create("pods", "default", &wanting("high", 9, None)).expect("a new pod");
    let scheduler = Running::start(config(&api), preempting(Options::default()));
    let held = until_held(&api).await;
    let asked = held.split(['/', ' ']).find(|part| part.starts_with("low")).expect("a pod");
    let pod = api.get("pods", "default", asked).expect("a pod");
    assert_eq!(condition(&pod, "DisruptionTarget"), None, "{held}");
    api.set_faults(1, vec![refused(1_000)]);
    api.release();
    let says = || {
        let pod = api.get("pods", "default", "high").expect("a pod");
        let says = condition(&pod, "PodScheduled").and_then(|says| says["message"].as_str());
        says.is_some_and(|says| says.contains("which the API server refuses"))
    };
    until(&api, says).await;
    // What is owed is written at the end.
    scheduler.stop().await;
    let client = Client::try_from(config(&api)).expect("a client");
    let events = Api::<Event>::default_namespaced(client);
    let events = events.list(&ListParams::default()).await.expect("events").items;
    let is_told = |event: &&Event| event.reason.as_deref() == Some("FailedPreemption");
    assert_eq!(events.iter().filter(is_told).count(), 1, "{events:?}");
}
