//! The requests about binds and orders, as small as they can be.

use dovetail_cluster::world::{ClaimKey, PodKey};
use dovetail_control::answer::Answered;
use dovetail_control::bind::{Bind, DECISION, EPOCH};
use dovetail_objects::{DISRUPTION_TARGET, SELECTED_NODE};
use hyper::Request;
use kube::Client;
use kube::client::Body;
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::send;

#[derive(Serialize)]
struct Binding<'a> {
    metadata: Metadata<'a>,
    target: Target<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    uid: &'a str,
    annotations: Annotations<'a>,
}

struct Annotations<'a>(&'a Bind);

impl Serialize for Annotations<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(EPOCH, self.0.epoch.to_string()), (DECISION, self.0.tag.clone())])
    }
}

#[derive(Serialize)]
struct Target<'a> {
    kind: &'static str,
    name: &'a str,
}

/// The body of a Binding. Kind and version are what the path says.
fn body(bind: &Bind) -> Vec<u8> {
    let metadata = Metadata { name: &bind.pod, uid: &bind.uid, annotations: Annotations(bind) };
    let target = Target { kind: "Node", name: &bind.node };
    // Strings and a map with string keys always encode.
    serde_json::to_vec(&Binding { metadata, target }).unwrap_or_default()
}

/// Sends a bind. The server drops the request after `timeout_ms`.
pub async fn post(client: &Client, bind: &Bind, timeout_ms: u128) -> Answered {
    let path = format!(
        "/api/v1/namespaces/{}/pods/{}/binding?timeout={timeout_ms}ms",
        bind.namespace, bind.pod
    );
    let request = Request::post(path).header("Content-Type", "application/json");
    send(client, request.body(Body::from(body(bind)))).await
}

/// Reads a pod.
pub async fn get(client: &Client, namespace: &str, name: &str) -> Answered {
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    send(client, Request::get(path).body(Body::empty())).await
}

/// Deletes a pod, if it is still this one.
pub async fn delete(client: &Client, pod: &PodKey) -> Answered {
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1",
        "preconditions": {"uid": pod.uid}});
    send_delete(client, pod, &options).await
}

/// Asks whether [`delete`] would be done. Where a request has options in its body, the server reads
/// none in the address.
pub async fn would_delete(client: &Client, pod: &PodKey) -> Answered {
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1",
        "preconditions": {"uid": pod.uid}, "dryRun": ["All"]});
    send_delete(client, pod, &options).await
}

async fn send_delete(client: &Client, pod: &PodKey, options: &Value) -> Answered {
    let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
    let request = Request::delete(path).header("Content-Type", "application/json");
    send(client, request.body(Body::from(options.to_string().into_bytes()))).await
}

/// Sets the condition `DisruptionTarget` of a pod, if it is still this one.
pub async fn mark(client: &Client, pod: &PodKey, reason: &str, message: &str) -> Answered {
    patch_status(client, pod, &target("True", reason, message)).await
}

/// Asks whether [`mark`] would be done.
pub async fn would_mark(client: &Client, pod: &PodKey, reason: &str, message: &str) -> Answered {
    let status = target("True", reason, message);
    let body = json!({"metadata": {"uid": pod.uid}, "status": status});
    send_patch_to(client, pod, "?dryRun=All", &body).await
}

/// Takes the condition `DisruptionTarget` of a pod back, if it is still this one.
pub async fn unmark(client: &Client, pod: &PodKey, reason: &str, message: &str) -> Answered {
    patch_status(client, pod, &target("False", reason, message)).await
}

/// A status with the condition `DisruptionTarget`.
fn target(status: &str, reason: &str, message: &str) -> Value {
    let now = format!("{:.0}", jiff::Timestamp::now());
    let condition = json!({"type": DISRUPTION_TARGET, "status": status, "reason": reason,
        "message": message, "lastTransitionTime": now});
    json!({"conditions": [condition]})
}

/// Says for which node a claim is to get its volume, if it is still this one and of this version.
pub async fn select_node(client: &Client, claim: &ClaimKey, version: &str, node: &str) -> Answered {
    let ClaimKey { namespace, name, uid } = claim;
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
    let body = json!({"metadata": {"uid": uid, "resourceVersion": version,
        "annotations": {SELECTED_NODE: node}}});
    let request = Request::patch(path)
        .header("Content-Type", "application/merge-patch+json")
        .body(Body::from(body.to_string().into_bytes()));
    send(client, request).await
}

/// Changes the status of a pod, if it is still this one.
pub async fn patch_status(client: &Client, pod: &PodKey, status: &Value) -> Answered {
    send_patch(client, pod, &json!({"metadata": {"uid": pod.uid}, "status": status})).await
}

/// Changes the status of a pod by a patch that says of which one.
pub async fn send_patch(client: &Client, pod: &PodKey, body: &Value) -> Answered {
    send_patch_to(client, pod, "", body).await
}

async fn send_patch_to(client: &Client, pod: &PodKey, options: &str, body: &Value) -> Answered {
    let path = format!("/api/v1/namespaces/{}/pods/{}/status{options}", pod.namespace, pod.name);
    let request = Request::patch(path)
        .header("Content-Type", "application/strategic-merge-patch+json")
        .body(Body::from(body.to_string().into_bytes()));
    send(client, request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_is_small_and_complete() {
        let bind = Bind {
            decision: 1,
            namespace: "n".to_owned(),
            pod: "p".to_owned(),
            uid: "u".to_owned(),
            node: "m".to_owned(),
            epoch: 7,
            tag: "g\"1".to_owned(),
        };
        let expected = r#"{"metadata":{"name":"p","uid":"u","annotations":{"dovetail.dev/epoch":"7","dovetail.dev/decision":"g\"1"}},"target":{"kind":"Node","name":"m"}}"#;
        assert_eq!(String::from_utf8(body(&bind)).unwrap(), expected);
    }
}
