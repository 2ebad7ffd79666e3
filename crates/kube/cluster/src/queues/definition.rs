//! The CustomResourceDefinition of queues.

use dovetail_objects::{Definition, queue_spec_schema, structural};

use super::status::Status;

/// What it says of queues.
pub fn definition() -> Definition {
    Definition {
        kind: "Queue",
        plural: "queues",
        description: "The quota of a team and its usage.",
        columns: &[
            ("Parent", ".spec.parent", "string"),
            ("GPUs", ".status.gpus.used", "string"),
            ("Guaranteed", ".status.gpus.guaranteed", "string"),
            ("Limit", ".status.gpus.limit", "string"),
            ("Borrowed", ".status.gpus.borrowed", "string"),
            ("Pending", ".status.pending.jobs", "integer"),
            ("Share", ".status.share", "string"),
            ("Ready", ".status.conditions[?(@.type==\"Ready\")].status", "string"),
            ("Age", ".metadata.creationTimestamp", "date"),
        ],
        spec: queue_spec_schema(),
        status: structural::<Status>(),
        rules: &[
            (
                "!has(self.spec.parent) || self.spec.parent != self.metadata.name",
                "spec.parent: a queue cannot be its own parent",
            ),
            (
                "size(self.metadata.name) <= 63",
                "metadata.name: pods name a queue in a label, so it has at most 63 characters",
            ),
        ],
        source: ("crates/kube/objects/src/queue.rs", "queues"),
    }
}
