//! One request of a kubelet, repeated until the API server took it or cannot any more.

use dovetail_rehearsal::kubelets::{Identity, KubeletWrite};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};

use super::pauses::Pauses;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestOutcome {
    Done,
    /// The pod is not there any more, or another one has its name.
    Gone,
    /// The API server will never take it.
    Refused,
    /// A driver has not prepared the devices of the pod: the API server was not asked.
    Unprepared,
}

pub(super) async fn perform(
    client: &Client,
    identity: &Identity,
    write: &KubeletWrite,
) -> RequestOutcome {
    for pause in Pauses::default() {
        let Err(error) = attempt(client, identity, write).await else {
            return RequestOutcome::Done;
        };
        if let kube::Error::Api(status) = &error {
            match status.code {
                404 | 409 => return RequestOutcome::Gone,
                // Too many requests: the same one may succeed later.
                429 => {}
                400..500 => {
                    report(identity, &error);
                    return RequestOutcome::Refused;
                }
                _ => {}
            }
        }
        tokio::time::sleep(pause).await;
    }
    unreachable!("the pauses never end")
}

async fn attempt(
    client: &Client,
    identity: &Identity,
    write: &KubeletWrite,
) -> Result<(), kube::Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &identity.namespace);
    let now_ms = jiff::Timestamp::now().as_millisecond().max(0).cast_unsigned();
    let Some(status) = write.status(identity, now_ms) else {
        let uid = Some(identity.uid.clone());
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions,
            ..DeleteParams::default()
        };
        return api.delete(&identity.name, &params).await.map(drop);
    };
    let patch = Patch::Strategic(status);
    api.patch_status(&identity.name, &PatchParams::default(), &patch).await.map(drop)
}

fn report(identity: &Identity, error: &kube::Error) {
    use std::io::Write as _;
    let Identity { namespace, name, .. } = identity;
    let _ = writeln!(std::io::stderr(), "kubelets: pod {namespace}/{name}: {error}");
}
