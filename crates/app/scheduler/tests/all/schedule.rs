//! The whole scheduler against servers that fail, and against a real one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dovetail_cases::cases;
use dovetail_control::lead::LeaseTimes;
use dovetail_scheduler::lead::LeaseName;
use dovetail_scheduler::{
    Election, ListPatience, Metrics, Options, ProcessPhase, RunError, Status, run,
};
use dovetail_testkit::fake_api::{ApiFault, FaultRule, On, Verb};
use dovetail_testkit::{ControlPlane, FakeApi, KubeletOptions, Kubelets, MachineShape};
use futures_util::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, PostParams};
use kube::{Api, Config};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Passes a moment between two looks: who asks without end takes the processor from those who work
/// on the answer.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// A scheduler on a task of its own.
pub(crate) struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), RunError>>,
    status: Arc<Status>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Running {
    pub(crate) fn start(config: Config, options: Options) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (status, metrics) = (Arc::<Status>::default(), Arc::<Metrics>::default());
        let shared = (status.clone(), metrics.clone());
        let task =
            tokio::spawn(async move { run(&config, options, shared.0, shared.1, stopped).await });
        Self { stop, task, status, metrics }
    }

    /// Ends in the middle of whatever it does.
    pub(crate) async fn crash(self) {
        self.task.abort();
        _ = self.task.await;
    }

    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        let ended = tokio::time::timeout(PATIENCE, self.task).await.expect("an end in time");
        ended.expect("no panic").expect("a scheduler that could start");
        assert_eq!(self.status.standing(), ProcessPhase::Stopping);
    }
}

pub(crate) fn elected(identity: &str) -> Options {
    let lease = LeaseName { namespace: "default".to_owned(), name: "dovetail".to_owned() };
    let terms = LeaseTimes {
        lease_ms: 3_000,
        renew_deadline_ms: 2_000,
        retry_ms: 400,
        write_timeout_ms: 900,
    };
    let election = Some(Election { lease, identity: identity.to_owned(), terms });
    Options { election, ..Options::default() }
}

pub(crate) fn pod(name: &str, gpus: u32) -> Value {
    json!({"metadata": {"name": name}, "spec": {"schedulerName": "dovetail", "containers": [
        {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": gpus.to_string()}}}]}})
}

/// Nodes with eight GPUs each on a real server.
pub(crate) async fn create_nodes(nodes: &Api<Node>, count: usize) {
    let shape = "8xH100".parse::<MachineShape>().expect("a shape");
    let creating = stream::iter(0..count).for_each_concurrent(16, |at| {
        let node = serde_json::from_value(shape.node(&format!("n{at}"))).expect("a node");
        async move { drop(nodes.create(&PostParams::default(), &node).await.expect("a new node")) }
    });
    creating.await;
}

/// Pods of one GPU on a real server.
pub(crate) async fn create_pods(pods: &Api<Pod>, numbers: std::ops::Range<usize>) {
    let creating = stream::iter(numbers).for_each_concurrent(16, |at| {
        let pod = serde_json::from_value(pod(&format!("p{at}"), 1)).expect("a pod");
        async move { drop(pods.create(&PostParams::default(), &pod).await.expect("a new pod")) }
    });
    creating.await;
}

/// The node of each pod, with the GPU it holds there.
pub(crate) fn held(pods: &[Pod]) -> impl Iterator<Item = (String, u32)> {
    pods.iter().map(|pod| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        (node.expect("a pod that runs has a node"), 1)
    })
}

/// Nodes with eight GPUs each, and pods that ask for one, two or four.
pub(crate) fn fake_cluster(nodes: usize, pods: usize) -> FakeApi {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, nodes);
    for at in 0..pods {
        api.create("pods", "default", &pod(&format!("p{at}"), 1 << (at % 3))).expect("a new pod");
    }
    api
}

/// Nodes with eight GPUs each.
pub(crate) fn fake_nodes(api: &FakeApi, nodes: usize) {
    let shape = "8xH100".parse::<MachineShape>().expect("a shape");
    for at in 0..nodes {
        let name = format!("n{at}");
        api.create("nodes", "", &shape.node(&name)).expect("a new node");
        let ready = json!({"spec": {"taints": null}});
        api.merge("nodes", "", &name, "", &ready).expect("a node that takes pods");
    }
}

pub(crate) fn config(api: &FakeApi) -> Config {
    Config::new(api.url().parse().expect("an address"))
}

pub(crate) async fn until(api: &FakeApi, enough: impl Fn() -> bool) {
    let mut written = api.written();
    let waiting = async {
        while !enough() {
            written.changed().await.expect("a server");
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        panic!("no progress in time: {:#?}", api.all("pods"));
    }
}

/// No pod was bound twice, and no node has more than its GPUs.
pub(crate) fn judge(api: &FakeApi) {
    let mut uids = BTreeMap::new();
    for bound in api.bound() {
        assert_eq!(uids.insert(bound.uid.clone(), bound.node.clone()), None, "{bound:?} again");
    }
    assert_within(bound_gpus(&api.all("pods")));
}

/// The node of each pod that has one, with the GPUs it holds there.
fn bound_gpus(pods: &[Value]) -> impl Iterator<Item = (String, u32)> {
    pods.iter().filter_map(|pod| {
        let node = pod["spec"]["nodeName"].as_str()?.to_owned();
        let gpus = &pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"];
        Some((node, gpus.as_str()?.parse().ok()?))
    })
}

pub(crate) fn assert_within(held: impl Iterator<Item = (String, u32)>) {
    let mut on_node = BTreeMap::<String, u32>::new();
    for (node, gpus) in held {
        *on_node.entry(node).or_default() += gpus;
    }
    let over: Vec<_> = on_node.iter().filter(|(_, gpus)| **gpus > 8).collect();
    assert!(over.is_empty(), "{over:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_decides_and_writes_nothing() {
    let api = fake_cluster(4, 12);
    let before = api.revision();
    let scheduler = Running::start(config(&api), Options { dry_run: true, ..elected("one") });
    let decided = "scheduler_schedule_attempts_total{result=\"scheduled\"} 12";
    let waiting = async {
        while !scheduler.metrics.open_metrics().contains(decided) {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("decisions in time");
    scheduler.stop().await;
    assert_eq!((api.revision(), api.bound().len()), (before, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_do_not_fit_wait_for_room() {
    // 14 GPUs are asked for, 8 are there. Binds arrive in any order: only a full node says that no
    // more are on their way.
    let api = fake_cluster(1, 6);
    let scheduler = Running::start(config(&api), Options::default());
    let unplaced = || api.all("pods").iter().any(|pod| pod["spec"]["nodeName"].is_null());
    until(&api, || bound_gpus(&api.all("pods")).map(|(_, gpus)| gpus).sum::<u32>() == 8).await;
    judge(&api);
    assert!(unplaced());
    for bound in api.bound() {
        let now = json!({"gracePeriodSeconds": 0});
        api.delete("pods", &bound.namespace, &bound.pod, &now).expect("a pod that ends");
    }
    until(&api, || !unplaced()).await;
    judge(&api);
    assert!(scheduler.status.is_ready() && scheduler.status.is_alive());
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_goes_on_where_one_was_stopped() {
    let api = fake_cluster(8, 12);
    let (one, two) = (elected("one"), elected("two"));
    let first = Running::start(config(&api), one);
    until(&api, || api.bound().len() == 12).await;
    let second = Running::start(config(&api), two);
    first.stop().await;
    for at in 12..24 {
        api.create("pods", "default", &pod(&format!("p{at}"), 1)).expect("a new pod");
    }
    until(&api, || api.bound().len() == 24).await;
    judge(&api);
    let epoch = |name: &str| {
        let pod = api.get("pods", "default", name).expect("a pod");
        pod["metadata"]["annotations"]["dovetail.dev/epoch"].as_str().map(str::to_owned)
    };
    assert_eq!((epoch("p0").as_deref(), epoch("p23").as_deref()), (Some("0"), Some("1")));
    second.stop().await;
}

/// Waits until a process says this of what keeps it from going on.
async fn until_told(scheduler: &Running, words: &[&str]) -> String {
    let waiting = async {
        loop {
            let told = scheduler.status.trouble().unwrap_or_default();
            if words.iter().all(|word| told.contains(word)) {
                return told;
            }
            pause().await;
        }
    };
    match tokio::time::timeout(PATIENCE, waiting).await {
        Ok(told) => told,
        Err(_) => panic!("{words:?} is not in {:?}", scheduler.status.trouble()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_have_the_lease_says_so_and_is_not_ready() {
    let api = fake_cluster(2, 2);
    let on = |verb| On::new(&[verb], "leases");
    let refused = |verb, code| FaultRule::some(on(verb), 1_000_000, ApiFault::ServerError { code });
    api.set_faults(1, vec![refused(Verb::Get, 401)]);
    let scheduler = Running::start(config(&api), elected("one"));
    let lease = "the lease default/dovetail";
    until_told(&scheduler, &["cannot read", lease, "401", "check the token"]).await;
    assert!(!scheduler.status.is_ready());
    api.set_faults(1, vec![refused(Verb::Create, 403)]);
    let rights =
        "the verbs get, create and update on leases of coordination.k8s.io in namespace default";
    until_told(&scheduler, &["cannot write", lease, "403", rights]).await;
    api.set_faults(1, vec![refused(Verb::Create, 422)]);
    until_told(&scheduler, &["cannot write", lease, "422", "--lease"]).await;
    api.set_faults(1, Vec::new());
    until(&api, || api.bound().len() == 2).await;
    assert!(scheduler.status.is_ready() && scheduler.status.trouble().is_none());
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_list_the_cluster_gives_the_lease_to_who_can() {
    let api = fake_cluster(4, 8);
    let hidden = On::new(&[Verb::List, Verb::Watch], "pods");
    api.set_faults(
        1,
        vec![FaultRule::some(hidden, 1_000_000, ApiFault::ServerError { code: 403 })],
    );
    // It does not run again while the test lasts.
    let lists = ListPatience { fails_for_ms: 300, pause_ms: 600_000 };
    let blind = Running::start(config(&api), Options { lists, ..elected("blind") });
    let holder = || {
        let lease = api.get("leases", "default", "dovetail").ok();
        lease.and_then(|lease| lease["spec"]["holderIdentity"].as_str().map(str::to_owned))
    };
    until(&api, || holder().as_deref() == Some("blind")).await;
    until(&api, || holder().as_deref() != Some("blind")).await;
    until_told(&blind, &["cannot list and watch pods", "the user has no right to this"]).await;
    assert!(!blind.status.is_ready());
    api.set_faults(1, Vec::new());
    let sound = Running::start(config(&api), elected("sound"));
    until(&api, || api.bound().len() == 8).await;
    judge(&api);
    sound.stop().await;
    blind.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_gave_the_lease_up_runs_again_after_a_pause() {
    let api = fake_cluster(4, 8);
    let hidden = On::new(&[Verb::List, Verb::Watch], "nodes");
    api.set_faults(
        1,
        vec![FaultRule::some(hidden, 1_000_000, ApiFault::ServerError { code: 403 })],
    );
    let lists = ListPatience { fails_for_ms: 300, pause_ms: 1 };
    let scheduler = Running::start(config(&api), Options { lists, ..elected("one") });
    let transitions = || {
        let lease = api.get("leases", "default", "dovetail").ok();
        lease.and_then(|lease| lease["spec"]["leaseTransitions"].as_u64()).unwrap_or_default()
    };
    until(&api, || transitions() >= 1).await;
    api.set_faults(1, Vec::new());
    until(&api, || api.bound().len() == 8).await;
    judge(&api);
    scheduler.stop().await;
}

/// A property with faults: as many runs as `DOVETAIL_FAULT_SEEDS` says, or what a test takes where
/// it is not set.
pub(crate) fn fault_runs(unless_set: u32) -> ProptestConfig {
    let Ok(text) = std::env::var("DOVETAIL_FAULT_SEEDS") else { return cases(unless_set) };
    ProptestConfig::with_cases(text.parse().expect("DOVETAIL_FAULT_SEEDS is a number"))
}

pub(crate) fn faults() -> impl Strategy<Value = Vec<FaultRule>> {
    let on_write = prop_oneof![
        Just(ApiFault::Conflict),
        Just(ApiFault::TooManyRequests { retry_after_s: 0 }),
        Just(ApiFault::ServerError { code: 500 }),
        Just(ApiFault::ServerError { code: 503 }),
        Just(ApiFault::Cut),
        Just(ApiFault::ReplyLost),
        (1_u64..300).prop_map(|delay_ms| ApiFault::Slow { delay_ms }),
    ];
    let on_watch = prop_oneof![
        (0_u32..40).prop_map(|after_events| ApiFault::CutWatch { after_events }),
        (0_u32..40).prop_map(|after_events| ApiFault::ExpireWatch { after_events }),
        Just(ApiFault::DuplicateEvents { per_million: 200_000 }),
        (1_u64..50).prop_map(|window_ms| ApiFault::ReorderEvents { window_ms }),
    ];
    let on_write = (0_u32..300_000, on_write)
        .prop_map(|(per_million, fault)| FaultRule::some(On::binds(), per_million, fault));
    let on_watch =
        on_watch.prop_map(|fault| FaultRule::first(On::new(&[Verb::Watch], "pods"), 2, fault));
    proptest::collection::vec(prop_oneof![2 => on_write, 1 => on_watch], 0..4)
}

proptest! {
    #![proptest_config(fault_runs(6))]

    #[test]
    fn whatever_goes_wrong_every_pod_that_fits_is_bound_once(seed in any::<u64>(), rules in faults()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        // 40 pods ask for 92 GPUs, at most 4 each: on 20 nodes no packing keeps the last one out.
        let api = fake_cluster(20, 40);
        api.set_faults(seed, rules);
        runtime.block_on(async {
            let scheduler = Running::start(config(&api), Options::default());
            until(&api, || api.bound().len() == 40).await;
            scheduler.stop().await;
        });
        judge(&api);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_pods_run_on_a_real_cluster() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    let nodes = Api::<Node>::all(client.clone());
    let pods = Api::<Pod>::default_namespaced(client.clone());
    create_nodes(&nodes, 200).await;
    let kubelets = Kubelets::start(client, KubeletOptions::default());
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, elected("one"));
    create_pods(&pods, 0..1_000).await;
    let counts = kubelets.wait_until(PATIENCE, |counts| counts.running == 1_000).await;
    assert_eq!(counts.expect("pods that run").rejected, 0);
    let all = pods.list(&ListParams::default()).await.expect("all pods").items;
    let annotated = |pod: &Pod| {
        let annotations = pod.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key("dovetail.dev/decision"))
    };
    assert!(all.len() == 1_000 && all.iter().all(annotated));
    assert_within(held(&all));
    scheduler.stop().await;
}
