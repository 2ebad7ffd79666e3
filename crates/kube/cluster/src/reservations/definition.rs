//! The CustomResourceDefinition of reservations: its envelope, and the columns of `kubectl get
//! reservations`. The schemas of `spec` and `status` are derived from the types that read and write
//! them.

use dovetail_objects::labels::DEFINITIONS;
use dovetail_objects::reservation_spec_schema;
use serde_json::{Value, json};

use super::status::status_schema;
use crate::queues::yaml;

/// The definition as an object.
pub fn definition() -> Value {
    json!({
        "apiVersion": format!("{DEFINITIONS}/v1"),
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "reservations.dovetail.dev"},
        "spec": {
            "group": "dovetail.dev",
            "names": {
                "kind": "Reservation",
                "listKind": "ReservationList",
                "plural": "reservations",
                "singular": "reservation",
            },
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

/// The definition as it stands in `deploy/reservation-definition.yaml`.
pub fn definition_text() -> String {
    format!(
        "# Written by `cargo xtask codegen reservations`. Change \
         crates/kube/objects/src/reservation.rs.\n{}",
        yaml::text(&definition())
    )
}

fn columns() -> Value {
    let column =
        |name: &str, path: &str, kind: &str| json!({"name": name, "type": kind, "jsonPath": path});
    json!([
        column("Queue", ".spec.queue", "string"),
        column("Job", ".spec.job", "string"),
        column("Pods", ".spec.count", "integer"),
        column("From", ".spec.from", "string"),
        column("To", ".spec.to", "string"),
        column("Phase", ".status.phase", "string"),
        column("Earliest", ".status.earliestTime", "string"),
    ])
}

fn schema() -> Value {
    json!({
        "type": "object",
        "description": "Capacity that is reserved for a queue or a job from one time to another.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": reservation_spec_schema(),
            "status": status_schema(),
        },
    })
}
