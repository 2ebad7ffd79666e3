//! Devices of claims on a real server: what keeps pods from them, and what is written for them.

use dovetail_scheduler::Options;
use dovetail_testkit::{ControlPlane, FreshControlPlane};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::queue_objects::{create, kubectl, until};
use crate::schedule::{Running, create_nodes, pod};

const API: &str = "resource.k8s.io/v1";

/// A control plane with nodes, of which each of the first has so many devices of class `gpu`.
async fn start(nodes: usize, devices: &[usize]) -> (FreshControlPlane, Client) {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), nodes).await;
    let class = json!({"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}});
    create(&control_plane, &class);
    for (at, count) in devices.iter().enumerate() {
        let devices = (0..*count).map(|at| json!({"name": format!("d{at}")})).collect();
        create(&control_plane, &slice(&format!("n{at}"), devices));
    }
    (control_plane, client)
}

fn slice(node: &str, devices: Vec<Value>) -> Value {
    let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
    json!({"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": node},
        "spec": {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}})
}

/// A claim of one device, and the pod that refers to it.
fn create_claimed(control_plane: &ControlPlane, name: &str) {
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
    let claim = json!({"apiVersion": API, "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "dovetail",
            "resourceClaims": [{"name": "c", "resourceClaimName": name}],
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "c"}]}}]}});
    create(control_plane, &claim);
    create(control_plane, &pod);
}

async fn node_of(pods: &Api<Pod>, name: &str) -> Option<String> {
    pods.get(name).await.expect("a pod").spec.and_then(|spec| spec.node_name)
}

/// What the condition `PodScheduled` of a pod says while it has no node.
async fn message_of(pods: &Api<Pod>, name: &str) -> String {
    let status = pods.get(name).await.expect("a pod").status.unwrap_or_default();
    let mut conditions = status.conditions.into_iter().flatten();
    let scheduled = conditions.find(|one| one.type_ == "PodScheduled");
    scheduled.and_then(|one| one.message).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_taint_rule_keeps_pods_from_its_devices_until_it_is_deleted() {
    let (control_plane, client) = start(2, &[1, 1]).await;
    let taint = json!({"key": "example.com/broken", "value": "fan", "effect": "NoExecute"});
    let selector = json!({"driver": "gpu.example.com", "pool": "n0"});
    let rule = json!({"apiVersion": API, "kind": "DeviceTaintRule",
        "metadata": {"name": "maintenance"}, "spec": {"deviceSelector": selector, "taint": taint}});
    create(&control_plane, &rule);
    create_claimed(&control_plane, "first");
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, Options::default());
    let pods = Api::<Pod>::default_namespaced(client.clone());
    until("a device without a taint", async || node_of(&pods, "first").await.is_some()).await;
    assert_eq!(node_of(&pods, "first").await.as_deref(), Some("n1"));
    create_claimed(&control_plane, "second");
    let says = "with the taint example.com/broken=fan:NoExecute of DeviceTaintRule maintenance";
    let events = ["get", "events", "-o", "jsonpath={.items[*].message}"];
    until(says, async || kubectl(&control_plane, &events, "").0.contains(says)).await;
    let (said, is_done) =
        kubectl(&control_plane, &["delete", "devicetaintrule", "maintenance"], "");
    assert!(is_done, "{said}");
    until("the device without its taint", async || node_of(&pods, "second").await.is_some()).await;
    assert_eq!(node_of(&pods, "second").await.as_deref(), Some("n0"));
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_bound_when_its_driver_says_that_its_device_is_attached() {
    let (control_plane, client) = start(1, &[]).await;
    let device = json!({"name": "d0", "bindsToNode": true, "bindingConditions": ["Attached"],
        "bindingFailureConditions": ["Broken"]});
    create(&control_plane, &slice("n0", vec![device]));
    create_claimed(&control_plane, "first");
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, Options::default());
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let claims = Api::<ResourceClaim>::default_namespaced(client.clone());
    let says = "until device gpu.example.com/n0/d0 is ready";
    until(says, async || message_of(&pods, "first").await.contains(says)).await;
    // It fails once, and is attached when the claim gets it for the second time.
    for (condition, is_over) in [("Broken", false), ("Attached", true)] {
        until("a device for the claim", async || device_of(&claims, "first").await.is_some()).await;
        let conditions = json!([{"type": condition, "status": "True", "reason": "Fabric",
            "message": "by its fabric", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let status = json!({"driver": "gpu.example.com", "pool": "n0", "device": "d0",
            "conditions": conditions});
        let patch = json!({"status": {"devices": [status]}}).to_string();
        let arguments = [
            "patch",
            "resourceclaim",
            "first",
            "--subresource=status",
            "--type=merge",
            "--patch",
            &patch,
        ];
        let (said, is_done) = kubectl(&control_plane, &arguments, "");
        assert!(is_done, "{said}");
        match is_over {
            false => {
                let is_free = async || device_of(&claims, "first").await.is_none();
                until("the end of the allocation", is_free).await;
            }
            true => until("a node", async || node_of(&pods, "first").await.is_some()).await,
        }
    }
    scheduler.stop().await;
}

/// The device that a claim has.
async fn device_of(claims: &Api<ResourceClaim>, name: &str) -> Option<String> {
    let status = claims.get(name).await.expect("a claim").status?;
    Some(status.allocation?.devices?.results?.first()?.device.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_has_gpus_by_a_claim_where_a_device_class_names_their_resource() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}});
    create(&control_plane, &node);
    let allocatable = json!({"cpu": "8", "memory": "64Gi", "pods": "110"});
    let patch = json!({"status": {"allocatable": allocatable, "capacity": allocatable},
        "spec": {"taints": null}});
    for arguments in [&["--subresource=status"] as &[&str], &[]] {
        let patch = patch.to_string();
        let first = ["patch", "node", "n0", "--type=merge", "--patch", &patch];
        let (said, is_done) = kubectl(&control_plane, &[&first, arguments].concat(), "");
        assert!(is_done, "{said}");
    }
    let class = json!({"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": "nvidia.com/gpu",
            "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}});
    create(&control_plane, &class);
    create(&control_plane, &slice("n0", vec![json!({"name": "d0"}), json!({"name": "d1"})]));
    for (name, gpus) in [("first", 2), ("second", 1)] {
        let mut pod = pod(name, gpus);
        (pod["apiVersion"], pod["kind"]) = (json!("v1"), json!("Pod"));
        pod["metadata"]["namespace"] = json!("default");
        create(&control_plane, &pod);
    }
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, Options::default());
    let pods = Api::<Pod>::default_namespaced(client.clone());
    until("devices for the first pod", async || node_of(&pods, "first").await.is_some()).await;
    let first = pods.get("first").await.expect("a pod");
    let status = first.status.and_then(|status| status.extended_resource_claim_status);
    let status = status.expect("the claim of the pod");
    assert_eq!(status.request_mappings[0].resource_name, "nvidia.com/gpu");
    let claims = Api::<ResourceClaim>::default_namespaced(client.clone());
    let claim = claims.get(&status.resource_claim_name).await.expect("a claim");
    assert_eq!(claim.metadata.owner_references.expect("an owner")[0].name, "first");
    let allocation = claim.status.and_then(|status| status.allocation).expect("an allocation");
    assert_eq!(allocation.devices.and_then(|all| all.results).map(|all| all.len()), Some(2));
    let says = "Insufficient nvidia.com/gpu";
    until(says, async || message_of(&pods, "second").await.contains(says)).await;
    // Without Kubernetes' controllers nobody else deletes the claim of a pod that is over.
    for arguments in [
        ["delete", "pod", "first", "--force", "--grace-period=0", "--wait=false"],
        [
            "patch",
            "resourceclaim",
            &status.resource_claim_name,
            "--type=merge",
            "--patch",
            "{\"metadata\":{\"finalizers\":null}}",
        ],
    ] {
        let (said, is_done) = kubectl(&control_plane, &arguments, "");
        assert!(is_done, "{said}");
    }
    let name = &status.resource_claim_name;
    let (said, is_done) = kubectl(&control_plane, &["delete", "resourceclaim", name], "");
    assert!(is_done, "{said}");
    until("devices for the second pod", async || node_of(&pods, "second").await.is_some()).await;
    scheduler.stop().await;
}
