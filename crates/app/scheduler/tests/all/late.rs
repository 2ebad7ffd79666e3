//! Pods that are stopping and do not leave: nobody counts on their room for ever.

use dovetail_control::order::PodOrder;
use dovetail_objects::Kind;
use dovetail_plan::PreemptionConfig;
use dovetail_plan::engine::EngineConfig;
use dovetail_scheduler::Options;
use dovetail_testkit::FakeApi;
use serde_json::{Value, json};

use crate::gangs::{Cluster, member, names, node, pod};
use crate::preempt::preempting;
use crate::schedule::{Running, config, fake_nodes, until};
use crate::server::Server;

/// The clock of [`Cluster`] begins here; 90 s before the pod is late that stops.
const START: &str = "2030-03-17T17:46:40Z";
const GONE_BY: &str = "2030-03-17T17:47:10Z";
const LATE_AFTER_MS: u64 = 90_000;

fn on(node: usize, priority: i32) -> Value {
    let mut pod = pod(8);
    pod["spec"]["priority"] = json!(priority);
    pod["spec"]["nodeName"] = json!(format!("n{node}"));
    pod
}

fn of_priority(mut pod: Value, priority: i32) -> Value {
    pod["spec"]["priority"] = json!(priority);
    pod
}

/// So many full nodes; the pod on the first one is stopping.
fn full(nodes: usize) -> Server {
    let mut server = Server::default();
    for at in 0..nodes {
        node(&mut server, at);
        server.apply(Kind::Pod, "blue", &format!("old{at}"), on(at, 0));
    }
    let key = (Kind::Pod, "blue".to_owned(), "old0".to_owned());
    server.change(&key, |pod| pod["metadata"]["deletionTimestamp"] = json!(GONE_BY));
    server
}

fn preemption() -> EngineConfig {
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    EngineConfig { preemption, ..EngineConfig::default() }
}

/// Who is to be stopped.
fn stopped(cluster: &mut Cluster) -> Vec<String> {
    let orders = std::iter::from_fn(|| cluster.scheduler.next_order());
    let stops = orders.filter_map(|order| match order {
        PodOrder::Evict { pod, .. } => Some(pod.name.to_string()),
        _ => None,
    });
    stops.collect()
}

fn word(cluster: &mut Cluster, name: &str) -> &'static str {
    let job = cluster.scheduler.world().pods().job_of("blue", name).expect("a job");
    let waiting = cluster.scheduler.ask().waiting(job);
    waiting.expect("it waits").word()
}

#[test]
fn who_waits_for_a_pod_that_does_not_leave_looks_elsewhere_when_that_is_late() {
    let start = START.parse::<jiff::Timestamp>().expect("a time").as_millisecond();
    let mut cluster = Cluster::with(full(2), preemption());
    assert_eq!(cluster.now_ms.cast_signed(), start);
    cluster.create("high", of_priority(pod(8), 1_000));
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!((word(&mut cluster, "high"), stopped(&mut cluster)), ("WaitingForTurn", vec![]));
    cluster.pass(LATE_AFTER_MS - 1);
    assert_eq!(cluster.scheduler.due_ms(), Some(cluster.now_ms + 1), "time alone says so");
    assert_eq!((cluster.run(), stopped(&mut cluster)), (vec![], vec![]));
    cluster.pass(1);
    assert_eq!((cluster.run(), stopped(&mut cluster)), (vec![], names(&["old1"])));
    // It leaves at last, before the other one has, and there is room where it was.
    cluster.delete(Kind::Pod, "blue", "old0");
    cluster.create("low", pod(8));
    assert_eq!(cluster.run(), names(&["high"]));
    cluster.delete(Kind::Pod, "blue", "old1");
    assert_eq!(cluster.run(), names(&["low"]));
}

#[test]
fn autoscalers_act_for_who_waits_only_for_a_pod_that_is_late() {
    let mut cluster = Cluster::over(full(1));
    cluster.create("waits", pod(8));
    assert_eq!((cluster.run(), word(&mut cluster, "waits")), (vec![], "WaitingForTurn"));
    cluster.pass(LATE_AFTER_MS);
    assert_eq!((cluster.run(), word(&mut cluster, "waits")), (vec![], "Unschedulable"));
    // Who begins then sees the same.
    let mut again = Cluster::over(std::mem::take(&mut cluster.server));
    again.pass(LATE_AFTER_MS);
    assert_eq!((again.run(), word(&mut again, "waits")), (vec![], "Unschedulable"));
    again.delete(Kind::Pod, "blue", "old0");
    assert_eq!(again.run(), names(&["waits"]));
}

#[test]
fn nobody_is_stopped_for_a_gang_that_would_need_the_room_of_a_pod_that_is_late() {
    let mut cluster = Cluster::with(full(2), preemption());
    cluster.pass(LATE_AFTER_MS);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), of_priority(member(8, 2, 2), 1_000)));
    cluster.run();
    cluster.pass(2_000);
    assert_eq!((cluster.run(), stopped(&mut cluster)), (vec![], vec![]));
    assert_eq!(word(&mut cluster, "p0"), "Unschedulable");
    // With another node it need not wait for it.
    node(&mut cluster.server, 2);
    assert_eq!((cluster.run(), stopped(&mut cluster)), (vec![], names(&["old1"])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_never_leaves_is_given_up_on_a_server() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 2);
    for (name, at) in [("stuck", 0), ("low", 1)] {
        let mut pod = crate::schedule::pod(name, 8);
        pod["spec"]["nodeName"] = json!(format!("n{at}"));
        api.create("pods", "default", &pod).expect("a new pod");
    }
    api.overwrite("pods", "default", "stuck", |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2020-01-01T00:00:00Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    });
    let high = of_priority(crate::schedule::pod("high", 8), 1_000);
    api.create("pods", "default", &high).expect("a new pod");
    let scheduler = Running::start(config(&api), preempting(Options::default()));
    let is_stopped = || {
        let low = api.get("pods", "default", "low");
        low.is_ok_and(|low| low["metadata"]["deletionTimestamp"].is_string())
    };
    until(&api, is_stopped).await;
    let now = json!({"gracePeriodSeconds": 0});
    api.delete("pods", "default", "low", &now).expect("it ends");
    let node_of =
        |name| api.get("pods", "default", name).expect("a pod")["spec"]["nodeName"].clone();
    until(&api, || node_of("high") == "n1").await;
    scheduler.stop().await;
}
