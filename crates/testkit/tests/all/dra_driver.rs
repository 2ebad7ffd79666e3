//! Kubelets with a DRA driver against a real API server: what it refuses does not run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dovetail_testkit::cluster::Options;
use dovetail_testkit::dra_driver::{DraDriver, DraGpu};
use dovetail_testkit::{ControlPlane, KubeletOptions, Kubelets};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::kubelets::{bind, create_nodes};

/// How long anything may take on a busy machine.
const WITHIN: Duration = Duration::from_secs(120);
const HALF: &str = "gpu-0-mig-3g40gb-9-0";
/// It lies on the same memory.
const PART: &str = "gpu-0-mig-1g10gb-19-1";

/// Creates a pod that uses a claim; its UID.
async fn create_pod(pods: &Api<Pod>, name: &str, claim: &str) -> String {
    let pod = json!({"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 30,
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap().metadata.uid.unwrap()
}

/// Creates a claim, as a scheduler leaves it that gave it a device of node `a` for some pods.
async fn allocate(claims: &Api<ResourceClaim>, claim: &str, device: &str, pods: &[(&str, &str)]) {
    let spec = json!({"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "mig.nvidia.com"}}]}});
    let object = serde_json::from_value(json!({"metadata": {"name": claim}, "spec": spec}));
    claims.create(&PostParams::default(), &object.unwrap()).await.unwrap();
    let user = |(name, uid): &(&str, &str)| json!({"resource": "pods", "name": name, "uid": uid});
    let users: Vec<Value> = pods.iter().map(user).collect();
    let only = json!([{"key": "metadata.name", "operator": "In", "values": ["a"]}]);
    let result = json!({"request": "r", "driver": "gpu.nvidia.com", "pool": "a", "device": device});
    let status = json!({"reservedFor": users, "allocation": {"devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": only}]}}});
    let patch = Patch::Merge(json!({"status": status}));
    claims.patch_status(claim, &PatchParams::default(), &patch).await.unwrap();
}

/// What the status of a pod says: its phase, and what its container waits for.
async fn status(pods: &Api<Pod>, name: &str) -> (Option<String>, Option<String>) {
    let status = pods.get(name).await.unwrap().status.unwrap_or_default();
    let container = status.container_statuses.unwrap_or_default().into_iter().next();
    let waiting = container.and_then(|container| container.state?.waiting?.reason);
    (status.phase, waiting)
}

async fn start(control_plane: &ControlPlane, client: &Client) -> (Arc<DraDriver>, Kubelets) {
    create_nodes(client, &["a"]).await;
    let gpus = BTreeMap::from([("a".to_owned(), vec![DraGpu::H100])]);
    let driver = Arc::new(DraDriver::new(gpus));
    driver.publish(client).await.unwrap();
    let (options, devices) = (KubeletOptions::default(), Arc::clone(&driver));
    let kubelets = Kubelets::start_with_devices(client.clone(), options, devices);
    kubelets.wait_until_listed(WITHIN).await.unwrap();
    control_plane.cluster().check_alive().unwrap();
    (driver, kubelets)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_claim_a_driver_refuses_does_not_run() {
    let control_plane = ControlPlane::start(Options::default()).unwrap();
    if !control_plane.has_shared_counters("a_pod_whose_claim_a_driver_refuses_does_not_run") {
        return;
    }
    let namespace = control_plane.namespace("refused").await.unwrap();
    let client = control_plane.client().await.unwrap();
    let (driver, kubelets) = start(&control_plane, &client).await;
    let pods = Api::<Pod>::namespaced(client.clone(), namespace.name());
    let claims = Api::<ResourceClaim>::namespaced(client.clone(), namespace.name());

    let first = create_pod(&pods, "first", "half").await;
    create_pod(&pods, "stranger", "half").await;
    let second = create_pod(&pods, "second", "part").await;
    allocate(&claims, "half", HALF, &[("first", &first)]).await;
    allocate(&claims, "part", PART, &[("second", &second)]).await;
    bind(&client, namespace.name(), "first", "a").await;
    kubelets.wait_until(WITHIN, |counts| counts.running == 1).await.unwrap();
    assert_eq!(driver.devices_on("a"), [HALF]);

    for (at, name) in ["stranger", "second"].into_iter().enumerate() {
        bind(&client, namespace.name(), name, "a").await;
        let unprepared = at as u64 + 1;
        kubelets.wait_until(WITHIN, |counts| counts.unprepared == unprepared).await.unwrap();
        let creating = (Some("Pending".to_owned()), Some("ContainerCreating".to_owned()));
        assert_eq!(status(&pods, name).await, creating, "{name}");
    }
    let refusals = driver.refusals();
    let says: Vec<(&str, &str)> = refusals.iter().map(|one| (&*one.claim, &*one.reason)).collect();
    let overlap = "device gpu-0-mig-1g10gb-19-1 needs 1 memory-slice-1 of GPU 0, which has 1, of \
                   which 1 are taken";
    assert_eq!(says, [("half", "it is not reserved for the pod"), ("part", overlap)]);

    // All of them can go, and what they had can be had again.
    for name in ["first", "stranger", "second"] {
        pods.delete(name, &DeleteParams::default()).await.unwrap();
    }
    kubelets.wait_until(WITHIN, |counts| counts.deleted == 3).await.unwrap();
    assert!(driver.devices_on("a").is_empty());
    let third = create_pod(&pods, "third", "again").await;
    allocate(&claims, "again", PART, &[("third", &third)]).await;
    bind(&client, namespace.name(), "third", "a").await;
    let counts = kubelets.wait_until(WITHIN, |counts| counts.running == 2).await.unwrap();
    assert_eq!((counts.ended, counts.unprepared, counts.refused), (1, 2, 0));
    assert_eq!(driver.devices_on("a"), [PART]);
}
