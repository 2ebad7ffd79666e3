//! The request of a bind, as small as it can be.

use serde::Serialize;

use super::{Bind, DECISION, EPOCH};
use crate::request::{ApiRequest, JSON, Method, RequestClass};

#[derive(Serialize)]
struct Binding<'a> {
    metadata: Metadata<'a>,
    target: BindTarget<'a>,
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
struct BindTarget<'a> {
    kind: &'static str,
    name: &'a str,
}

/// The body of a Binding. Kind and version are what the path says.
fn body(bind: &Bind) -> Vec<u8> {
    let metadata =
        Metadata { name: &bind.pod.name, uid: &bind.pod.uid, annotations: Annotations(bind) };
    let target = BindTarget { kind: "Node", name: &bind.node };
    // Strings and a map with string keys always encode.
    serde_json::to_vec(&Binding { metadata, target }).unwrap_or_default()
}

pub(super) fn request(bind: &Bind) -> ApiRequest {
    let path = format!("/api/v1/namespaces/{}/pods/{}/binding", bind.pod.namespace, bind.pod.name);
    ApiRequest::new(RequestClass::Bind, Method::Post, path, (JSON, body(bind)))
}

#[cfg(test)]
mod tests {
    use dovetail_cluster::world::PodKey;

    use super::*;

    #[test]
    fn a_binding_is_small_and_complete() {
        let bind = Bind {
            decision: 1,
            pod: PodKey { namespace: "n".into(), name: "p".into(), uid: "u".into() },
            node: "m".into(),
            epoch: 7,
            tag: "g\"1".to_owned(),
        };
        let expected = concat!(
            r#"{"metadata":{"name":"p","uid":"u","annotations":{"dovetail.dev/epoch":"7","#,
            r#""dovetail.dev/decision":"g\"1"}},"target":{"kind":"Node","name":"m"}}"#
        );
        let request = request(&bind);
        assert_eq!(String::from_utf8(request.body).unwrap(), expected);
        assert_eq!(request.path, "/api/v1/namespaces/n/pods/p/binding");
    }
}
