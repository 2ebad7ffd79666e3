//! What the server refuses for good: stops of pods, and binds. Those concerned say so, and others are tried.

use dovetail_kube::bind::{Cause, Order, OrderEnd, Outcome, Report, Stop};
use dovetail_kube::object::Kind;
use dovetail_kube::schedule::{News, Options};
use dovetail_kube::world;
use dovetail_plan::PreemptionConfig;
use dovetail_plan::engine::EngineConfig;
use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::{Fault, FaultRule, On, Verb};
use serde_json::{Value, json};

use crate::gangs::{Cluster, member, names, node, pod};
use crate::preempt::preempting;
use crate::schedule::{PATIENCE, Running, config, fake_nodes, until};
use crate::server::Server;

fn cluster(nodes: usize) -> Cluster {
    let mut server = Server::default();
    (0..nodes).for_each(|at| node(&mut server, at));
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    Cluster::with(server, EngineConfig { preemption, ..EngineConfig::default() })
}

fn high(gpus: usize) -> Value {
    let mut pod = pod(gpus);
    pod["spec"]["priority"] = json!(5);
    pod
}

/// Decides and binds; who is to be stopped. The server refuses it.
fn refused(cluster: &mut Cluster) -> Vec<String> {
    assert_eq!(cluster.run(), names(&[]));
    let mut victims = Vec::new();
    while let Some(order) = cluster.scheduler.next_order() {
        let Order::Stop { pod, why: Stop::Preempted } = &order else { continue };
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
    let mut cluster = cluster(2);
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
    let stops = next.filter(|order| matches!(order, Order::Stop { .. }));
    assert_eq!(stops.count(), 1);
}

#[test]
fn a_gang_of_which_one_cannot_be_stopped_is_spared_as_a_whole() {
    let mut cluster = cluster(2);
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
    let mut cluster = cluster(2);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 2)));
    let mut binds = cluster.decide();
    let (bind, other) = (binds.remove(0), binds.remove(0));
    let (node, name) = (bind.node.clone(), bind.pod.clone());
    let cause = Cause::Refused { code: 422, message: "no".to_owned() };
    let not_bound =
        |bind, cause| Report { bind, outcome: Outcome::NotBound(cause), answered_in_ms: Some(1) };
    cluster.scheduler.outcome(not_bound(bind, cause), cluster.now_ms);
    cluster.scheduler.outcome(not_bound(other, Cause::Conflict), cluster.now_ms);
    cluster.pass(300);
    cluster.decide();
    let said: Vec<String> = cluster
        .scheduler
        .news()
        .into_iter()
        .filter_map(|news| match news {
            News::Object(report @ world::Report::Refused { .. }) => Some(report.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(
        said,
        [format!(
            "pod blue/{name} could not start: the server does not bind it to node {node} (422): no; it is tried again"
        )]
    );
    cluster.pass(700);
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
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
            tokio::task::yield_now().await;
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
        FaultRule::first(On::new(&[Verb::Delete], "pods"), 1, Fault::ServerError { code: 422 });
    api.set_faults(1, vec![policy]);
    api.create("pods", "default", &of_priority("high", 5, None)).expect("a new pod");
    let scheduler = Running::start(config(&api), preempting(Options::default()));
    let is_ending = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
    until(&api, || api.all("pods").iter().any(is_ending)).await;
    let text = scheduler.metrics.open_metrics();
    assert!(text.contains("dovetail_stops_refused_total 1"), "{text}");
    assert_eq!(api.all("pods").into_iter().filter(is_ending).count(), 1);
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_the_server_does_not_bind_says_so() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 1);
    let policy = FaultRule::some(On::binds(), 1_000_000, Fault::ServerError { code: 422 });
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
        message.as_str().is_some_and(|text| text.contains("does not bind it to node n0 (422)"))
    );
    scheduler.stop().await;
}
