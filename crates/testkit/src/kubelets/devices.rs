//! What a node does about the claims of a pod: their devices are there before its containers run,
//! and gone before the API server hears that they ended.

use dovetail_rehearsal::kubelets::{Identity, KubeletWrite};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::driver::plain;
use super::pauses::Pauses;
use super::request::{RequestOutcome, perform};
use crate::dra_driver::DraDriver;

/// Tells the API server of a pod, where a driver may prevent that it runs.
pub(super) async fn carry_out(
    client: &Client,
    driver: &DraDriver,
    identity: &Identity,
    write: &KubeletWrite,
) -> RequestOutcome {
    match write {
        KubeletWrite::Run => {
            if let Err(outcome) = prepare(client, driver, identity).await {
                return outcome;
            }
        }
        KubeletWrite::End(_) => {
            driver.unprepare(&identity.uid);
            if driver.has_refused(&identity.uid) {
                // It has never run, so that it has no end.
                return RequestOutcome::Unprepared;
            }
        }
        KubeletWrite::Reject(_) | KubeletWrite::Delete => {}
    }
    let outcome = perform(client, identity, write).await;
    if outcome == RequestOutcome::Gone {
        driver.unprepare(&identity.uid);
    }
    outcome
}

/// Prepares the claims of a pod; otherwise says how the write that it runs ends.
async fn prepare(
    client: &Client,
    driver: &DraDriver,
    identity: &Identity,
) -> Result<(), RequestOutcome> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &identity.namespace);
    let claims: Api<ResourceClaim> = Api::namespaced(client.clone(), &identity.namespace);
    let pod = read(&pods, &identity.name).await.ok_or(RequestOutcome::Gone)?;
    if pod.metadata.uid.as_deref() != Some(&*identity.uid) {
        return Err(RequestOutcome::Gone);
    }
    let pod = plain(&pod);
    let prepared = match driver.claims_of(&pod) {
        Ok(names) => {
            let mut named = Vec::new();
            for name in names {
                let claim = read(&claims, &name).await;
                named.push((name, claim.map(|claim| plain(&claim))));
            }
            driver.prepare(&pod, &named)
        }
        Err(refusal) => Err(refusal),
    };
    if prepared.is_ok() {
        return Ok(());
    }
    // Only for people who look: a server that does not take it changes nothing.
    let status = Patch::Strategic(creating(&pod));
    let _ = pods.patch_status(&identity.name, &PatchParams::default(), &status).await;
    Err(RequestOutcome::Unprepared)
}

/// The status of a pod whose containers are not created.
fn creating(pod: &Value) -> Value {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let statuses = containers.map(|container| {
        json!({"name": container["name"], "image": container["image"], "imageID": "",
            "ready": false, "started": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ContainerCreating"}}})
    });
    let statuses: Vec<Value> = statuses.collect();
    json!({"metadata": {"uid": pod["metadata"]["uid"]},
        "status": {"phase": "Pending", "containerStatuses": statuses}})
}

/// An object, as soon as the API server answers; `None` where there is none.
async fn read<K>(api: &Api<K>, name: &str) -> Option<K>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    for pause in Pauses::default() {
        match api.get_opt(name).await {
            Ok(object) => return object,
            Err(_) => tokio::time::sleep(pause).await,
        }
    }
    unreachable!("the pauses never end")
}
