//! How fast pods are bound that each have a ResourceClaim of their own.

use std::time::Instant;

use futures_util::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{
    DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::contestant::{BARE_IN_FLIGHT, Contestant, post_binding};
use crate::spread::Spread;
use crate::stage::{SET_UP_IN_FLIGHT, Stage, create};

const NODES: usize = 500;
/// Devices of a node.
const DEVICES: usize = 10;
const PODS: usize = NODES * DEVICES;
const TURNS: usize = 3;
const DRIVER: &str = "gpu.example.com";

/// Each takes its turns on control planes of its own: claims that had devices are not removed
/// without the controllers.
pub(crate) fn print() {
    let mut rates: [Vec<f64>; 3] = Default::default();
    for _ in 0..TURNS {
        for (at, contestant) in Contestant::ALL.into_iter().enumerate() {
            let rate = measure(contestant);
            eprintln!("{}: {rate:.0} pods/s", contestant.name());
            rates[at].push(rate);
        }
    }
    let spreads = rates.map(Spread::of);
    let limit = spreads[0].median();
    println!("| client | pods/s bound: median of {TURNS} (range) | of the bare client |");
    println!("|---|---|---|");
    for (contestant, spread) in Contestant::ALL.into_iter().zip(&spreads) {
        println!("| {} | {spread} | {:.2} |", contestant.name(), spread.median() / limit);
    }
    let ratio = spreads[1].median() / limit;
    println!("\ndovetail to the bare client: {ratio:.2} (target 0.70)");
    let peer = spreads[1].median() / spreads[2].median();
    println!("dovetail to kube-scheduler: {peer:.1} (target 5)");
}

/// Pods per second, from the first that a watch shows bound to the last.
fn measure(contestant: Contestant) -> f64 {
    let stage = Stage::with_nodes(NODES);
    let claimed = stage.runtime.block_on(set_up(&stage.client, contestant.scheduler_name()));
    let mut bound = stage.runtime.block_on(stage.watch_bound());
    let binding = match contestant {
        Contestant::BareClient => {
            let client = stage.client.clone();
            stage.runtime.spawn(async move { serve_bare(&client, claimed).await });
            None
        }
        _ => Some(contestant.begin(&stage, Vec::new(), true)),
    };
    let all = stage.runtime.block_on(bound.take(PODS));
    drop(binding);
    let (first, last): (Instant, Instant) = (all[0].1, all[PODS - 1].1);
    PODS as f64 / (last - first).as_secs_f64()
}

/// A pod, its identity, and the name of its claim.
struct Claimed {
    pod: String,
    uid: String,
    claim: String,
}

/// Devices, and pods with claims as Kubernetes' controller makes them from a template.
async fn set_up(client: &Client, scheduler: &str) -> Vec<Claimed> {
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [
        {"cel": {"expression": format!("device.driver == '{DRIVER}'")}}]}});
    create(&Api::<DeviceClass>::all(client.clone()), [class].into_iter()).await;
    create(&Api::<ResourceSlice>::all(client.clone()), (0..NODES).map(slice)).await;
    let template = json!({"metadata": {"name": "one-gpu"}, "spec": {"spec": claim_spec()}});
    let templates = Api::<ResourceClaimTemplate>::default_namespaced(client.clone());
    create(&templates, [template].into_iter()).await;
    let pods = Api::<Pod>::default_namespaced(client.clone());
    create(&pods, (0..PODS).map(|at| pod(scheduler, &format!("p{at}")))).await;
    let there = pods.list_metadata(&ListParams::default()).await.expect("the pods").items;
    let claimed = there.into_iter().map(|pod| {
        let pod_name = pod.metadata.name.expect("a name");
        let claim = format!("{pod_name}-gpu");
        Claimed { pod: pod_name, uid: pod.metadata.uid.expect("an identity"), claim }
    });
    let claimed: Vec<Claimed> = claimed.collect();
    create(&Api::<ResourceClaim>::default_namespaced(client.clone()), claimed.iter().map(claim))
        .await;
    let naming = stream::iter(&claimed).for_each_concurrent(SET_UP_IN_FLIGHT, |claimed| {
        let status =
            json!({"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claimed.claim}]});
        patch_status(&pods, &claimed.pod, json!({"status": status}))
    });
    naming.await;
    claimed
}

fn slice(at: usize) -> Value {
    let name = format!("n{at}");
    let devices: Vec<Value> = (0..DEVICES).map(|at| json!({"name": format!("d{at}")})).collect();
    let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
    json!({"metadata": {"name": name},
        "spec": {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}})
}

fn claim_spec() -> Value {
    json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}})
}

fn pod(scheduler: &str, name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"schedulerName": scheduler,
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        "containers": [
            {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]}})
}

fn claim(claimed: &Claimed) -> Value {
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": claimed.pod, "uid": claimed.uid,
        "controller": true, "blockOwnerDeletion": true});
    let annotations = json!({"resource.kubernetes.io/pod-claim-name": "gpu"});
    let metadata =
        json!({"name": claimed.claim, "annotations": annotations, "ownerReferences": [owner]});
    json!({"metadata": metadata, "spec": claim_spec()})
}

/// Makes the writes of a scheduler for each pod, and decides nothing.
async fn serve_bare(client: &Client, all: Vec<Claimed>) {
    let claims = Api::<ResourceClaim>::default_namespaced(client.clone());
    let serving = stream::iter(all.iter().enumerate());
    let serving = serving.for_each_concurrent(BARE_IN_FLIGHT, |(at, claimed)| {
        let claims = &claims;
        async move {
            let node = format!("n{}", at / DEVICES);
            let finalizers =
                json!({"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}});
            let patch = Patch::Merge(&finalizers);
            let patched = claims.patch(&claimed.claim, &PatchParams::default(), &patch).await;
            drop(patched.expect("a finalizer"));
            let device = json!({"request": "gpu", "driver": DRIVER, "pool": node,
                "device": format!("d{}", at % DEVICES)});
            let only = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
            let allocation = json!({"devices": {"results": [device]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": only}]}});
            let user = json!({"resource": "pods", "name": claimed.pod, "uid": claimed.uid});
            let status = json!({"allocation": allocation, "reservedFor": [user]});
            patch_status(claims, &claimed.claim, json!({"status": status})).await;
            post_binding(client, &claimed.pod, &node).await;
        }
    });
    serving.await;
}

async fn patch_status<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let patched = api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    drop(patched.expect("a status"));
}
