//! The requests that announce: conditions, statuses and events.

use dovetail_objects::Kind;

use super::body::{condition_patch, event};
use super::{AnnouncedWrite, EventSource, StatusOf};
use crate::request::{ApiRequest, JSON, JSON_PATCH, MERGE, Method, RequestClass, STRATEGIC_MERGE};

pub(crate) fn request(write: &AnnouncedWrite, source: &EventSource) -> ApiRequest {
    let (method, path, body) = match write {
        AnnouncedWrite::Condition(condition) => {
            let pod = &condition.pod;
            let path = format!("/api/v1/namespaces/{}/pods/{}/status", pod.namespace, pod.name);
            (Method::Patch, path, (STRATEGIC_MERGE, condition_patch(condition)))
        }
        AnnouncedWrite::Status(status) => {
            let StatusOf { kind, namespace, name, is_receipt } = &status.of;
            let place = match namespace.is_empty() {
                true => String::new(),
                false => format!("namespaces/{namespace}/"),
            };
            let (group, version, plural) = (kind.group(), kind.version(), kind.plural());
            let part = if *is_receipt { "" } else { "/status" };
            let path = format!("/apis/{group}/{version}/{place}{plural}/{name}{part}");
            // Servers know how to merge the lists of their own kinds alone.
            let media_type = match kind {
                _ if *is_receipt => MERGE,
                Kind::PodGroup => STRATEGIC_MERGE,
                _ => JSON_PATCH,
            };
            (Method::Patch, path, (media_type, status.patch.clone()))
        }
        AnnouncedWrite::Event(note, _) => {
            let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", note.about.namespace);
            (Method::Post, path, (JSON, event(note, source)))
        }
    };
    let (media_type, body) = body;
    ApiRequest::new(
        RequestClass::Announcement,
        method,
        path,
        (media_type, body.to_string().into_bytes()),
    )
}
