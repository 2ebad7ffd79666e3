//! A Job that chooses it is suspended in place of evicting its pods, and resumed when they have
//! terminated.

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

const JOB: Kind = Kind::Workload(WorkloadKind::Job);

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

/// Texts of the events with this reason about the Job.
async fn told(events: &Api<Event>, reason: &str) -> Vec<String> {
    let of = ListParams::default().fields(&format!("reason={reason},involvedObject.kind=Job"));
    let all = events.list(&of).await.expect("events").items;
    all.into_iter().filter_map(|event| event.message).collect()
}

/// With the real Job controller: no pod of the Job counts as failed, of which it allows none, so
/// that it goes on where an evicted one would have failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_suspended_for_a_queue_runs_again_when_there_is_room() {
    let options = cluster::Options { controller_manager: true, ..cluster::Options::default() };
    let control_plane = ControlPlane::start(options).expect("a control plane");
    queue_objects::install(&control_plane);
    let client: Client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), 2).await;
    for name in ["ours", "lent"] {
        let spec = json!({"guaranteed": {"nvidia.com/gpu": 8}, "namespaceSelector": {}});
        queue_objects::create(&control_plane, &queue_objects::queue(name, spec));
    }
    let _kubelets = Kubelets::start(client.clone(), KubeletOptions::default());
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let jobs = Api::<Job>::default_namespaced(client.clone());
    let events = Api::<Event>::default_namespaced(client);
    let scheduler = Running::start(control_plane.config().await.expect("a kubeconfig"), fair());
    let mut template = crate::schedule::pod("", 8);
    template["metadata"] = json!({"labels": {"dovetail.dev/queue": "lent", "team": "lent"}});
    template["spec"]["restartPolicy"] = json!("Never");
    template["spec"]["terminationGracePeriodSeconds"] = json!(5);
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "train", "namespace": "default",
            "annotations": {"dovetail.dev/preemption": "suspend"}},
        "spec": {"completionMode": "Indexed", "completions": 2, "parallelism": 2,
            "backoffLimit": 0, "template": template}});
    queue_objects::create(&control_plane, &job);
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
        let suspended = told(&events, "Reclaimed").await;
        let is_told = suspended.iter().any(|text| text.starts_with("Suspended for a queue"));
        let resumed = told(&events, "Resumed").await;
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
