//! Requests that announce: conditions, statuses and events.

use dovetail_control::announce::{Source, StatusOf, Write, condition_patch, event};
use dovetail_control::answer::Answered;
use dovetail_objects::Kind;
use hyper::Request;
use kube::Client;
use kube::client::Body;

use crate::client::{self};

/// Sends a write. The server drops the request after `timeout_ms`.
pub async fn send(client: &Client, write: &Write, source: &Source, timeout_ms: u128) -> Answered {
    let request = match write {
        Write::Condition(condition) => {
            let pod = &condition.pod;
            let (namespace, name) = (&pod.namespace, &pod.name);
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/status");
            Request::patch(format!("{path}?timeout={timeout_ms}ms"))
                .header("Content-Type", "application/strategic-merge-patch+json")
                .body(Body::from(condition_patch(condition).to_string().into_bytes()))
        }
        Write::Status(status) => {
            let StatusOf { kind, namespace, name } = &status.of;
            let place = match namespace.is_empty() {
                true => String::new(),
                false => format!("namespaces/{namespace}/"),
            };
            let (group, version, plural) = (kind.group(), kind.version(), kind.plural());
            let path = format!("/apis/{group}/{version}/{place}{plural}/{name}/status");
            // Servers know how to merge the lists of their own kinds alone.
            let media_type = match kind {
                Kind::PodGroup => "application/strategic-merge-patch+json",
                _ => "application/json-patch+json",
            };
            Request::patch(format!("{path}?timeout={timeout_ms}ms"))
                .header("Content-Type", media_type)
                .body(Body::from(status.patch.to_string().into_bytes()))
        }
        Write::Event(note, _) => {
            let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", note.about.namespace);
            Request::post(format!("{path}?timeout={timeout_ms}ms"))
                .header("Content-Type", "application/json")
                .body(Body::from(event(note, source).to_string().into_bytes()))
        }
    };
    client::send(client, request).await
}
