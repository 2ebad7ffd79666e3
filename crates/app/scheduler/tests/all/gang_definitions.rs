//! Groups and workloads on a real server: definitions of our own with the real groups, versions and
//! names.

use std::collections::BTreeSet;

use dovetail_objects::{Kind, WorkloadKind};
use dovetail_scheduler::Options;
use dovetail_testkit::{ControlPlane, KubeletOptions, Kubelets};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::schedule::{PATIENCE, Running, create_nodes, pause, pod};

/// Kinds of gangs that no server has by itself.
fn custom_kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| match kind {
        Kind::CoschedulingGroup | Kind::VolcanoGroup | Kind::KaiGroup => true,
        // The MPI operator's definition takes the place of the training operator's.
        Kind::Workload(kind) => !matches!(kind, WorkloadKind::Job | WorkloadKind::TrainingMpiJob),
        _ => false,
    })
}

fn kind_name(kind: Kind) -> &'static str {
    kind.name().split('.').next().unwrap_or_default()
}

/// The least that a server needs to keep objects of a kind.
fn definition(kind: Kind) -> CustomResourceDefinition {
    let (group, plural) = (kind.group(), kind.plural());
    let schema = json!({"openAPIV3Schema":
        {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        json!({"name": kind.version(), "served": true, "storage": true, "schema": schema});
    // Names of groups that end like Kubernetes' own need an approval.
    let approved = json!({"api-approved.kubernetes.io": "unapproved, for a test"});
    let definition = json!({
        "metadata": {"name": format!("{plural}.{group}"), "annotations": approved},
        "spec": {"group": group, "scope": "Namespaced", "versions": [version],
            "names": {"plural": plural, "kind": kind_name(kind)}}});
    serde_json::from_value(definition).expect("a definition")
}

async fn define_kinds(client: &Client) {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    for kind in custom_kinds() {
        definitions.create(&PostParams::default(), &definition(kind)).await.expect("a definition");
    }
    for kind in custom_kinds() {
        let served = async {
            while objects(client, kind).list(&Default::default()).await.is_err() {
                pause().await;
            }
        };
        tokio::time::timeout(PATIENCE, served).await.expect("a kind in time");
    }
}

fn objects(client: &Client, kind: Kind) -> Api<DynamicObject> {
    let name = GroupVersionKind::gvk(kind.group(), kind.version(), kind_name(kind));
    let resource = ApiResource::from_gvk_with_plural(&name, kind.plural());
    Api::default_namespaced_with(client.clone(), &resource)
}

/// A gang by its object and what marks its pods.
struct Gang {
    kind: Kind,
    name: &'static str,
    spec: Value,
    members: Vec<Value>,
}

fn of(kind: Kind, name: &'static str, spec: Value, members: Vec<Value>) -> Gang {
    Gang { kind, name, spec, members }
}

/// One of each group kind; all their pods say the same.
fn groups() -> Vec<Gang> {
    let two = || json!({"minMember": 2});
    let label = json!({"labels": {"scheduling.x-k8s.io/pod-group": "co"}});
    let volcano = json!({"annotations": {"scheduling.k8s.io/group-name": "vo"}});
    let kai = json!({"annotations": {"pod-group-name": "kai"}});
    vec![
        of(Kind::CoschedulingGroup, "co", two(), vec![label; 2]),
        of(Kind::VolcanoGroup, "vo", two(), vec![volcano; 2]),
        of(Kind::KaiGroup, "kai", two(), vec![kai; 2]),
    ]
}

/// One of each workload that makes pods in a way of its own.
fn workloads() -> Vec<Gang> {
    let job = json!({"parallelism": 2, "completions": 2, "completionMode": "Indexed"});
    let jobs = json!([{"name": "w", "replicas": 1, "template": {"spec": job}}]);
    let of_job_set = json!({"labels": {"jobset.sigs.k8s.io/jobset-name": "js",
        "jobset.sigs.k8s.io/replicatedjob-name": "w"}});
    let of_set = |worker: &str| {
        json!({"labels": {"leaderworkerset.sigs.k8s.io/name": "lws",
            "leaderworkerset.sigs.k8s.io/group-index": "0",
            "leaderworkerset.sigs.k8s.io/worker-index": worker}})
    };
    let of_cluster = |node_type: &str, group: &str| {
        json!({"labels": {"ray.io/cluster": "ray", "ray.io/node-type": node_type,
            "ray.io/group": group}})
    };
    let of_training = |name: &str, operator: &str| {
        json!({"labels": {"training.kubeflow.org/job-name": name,
            "training.kubeflow.org/operator-name": operator,
            "training.kubeflow.org/replica-type": "worker"}})
    };
    let workers = json!({"Worker": {"replicas": 2}});
    let ray = json!({"workerGroupSpecs": [{"groupName": "gpu", "replicas": 1}]});
    let mut all = vec![
        of(
            Kind::Workload(WorkloadKind::JobSet),
            "js",
            json!({"replicatedJobs": jobs}),
            vec![of_job_set; 2],
        ),
        of(
            Kind::Workload(WorkloadKind::LeaderWorkerSet),
            "lws",
            json!({"leaderWorkerTemplate": {"size": 2}}),
            vec![of_set("0"), of_set("1")],
        ),
        of(
            Kind::Workload(WorkloadKind::RayCluster),
            "ray",
            ray,
            vec![of_cluster("head", "headgroup"), of_cluster("worker", "gpu")],
        ),
    ];
    let training = [
        (WorkloadKind::PyTorchJob, "pt", "pytorchReplicaSpecs", "pytorchjob-controller"),
        (WorkloadKind::TfJob, "tf", "tfReplicaSpecs", "tfjob-controller"),
        (WorkloadKind::MpiJob, "mpi", "mpiReplicaSpecs", "mpi-operator"),
        (WorkloadKind::XgBoostJob, "xgb", "xgbReplicaSpecs", "xgboostjob-controller"),
        (WorkloadKind::PaddleJob, "pad", "paddleReplicaSpecs", "paddlejob-controller"),
        (WorkloadKind::JaxJob, "jax", "jaxReplicaSpecs", "jaxjob-controller"),
    ];
    all.extend(training.map(|(kind, name, field, operator)| {
        let members = vec![of_training(name, operator); 2];
        of(Kind::Workload(kind), name, json!({field: workers}), members)
    }));
    all
}

async fn create(client: &Client, gang: &Gang) {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    // Pods first: they wait until their object is there.
    for (at, meta) in gang.members.iter().enumerate() {
        let mut pod = pod(&format!("{}-{at}", gang.name), 1);
        let mut meta = meta.clone();
        meta["name"] = pod["metadata"]["name"].clone();
        pod["metadata"] = meta;
        let pod = serde_json::from_value(pod).expect("a pod");
        pods.create(&PostParams::default(), &pod).await.expect("a new pod");
    }
    let kind = gang.kind;
    let api_version = format!("{}/{}", kind.group(), kind.version());
    let object = json!({"apiVersion": api_version, "kind": kind_name(kind),
        "metadata": {"name": gang.name}, "spec": gang.spec});
    let object = serde_json::from_value(object).expect("an object");
    objects(client, kind).create(&PostParams::default(), &object).await.expect("a new object");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gangs_of_every_custom_kind_start_as_a_whole() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    define_kinds(&client).await;
    create_nodes(&Api::<Node>::all(client.clone()), 3).await;
    let kubelets = Kubelets::start(client.clone(), KubeletOptions::default());
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, Options::default());
    let gangs: Vec<Gang> = groups().into_iter().chain(workloads()).collect();
    let kinds: BTreeSet<Kind> = gangs.iter().map(|gang| gang.kind).collect();
    assert_eq!(kinds, custom_kinds().collect(), "each kind has its gang");
    for gang in &gangs {
        create(&client, gang).await;
    }
    let pods = 2 * gangs.len() as u64;
    let counts = kubelets.wait_until(PATIENCE, |counts| counts.running == pods).await;
    assert_eq!(counts.expect("pods that run").rejected, 0);
    let all = Api::<Pod>::default_namespaced(client).list(&Default::default()).await;
    for pod in all.expect("all pods") {
        let annotations = pod.metadata.annotations.unwrap_or_default();
        let decision = annotations.get("dovetail.dev/decision").cloned().unwrap_or_default();
        assert!(decision.ends_with("/2"), "{:?} was decided alone: {decision}", pod.metadata.name);
    }
    scheduler.stop().await;
}
