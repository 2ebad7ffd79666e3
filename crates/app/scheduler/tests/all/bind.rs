//! Binds against a server that fails in every way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dovetail_apiserver::client::Clients;
use dovetail_cluster::world::PodKey;
use dovetail_control::bind::{Bind, BindOutcome, BindReport, Cause, DECISION, EPOCH};
use dovetail_control::writes::{Ended, Writes};
use dovetail_scheduler::Wires;
use dovetail_scheduler::lead::{Alone, Clock, Leadership};
use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::{ApiFault, FaultRule, On, Verb};
use proptest::prelude::*;
use serde_json::json;

use crate::schedule::fault_runs;
use crate::sender::{Given, Sender, now, source};

const PATIENCE: Duration = Duration::from_secs(60);

fn api_with_pods(count: usize) -> FakeApi {
    let api = FakeApi::start().expect("a free port");
    for at in 0..count {
        let pod = json!({"metadata": {"name": format!("p{at}")}, "spec": {"containers": [{"name": "c"}]}});
        api.create("pods", "default", &pod).expect("a new pod");
    }
    api
}

fn clients(api: &FakeApi) -> Clients {
    let config = kube::Config::new(api.url().parse().expect("an address"));
    Clients::new(&config).expect("clients without TLS")
}

fn start(api: &FakeApi, write_timeout_ms: u64, epoch: u64) -> Sender {
    let leadership = Arc::new(Alone::new(Clock, write_timeout_ms));
    Sender::start(clients(api), leadership, epoch, 8)
}

fn decided(api: &FakeApi, decision: u64, pod: usize, node: &str) -> Bind {
    let pod = format!("p{pod}");
    let object = api.get("pods", "default", &pod).expect("the pod");
    Bind {
        decision,
        pod: PodKey {
            namespace: "default".into(),
            name: pod.into(),
            uid: object["metadata"]["uid"].as_str().expect("a UID").into(),
        },
        node: node.into(),
        epoch: 0,
        tag: format!("d{decision}"),
    }
}

async fn next(sender: &mut Sender) -> BindReport {
    tokio::time::timeout(PATIENCE, sender.report()).await.expect("a report in time")
}

async fn outcome_under(fault: Option<ApiFault>) -> (BindOutcome, usize) {
    let api = api_with_pods(1);
    let rules = fault.map(|fault| FaultRule::first(On::binds(), 1, fault));
    api.set_faults(1, rules.into_iter().collect());
    let mut sender = start(&api, 300, 0);
    sender.give(Given::Bind(decided(&api, 1, 0, "n")));
    let report = next(&mut sender).await;
    (report.outcome, api.bound().len())
}

#[tokio::test]
async fn each_way_to_fail_has_its_outcome() {
    assert_eq!(outcome_under(None).await, (BindOutcome::Bound, 1));
    assert_eq!(outcome_under(Some(ApiFault::ReplyLost)).await, (BindOutcome::Bound, 1));
    assert_eq!(outcome_under(Some(ApiFault::HoldReply)).await, (BindOutcome::Bound, 1));
    let not_bound = |cause| (BindOutcome::NotBound(cause), 0);
    assert_eq!(outcome_under(Some(ApiFault::Conflict)).await, not_bound(Cause::Conflict));
    let busy = Cause::Busy { retry_after_ms: Some(2_000) };
    assert_eq!(
        outcome_under(Some(ApiFault::TooManyRequests { retry_after_s: 2 })).await,
        not_bound(busy)
    );
    let (outcome, bound) = outcome_under(Some(ApiFault::ServerError { code: 503 })).await;
    assert!(
        matches!(outcome, BindOutcome::NotBound(Cause::ServerFailed { code: 503, .. }))
            && bound == 0
    );
    let (outcome, bound) = outcome_under(Some(ApiFault::Cut)).await;
    assert!(matches!(outcome, BindOutcome::NotBound(Cause::NoAnswer { .. })) && bound == 0);
}

#[tokio::test]
async fn a_pod_that_is_gone_gated_or_taken_is_told_apart() {
    let api = api_with_pods(4);
    let binds: Vec<Bind> = (0..4).map(|at| decided(&api, at as u64, at, "n")).collect();
    api.delete("pods", "default", "p0", &json!(null)).expect("an unbound pod goes at once");
    api.delete("pods", "default", "p1", &json!(null)).expect("an unbound pod goes at once");
    let pod = json!({"metadata": {"name": "p1"}, "spec": {"containers": [{"name": "c"}]}});
    api.create("pods", "default", &pod).expect("another pod of the same name");
    let finalizer = json!({"metadata": {"finalizers": ["example.com/keep"]}});
    api.merge("pods", "default", "p2", "", &finalizer).expect("a finalizer");
    api.delete("pods", "default", "p2", &json!(null)).expect("a deletion that waits");
    let mut sender = start(&api, 4_000, 0);
    let mut outcomes = BTreeMap::new();
    for bind in binds {
        // A second decision about the same pod: the first to arrive wins.
        let rival = Bind { decision: bind.decision + 10, tag: "rival".to_owned(), ..bind.clone() };
        for one in [bind, rival] {
            sender.give(Given::Bind(one));
            let report = next(&mut sender).await;
            outcomes.insert(report.bind.decision, report.outcome);
        }
    }
    let other = BindOutcome::BoundByOther { node: "n".to_owned() };
    let expected =
        [BindOutcome::Gone, BindOutcome::Gone, BindOutcome::Terminating, BindOutcome::Bound];
    assert_eq!(outcomes.values().take(4).cloned().collect::<Vec<_>>(), expected);
    assert_eq!(outcomes[&13], other);
    assert_eq!(api.bound().len(), 1);
}

#[tokio::test]
async fn requests_in_flight_are_bounded_and_stopping_settles_every_decision() {
    let api = api_with_pods(20);
    api.set_faults(1, vec![FaultRule::some(On::binds(), 1_000_000, ApiFault::HoldReply)]);
    let leadership = Arc::new(Alone::new(Clock, 60_000));
    let clock = *leadership.clock();
    let (mut wires, mut writes) =
        (Wires::new(clients(&api), leadership, 0, 5), Writes::new(source()));
    let room = wires.credits().binds;
    for at in 0..room {
        writes.bind(Arc::new(decided(&api, at as u64, at, "n")));
    }
    let requests = writes.requests(wires.credits(), now(&clock));
    requests.into_iter().for_each(|request| wires.send(request));
    assert_eq!((room, wires.credits().binds), (10, 0));
    api.held(5).await;
    assert_eq!(wires.binding(), 5);
    wires.stop();
    writes.stop();
    api.release();
    while !writes.is_idle() {
        let answer = wires.next().await;
        writes.answered(&answer, now(&clock));
    }
    let outcomes = writes.ended().into_iter().map(|ended| match ended {
        Ended::Bind(report) => report.outcome,
        other => panic!("{other:?}"),
    });
    let outcomes: Vec<BindOutcome> = outcomes.collect();
    let of = |wanted: &BindOutcome| outcomes.iter().filter(|outcome| *outcome == wanted).count();
    let stopped = BindOutcome::NotBound(Cause::Stopped);
    assert_eq!(
        (of(&BindOutcome::Bound), of(&stopped), api.bound().len()),
        (5, 5, 5),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn in_another_epoch_nothing_is_sent() {
    let api = api_with_pods(1);
    let mut sender = start(&api, 4_000, 3);
    sender.give(Given::Bind(Bind { epoch: 3, ..decided(&api, 1, 0, "n") }));
    let report = next(&mut sender).await;
    assert_eq!(report.outcome, BindOutcome::NotBound(Cause::NotLeading));
    assert!(api.bound().is_empty());
}

fn faults() -> impl Strategy<Value = Vec<FaultRule>> {
    let fault = prop_oneof![
        Just(ApiFault::Conflict),
        Just(ApiFault::TooManyRequests { retry_after_s: 0 }),
        Just(ApiFault::ServerError { code: 500 }),
        Just(ApiFault::ServerError { code: 504 }),
        Just(ApiFault::Cut),
        Just(ApiFault::ReplyLost),
        (1_u64..400).prop_map(|delay_ms| ApiFault::Slow { delay_ms }),
    ];
    let on_binds = (0_u32..300_000, fault.clone())
        .prop_map(|(per_million, fault)| FaultRule::some(On::binds(), per_million, fault));
    let on_looks = (0_u32..500_000, fault).prop_map(|(per_million, fault)| {
        FaultRule::some(On::new(&[Verb::Get], "pods"), per_million, fault)
    });
    proptest::collection::vec(prop_oneof![3 => on_binds, 1 => on_looks], 0..5)
}

proptest! {
    #![proptest_config(fault_runs(8))]

    #[test]
    fn no_pod_is_bound_twice_and_every_outcome_is_true(
        seed in any::<u64>(),
        rules in faults(),
        choices in proptest::collection::vec((0_usize..30, 0_usize..4), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let api = api_with_pods(30);
        api.set_faults(seed, rules);
        let reports = runtime.block_on(async {
            let mut sender = start(&api, 200, 0);
            for (decision, (pod, node)) in choices.iter().enumerate() {
                let bind = decided(&api, decision as u64, *pod, &format!("n{node}"));
                sender.give(Given::Bind(bind));
            }
            let mut all = Vec::new();
            for _ in 0..choices.len() {
                all.push(next(&mut sender).await);
            }
            assert_eq!(sender.finish().await, [], "one report per decision");
            all
        });
        judge(&api, &reports, choices.len())?;
    }
}

/// Holds every report against the pods as they are.
fn judge(api: &FakeApi, reports: &[BindReport], decisions: usize) -> Result<(), TestCaseError> {
    let mut pods_bound = BTreeMap::new();
    for bound in api.bound() {
        prop_assert_eq!(pods_bound.insert(bound.uid, bound.node), None, "a pod bound twice");
    }
    let mut told: Vec<u64> = reports.iter().map(|report| report.bind.decision).collect();
    told.sort_unstable();
    prop_assert_eq!(told, (0..decisions as u64).collect::<Vec<_>>());
    for BindReport { bind, outcome, .. } in reports {
        let pod = api.get("pods", "default", &bind.pod.name).expect("no pod was deleted");
        let annotations = &pod["metadata"]["annotations"];
        let ours = annotations[DECISION] == json!(bind.tag) && annotations[EPOCH] == "0";
        prop_assert_eq!(ours, *outcome == BindOutcome::Bound, "{:?}: {:?}", bind, outcome);
        if ours {
            prop_assert_eq!(pod["spec"]["nodeName"].as_str(), Some(&*bind.node));
        }
        if let BindOutcome::BoundByOther { node } = outcome {
            prop_assert_eq!(pod["spec"]["nodeName"].as_str(), Some(node.as_str()));
        }
    }
    Ok(())
}
