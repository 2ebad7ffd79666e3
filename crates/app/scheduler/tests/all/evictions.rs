//! Stops for one job are one decision: what the server refuses of it, nobody else is stopped for in
//! vain.

use dovetail_control::order::{EvictionCause, OrderEnd, PodOrder};
use dovetail_control::schedule::News;
use dovetail_objects::Kind;
use dovetail_scheduler::Options;
use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::{ApiFault, FaultRule, On, Verb};
use serde_json::{Value, json};

use crate::exempt::NO_RIGHT;
use crate::gangs::{Cluster, member, names, node, pod};
use crate::preempt::{condition, preempting};
use crate::preempt_orders::{high, preempting_cluster};
use crate::schedule::{Running, config, elected, fake_nodes, until};

fn refused(code: u16, message: &str) -> OrderEnd {
    OrderEnd::Refused { code, message: message.to_owned() }
}

/// Decides and binds; the stops that are ordered.
fn stops(cluster: &mut Cluster) -> Vec<PodOrder> {
    cluster.run();
    let orders = std::iter::from_fn(|| cluster.scheduler.next_order());
    orders.filter(|order| matches!(order, PodOrder::Evict { .. })).collect()
}

fn ended(cluster: &mut Cluster, order: &PodOrder, end: OrderEnd) {
    cluster.scheduler.order_ended(order, end, cluster.now_ms);
}

/// Who is told that it is stopped; how many were for one job; for which lack of rights nobody is.
fn told(cluster: &mut Cluster) -> Vec<String> {
    let told = cluster.scheduler.news().into_iter().filter_map(|news| match news {
        News::Evicted(stopped) => {
            let by = stopped.preemptor.expect("a preemptor");
            Some(format!("{} on {} for {by}", stopped.victim.name, stopped.node))
        }
        News::Preempted { evicted, .. } => Some(format!("{evicted} evicted")),
        News::EvictionRefused(refused) if refused.is_for_all => Some("no right".to_owned()),
        News::EvictionRefused(refused) => Some(format!("{} refused", refused.victim.name)),
        News::Inconsistent(error) => panic!("{error}"),
        _ => None,
    });
    told.collect()
}

/// So many pods `low`, each on a node of its own.
fn full(nodes: usize) -> Cluster {
    let mut cluster = preempting_cluster(nodes);
    for at in 0..nodes {
        cluster.create(&format!("low{at}"), pod(8));
        assert_eq!(cluster.run().len(), 1);
    }
    told(&mut cluster);
    cluster
}

#[test]
fn who_is_stopped_is_told_when_the_server_has_taken_it_and_not_before() {
    let mut cluster = preempting_cluster(3);
    (0..3).for_each(|at| cluster.create(&format!("p{at}"), member(8, 3, 3)));
    assert_eq!(cluster.run().len(), 3);
    cluster.create("high", high(8));
    let orders = stops(&mut cluster);
    assert_eq!((orders.len(), told(&mut cluster)), (3, vec![]));
    ended(&mut cluster, &orders[0], OrderEnd::Done);
    let first = told(&mut cluster);
    assert!(first.len() == 1 && first[0].ends_with(" for blue/high"), "{first:?}");
    ended(&mut cluster, &orders[1], refused(422, "a policy"));
    ended(&mut cluster, &orders[2], OrderEnd::CalledOff);
    let rest = told(&mut cluster);
    assert!(rest[0].ends_with(" refused") && rest[1..] == ["1 evicted"], "{rest:?}");
}

#[test]
fn without_the_right_it_is_asked_for_now_and_then_and_with_it_all_go_on() {
    let mut cluster = full(3);
    cluster.create("high0", high(8));
    let first = stops(&mut cluster).remove(0);
    ended(&mut cluster, &first, refused(403, NO_RIGHT));
    cluster.create("high1", high(8));
    assert_eq!(stops(&mut cluster), [], "no other one is tried");
    assert_eq!(told(&mut cluster), ["no right"]);
    let says = cluster.says("high1");
    let expected = format!(
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. It would start if pods of lower \
         priority were evicted, for which the scheduler's service account lacks the permission: \
         blue/low0, blue/low1, blue/low2; {NO_RIGHT}; grant it (see deploy/rbac.yaml): dovetail \
         retries."
    );
    assert_eq!(says, expected);
    let asked = |cluster: &mut Cluster| -> Vec<PodOrder> {
        cluster.run();
        let orders = std::iter::from_fn(|| cluster.scheduler.next_order());
        orders.filter(|order| !matches!(order, PodOrder::Nominate { .. })).collect()
    };
    for pause_ms in [1_000, 2_000, 4_000] {
        cluster.pass(pause_ms - 1);
        assert_eq!(asked(&mut cluster), []);
        assert_eq!(cluster.scheduler.due_ms(), Some(cluster.now_ms + 1));
        cluster.pass(1);
        let again = asked(&mut cluster);
        assert!(matches!(again[..], [PodOrder::MayEvict { .. }]), "{again:?}");
        ended(&mut cluster, &again[0], refused(403, NO_RIGHT));
        assert_eq!((asked(&mut cluster), told(&mut cluster)), (vec![], vec![]));
    }
    // The right is given.
    cluster.pass(8_000);
    let again = asked(&mut cluster).remove(0);
    ended(&mut cluster, &again, OrderEnd::Done);
    let both = stops(&mut cluster);
    assert_eq!(both.len(), 2);
    both.iter().for_each(|stop| ended(&mut cluster, stop, OrderEnd::Done));
    assert_eq!(told(&mut cluster).len(), 4, "two are stopped, for one pod each");
    assert_eq!((stops(&mut cluster), cluster.scheduler.due_ms().is_some()), (vec![], true));
}

#[test]
fn stops_for_a_pod_that_needs_them_no_more_are_called_off() {
    let mut cluster = full(1);
    cluster.create("high", high(8));
    let order = stops(&mut cluster).remove(0);
    let PodOrder::Evict { decision, why: EvictionCause::Preempted(_), .. } = &order else {
        panic!("{order:?}")
    };
    assert_eq!(cluster.scheduler.called_off(), [0; 0]);
    // An earlier leader had told the pod already.
    let target =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]);
    let key = (Kind::Pod, "blue".to_owned(), "low0".to_owned());
    cluster.server.change(&key, |pod| pod["status"]["conditions"] = target);
    cluster.delete(Kind::Pod, "blue", "high");
    cluster.run();
    assert_eq!(cluster.scheduler.called_off(), [decision.number()]);
    ended(&mut cluster, &order, OrderEnd::CalledOff);
    let last = std::iter::from_fn(|| cluster.scheduler.next_order()).last();
    let Some(PodOrder::Unmark { pod }) = last else { panic!("{last:?}") };
    assert_eq!(&*pod.name, "low0");
    assert_eq!(told(&mut cluster), [""; 0]);
}

/// The one that it was for starts elsewhere: before its stop was begun, or while it was.
#[test]
fn who_is_not_stopped_after_all_is_not_waited_for() {
    for is_begun in [false, true] {
        let mut cluster = full(1);
        cluster.create("high", high(8));
        assert_eq!(cluster.run(), names(&[]));
        let begun = if is_begun { stops(&mut cluster) } else { Vec::new() };
        node(&mut cluster.server, 1);
        assert_eq!(cluster.run(), names(&["high"]));
        begun.iter().for_each(|order| ended(&mut cluster, order, OrderEnd::CalledOff));
        assert_eq!(stops(&mut cluster), []);
        cluster.create("next", pod(8));
        cluster.run();
        let says = cluster.says("next");
        assert!(says.starts_with("0/2 nodes are available"), "begun: {is_begun}: {says}");
    }
}

#[test]
fn of_whom_the_server_says_nothing_others_are_tried_and_then_it_again() {
    let mut cluster = full(2);
    cluster.create("high", high(8));
    let silence = || OrderEnd::Unanswered { problem: "silence".to_owned() };
    let victim = |orders: &[PodOrder]| match orders {
        [PodOrder::Evict { pod, .. }] => pod.name.to_string(),
        other => panic!("{other:?}"),
    };
    let mut tried = Vec::new();
    for _ in 0..2 {
        let orders = stops(&mut cluster);
        tried.push(victim(&orders));
        ended(&mut cluster, &orders[0], silence());
    }
    tried.sort();
    assert_eq!(tried, ["low0", "low1"]);
    assert_eq!(told(&mut cluster), ["low0 refused", "low1 refused"].map(str::to_owned));
    assert_eq!(stops(&mut cluster), []);
    cluster.pass(1_000);
    let again = stops(&mut cluster);
    let name = victim(&again);
    ended(&mut cluster, &again[0], OrderEnd::Done);
    cluster.delete(Kind::Pod, "blue", &name);
    assert_eq!(cluster.run(), names(&["high"]));
}

fn bound(name: &str, node: usize, priority: i32, gang: Option<&str>) -> Value {
    let mut pod = crate::schedule::pod(name, 8);
    pod["spec"]["priority"] = json!(priority);
    pod["spec"]["nodeName"] = json!(format!("n{node}"));
    pod["metadata"]["annotations"] = json!({"dovetail.dev/decision": "0-1"});
    if let Some(gang) = gang {
        pod["metadata"]["labels"] = json!({"dovetail.dev/gang": gang});
        pod["metadata"]["annotations"]["dovetail.dev/min-members"] = json!("2");
    }
    pod
}

/// Deletions of this pod are refused.
fn keeps(name: &str, code: u16) -> FaultRule {
    let on = On { name: Some(name.to_owned()), ..On::new(&[Verb::Delete], "pods") };
    FaultRule::some(on, 1_000_000, ApiFault::ServerError { code })
}

/// Five nodes; two are held by a gang of the lowest priority, and two are wanted.
fn wanted_of_a_gang() -> FakeApi {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 5);
    for at in 0..2 {
        let gang = bound(&format!("g{at}"), at, 0, Some("gang"));
        api.create("pods", "default", &gang).expect("a new pod");
    }
    for at in 2..5 {
        let single = bound(&format!("f{at}"), at, 1, None);
        api.create("pods", "default", &single).expect("a new pod");
    }
    for at in 0..2 {
        let mut pod = bound(&format!("high{at}"), 0, 5, Some("high"));
        pod["spec"]["nodeName"] = json!(null);
        pod["metadata"]["annotations"]["dovetail.dev/decision"] = json!(null);
        api.create("pods", "default", &pod).expect("a new pod");
    }
    api
}

fn is_ending(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

/// The gang of the lowest priority would go, and the server does not let one of its pods go: the
/// first, or the last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_of_which_the_server_keeps_one_loses_none() {
    for (code, kept) in [(403, "g0"), (422, "g1"), (403, "g1")] {
        let api = wanted_of_a_gang();
        api.set_faults(1, vec![keeps(kept, code)]);
        let scheduler = Running::start(config(&api), preempting(Options::default()));
        until(&api, || api.all("pods").iter().filter(|pod| is_ending(pod)).count() == 2).await;
        let is_marked = |pod: &Value| {
            condition(pod, "DisruptionTarget").is_some_and(|target| target["status"] == "True")
        };
        let marked = || api.all("pods").into_iter().filter(is_marked).count();
        until(&api, || marked() == 2).await;
        for name in ["g0", "g1"] {
            let pod = api.get("pods", "default", name).expect("a pod");
            assert!(!is_ending(&pod), "{pod}");
            // The one says that it was not let go; the other was never touched.
            let target = condition(&pod, "DisruptionTarget").map(|target| target["reason"].clone());
            assert_eq!(target, (name == kept).then(|| json!("NotStopped")), "{pod}");
        }
        until(&api, || {
            let text = scheduler.metrics.open_metrics();
            text.contains("scheduler_preemption_victims_sum 2")
                && text.contains("scheduler_preemption_victims_count 1")
        })
        .await;
        scheduler.stop().await;
    }
}

/// The server does not take the mark of one pod of the gang.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_of_which_one_cannot_be_told_loses_none() {
    let api = wanted_of_a_gang();
    let marks = || On {
        name: Some("g1".to_owned()),
        subresource: Some("status".to_owned()),
        ..On::new(&[Verb::Patch], "pods")
    };
    let refused = FaultRule::first(marks(), 1, ApiFault::ServerError { code: 422 });
    api.set_faults(1, vec![refused]);
    let scheduler = Running::start(config(&api), preempting(Options::default()));
    until(&api, || ending(&api).len() == 2).await;
    let says = |name: &str| {
        let pod = api.get("pods", "default", name).expect("a pod");
        let target = condition(&pod, "DisruptionTarget").cloned().unwrap_or_default();
        (is_ending(&pod), target["status"].clone(), target["reason"].clone())
    };
    until(&api, || says("g0").1 == "False" && says("g1").1 == "False").await;
    assert_eq!(says("g0"), (false, json!("False"), json!("StopCalledOff")));
    assert_eq!(says("g1"), (false, json!("False"), json!("NotStopped")));
    scheduler.stop().await;
}

/// What is asked first costs who stops one pod nothing: the server hears of one deletion.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_stopped_alone_is_not_asked_about_first() {
    for (wanted, deletions) in [(1, 1), (2, 4)] {
        let api = FakeApi::start().expect("a free port");
        fake_nodes(&api, 2);
        for at in 0..2 {
            let pod = bound(&format!("low{at}"), at, 0, None);
            api.create("pods", "default", &pod).expect("a new pod");
        }
        // It only counts them.
        let deletion = On::new(&[Verb::Delete], "pods");
        api.set_faults(
            1,
            vec![FaultRule::some(deletion, 1_000_000, ApiFault::Slow { delay_ms: 0 })],
        );
        for at in 0..wanted {
            let mut pod = bound(&format!("high{at}"), 0, 5, (wanted == 2).then_some("high"));
            pod["spec"]["nodeName"] = json!(null);
            pod["metadata"]["annotations"]["dovetail.dev/decision"] = json!(null);
            api.create("pods", "default", &pod).expect("a new pod");
        }
        let scheduler = Running::start(config(&api), preempting(Options::default()));
        until(&api, || api.all("pods").iter().filter(|pod| is_ending(pod)).count() == wanted).await;
        assert_eq!(api.faults().len(), deletions);
        scheduler.stop().await;
    }
}

/// The first leader stops two pods of a gang of four for two others, and is gone before it stops
/// the rest: all have been told.
async fn half_a_gang_is_stopped() -> FakeApi {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 4);
    for at in 0..4 {
        let mut pod = bound(&format!("g{at}"), at, 0, Some("gang"));
        pod["metadata"]["annotations"]["dovetail.dev/min-members"] = json!("4");
        pod["metadata"]["annotations"]["dovetail.dev/decision"] = json!("0-1/4");
        api.create("pods", "default", &pod).expect("a new pod");
    }
    for at in 0..2 {
        let mut pod = bound(&format!("high{at}"), 0, 5, Some("high"));
        pod["spec"]["nodeName"] = json!(null);
        pod["metadata"]["annotations"]["dovetail.dev/decision"] = json!(null);
        api.create("pods", "default", &pod).expect("a new pod");
    }
    // It is asked whether the others would go, and then they do not.
    let faults = ["g2", "g3"].into_iter().flat_map(|name| {
        let other = || On { name: Some(name.to_owned()), ..On::new(&[Verb::Delete], "pods") };
        let asked = FaultRule::first(other(), 1, ApiFault::Slow { delay_ms: 0 });
        let unavailable = ApiFault::ServerError { code: 503 };
        [asked, FaultRule::some(other(), 1_000_000, unavailable)]
    });
    api.set_faults(1, faults.collect());
    let first = Running::start(config(&api), preempting(elected("first")));
    until(&api, || ending(&api) == ["g0", "g1"]).await;
    first.stop().await;
    api.set_faults(1, Vec::new());
    let_go(&api);
    assert_eq!((is_marked(&api, "g2"), is_marked(&api, "g3")), (true, true));
    api
}

fn ending(api: &FakeApi) -> Vec<String> {
    let ending = api.all("pods").into_iter().filter(is_ending);
    ending.map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn let_go(api: &FakeApi) {
    for name in ending(api) {
        let at_once = json!({"gracePeriodSeconds": 0});
        api.delete("pods", "default", &name, &at_once).expect("a pod that ends");
    }
}

fn is_marked(api: &FakeApi, name: &str) -> bool {
    let pod = api.get("pods", "default", name).expect("a pod");
    condition(&pod, "DisruptionTarget").is_some_and(|target| target["status"] == "True")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_leader_stops_the_rest_of_a_gang() {
    let api = half_a_gang_is_stopped().await;
    let second = Running::start(config(&api), preempting(elected("second")));
    until(&api, || ending(&api) == ["g2", "g3"]).await;
    assert!(is_marked(&api, "g2") && is_marked(&api, "g3"));
    let has_node = |name: &str| {
        api.get("pods", "default", name).expect("a pod")["spec"]["nodeName"].is_string()
    };
    let_go(&api);
    until(&api, || has_node("high0") && has_node("high1")).await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_leader_takes_the_mark_back_when_nobody_waits_any_more() {
    let api = half_a_gang_is_stopped().await;
    for name in ["high0", "high1"] {
        let at_once = json!({"gracePeriodSeconds": 0});
        api.delete("pods", "default", name, &at_once).expect("a pod");
    }
    let second = Running::start(config(&api), preempting(elected("second")));
    until(&api, || !is_marked(&api, "g2") && !is_marked(&api, "g3")).await;
    assert_eq!(ending(&api), [""; 0]);
    second.stop().await;
}
