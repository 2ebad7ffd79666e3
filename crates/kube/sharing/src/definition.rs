//! The CustomResourceDefinition of sharing policies.

use dovetail_objects::{Definition, structural};

use crate::policy::PolicySpec;
use crate::status::Status;

/// What it says of sharing policies.
pub fn definition() -> Definition {
    Definition {
        kind: "SharingPolicy",
        plural: "sharingpolicies",
        description: "How pods may share the GPUs of the selected nodes.",
        columns: &[
            ("Mode", ".spec.mode", "string"),
            ("Apply", ".spec.apply", "boolean"),
            ("Nodes", ".status.nodes", "integer"),
            ("Next", ".status.next.node", "string"),
            ("Step", ".status.step", "string"),
            ("Ready", ".status.conditions[?(@.type==\"Ready\")].status", "string"),
            ("Age", ".metadata.creationTimestamp", "date"),
        ],
        spec: structural::<PolicySpec>(),
        status: structural::<Status>(),
        rules: &[],
        source: ("crates/kube/sharing/src/policy.rs", "sharing"),
    }
}
