//! A Job or JobSet that chooses it is suspended in place of evicting its pods, and resumed when
//! they have terminated.

use dovetail_cluster::world::Settings;
use dovetail_control::order::{OrderEnd, PodOrder};
use dovetail_objects::{Kind, WorkloadKind};
use dovetail_testkit::{ControlPlane, KubeletOptions, Kubelets, cluster};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::gangs::{Cluster, pod};
use crate::queue_objects;
use crate::receipts;
use crate::reclaim::{fair, running, submit, until};
use crate::schedule::{Running, create_nodes};
use crate::server::Server;

const JOB: Kind = Kind::Workload(WorkloadKind::Job);
const JOB_SET: Kind = Kind::Workload(WorkloadKind::JobSet);

/// A server that knows JobSets.
pub(crate) fn install_job_sets(control_plane: &ControlPlane) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1alpha2", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "jobsets.jobset.x-k8s.io"},
        "spec": {"group": "jobset.x-k8s.io", "scope": "Namespaced", "versions": [version],
            "names": {"kind": "JobSet", "listKind": "JobSetList", "plural": "jobsets",
                "singular": "jobset"}}});
    queue_objects::create(control_plane, &definition);
    let wait = ["wait", "--for=condition=Established", "crd/jobsets.jobset.x-k8s.io"];
    let (said, is_done) = queue_objects::kubectl(control_plane, &wait, "");
    assert!(is_done, "{said}");
}

/// A JobSet with one Job of so many pods.
pub(crate) fn job_set(metadata: Value, pods: u32) -> Value {
    json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata,
        "spec": {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": {
            "parallelism": pods, "completions": pods, "completionMode": "Indexed"}}}]}})
}

/// Labels of the pods of JobSet `set`.
fn of_set(queue: &str) -> Value {
    json!({"dovetail.dev/queue": queue, "jobset.sigs.k8s.io/jobset-name": "set",
        "jobset.sigs.k8s.io/replicatedjob-name": "w"})
}

/// A node of which half belongs to queue `b`, and two pods of queue `a` that take all of it, the
/// first of them of this Job; then `b` wants its half.
fn reclaimed(job: &Value, others: &[(Kind, Value)]) -> Cluster {
    let mut server = receipts::shared_node();
    server.apply(JOB, "blue", "train", job.clone());
    let uid = server.objects[&(JOB, "blue".into(), "train".into())]["metadata"]["uid"].clone();
    for (kind, object) in others {
        server.apply(*kind, "blue", "other", object.clone());
    }
    let mut cluster = Cluster::with(server, receipts::fair());
    let mut train = receipts::of_job("a", 8, "train");
    train["metadata"]["ownerReferences"] =
        json!([{"kind": "Job", "name": "train", "uid": uid, "controller": true}]);
    cluster.create("train-x", train);
    assert_eq!(cluster.run(), ["train-x"]);
    cluster.pass(3_600_000);
    cluster.create("b0", receipts::of_job("b", 4, ""));
    cluster.run();
    cluster
}

/// The same for a JobSet, which made the Job or did not.
fn reclaimed_set(metadata: Value, is_its: bool, settings: Settings) -> Cluster {
    let mut server = receipts::shared_node();
    server.apply(JOB_SET, "blue", "set", job_set(metadata, 1));
    let uid = |server: &Server, kind: Kind, name: &str| {
        server.objects[&(kind, "blue".to_owned(), name.to_owned())]["metadata"]["uid"].clone()
    };
    let set = if is_its { uid(&server, JOB_SET, "set") } else { json!("another") };
    let owner = json!([{"kind": "JobSet", "name": "set", "uid": set, "controller": true}]);
    let job = json!({"metadata": {"ownerReferences": owner}, "spec": {"completions": 1}});
    server.apply(JOB, "blue", "train", job);
    let mut train = pod(8);
    train["metadata"] = json!({"labels": of_set("a"), "ownerReferences": [{"kind": "Job",
        "name": "train", "uid": uid(&server, JOB, "train"), "controller": true}]});
    train["metadata"]["labels"]["batch.kubernetes.io/job-name"] = json!("train");
    let mut cluster = Cluster::by(server, receipts::fair(), settings);
    cluster.create("train-x", train);
    assert_eq!(cluster.run(), ["train-x"]);
    cluster.pass(3_600_000);
    cluster.create("b0", receipts::of_job("b", 4, ""));
    cluster.run();
    cluster
}

/// The Jobs that are suspended with the pods that are to be evicted.
fn suspended(cluster: &mut Cluster) -> Vec<String> {
    let mut jobs = Vec::new();
    while let Some(order) = cluster.scheduler.next_order() {
        if let PodOrder::Evict { pod, decision, .. } = &order {
            let job = decision.suspends(pod).map(|(job, _)| job.name.to_string());
            jobs.push(job.unwrap_or_else(|| format!("none for {}", pod.name)));
        }
    }
    jobs
}

#[test]
fn a_job_is_suspended_only_where_it_chooses_so_and_nobody_else_decides() {
    let wants = json!({"dovetail.dev/preemption": "suspend"});
    let of = |metadata: Value| json!({"metadata": metadata, "spec": {"completions": 1}});
    let plain = || of(json!({"annotations": wants}));
    assert_eq!(suspended(&mut reclaimed(&plain(), &[])), ["train"]);

    let queue = json!({"kueue.x-k8s.io/queue-name": "team"});
    let owner = json!([{"kind": "JobSet", "name": "s", "uid": "u", "controller": true}]);
    let kept = [
        of(json!({})),
        of(json!({"annotations": {"dovetail.dev/preemption": "evict"}})),
        of(json!({"annotations": wants, "labels": queue})),
        of(json!({"annotations": wants, "ownerReferences": owner})),
    ];
    for job in kept {
        assert_eq!(suspended(&mut reclaimed(&job, &[])), ["none for train-x"], "{job}");
    }
    // Budgets are not asked when a Job is suspended.
    let budget = json!({"spec": {"selector": {"matchLabels": {"dovetail.dev/queue": "a"}}},
        "status": {"disruptionsAllowed": 1}});
    let of_another = json!({"spec": {"selector": {"matchLabels": {"dovetail.dev/queue": "b"}}},
        "status": {"disruptionsAllowed": 0}});
    let with = |budget: Value| reclaimed(&plain(), &[(Kind::DisruptionBudget, budget)]);
    assert_eq!(suspended(&mut with(budget)), ["none for train-x"]);
    assert_eq!(suspended(&mut with(of_another)), ["train"]);
    // A pod of the Job that is not to be evicted would leave, too.
    let mut cluster = reclaimed(&plain(), &[]);
    let key = (Kind::Pod, "blue".to_owned(), "train-x".to_owned());
    let mut other = cluster.server.objects[&key].clone();
    other["spec"] = pod(0)["spec"].clone();
    let mut server = std::mem::take(&mut cluster.server);
    server.apply(Kind::Pod, "blue", "train-y", other);
    let mut next = Cluster::with(server, receipts::fair());
    next.pass(3_600_000);
    next.run();
    assert_eq!(suspended(&mut next), ["none for train-x"]);
}

#[test]
fn a_job_set_is_suspended_where_it_chooses_so_and_made_the_job_of_the_pods() {
    let wants = || json!({"annotations": {"dovetail.dev/preemption": "suspend"}});
    let suspended_of = |metadata: Value, is_its| {
        suspended(&mut reclaimed_set(metadata, is_its, Settings::default()))
    };
    assert_eq!(suspended_of(wants(), true), ["set"]);
    assert_eq!(suspended_of(wants(), false), ["none for train-x"]);
    assert_eq!(suspended_of(json!({}), true), ["none for train-x"]);
    let mut of_kueue = wants();
    of_kueue["labels"] = json!({"kueue.x-k8s.io/queue-name": "team"});
    assert_eq!(suspended_of(of_kueue, true), ["none for train-x"]);
}

#[test]
fn nothing_is_suspended_where_the_settings_say_so() {
    let settings = Settings { never_suspends: true, ..Settings::default() };
    let wants = json!({"annotations": {"dovetail.dev/preemption": "suspend"}});
    let mut cluster = reclaimed_set(wants, true, settings);
    assert_eq!(suspended(&mut cluster), ["none for train-x"]);
}

#[test]
fn a_suspended_job_set_is_resumed_when_the_pods_that_name_it_have_terminated() {
    let mut cluster = Cluster::of(1);
    let mut set = job_set(json!({"annotations": {"dovetail.dev/suspended": "at ten"}}), 1);
    set["spec"]["suspend"] = json!(true);
    cluster.server.apply(JOB_SET, "blue", "set", set);
    let mut left = pod(8);
    left["metadata"]["labels"] = of_set("a");
    left["spec"]["nodeName"] = json!("n0");
    cluster.create("train-x", left);
    cluster.decide();
    assert_eq!(cluster.scheduler.next_order(), None, "a pod of it is there");
    cluster.delete(Kind::Pod, "blue", "train-x");
    cluster.decide();
    let order = cluster.scheduler.next_order().expect("an order");
    let PodOrder::Resume(job) = &order else { panic!("{order:?}") };
    assert_eq!((job.job.kind, &*job.job.name), (JOB_SET, "set"));
}

/// Of the Job alone it is read that it is to be resumed: by a leader, too, that knows nothing else.
/// A Job whose mark its owner has taken away is left alone.
#[test]
fn a_suspended_job_is_resumed_when_its_pods_have_terminated_and_only_ours_is() {
    let job = |mark: Value| json!({"metadata": {"annotations": mark}, "spec": {"completions": 1, "suspend": true}});
    let mut cluster = Cluster::of(1);
    cluster.server.apply(JOB, "blue", "theirs", job(json!({})));
    cluster.server.apply(JOB, "blue", "train", job(json!({"dovetail.dev/suspended": "at ten"})));
    let key = (JOB, "blue".to_owned(), "train".to_owned());
    let uid = cluster.server.objects[&key]["metadata"]["uid"].clone();
    let mut left = pod(8);
    left["metadata"]["ownerReferences"] = json!([{"uid": uid, "controller": true}]);
    left["spec"]["nodeName"] = json!("n0");
    cluster.create("train-x", left);
    cluster.decide();
    assert_eq!(cluster.scheduler.next_order(), None, "a pod of it is there");
    cluster.delete(Kind::Pod, "blue", "train-x");
    cluster.decide();
    let order = cluster.scheduler.next_order().expect("an order");
    assert!(matches!(&order, PodOrder::Resume(job) if &*job.job.name == "train"), "{order:?}");
    // Not twice while nothing is known, and again some time after a failure.
    cluster.decide();
    assert_eq!(cluster.scheduler.next_order(), None);
    let refused = OrderEnd::Refused { code: 500, message: "down".to_owned() };
    cluster.scheduler.order_ended(&order, refused, cluster.now_ms);
    cluster.decide();
    assert_eq!(cluster.scheduler.next_order(), None);
    let due_ms = cluster.scheduler.due_ms().expect("a time");
    cluster.pass(due_ms - cluster.now_ms);
    cluster.decide();
    assert_eq!(cluster.scheduler.next_order(), Some(order.clone()));
    cluster.scheduler.order_ended(&order, OrderEnd::Gone, cluster.now_ms);
    cluster.server.change(&key, |job| job["metadata"]["annotations"] = json!({}));
    cluster.decide();
    assert_eq!(cluster.scheduler.next_order(), None, "it is its owner's");
}

/// Texts of the events with this reason about objects of a kind.
async fn told(events: &Api<Event>, kind: &str, reason: &str) -> Vec<String> {
    let of = format!("reason={reason},involvedObject.kind={kind}");
    let of = ListParams::default().fields(&of);
    let all = events.list(&of).await.expect("events").items;
    all.into_iter().filter_map(|event| event.message).collect()
}

/// A real server with the Job controller, that knows JobSets: two nodes, one of which is guaranteed
/// to each of two queues, and a scheduler.
struct Live {
    control_plane: ControlPlane,
    pods: Api<Pod>,
    jobs: Api<Job>,
    events: Api<Event>,
    scheduler: Running,
    _kubelets: Kubelets,
}

impl Live {
    async fn start() -> Self {
        let options = cluster::Options { controller_manager: true, ..cluster::Options::default() };
        let control_plane = ControlPlane::start(options).expect("a control plane");
        queue_objects::install(&control_plane);
        install_job_sets(&control_plane);
        let client: Client = control_plane.client().await.expect("a client");
        create_nodes(&Api::<Node>::all(client.clone()), 2).await;
        for name in ["ours", "lent"] {
            let spec = json!({"guaranteed": {"nvidia.com/gpu": 8}, "namespaceSelector": {}});
            queue_objects::create(&control_plane, &queue_objects::queue(name, spec));
        }
        let config = control_plane.config().await.expect("a kubeconfig");
        Self {
            pods: Api::default_namespaced(client.clone()),
            jobs: Api::default_namespaced(client.clone()),
            events: Api::default_namespaced(client.clone()),
            scheduler: Running::start(config, fair()),
            _kubelets: Kubelets::start(client, KubeletOptions::default()),
            control_plane,
        }
    }
}

/// A Job of two pods with a node each, none of which may fail.
fn job_of_two(metadata: Value, mut labels: Value) -> Value {
    labels["team"] = json!("lent");
    let mut template = crate::schedule::pod("", 8);
    template["metadata"] = json!({"labels": labels});
    template["spec"]["restartPolicy"] = json!("Never");
    template["spec"]["terminationGracePeriodSeconds"] = json!(5);
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
        "spec": {"completionMode": "Indexed", "completions": 2, "parallelism": 2,
            "backoffLimit": 0, "template": template}})
}

/// With the real Job controller: no pod of the Job counts as failed, of which it allows none, so
/// that it goes on where an evicted one would have failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_suspended_for_a_queue_runs_again_when_there_is_room() {
    let Live { control_plane, pods, jobs, events, scheduler, _kubelets } = Live::start().await;
    let metadata = json!({"name": "train", "namespace": "default",
        "annotations": {"dovetail.dev/preemption": "suspend"}});
    let labels = json!({"dovetail.dev/queue": "lent"});
    queue_objects::create(&control_plane, &job_of_two(metadata, labels));
    until("the Job", async || running(&pods, "lent").await.len() == 2).await;
    let of_job = ListParams::default().labels("team=lent");
    let uids = async || {
        let all = pods.list(&of_job).await.expect("pods").items.into_iter();
        all.filter_map(|pod| pod.metadata.uid).collect::<Vec<_>>()
    };
    let first = uids().await;

    submit(&pods, "ours", "ours-0").await;
    submit(&pods, "ours", "ours-1").await;
    until("both of ours", async || running(&pods, "ours").await.len() == 2).await;
    until("new pods", async || {
        let now = uids().await;
        now.len() == 2 && now.iter().all(|uid| !first.contains(uid))
    })
    .await;
    let read = async || serde_json::to_value(jobs.get("train").await.expect("a Job")).expect("it");
    let resumed = read().await;
    assert_eq!(resumed["spec"]["suspend"], false, "{resumed}");
    let says = &resumed["metadata"]["annotations"];
    assert_eq!(says["dovetail.dev/suspended"], Value::Null, "{says}");
    until("its events", async || {
        let suspended = told(&events, "Job", "Reclaimed").await;
        let is_told = suspended.iter().any(|text| text.starts_with("Suspended to return quota"));
        let resumed = told(&events, "Job", "Resumed").await;
        is_told && resumed.iter().any(|text| text.starts_with("The pods have terminated"))
    })
    .await;
    until("its receipt", async || {
        read().await["metadata"]["annotations"]["dovetail.dev/first-submitted"].is_string()
    })
    .await;

    for name in ["ours-0", "ours-1"] {
        pods.delete(name, &DeleteParams::default()).await.expect("a deletion");
    }
    until("the Job again", async || running(&pods, "lent").await.len() == 2).await;
    let now = read().await;
    assert_eq!(now["metadata"]["annotations"]["dovetail.dev/preemptions"], "1", "{now}");
    assert_eq!(now["status"]["failed"].as_u64().unwrap_or(0), 0, "{now}");
    scheduler.stop().await;
}

const JOB_SET_PATH: &str = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/set";

/// The JobSet controller suspends and resumes the Jobs of a JobSet: here the test does.
async fn as_the_set_says(control_plane: &ControlPlane, is_suspended: bool) {
    let what = if is_suspended { "a suspended JobSet" } else { "a JobSet that is resumed" };
    until(what, async || {
        let set = control_plane.object(JOB_SET_PATH).expect("a JobSet");
        let mark = &set["metadata"]["annotations"]["dovetail.dev/suspended"];
        set["spec"]["suspend"] == is_suspended && mark.is_string() == is_suspended
    })
    .await;
    let patch = json!({"spec": {"suspend": is_suspended}}).to_string();
    let patch = ["patch", "job", "set-w-0", "--type=merge", "-p", &patch];
    let (said, is_done) = queue_objects::kubectl(control_plane, &patch, "");
    assert!(is_done, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_set_that_is_suspended_for_a_queue_runs_again_when_there_is_room() {
    let Live { control_plane, pods, jobs, events, scheduler, _kubelets } = Live::start().await;
    // It does not say that it is not suspended.
    let wants = json!({"name": "set", "namespace": "default",
        "annotations": {"dovetail.dev/preemption": "suspend"}});
    queue_objects::create(&control_plane, &job_set(wants, 2));
    let uid = control_plane.object(JOB_SET_PATH).expect("a JobSet")["metadata"]["uid"].clone();
    let owner = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "set",
        "uid": uid, "controller": true}]);
    let metadata = json!({"name": "set-w-0", "namespace": "default", "ownerReferences": owner});
    queue_objects::create(&control_plane, &job_of_two(metadata, of_set("lent")));
    until("the JobSet", async || running(&pods, "lent").await.len() == 2).await;

    submit(&pods, "ours", "ours-0").await;
    submit(&pods, "ours", "ours-1").await;
    as_the_set_says(&control_plane, true).await;
    until("both of ours", async || running(&pods, "ours").await.len() == 2).await;
    as_the_set_says(&control_plane, false).await;
    until("its events", async || {
        let suspended = told(&events, "JobSet", "Reclaimed").await;
        suspended.iter().any(|text| text.starts_with("Suspended to return quota"))
            && !told(&events, "JobSet", "Resumed").await.is_empty()
    })
    .await;
    for name in ["ours-0", "ours-1"] {
        pods.delete(name, &DeleteParams::default()).await.expect("a deletion");
    }
    until("the JobSet again", async || running(&pods, "lent").await.len() == 2).await;
    let job = jobs.get("set-w-0").await.expect("a Job").status.expect("a status");
    assert_eq!(job.failed.unwrap_or(0), 0, "{job:?}");
    scheduler.stop().await;
}
