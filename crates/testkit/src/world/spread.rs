//! Topology spread constraints.

use serde_json::{Value, json};

use super::affinity::{selector, topology_key};
use super::random::Draw;

/// One to three constraints, most of them hard.
pub(super) fn add_spread(pod: &mut Value, draw: &mut Draw) {
    let labels = pod["metadata"]["labels"].clone();
    let mut keys = Vec::new();
    let mut constraints = Vec::new();
    for _ in 0..1 + draw.below(3) {
        let constraint = constraint(&labels, draw);
        // The server refuses two constraints with the same key and the same reaction.
        let identity = (constraint["topologyKey"].clone(), constraint["whenUnsatisfiable"].clone());
        if !keys.contains(&identity) {
            keys.push(identity);
            constraints.push(constraint);
        }
    }
    pod["spec"]["topologySpreadConstraints"] = Value::Array(constraints);
}

fn constraint(labels: &Value, draw: &mut Draw) -> Value {
    let hard = draw.chance(90);
    let mut constraint = json!({
        "maxSkew": draw.pick(&[1, 1, 1, 2, 3]),
        "topologyKey": topology_key(draw),
        "whenUnsatisfiable": if hard { "DoNotSchedule" } else { "ScheduleAnyway" },
    });
    if draw.chance(97) {
        // Users mostly spread the pods of their own application.
        constraint["labelSelector"] = if draw.chance(50) && labels["app"].is_string() {
            json!({"matchLabels": {"app": labels["app"]}})
        } else {
            selector(draw)
        };
        if draw.chance(20) {
            constraint["matchLabelKeys"] =
                json!([draw.pick(&["pod-template-hash", "tier", "absent-key"])]);
        }
    }
    if hard && draw.chance(25) {
        constraint["minDomains"] = json!(draw.between(1, 5));
    }
    if draw.chance(30) {
        constraint["nodeAffinityPolicy"] = json!(draw.pick(&["Honor", "Ignore"]));
    }
    if draw.chance(40) {
        constraint["nodeTaintsPolicy"] = json!(draw.pick(&["Honor", "Ignore"]));
    }
    constraint
}
