//! What a reservation says of itself: `status` of its object.

use std::collections::BTreeSet;

use dovetail_model::{Booked, BookingVerdict, TooLarge};
use dovetail_objects::json::timestamp;
use dovetail_objects::{Reservation, harmless, none_required};
use dovetail_units::amount::counted;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::Unusable;

/// Names of nodes that a status lists, at most.
const MOST_NODES: usize = 256;

// What a reservation reports. Its schema is derived from it: the comments of its fields are what
// `kubectl explain reservation.status` prints.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = none_required)]
pub(super) struct Status {
    /// `Admitted`: capacity is available at the reserved time. `Refused`: it is not. `Active`: the
    /// queue or job may use the capacity. `Ended`: the reserved time is over.
    #[schemars(extend("enum" = ["Admitted", "Refused", "Active", "Ended"]))]
    phase: &'static str,
    /// Explanation of the phase.
    #[schemars(length(max = 32_768))]
    message: String,
    /// Earliest start at which a refused reservation would have capacity, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    earliest_time: Option<String>,
    /// Nodes on which capacity is reserved, at most 256 of them.
    nodes: Vec<String>,
    /// Number of pods with reserved capacity.
    #[schemars(with = "i64", range(min = 0))]
    pods: usize,
    /// Generation of the reservation that this status describes.
    #[schemars(with = "i64", range(min = 0))]
    observed_generation: i64,
}

/// The phase that its status says; empty if it says none.
pub fn phase(object: &Reservation) -> &str {
    object.status["phase"].as_str().unwrap_or_default()
}

/// Whether its status is about what it says now.
pub(super) fn says_of_this(object: &Reservation) -> bool {
    object.status["observedGeneration"] == json!(object.generation)
}

/// What a reservation is to say; `None` as long as nothing was decided about it. `has_queue`: its
/// queue, if it names one, exists.
pub fn status(
    object: &Reservation,
    decided: Result<&Booked, &Unusable>,
    has_queue: bool,
) -> Option<Value> {
    let empty = BTreeSet::new();
    let (phase, message, earliest_ms, nodes, pods) = match decided {
        Err(problem) => ("Refused", problem.to_string(), None, empty, 0),
        Ok(booked) => {
            let places = &booked.claim.places;
            let nodes: BTreeSet<String> = places.iter().map(|at| at.node.to_string()).collect();
            let (phase, message, earliest_ms) = match booked.verdict {
                BookingVerdict::Requested => return None,
                BookingVerdict::Admitted => ("Admitted", missing(booked), None),
                BookingVerdict::Active => ("Active", missing(booked), None),
                BookingVerdict::Refused { earliest_ms, too_large } => {
                    ("Refused", refused(earliest_ms, too_large), earliest_ms)
                }
                BookingVerdict::Ended => ("Ended", "the reserved time is over".to_owned(), None),
            };
            (phase, message, earliest_ms, nodes, places.len())
        }
    };
    let no_queue = (!has_queue && phase != "Ended").then(|| {
        format!("queue {} does not exist: create it, or correct spec.queue", object.queue)
    });
    let not_listed = (nodes.len() > MOST_NODES).then(|| {
        let count = counted(nodes.len() as u64, "node");
        format!("status.nodes lists {MOST_NODES} of {count}")
    });
    let parts = [Some(message), no_queue, not_listed].into_iter().flatten();
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    let message = parts.join("; ");
    Some(json!(Status {
        phase,
        message: harmless(&message).to_string(),
        earliest_time: earliest_ms.map(timestamp),
        nodes: nodes.into_iter().take(MOST_NODES).collect(),
        pods,
        observed_generation: object.generation,
    }))
}

fn refused(earliest_ms: Option<u64>, too_large: Option<TooLarge>) -> String {
    match (earliest_ms, too_large) {
        (Some(at_ms), _) => {
            let at = timestamp(at_ms);
            format!("no room at the reserved time: the earliest start with room is {at}")
        }
        (None, Some(too_large)) => too_large.to_string(),
        (None, None) => {
            "no room at the reserved time or at any later time that can be forecast: the nodes \
                 are too small, or pods without annotation dovetail.dev/runtime run for an unknown \
                 time"
                .to_owned()
        }
    }
}

fn missing(booked: &Booked) -> String {
    let count = booked.booking.count;
    match booked.missing() {
        0 => String::new(),
        missing => {
            let pods = counted(u64::from(count), "pod");
            format!("no room for {missing} of {pods}: nodes were removed or are full")
        }
    }
}

/// The JSON patch that makes a reservation say what it is to say; `None` if it does.
pub fn patch(object: &Reservation, wanted: &Value) -> Option<Value> {
    // The identity is tested first: nothing is said of another reservation of the name.
    (object.status != *wanted).then(|| {
        json!([
            {"op": "test", "path": "/metadata/uid", "value": object.meta.uid},
            {"op": "add", "path": "/status", "value": wanted},
        ])
    })
}
