//! Pods of higher priority stop others: on a server that fails, across leaders, and on a real one
//! with its controllers and kubelets.

use std::collections::BTreeSet;
use std::time::Duration;

use dovetail_cluster::world;
use dovetail_plan::PreemptionConfig;
use dovetail_plan::engine::EngineConfig;
use dovetail_recording::{Texts, replay};
use dovetail_scheduler::Options;
use dovetail_testkit::fake_api::{ApiFault, FaultRule, On, Verb};
use dovetail_testkit::{ControlPlane, FakeApi, KubeletOptions, Kubelets, cluster};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::schedule::{
    PATIENCE, Running, assert_within, config, create_nodes, elected, fake_nodes, fault_runs, held,
    judge, pause, pod, until,
};

pub(crate) fn preempting(options: Options) -> Options {
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    Options { engine: EngineConfig { preemption, ..options.engine.clone() }, ..options }
}

fn of_priority(name: &str, gpus: u32, priority: i32) -> Value {
    let mut pod = pod(name, gpus);
    pod["spec"]["priority"] = json!(priority);
    pod
}

/// A pod of low priority that runs on a node because dovetail put it there.
fn bound(name: &str, gpus: u32, node: usize) -> Value {
    let mut pod = of_priority(name, gpus, 0);
    pod["spec"]["nodeName"] = json!(format!("n{node}"));
    pod["metadata"]["annotations"] = json!({"dovetail.dev/decision": "0-1"});
    pod["metadata"]["labels"] = json!({"app": name});
    pod
}

fn names(pods: &[Value], is_one: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let found = pods.iter().filter(|pod| is_one(pod));
    found.map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn ending(api: &FakeApi) -> BTreeSet<String> {
    names(&api.all("pods"), |pod| pod["metadata"]["deletionTimestamp"].is_string())
}

fn placed(api: &FakeApi) -> BTreeSet<String> {
    names(&api.all("pods"), |pod| pod["spec"]["nodeName"].is_string())
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(crate) fn condition<'p>(pod: &'p Value, kind: &str) -> Option<&'p Value> {
    let conditions = pod["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

/// What a kubelet does at the end of a pod's time.
fn let_go(api: &FakeApi) {
    for name in ending(api) {
        // Another watcher of the server may have seen it go.
        _ = api.delete("pods", "default", &name, &json!({"gracePeriodSeconds": 0}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_stops_one_of_lower_priority_and_nobody_else_gets_its_room() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 2);
    api.create("pods", "default", &bound("small", 1, 0)).expect("a new pod");
    api.create("pods", "default", &bound("other", 7, 0)).expect("a new pod");
    let mut large = bound("large", 8, 1);
    large["spec"]["terminationGracePeriodSeconds"] = json!(45);
    api.create("pods", "default", &large).expect("a new pod");
    api.create("pods", "default", &of_priority("high", 8, 1_000)).expect("a new pod");
    let scheduler = Running::start(config(&api), preempting(Options::default()));
    until(&api, || !ending(&api).is_empty()).await;
    assert_eq!(ending(&api), set(&["large"]), "one pod rather than two");
    let victim = api.get("pods", "default", "large").expect("a pod that ends");
    let target = condition(&victim, "DisruptionTarget").expect("a condition");
    assert_eq!(
        (&target["status"], &target["reason"]),
        (&json!("True"), &json!("PreemptionByScheduler"))
    );
    assert_eq!(victim["metadata"]["deletionGracePeriodSeconds"], 45, "its own time to stop");
    let high = api.get("pods", "default", "high").expect("a pod");
    assert_eq!(high["status"]["nominatedNodeName"], "n1");
    // The room is kept while the victim takes its time, and afterwards.
    api.create("pods", "default", &of_priority("thief", 8, -1)).expect("a new pod");
    let says = |name: &str, reason: &str| {
        let pod = api.get("pods", "default", name).expect("a pod");
        condition(&pod, "PodScheduled").is_some_and(|says| says["reason"] == reason)
    };
    until(&api, || says("high", "WaitingForReservation") && says("thief", "Unschedulable")).await;
    let_go(&api);
    until(&api, || placed(&api).contains("high")).await;
    assert_eq!(placed(&api), set(&["high", "other", "small"]));
    let text = scheduler.metrics.open_metrics();
    assert!(text.contains("scheduler_preemption_victims_count 1"), "{text}");
    judge(&api);
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budgets_are_respected_if_that_is_wanted() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 1);
    api.create("pods", "default", &bound("low", 8, 0)).expect("a new pod");
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1,
        "selector": {"matchLabels": {"app": "low"}}}, "status": {"disruptionsAllowed": 0}});
    api.create("poddisruptionbudgets", "default", &budget).expect("a new budget");
    let status = json!({"status": {"disruptionsAllowed": 0}});
    api.merge("poddisruptionbudgets", "default", "b", "status", &status).expect("a budget");
    api.create("pods", "default", &of_priority("high", 8, 1)).expect("a new pod");
    let mut options = preempting(Options::default());
    options.engine.preemption.respect_budgets = true;
    let scheduler = Running::start(config(&api), options);
    let waits = || {
        let pod = api.get("pods", "default", "high").expect("a pod");
        condition(&pod, "PodScheduled").is_some_and(|says| says["reason"] == "Unschedulable")
    };
    until(&api, waits).await;
    assert_eq!(ending(&api), set(&[]));
    let status = json!({"status": {"disruptionsAllowed": 1}});
    api.merge("poddisruptionbudgets", "default", "b", "status", &status).expect("a budget");
    until(&api, || ending(&api) == set(&["low"])).await;
    let_go(&api);
    until(&api, || placed(&api).contains("high")).await;
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_others_are_stopped_only_if_that_is_wanted() {
    for preempt_foreign in [false, true] {
        let api = FakeApi::start().expect("a free port");
        fake_nodes(&api, 2);
        for (node, name) in ["static", "foreign"].iter().enumerate() {
            let mut pod = bound(name, 8, node);
            pod["spec"]["schedulerName"] = json!("default-scheduler");
            if node == 0 {
                pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
            }
            api.create("pods", "default", &pod).expect("a new pod");
        }
        api.create("pods", "default", &of_priority("high", 8, 1)).expect("a new pod");
        let world = world::Settings { preempt_foreign, ..world::Settings::default() };
        let options = preempting(Options { world, ..Options::default() });
        let scheduler = Running::start(config(&api), options);
        let says = |reason: &str| {
            let pod = api.get("pods", "default", "high").expect("a pod");
            condition(&pod, "PodScheduled").is_some_and(|says| says["reason"] == reason)
        };
        let (expected, victims): (_, &[&str]) = match preempt_foreign {
            true => ("WaitingForReservation", &["foreign"]),
            false => ("Unschedulable", &[]),
        };
        until(&api, || says(expected) && ending(&api) == set(victims)).await;
        scheduler.stop().await;
    }
}

/// The first leader names the node and marks the victim, and is gone before it can delete it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_leader_finishes_what_was_begun() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 2);
    api.create("pods", "default", &bound("one", 8, 0)).expect("a new pod");
    api.create("pods", "default", &bound("two", 8, 1)).expect("a new pod");
    let unavailable = ApiFault::ServerError { code: 503 };
    let deletes = On::new(&[Verb::Delete], "pods");
    api.set_faults(1, vec![FaultRule::some(deletes, 1_000_000, unavailable)]);
    api.create("pods", "default", &of_priority("high", 8, 1)).expect("a new pod");
    let first = Running::start(config(&api), preempting(elected("first")));
    let marked = || names(&api.all("pods"), |pod| condition(pod, "DisruptionTarget").is_some());
    until(&api, || marked().len() == 1).await;
    first.stop().await;
    let victim = marked();
    assert_eq!(ending(&api), set(&[]));
    api.set_faults(1, Vec::new());
    let second = Running::start(config(&api), preempting(elected("second")));
    until(&api, || !ending(&api).is_empty()).await;
    assert_eq!(ending(&api), victim);
    let_go(&api);
    until(&api, || placed(&api).contains("high")).await;
    assert_eq!((marked(), api.all("pods").len()), (set(&[]), 2), "nobody else was stopped");
    judge(&api);
    second.stop().await;
}

fn write_faults() -> impl Strategy<Value = Vec<FaultRule>> {
    let fault = prop_oneof![
        Just(ApiFault::TooManyRequests { retry_after_s: 0 }),
        Just(ApiFault::ServerError { code: 500 }),
        Just(ApiFault::Cut),
        Just(ApiFault::ReplyLost),
        (1_u64..100).prop_map(|delay_ms| ApiFault::Slow { delay_ms }),
    ];
    let rule = (0..3_usize, 0_u32..150_000, fault).prop_map(|(kind, per_million, fault)| {
        let on = match kind {
            0 => On::binds(),
            1 => On::new(&[Verb::Delete], "pods"),
            _ => On { subresource: Some("status".to_owned()), ..On::new(&[Verb::Patch], "pods") },
        };
        FaultRule::some(on, per_million, fault)
    });
    proptest::collection::vec(rule, 0..4)
}

proptest! {
    #![proptest_config(fault_runs(4))]

    /// Eight full nodes, and three pods of a higher priority: exactly three of those that run are
    /// stopped.
    #[test]
    fn whatever_goes_wrong_as_many_are_stopped_as_must(seed in any::<u64>(), rules in write_faults()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let api = FakeApi::start()?;
        fake_nodes(&api, 8);
        for node in 0..8 {
            api.create("pods", "default", &bound(&format!("low-{node}"), 8, node))?;
        }
        for at in 0..3 {
            api.create("pods", "default", &of_priority(&format!("high-{at}"), 8, 10))?;
        }
        api.set_faults(seed, rules);
        runtime.block_on(async {
            let scheduler = Running::start(config(&api), preempting(Options::default()));
            let enough = || {
                let_go(&api);
                placed(&api).iter().filter(|name| name.starts_with("high")).count() == 3
            };
            until(&api, enough).await;
            scheduler.stop().await;
        });
        judge(&api);
        prop_assert_eq!(api.all("pods").len(), 8);
    }
}

pub(crate) async fn create_classes(client: &Client) {
    let classes = Api::<PriorityClass>::all(client.clone());
    for (name, value) in [("low", 1), ("high", 1_000)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        let class = serde_json::from_value(class).expect("a class");
        classes.create(&PostParams::default(), &class).await.expect("a new class");
    }
}

fn template(gpus: u32, class: &str) -> Value {
    let mut spec = pod("x", gpus)["spec"].clone();
    spec["priorityClassName"] = json!(class);
    spec["restartPolicy"] = json!("Never");
    spec["terminationGracePeriodSeconds"] = json!(20);
    json!({"spec": spec})
}

/// A pod, and a gang of two, of high priority.
async fn create_high(pods: &Api<Pod>) {
    for (name, gang) in [("single", None), ("g0", Some("gang")), ("g1", Some("gang"))] {
        let mut pod = json!({"metadata": {"name": name}, "spec": template(8, "high")["spec"]});
        if let Some(gang) = gang {
            pod["metadata"]["labels"] = json!({"dovetail.dev/gang": gang});
            pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": "2"});
        }
        let pod = serde_json::from_value(pod).expect("a pod");
        pods.create(&PostParams::default(), &pod).await.expect("a new pod");
    }
}

/// All pods once those of high priority run and three of low priority wait.
async fn all_when_high_run(pods: &Api<Pod>) -> Vec<Pod> {
    loop {
        let all = pods.list(&ListParams::default()).await.expect("all pods").items;
        let runs = |name: &str| {
            let mut those = all.iter().filter(|pod| pod.metadata.name.as_deref() == Some(name));
            those.any(|pod| pod.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Running"))
        };
        let low = |pod: &&Pod| {
            pod.spec.as_ref().is_some_and(|s| s.priority_class_name.as_deref() == Some("low"))
        };
        let waiting = all.iter().filter(low);
        let waiting =
            waiting.filter(|pod| pod.spec.as_ref().is_some_and(|s| s.node_name.is_none()));
        if ["single", "g0", "g1"].into_iter().all(runs) && waiting.count() == 3 {
            return all;
        }
        pause().await;
    }
}

/// A Job of low priority fills the cluster; a pod, then a gang of two, take the room they need. The
/// Job counts no failure and makes its pods anew, which wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_does_not_count_it_as_a_failure() {
    let options = cluster::Options { controller_manager: true, ..cluster::Options::default() };
    let control_plane = ControlPlane::start(options).expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), 4).await;
    create_classes(&client).await;
    let terminate_after = Duration::from_millis(300);
    let options = KubeletOptions { terminate_after, ..KubeletOptions::default() };
    let kubelets = Kubelets::start(client.clone(), options);
    let config = control_plane.config().await.expect("a kubeconfig");
    let recorded = Texts::default();
    let options = Options { recording: Some(recorded.recording()), ..elected("one") };
    let scheduler = Running::start(config, preempting(options));
    let jobs = Api::<Job>::default_namespaced(client.clone());
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let ignore = json!({"rules": [{"action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]});
    let job = json!({"metadata": {"name": "low"}, "spec": {"parallelism": 4, "completions": 4,
        "backoffLimit": 0, "podFailurePolicy": ignore, "podReplacementPolicy": "Failed",
        "template": template(8, "low")}});
    let job = serde_json::from_value(job).expect("a job");
    jobs.create(&PostParams::default(), &job).await.expect("a new job");
    kubelets.wait_until(PATIENCE, |counts| counts.running == 4).await.expect("pods that run");

    create_high(&pods).await;
    let all_run = all_when_high_run(&pods);
    let all = tokio::time::timeout(PATIENCE, all_run).await.expect("a gang and a pod that run");
    assert_within(
        held(
            &all.into_iter()
                .filter(|pod| {
                    let status = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                    status == Some("Running")
                })
                .collect::<Vec<_>>(),
        )
        .map(|(node, _)| (node, 8)),
    );
    let counted = async {
        loop {
            let job = jobs.get("low").await.expect("the job").status.expect("a status");
            assert_eq!(job.failed.unwrap_or(0), 0, "{job:?}");
            if job.active == Some(4) {
                return;
            }
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("four pods that the Job counts on");
    let events = Api::<Event>::default_namespaced(client);
    let told = async {
        let preempted = ListParams::default().fields("reason=Preempted");
        while events.list(&preempted).await.expect("events").items.len() < 3 {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.expect("three events");
    let text = scheduler.metrics.open_metrics();
    assert!(text.contains("scheduler_preemption_victims_sum 3"), "{text}");
    scheduler.stop().await;
    assert_replays(&recorded);
}

/// What was recorded of one leadership, step by step, leads to the same decisions and requests.
fn assert_replays(recorded: &Texts) {
    let texts = recorded.read();
    let [text] = &*texts else { panic!("{} leaderships", texts.len()) };
    let report = replay("recording", text.as_slice()).expect("a recording");
    assert_eq!((report.divergence, report.cut_off_after_line), (None, None));
    assert!(report.actions > 10 && report.steps > 10);
    let other = String::from_utf8_lossy(text).replacen("\"node\":\"n", "\"node\":\"m", 1);
    let report = replay("recording", other.as_bytes()).expect("a recording");
    assert!(report.divergence.is_some(), "another node was recorded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_names_the_victims_and_touches_nobody() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 1);
    api.create("pods", "default", &bound("low", 8, 0)).expect("a new pod");
    api.create("pods", "default", &of_priority("high", 8, 1)).expect("a new pod");
    let before = api.revision();
    let options = preempting(Options { dry_run: true, ..Options::default() });
    let scheduler = Running::start(config(&api), options);
    let decided = ["scheduler_preemption_victims_sum 1", "attempts_total{result=\"scheduled\"} 1"];
    let waiting = async {
        while !decided.iter().all(|line| scheduler.metrics.open_metrics().contains(line)) {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("decisions in time");
    scheduler.stop().await;
    assert_eq!(api.revision(), before);
}
