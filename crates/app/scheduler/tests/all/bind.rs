//! Binds against a server that fails in every way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dovetail_apiserver::client::Clients;
use dovetail_control::bind::{Bind, Cause, DECISION, EPOCH, Outcome, Report};
use dovetail_scheduler::bind::{Binder, BinderSettings};
use dovetail_scheduler::lead::{Alone, Clock};
use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::{Fault, FaultRule, On, Verb};
use proptest::prelude::*;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

const PATIENCE: Duration = Duration::from_secs(60);

fn api_with_pods(count: usize) -> FakeApi {
    let api = FakeApi::start().expect("a free port");
    for at in 0..count {
        let pod = json!({"metadata": {"name": format!("p{at}")}, "spec": {"containers": [{"name": "c"}]}});
        api.create("pods", "default", &pod).expect("a new pod");
    }
    api
}

fn start(
    api: &FakeApi,
    write_timeout_ms: u64,
    settings: BinderSettings,
) -> (Binder, UnboundedReceiver<Report>) {
    let config = kube::Config::new(api.url().parse().expect("an address"));
    let clients = Clients::new(&config).expect("clients without TLS");
    let leadership = Arc::new(Alone::new(Clock::machine(), write_timeout_ms));
    Binder::start(clients.binds, clients.rest, leadership, settings)
}

fn decided(api: &FakeApi, decision: u64, pod: usize, node: &str) -> Bind {
    let pod = format!("p{pod}");
    let object = api.get("pods", "default", &pod).expect("the pod");
    Bind {
        decision,
        namespace: "default".to_owned(),
        pod,
        uid: object["metadata"]["uid"].as_str().expect("a UID").to_owned(),
        node: node.to_owned(),
        epoch: 0,
        tag: format!("d{decision}"),
    }
}

async fn next(reports: &mut UnboundedReceiver<Report>) -> Report {
    let report = tokio::time::timeout(PATIENCE, reports.recv()).await;
    report.expect("a report in time").expect("a running binder")
}

async fn outcome_under(fault: Option<Fault>) -> (Outcome, usize) {
    let api = api_with_pods(1);
    let rules = fault.map(|fault| FaultRule::first(On::binds(), 1, fault));
    api.set_faults(1, rules.into_iter().collect());
    let (binder, mut reports) = start(&api, 300, BinderSettings::default());
    binder.submit(decided(&api, 1, 0, "n")).expect("room in the queue");
    let report = next(&mut reports).await;
    binder.stop().await;
    (report.outcome, api.bound().len())
}

#[tokio::test]
async fn each_way_to_fail_has_its_outcome() {
    assert_eq!(outcome_under(None).await, (Outcome::Bound, 1));
    assert_eq!(outcome_under(Some(Fault::ReplyLost)).await, (Outcome::Bound, 1));
    assert_eq!(outcome_under(Some(Fault::HoldReply)).await, (Outcome::Bound, 1));
    let not_bound = |cause| (Outcome::NotBound(cause), 0);
    assert_eq!(outcome_under(Some(Fault::Conflict)).await, not_bound(Cause::Conflict));
    let busy = Cause::Busy { retry_after_ms: Some(2_000) };
    assert_eq!(
        outcome_under(Some(Fault::TooManyRequests { retry_after_s: 2 })).await,
        not_bound(busy)
    );
    let (outcome, bound) = outcome_under(Some(Fault::ServerError { code: 503 })).await;
    assert!(
        matches!(outcome, Outcome::NotBound(Cause::ServerFailed { code: 503, .. })) && bound == 0
    );
    let (outcome, bound) = outcome_under(Some(Fault::Cut)).await;
    assert!(matches!(outcome, Outcome::NotBound(Cause::NoAnswer { .. })) && bound == 0);
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
    let (binder, mut reports) = start(&api, 4_000, BinderSettings::default());
    let mut outcomes = BTreeMap::new();
    for bind in binds {
        // A second decision about the same pod: the first to arrive wins.
        let rival = Bind { decision: bind.decision + 10, tag: "rival".to_owned(), ..bind.clone() };
        for one in [bind, rival] {
            binder.submit(one).expect("room in the queue");
            let report = next(&mut reports).await;
            outcomes.insert(report.bind.decision, report.outcome);
        }
    }
    let other = Outcome::BoundByOther { node: "n".to_owned() };
    let expected = [Outcome::Gone, Outcome::Gone, Outcome::Terminating, Outcome::Bound];
    assert_eq!(outcomes.values().take(4).cloned().collect::<Vec<_>>(), expected);
    assert_eq!(outcomes[&13], other);
    assert_eq!(api.bound().len(), 1);
}

#[tokio::test]
async fn requests_in_flight_are_bounded_and_stopping_settles_every_decision() {
    let api = api_with_pods(20);
    api.set_faults(1, vec![FaultRule::some(On::binds(), 1_000_000, Fault::HoldReply)]);
    let settings = BinderSettings { in_flight: 5, in_doubt: 100, queue: 100 };
    let (binder, mut reports) = start(&api, 60_000, settings);
    for at in 0..20 {
        binder.submit(decided(&api, at as u64, at, "n")).expect("room in the queue");
    }
    api.held(5).await;
    assert_eq!(binder.in_flight(), 5);
    let stopping = binder.stop();
    let releasing = async {
        api.held(5).await;
        api.release();
    };
    tokio::join!(stopping, releasing);
    let mut outcomes = Vec::new();
    while let Some(report) = reports.recv().await {
        outcomes.push((report.outcome, report.bind.decision));
    }
    assert_eq!(outcomes.len(), 20);
    let bound = outcomes.iter().filter(|(outcome, _)| *outcome == Outcome::Bound).count();
    assert_eq!((bound, api.bound().len()), (5, 5), "{outcomes:?}");
}

#[tokio::test]
async fn a_decision_of_another_epoch_is_not_sent() {
    let api = api_with_pods(1);
    let (binder, mut reports) = start(&api, 4_000, BinderSettings::default());
    binder.submit(Bind { epoch: 3, ..decided(&api, 1, 0, "n") }).expect("room in the queue");
    let report = next(&mut reports).await;
    assert_eq!(report.outcome, Outcome::NotBound(Cause::NotLeading));
    assert!(api.bound().is_empty());
}

fn faults() -> impl Strategy<Value = Vec<FaultRule>> {
    let fault = prop_oneof![
        Just(Fault::Conflict),
        Just(Fault::TooManyRequests { retry_after_s: 0 }),
        Just(Fault::ServerError { code: 500 }),
        Just(Fault::ServerError { code: 504 }),
        Just(Fault::Cut),
        Just(Fault::ReplyLost),
        (1_u64..400).prop_map(|delay_ms| Fault::Slow { delay_ms }),
    ];
    let on_binds = (0_u32..300_000, fault.clone())
        .prop_map(|(per_million, fault)| FaultRule::some(On::binds(), per_million, fault));
    let on_looks = (0_u32..500_000, fault).prop_map(|(per_million, fault)| {
        FaultRule::some(On::new(&[Verb::Get], "pods"), per_million, fault)
    });
    proptest::collection::vec(prop_oneof![3 => on_binds, 1 => on_looks], 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

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
            let settings = BinderSettings { in_flight: 8, in_doubt: 8, queue: 100 };
            let (binder, mut reports) = start(&api, 200, settings);
            for (decision, (pod, node)) in choices.iter().enumerate() {
                let bind = decided(&api, decision as u64, *pod, &format!("n{node}"));
                binder.submit(bind).expect("room in the queue");
            }
            let mut all = Vec::new();
            for _ in 0..choices.len() {
                all.push(next(&mut reports).await);
            }
            binder.stop().await;
            assert!(reports.recv().await.is_none(), "one report per decision");
            all
        });
        judge(&api, &reports, choices.len())?;
    }
}

/// Holds every report against the pods as they are.
fn judge(api: &FakeApi, reports: &[Report], decisions: usize) -> Result<(), TestCaseError> {
    let mut pods_bound = BTreeMap::new();
    for bound in api.bound() {
        prop_assert_eq!(pods_bound.insert(bound.uid, bound.node), None, "a pod bound twice");
    }
    let mut told: Vec<u64> = reports.iter().map(|report| report.bind.decision).collect();
    told.sort_unstable();
    prop_assert_eq!(told, (0..decisions as u64).collect::<Vec<_>>());
    for Report { bind, outcome, .. } in reports {
        let pod = api.get("pods", "default", &bind.pod).expect("no pod was deleted");
        let annotations = &pod["metadata"]["annotations"];
        let ours = annotations[DECISION] == json!(bind.tag) && annotations[EPOCH] == "0";
        prop_assert_eq!(ours, *outcome == Outcome::Bound, "{:?}: {:?}", bind, outcome);
        if ours {
            prop_assert_eq!(pod["spec"]["nodeName"].as_str(), Some(bind.node.as_str()));
        }
        if let Outcome::BoundByOther { node } = outcome {
            prop_assert_eq!(pod["spec"]["nodeName"].as_str(), Some(node.as_str()));
        }
    }
    Ok(())
}
