//! The scheduler with a DRA driver that keeps books of its own and refuses what its GPUs have not:
//! on a real server, with Kubernetes' controller that makes claims and takes them back.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use dovetail_scheduler::Options;
use dovetail_testkit::dra_driver::{DraDriver, DraGpu};
use dovetail_testkit::{ControlPlane, KubeletOptions, Kubelets, RUN_MS, cluster};
use futures_util::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::schedule::{PATIENCE, Running};

/// How long a pod runs that ends by itself, in milliseconds.
const RUNS_FOR: &str = "200";
/// How many pods there are of each template.
const OF_EACH: usize = 5;
/// Claims that two pods share.
const SHARED: [&str; 2] = ["shared-0", "shared-1"];

/// Three GPUs of either kind on three nodes.
fn gpus() -> BTreeMap<String, Vec<DraGpu>> {
    let (small, large) = (DraGpu::A100_40GB, DraGpu::H100);
    let nodes = [vec![large, large], vec![small, large], vec![small, small]];
    nodes.into_iter().enumerate().map(|(at, gpus)| (format!("n{at}"), gpus)).collect()
}

/// A node whose GPUs only the driver offers.
fn node(name: &str) -> Value {
    let resources = json!({"cpu": "64", "memory": "512Gi", "pods": "110"});
    json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}]}})
}

/// Devices of a profile; a part of a request.
fn of_profile(profile: &str, count: usize) -> Value {
    let is_it = format!("device.attributes['gpu.nvidia.com'].profile == '{profile}'");
    json!({"deviceClassName": "mig.nvidia.com", "allocationMode": "ExactCount", "count": count,
        "selectors": [{"cel": {"expression": is_it}}]})
}

/// What a claim asks for, by the name of its template.
fn templates() -> Vec<(&'static str, Value)> {
    let exactly = |of: Value| json!({"requests": [{"name": "r", "exactly": of}]});
    let mut alternative = of_profile("4g.40gb", 1);
    alternative["name"] = json!("large");
    let mut other = of_profile("4g.20gb", 1);
    other["name"] = json!("small");
    let of_one_gpu = json!([{"requests": ["one", "two"],
        "matchAttribute": "gpu.nvidia.com/parentUUID"}]);
    vec![
        ("whole", exactly(json!({"deviceClassName": "gpu.nvidia.com"}))),
        // Of both kinds of GPU, with one memory slice there and two here.
        ("tenth", exactly(of_profile("1g.10gb", 1))),
        ("media", exactly(of_profile("1g.5gb+me", 1))),
        ("third", exactly(of_profile("3g.20gb", 1))),
        ("two", exactly(of_profile("1g.5gb", 2))),
        ("either", json!({"requests": [{"name": "r", "firstAvailable": [alternative, other]}]})),
        (
            "pair",
            json!({"constraints": of_one_gpu, "requests": [
                {"name": "one", "exactly": of_profile("2g.20gb", 1)},
                {"name": "two", "exactly": of_profile("1g.20gb", 1)}]}),
        ),
    ]
}

/// A pod with one claim, which ends by itself if it has a claim of its own.
fn pod(name: &str, claim: Value, is_own: bool) -> Value {
    let annotations = if is_own { json!({RUN_MS: RUNS_FOR}) } else { json!({}) };
    let mut reference = claim;
    reference["name"] = json!("gpu");
    json!({"metadata": {"name": name, "annotations": annotations},
        "spec": {"schedulerName": "dovetail", "restartPolicy": "Never",
            "resourceClaims": [reference],
            "containers": [
                {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]}})
}

async fn create<K>(api: &Api<K>, objects: Vec<Value>)
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    let creating = stream::iter(objects).for_each_concurrent(16, |object| async move {
        let object: K = serde_json::from_value(object).expect("an object");
        drop(api.create(&PostParams::default(), &object).await.expect("a new object"));
    });
    creating.await;
}

/// Templates, claims that are shared, and pods of all of them; how many pods are of templates.
async fn create_all(client: &Client) -> usize {
    let templates = templates();
    let template = |(name, devices): &(&str, Value)| {
        let claim = json!({"spec": {"devices": devices}});
        json!({"metadata": {"name": name}, "spec": claim})
    };
    let all = templates.iter().map(template).collect();
    create(&Api::<ResourceClaimTemplate>::default_namespaced(client.clone()), all).await;
    let shared = |name: &&str| {
        let requests = json!([{"name": "r", "exactly": of_profile("3g.40gb", 1)}]);
        json!({"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}})
    };
    let all = SHARED.iter().map(shared).collect();
    create(&Api::<ResourceClaim>::default_namespaced(client.clone()), all).await;
    // In turns, so that all kinds of claims wait at once.
    let mut pods = Vec::new();
    for at in 0..OF_EACH {
        for (name, _) in &templates {
            let claim = json!({"resourceClaimTemplateName": name});
            pods.push(pod(&format!("{name}-{at}"), claim, true));
        }
    }
    let count = pods.len();
    for name in SHARED {
        for at in 0..2 {
            pods.push(pod(&format!("{name}-{at}"), json!({"resourceClaimName": name}), false));
        }
    }
    create(&Api::<Pod>::default_namespaced(client.clone()), pods).await;
    count
}

/// The devices of the claims that are shared, by node.
async fn shared_devices(client: &Client) -> BTreeMap<String, Vec<String>> {
    let claims = Api::<ResourceClaim>::default_namespaced(client.clone());
    let mut by_node = BTreeMap::<String, Vec<String>>::new();
    for name in SHARED {
        let status = claims.get(name).await.expect("a claim").status.expect("a status");
        let devices = status.allocation.and_then(|of| of.devices?.results).expect("devices");
        assert_eq!(status.reserved_for.map(|pods| pods.len()), Some(2), "{name}");
        for device in devices {
            by_node.entry(device.pool).or_default().push(device.device);
        }
    }
    by_node.values_mut().for_each(|devices| devices.sort());
    by_node
}

/// What the driver has prepared, by node.
fn prepared(driver: &DraDriver) -> BTreeMap<String, Vec<String>> {
    let nodes = gpus().into_keys().map(|node| (node.clone(), driver.devices_on(&node)));
    nodes.filter(|(_, devices)| !devices.is_empty()).collect()
}

/// More devices are asked for than there are, so that pods follow others on the same GPUs: of three
/// GPUs that are offered whole, five are asked for, beside parts of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_can_make_every_device_that_a_claim_gets() {
    let options = cluster::Options { controller_manager: true, ..cluster::Options::default() };
    let control_plane = ControlPlane::start(options).expect("a control plane");
    if !control_plane.has_shared_counters("a_driver_can_make_every_device_that_a_claim_gets") {
        return;
    }
    let client = control_plane.client().await.expect("a client");
    let nodes = gpus().keys().map(|name| node(name)).collect();
    create(&Api::<Node>::all(client.clone()), nodes).await;
    let driver = Arc::new(DraDriver::new(gpus()));
    driver.publish(&client).await.expect("classes and slices");
    let options = KubeletOptions::default();
    let kubelets = Kubelets::start_with_devices(client.clone(), options, Arc::clone(&driver));
    kubelets.wait_until_listed(PATIENCE).await.expect("lists");
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, Options::default());

    let ending = create_all(&client).await as u64;
    let holding = 2 * SHARED.len() as u64;
    let decided = kubelets.wait_until(PATIENCE, |counts| {
        counts.running + counts.unprepared + counts.rejected == ending + holding
    });
    let counts = decided.await.expect("a decision of each node about each pod");
    let refusals = driver.refusals();
    assert!(refusals.is_empty(), "{refusals:?}");
    assert_eq!((counts.unprepared, counts.rejected, counts.refused), (0, 0, 0));
    kubelets.wait_until(PATIENCE, |counts| counts.ended == ending).await.expect("ends");
    let held = shared_devices(&client).await;
    assert_eq!(prepared(&driver), held);
    assert_eq!(held.values().flatten().count(), SHARED.len());

    // A device of a claim stays until its second pod ends.
    let pods = Api::<Pod>::default_namespaced(client.clone());
    for (at, left) in [held, BTreeMap::new()].into_iter().enumerate() {
        for name in SHARED {
            let name = format!("{name}-{at}");
            drop(pods.delete(&name, &DeleteParams::default()).await.expect("a deletion"));
        }
        let deleted = (2 * (at + 1)) as u64;
        let gone = kubelets.wait_until(PATIENCE, |counts| counts.deleted == deleted);
        gone.await.expect("pods that are gone");
        assert_eq!(prepared(&driver), left);
    }
    scheduler.stop().await;
}
