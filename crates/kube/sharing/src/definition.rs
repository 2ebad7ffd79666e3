//! The CustomResourceDefinition of sharing policies. The schemas of `spec` and `status` are derived
//! from the types that read and write them.

use dovetail_objects::labels::DEFINITIONS;
use dovetail_objects::structural;
use serde_json::{Value, json};

use crate::policy::PolicySpec;
use crate::status::Status;

/// The definition as an object.
pub fn definition() -> Value {
    json!({
        "apiVersion": format!("{DEFINITIONS}/v1"),
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sharingpolicies.dovetail.dev"},
        "spec": {
            "group": "dovetail.dev",
            "names": {
                "kind": "SharingPolicy", "listKind": "SharingPolicyList",
                "plural": "sharingpolicies", "singular": "sharingpolicy",
            },
            "scope": "Cluster",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "How pods may share the GPUs of some nodes.",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": structural::<PolicySpec>(),
                        "status": structural::<Status>(),
                    },
                }},
            }],
        },
    })
}

/// The definition as it is in `deploy/sharing/policy-definition.yaml`.
pub fn definition_text() -> String {
    format!(
        "# Written by `cargo xtask codegen sharing`. Change crates/kube/sharing/src/policy.rs.\n{}",
        yaml(&definition())
    )
}

/// An object as YAML. What the library cannot write stays JSON, which is YAML, too.
pub fn yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap_or_else(|_| object.to_string())
}

fn columns() -> Value {
    let column =
        |name: &str, path: &str, kind: &str| json!({"name": name, "type": kind, "jsonPath": path});
    json!([
        column("Mode", ".spec.mode", "string"),
        column("Apply", ".spec.apply", "boolean"),
        column("Nodes", ".status.nodes", "integer"),
        column("Next", ".status.next.node", "string"),
        column("Step", ".status.step", "string"),
        column("Ready", ".status.conditions[?(@.type==\"Ready\")].status", "string"),
        column("Age", ".metadata.creationTimestamp", "date"),
    ])
}
