//! The CustomResourceDefinition of reservations.

use dovetail_objects::{Definition, reservation_spec_schema, structural};

use super::status::Status;

/// What it says of reservations.
pub fn definition() -> Definition {
    Definition {
        kind: "Reservation",
        plural: "reservations",
        description: "Capacity that is reserved for a queue or a job between a start and an end \
             time.",
        columns: &[
            ("Queue", ".spec.queue", "string"),
            ("Job", ".spec.job", "string"),
            ("Pods", ".spec.count", "integer"),
            ("From", ".spec.from", "string"),
            ("To", ".spec.to", "string"),
            ("Phase", ".status.phase", "string"),
            ("Earliest", ".status.earliestTime", "string"),
        ],
        spec: reservation_spec_schema(),
        status: structural::<Status>(),
        rules: &[],
        source: ("crates/kube/objects/src/reservation.rs", "reservations"),
    }
}
