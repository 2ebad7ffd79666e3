//! The scheduler under the rights that the manifests give it, on a real server.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use dovetail_apiserver::client::Clients;
use dovetail_cluster::world::{LastingOwner, PodKey};
use dovetail_control::announce::{AnnouncedWrite, StatusOf, StatusWrite};
use dovetail_control::bind::{Bind, BindOutcome};
use dovetail_control::order::{EvictionCause, EvictionDecision, PodOrder};
use dovetail_model::PreemptReason;
use dovetail_objects::{Kind, SELECTED_NODE, WorkloadKind};
use dovetail_scheduler::Options;
use dovetail_scheduler::lead::{Alone, Clock, LeaseName};
use dovetail_testkit::ControlPlane;
use dovetail_testkit::binaries::Program;
use dovetail_testkit::cluster::{self, ABSENT_GROUPS};
use dovetail_translate::Receipt;
use http_body_util::BodyExt;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolumeClaim, Pod};
use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::{Api, Client, Config, ResourceExt};
use serde_json::{Value, json};

use crate::queue_objects;
use crate::reservation_objects;
use crate::schedule::{PATIENCE, Running, create_nodes, elected, pause};
use crate::sender::{Given, Sender};
use crate::suspension;

/// The one of the groups of other people's kinds that the server of this test has.
const JOB_SETS: &str = "jobset.x-k8s.io";

const ACCOUNT: &str = "system:serviceaccount:dovetail:dovetail-scheduler";

/// A folder that ends with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("dovetail-rights-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of a test is no reason to fail it.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// API group, resource with subresource, verb.
type Right = (String, String, String);

/// A control plane that notes every request of the account.
fn start(folder: &Path) -> ControlPlane {
    let policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}]});
    let path = folder.join("policy.json");
    std::fs::write(&path, policy.to_string()).expect("a policy");
    let account = cluster::User {
        name: ACCOUNT.to_owned(),
        groups: vec!["system:serviceaccounts".to_owned()],
    };
    let options = cluster::Options {
        users: vec![account],
        api_server_arguments: vec![
            format!("--audit-policy-file={}", path.display()),
            format!("--audit-log-path={}", folder.join("audit.log").display()),
            "--audit-log-mode=blocking".to_owned(),
        ],
        ..cluster::Options::default()
    };
    ControlPlane::start(options).expect("a control plane")
}

fn apply_manifests(control_plane: &ControlPlane) {
    let kubectl = control_plane.cluster().program(Program::Kubectl).expect("kubectl").to_owned();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy");
    let output = Command::new(kubectl)
        .args(["apply", "--validate=strict", "-k"])
        .arg(deploy)
        .env("KUBECONFIG", control_plane.kubeconfig())
        .output()
        .expect("kubectl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn granted(rules: Option<Vec<PolicyRule>>) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for rule in rules.into_iter().flatten() {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                let verbs = rule.verbs.iter().cloned();
                rights.extend(verbs.map(|verb| (group.clone(), resource.clone(), verb)));
            }
        }
    }
    rights
}

/// What the account asked for, and was refused. Discovery is nobody's right.
fn asked(log: &Path) -> (BTreeSet<Right>, Vec<String>) {
    let text = std::fs::read_to_string(log).expect("an audit log");
    let (mut rights, mut refused) = (BTreeSet::new(), Vec::new());
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).expect("an audit event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if event["responseStatus"]["code"] == 403 {
            refused.push(format!("{} {}", text(&event["verb"]), text(&event["requestURI"])));
        }
        let object = &event["objectRef"];
        let Some(resource) = object["resource"].as_str() else { continue };
        let resource = match object["subresource"].as_str() {
            Some(subresource) => format!("{resource}/{subresource}"),
            None => resource.to_owned(),
        };
        rights.insert((text(&object["apiGroup"]), resource, text(&event["verb"])));
    }
    (rights, refused)
}

/// A queue, two pods with a group each, and a pod whose claim has no volume.
fn create_objects(control_plane: &ControlPlane) {
    queue_objects::install(control_plane);
    reservation_objects::install(control_plane);
    let group = |name: &str| {
        json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}})
    };
    let queue = queue_objects::queue("team", json!({}));
    let never = reservation_objects::reservation("never", "team", 100, (0, 3_600));
    for object in [queue, never, group("placed"), group("waits")] {
        queue_objects::create(control_plane, &object);
    }
    for (name, gpus) in [("placed", 8), ("waits", 9)] {
        queue_objects::create(control_plane, &queue_objects::member(name, gpus, name));
    }
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "local"}, "provisioner": "disks",
        "volumeBindingMode": "WaitForFirstConsumer"});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}});
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}});
    let stored = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "stored", "namespace": "default"},
        "spec": {"schedulerName": "dovetail", "volumes": [volume],
            "containers": [{"name": "c", "image": "i"}]}});
    for object in [class, claim, stored].into_iter().chain(claimed()) {
        queue_objects::create(control_plane, &object);
    }
}

/// A device of node `n0`, and a pod that claims it.
fn claimed() -> [Value; 4] {
    let api = "resource.k8s.io/v1";
    let class = json!({"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": "example.com/gpu",
            "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}});
    let pool = json!({"name": "n0", "generation": 1, "resourceSliceCount": 1});
    let slice = json!({"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": "n0"},
        "spec": {"driver": "gpu.example.com", "nodeName": "n0", "pool": pool,
            "devices": [{"name": "d0"}, {"name": "d1"}]}});
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
    let claim = json!({"apiVersion": api, "kind": "ResourceClaim",
        "metadata": {"name": "device", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "claimed", "namespace": "default"},
        "spec": {"schedulerName": "dovetail",
            "resourceClaims": [{"name": "c", "resourceClaimName": "device"}],
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "c"}]}}]}});
    [class, slice, claim, pod]
}

/// Waits until the pod with a claim of a device has its node, and the claim its device.
async fn has_its_device(client: &Client) {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let bound = async {
        while pods.get("claimed").await.expect("a pod").spec.expect("a spec").node_name.is_none() {}
    };
    tokio::time::timeout(PATIENCE, bound).await.expect("a node for the pod in time");
    let claims = Api::<ResourceClaim>::default_namespaced(client.clone());
    let status = claims.get("device").await.expect("a claim").status.expect("a status");
    let devices = status.allocation.expect("an allocation").devices.expect("devices");
    assert_eq!(devices.results.expect("results")[0].device, "d0");
    assert_eq!(status.reserved_for.expect("pods")[0].name, "claimed");
}

/// A pod has an extended resource by a claim, after the claim that another scheduler left for it is
/// deleted.
async fn has_a_claim_of_its_own(control_plane: &ControlPlane, client: &Client) {
    let limits = json!({"limits": {"example.com/gpu": "1"}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "extended", "namespace": "default"},
        "spec": {"schedulerName": "dovetail", "schedulingGates": [{"name": "example.com/later"}],
            "containers": [{"name": "c", "image": "i", "resources": limits}]}});
    queue_objects::create(control_plane, &pod);
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let uid = pods.get("extended").await.expect("a pod").metadata.uid;
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "extended", "uid": uid,
        "controller": true});
    let left = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "left", "namespace": "default", "ownerReferences": [owner],
            "finalizers": ["resource.kubernetes.io/delete-protection"],
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}});
    queue_objects::create(control_plane, &left);
    let patch = r#"[{"op": "remove", "path": "/spec/schedulingGates"}]"#;
    let arguments = ["patch", "pod", "extended", "--type=json", "--patch", patch];
    let (said, is_done) = queue_objects::kubectl(control_plane, &arguments, "");
    assert!(is_done, "{said}");
    queue_objects::until("a node for the pod", async || {
        pods.get("extended").await.expect("a pod").spec.expect("a spec").node_name.is_some()
    })
    .await;
    let claims = Api::<ResourceClaim>::default_namespaced(client.clone());
    assert!(claims.get_opt("left").await.expect("an answer").is_none());
}

/// Waits until the claim is told for which node it is to get its volume.
async fn is_told_its_node(client: &Client) {
    let claims = Api::<PersistentVolumeClaim>::default_namespaced(client.clone());
    let told = async {
        while !claims.get("data").await.expect("a claim").annotations().contains_key(SELECTED_NODE)
        {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.expect("a node for the claim in time");
}

/// A bind of a pod that has a node: the binder looks what became of it.
async fn bind_again(config: &Config, pod: &Pod) {
    let clients = Clients::new(config).expect("clients");
    let leads = Arc::new(Alone::new(Clock, 4_000));
    let mut sender = Sender::start(clients, leads, 0, 1);
    let bind = Bind {
        decision: 1,
        pod: PodKey {
            namespace: "default".into(),
            name: pod.metadata.name.clone().expect("a name").into(),
            uid: pod.metadata.uid.clone().expect("a UID").into(),
        },
        node: "n0".into(),
        epoch: 0,
        tag: "again".to_owned(),
    };
    sender.give(Given::Bind(bind));
    let outcome = sender.report().await.outcome;
    assert_eq!(outcome, BindOutcome::BoundByOther { node: "n0".to_owned() });
}

/// A pod that is stopped for another, for this reason.
async fn stop(config: &Config, pods: &Api<Pod>, pod: &Pod, reason: PreemptReason) {
    let clients = Clients::new(config).expect("clients");
    let leads = Arc::new(Alone::new(Clock, 4_000));
    let sender = Sender::start(clients, leads, 0, 1);
    let text = |text: &Option<String>| text.clone().unwrap_or_default().into_boxed_str();
    let meta = &pod.metadata;
    let (namespace, name, uid) = (text(&meta.namespace), text(&meta.name), text(&meta.uid));
    let key = PodKey { namespace, name, uid };
    let (why, decision) = (EvictionCause::Preempted(reason), EvictionDecision::alone());
    sender.give(Given::Order(PodOrder::Evict { pod: key, why, decision }));
    let name = pod.metadata.name.as_deref().expect("a name");
    let going = async {
        while pods.get(name).await.expect("a pod").metadata.deletion_timestamp.is_none() {}
    };
    tokio::time::timeout(PATIENCE, going).await.expect("a deletion in time");
    sender.finish().await;
}

/// Receipts of preemptions, on a group, a Job and a JobSet.
async fn write_receipts(control_plane: &ControlPlane, config: &Config, client: &Client) {
    let template = json!({"spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"suspend": true, "template": template}});
    queue_objects::create(control_plane, &job);
    let set = json!({"name": "set", "namespace": "default"});
    queue_objects::create(control_plane, &suspension::job_set(set, 1));
    let sender = Sender::start(
        Clients::new(config).expect("clients"),
        Arc::new(Alone::new(Clock, 4_000)),
        0,
        1,
    );
    let objects = [
        (Kind::PodGroup, "podgroups.scheduling.k8s.io", "placed"),
        (Kind::Workload(WorkloadKind::Job), "jobs.batch", "train"),
        (Kind::Workload(WorkloadKind::JobSet), "jobsets.jobset.x-k8s.io", "set"),
    ];
    for (kind, resource, name) in objects {
        let object = read(control_plane, resource, name);
        let uid = object["metadata"]["uid"].as_str().expect("a UID").into();
        let account = LastingOwner { kind, namespace: "default".into(), name: name.into(), uid };
        let receipt = Receipt { preemptions: 3, ..Receipt::default() };
        let of = StatusOf::receipt(&account);
        let patch = json!({"metadata": {"uid": account.uid, "annotations": receipt.annotations()}});
        sender
            .give(Given::Announcement(AnnouncedWrite::Status(Box::new(StatusWrite { of, patch }))));
    }
    sender.finish().await;
    for (_, resource, name) in objects {
        let object = read(control_plane, resource, name);
        assert_eq!(object["metadata"]["annotations"]["dovetail.dev/preemptions"], "3", "{name}");
    }
    let jobs = Api::<Job>::default_namespaced(client.clone());
    assert_eq!(jobs.get("train").await.expect("a Job").spec.expect("a spec").suspend, Some(true));
}

fn read(control_plane: &ControlPlane, resource: &str, name: &str) -> Value {
    let get = ["get", resource, name, "-n", "default", "-o", "json"];
    let (said, is_done) = queue_objects::kubectl(control_plane, &get, "");
    assert!(is_done, "{said}");
    serde_json::from_str(&said).expect("JSON")
}

/// The flow schema that serves a request of this account.
async fn schema_of(client: &Client, verb: &str, path: &str) -> Option<String> {
    let mut request = hyper::Request::builder().method(verb).uri(path);
    if verb == "PATCH" {
        request = request.header("Content-Type", "application/merge-patch+json");
    }
    let request = request.body(kube::client::Body::from(b"{}".to_vec())).expect("a request");
    let response = client.send(request).await.expect("an answer");
    let uid = response.headers().get("x-kubernetes-pf-flowschema-uid").cloned();
    _ = response.into_body().collect().await;
    Some(uid?.to_str().ok()?.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scheduler_needs_every_right_of_its_manifest_and_no_other() {
    let folder = Folder::new();
    let control_plane = start(&folder.0);
    if !control_plane.has_gangs("the_scheduler_needs_every_right_of_its_manifest_and_no_other") {
        return;
    }
    apply_manifests(&control_plane);
    suspension::install_job_sets(&control_plane);
    let client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), 1).await;
    create_objects(&control_plane);
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let config = control_plane.config_of(ACCOUNT).await.expect("a kubeconfig");
    let mut options = Options { dry_run: false, ..elected("one") };
    let lease = LeaseName { namespace: "dovetail".to_owned(), name: "dovetail".to_owned() };
    options.election.as_mut().expect("an election").lease = lease;
    let scheduler = Running::start(config.clone(), options);
    let written = [
        "{what=\"condition\",outcome=\"written\"} 2",
        "{what=\"event\",outcome=\"written\"} 4",
        "{what=\"group_status\",outcome=\"written\"} 2",
        "{what=\"queue_status\",outcome=\"written\"} 1",
        "{what=\"reservation_status\",outcome=\"written\"} 1",
    ];
    let waiting = async {
        while !written.iter().all(|count| scheduler.metrics.open_metrics().contains(count)) {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("announcements in time");
    is_told_its_node(&client).await;
    has_its_device(&client).await;
    has_a_claim_of_its_own(&control_plane, &client).await;
    scheduler.stop().await;
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "dovetail");
    let learned = maps.get("dovetail-learned").await.expect("a ConfigMap").data.expect("data");
    let learned: Value = serde_json::from_str(&learned["learnt.json"]).expect("JSON");
    assert_eq!(learned["learnt"]["histogram"]["arrivals"], 5, "pods that were to be placed");
    let placed = pods.get("placed").await.expect("a pod");
    bind_again(&config, &placed).await;
    stop(&config, &pods, &placed, PreemptReason::Priority).await;
    let mut other = queue_objects::member("evicted", 8, "placed");
    other["spec"]["nodeName"] = json!("n0");
    queue_objects::create(&control_plane, &other);
    let other = pods.get("evicted").await.expect("a pod");
    stop(&config, &pods, &other, PreemptReason::Reclaim).await;
    write_receipts(&control_plane, &config, &client).await;

    let (used, refused) = asked(&folder.0.join("audit.log"));
    assert!(refused.is_empty(), "{refused:?}");
    let role = Api::<ClusterRole>::all(client.clone()).get("dovetail-scheduler").await;
    let own = Api::<Role>::namespaced(client.clone(), "dovetail").get("dovetail-scheduler").await;
    let mut granted_rights = granted(role.expect("a cluster role").rules);
    granted_rights.extend(granted(own.expect("a role").rules));
    // Lists stream on this server; older ones are listed, whatever is watched.
    let of = |rights: &BTreeSet<Right>, wanted: &str| -> BTreeSet<(String, String)> {
        let all = rights.iter().filter(|(_, _, verb)| verb == wanted);
        all.map(|(group, resource, _)| (group.clone(), resource.clone())).collect()
    };
    assert_eq!(of(&granted_rights, "list"), of(&granted_rights, "watch"));
    // The server asks for this one beside the right to change the status.
    granted_rights.retain(|(_, resource, _)| resource != "resourceclaims/binding");
    let is_absent = |group: &str| ABSENT_GROUPS.contains(&group) && group != JOB_SETS;
    granted_rights.retain(|(group, _, verb)| verb != "list" && !is_absent(group));
    assert_eq!(used, granted_rights);

    every_request_has_its_flow(config, client).await;
}

/// The server serves each kind of request under the flow schema of the manifests.
async fn every_request_has_its_flow(config: Config, client: Client) {
    let account = Client::try_from(config).expect("a client");
    let schemas = Api::<FlowSchema>::all(client);
    for (verb, path, name) in [
        ("GET", "/api/v1/nodes?limit=1", "dovetail-scheduler"),
        ("POST", "/api/v1/namespaces/default/pods/none/binding", "dovetail-scheduler"),
        ("PATCH", "/api/v1/namespaces/default/pods/none/status", "dovetail-announcements"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/default/events", "dovetail-announcements"),
        (
            "GET",
            "/apis/coordination.k8s.io/v1/namespaces/dovetail/leases/dovetail",
            "dovetail-lease",
        ),
    ] {
        let schema = schemas.get(name).await.expect("a flow schema").metadata.uid;
        let served = async {
            // The server takes a moment to learn of new schemas.
            while schema_of(&account, verb, path).await != schema {}
        };
        tokio::time::timeout(PATIENCE, served).await.unwrap_or_else(|_| panic!("{verb} {path}"));
    }
}
