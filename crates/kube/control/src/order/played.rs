//! Orders played against a server that answers by a rule.

use bytes::Bytes;
use dovetail_cluster::world::PodKey;
use dovetail_model::PreemptReason;
use serde_json::{Value, json};

use super::{EvictionCause, EvictionDecision, OrderEnd, Orders, PodOrder};
use crate::request::{ApiRequest, ApiResponse, Method, Now};

fn key(name: &str) -> PodKey {
    PodKey { namespace: "n".into(), name: name.into(), uid: name.into() }
}

fn evictions(pods: &[&str]) -> Vec<PodOrder> {
    evictions_for(PreemptReason::Priority, pods)
}

fn evictions_for(reason: PreemptReason, pods: &[&str]) -> Vec<PodOrder> {
    let all = pods.iter().map(|pod| key(pod)).collect();
    let decision = EvictionDecision::new(1, all, Vec::new());
    let evict = |pod: &&str| PodOrder::Evict {
        pod: key(pod),
        why: EvictionCause::Preempted(reason),
        decision: decision.clone(),
    };
    pods.iter().map(evict).collect()
}

/// What a request does, to which pod.
fn shown(request: &ApiRequest) -> String {
    let path = request.path.strip_prefix("/api/v1/namespaces/n/pods/").expect("a pod");
    let pod = path.split('/').next().expect("a name");
    let body: Value = serde_json::from_slice(&request.body).expect("JSON");
    let target = &body["status"]["conditions"][0];
    let what = match request.method {
        Method::Delete if body["dryRun"].is_array() => "ask to delete",
        Method::Delete => "delete",
        Method::Post if body["deleteOptions"]["dryRun"].is_array() => "ask to evict",
        Method::Post => "evict",
        _ if target["status"] == "True" => "mark",
        _ => return format!("{pod} {}", target["reason"].as_str().expect("a reason")),
    };
    format!("{what} {pod}")
}

/// Gives orders and answers each request at once; what was sent, and how each order ended.
/// `call_off` says before which request the decision is called off.
fn play(
    given: Vec<PodOrder>,
    code: impl Fn(&str) -> u16,
    call_off: Option<&str>,
) -> (Vec<String>, Vec<(String, OrderEnd)>) {
    let mut orders = Orders::new("dovetail");
    given.into_iter().for_each(|order| orders.give(order, 0));
    let (mut sent, mut now) = (Vec::new(), Now::default());
    while let Some(due_ms) = orders.due_ms() {
        now.own_ms = due_ms.max(now.own_ms);
        let (number, request) = orders.next(now).expect("a request that is due");
        let what = shown(&request);
        if call_off == Some(what.as_str()) {
            orders.call_off(1, now.own_ms);
        }
        let body = json!({"message": "a policy"}).to_string();
        let answered = Some(Ok((code(&what), None, Bytes::from(body))));
        let answer = ApiResponse { number: 0, answered, took_ms: 0, over_ms: 0 };
        sent.push(what);
        orders.answered(number, &answer, now.own_ms);
    }
    let name = |order: &PodOrder| order.evicted().map(|pod| pod.name.to_string());
    let reports = orders.reports().into_iter();
    let ends = reports.map(|report| (name(&report.order).unwrap_or_default(), report.end));
    (sent, ends.collect())
}

fn refused() -> OrderEnd {
    OrderEnd::Refused { code: 422, message: "a policy".to_owned() }
}

#[test]
fn pods_that_are_evicted_together_are_all_asked_about_then_all_marked_then_deleted() {
    let (sent, ends) = play(evictions(&["a", "b"]), |_| 200, None);
    assert_eq!(sent[..2], ["ask to delete a", "ask to delete b"]);
    assert_eq!(sent[2..], ["mark a", "mark b", "delete a", "delete b"]);
    let done = |pod: &str| (pod.to_owned(), OrderEnd::Done);
    assert_eq!(ends, [done("a"), done("b")]);
}

#[test]
fn where_the_server_would_refuse_one_of_several_none_is_touched() {
    let code = |what: &str| if what == "ask to delete b" { 422 } else { 200 };
    let (sent, ends) = play(evictions(&["a", "b"]), code, None);
    assert_eq!(sent.len(), 3, "{sent:?}");
    assert_eq!(sent[2], "b NotStopped", "the next leader reads that");
    let called_off = ("a".to_owned(), OrderEnd::CalledOff);
    assert_eq!(ends, [("b".to_owned(), refused()), called_off]);
}

#[test]
fn a_mark_that_is_refused_takes_back_those_that_are_set() {
    let code = |what: &str| if what == "mark b" { 422 } else { 200 };
    let (sent, ends) = play(evictions(&["a", "b"]), code, None);
    assert!(!sent.iter().any(|what| what.starts_with("delete")), "{sent:?}");
    assert!(sent.contains(&"a StopCalledOff".to_owned()), "{sent:?}");
    assert_eq!(ends.len(), 2);
}

#[test]
fn what_has_not_begun_of_a_decision_that_is_called_off_does_not_begin() {
    let (sent, ends) = play(evictions(&["a", "b", "c"]), |_| 200, Some("delete a"));
    let rest: Vec<&String> = sent.iter().filter(|what| !what.starts_with("ask")).collect();
    let expected = ["mark a", "mark b", "mark c", "delete a", "b StopCalledOff", "c StopCalledOff"];
    assert_eq!(rest, expected);
    let of = |pod: &str, end| (pod.to_owned(), end);
    let called_off = |pod| of(pod, OrderEnd::CalledOff);
    assert_eq!(ends, [of("a", OrderEnd::Done), called_off("b"), called_off("c")]);
}

#[test]
fn one_pod_alone_is_asked_about_only_after_an_eviction_without_effect() {
    let (sent, _) = play(evictions(&["a"]), |_| 200, None);
    assert_eq!(sent, ["mark a", "delete a"]);
    let mut again = evictions(&["a"]);
    let other = EvictionDecision::new(2, vec![key("z")], Vec::new());
    let why = EvictionCause::Preempted(PreemptReason::Priority);
    again.push(PodOrder::Evict { pod: key("z"), why, decision: other });
    let code = |what: &str| if what == "delete a" { 422 } else { 200 };
    let (sent, ends) = play(again, code, None);
    // The second began beside the first, before anything was refused.
    assert!(sent.contains(&"delete z".to_owned()), "{sent:?}");
    assert!(sent.contains(&"a NotStopped".to_owned()), "{sent:?}");
    assert!(ends.contains(&("a".to_owned(), refused())));
}

#[test]
fn what_a_queue_gives_back_is_evicted_through_the_api_and_says_why_afterwards() {
    let (sent, ends) = play(evictions_for(PreemptReason::Reclaim, &["a", "b"]), |_| 201, None);
    assert_eq!(sent[..2], ["ask to evict a", "ask to evict b"]);
    // The server replaces the mark by its own words.
    assert_eq!(sent[2..], ["mark a", "mark b", "evict a", "mark a", "evict b", "mark b"]);
    assert!(ends.iter().all(|(_, end)| *end == OrderEnd::Done), "{ends:?}");
}

#[test]
fn where_a_disruption_budget_keeps_one_of_several_none_is_evicted() {
    let code = |what: &str| if what == "ask to evict b" { 429 } else { 201 };
    let (sent, ends) = play(evictions_for(PreemptReason::Reclaim, &["a", "b"]), code, None);
    assert_eq!(sent.iter().filter(|what| *what == "ask to evict b").count(), 6, "{sent:?}");
    assert!(!sent.iter().any(|what| what.starts_with("evict")), "{sent:?}");
    let refused = OrderEnd::Refused { code: 429, message: "a policy".to_owned() };
    assert_eq!(ends, [("b".to_owned(), refused), ("a".to_owned(), OrderEnd::CalledOff)]);
}

#[test]
fn a_pod_that_is_gone_before_it_says_why_is_evicted_all_the_same() {
    let marks = std::cell::Cell::new(0);
    let code = |what: &str| match what {
        "mark a" => {
            marks.set(marks.get() + 1);
            if marks.get() == 2 { 404 } else { 200 }
        }
        _ => 201,
    };
    let (_, ends) = play(evictions_for(PreemptReason::Order, &["a"]), code, None);
    assert_eq!((marks.get(), ends), (2, vec![("a".to_owned(), OrderEnd::Done)]));
}
