//! The CustomResourceDefinition of queues: its envelope, and the columns of `kubectl get queues`.
//! The schemas of `spec` and `status` are derived from the types that read and write them.

use dovetail_objects::labels::DEFINITIONS;
use dovetail_objects::queue_spec_schema;
use serde_json::{Value, json};

use super::status::status_schema;
use super::yaml;

/// The definition as an object.
pub fn definition() -> Value {
    json!({
        "apiVersion": format!("{DEFINITIONS}/v1"),
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "queues.dovetail.dev"},
        "spec": {
            "group": "dovetail.dev",
            "names": {"kind": "Queue", "listKind": "QueueList", "plural": "queues", "singular": "queue"},
            "scope": "Cluster",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
                "schema": {"openAPIV3Schema": schema()},
            }],
        },
    })
}

/// The definition as it stands in `deploy/queue-definition.yaml`.
pub fn definition_text() -> String {
    format!(
        "# Written by `cargo xtask codegen queues`. Change crates/kube/objects/src/queue.rs.\n{}",
        yaml::text(&definition())
    )
}

fn columns() -> Value {
    let column =
        |name: &str, path: &str, kind: &str| json!({"name": name, "type": kind, "jsonPath": path});
    json!([
        column("Parent", ".spec.parent", "string"),
        column("GPUs", ".status.gpus.used", "string"),
        column("Guaranteed", ".status.gpus.guaranteed", "string"),
        column("Limit", ".status.gpus.limit", "string"),
        column("Borrowed", ".status.gpus.borrowed", "string"),
        column("Pending", ".status.pending.jobs", "integer"),
        column("Share", ".status.share", "string"),
        column("Ready", ".status.conditions[?(@.type==\"Ready\")].status", "string"),
        column("Age", ".metadata.creationTimestamp", "date"),
    ])
}

fn schema() -> Value {
    json!({
        "type": "object",
        "description": "What a team is given of the cluster, and what it holds.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": queue_spec_schema(),
            "status": status_schema(),
        },
        "x-kubernetes-validations": [
            rule(
                "!has(self.spec.parent) || self.spec.parent != self.metadata.name",
                "spec.parent: a queue cannot be its own parent",
            ),
            rule(
                "size(self.metadata.name) <= 63",
                "metadata.name: pods name a queue in a label, so it has at most 63 characters",
            ),
        ],
    })
}

fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}
