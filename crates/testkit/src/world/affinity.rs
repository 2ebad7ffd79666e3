//! Required inter-pod affinity and anti-affinity, and the label selectors they share with spread.

use serde_json::{Value, json};

use super::node::TOPOLOGY_KEYS;
use super::random::Draw;

/// Values of the label `app` that pods carry and selectors name.
pub(super) const APPS: [&str; 4] = ["web", "db", "cache", "train"];
/// Values of the label `pod-template-hash`, which stands for a revision.
pub(super) const REVISIONS: [&str; 2] = ["5d4f", "9b2c"];
/// Namespaces of pods; their labels are in `generate`.
pub(super) const NAMESPACES: [&str; 3] = ["default", "team-a", "team-b"];

/// `podAffinity` or `podAntiAffinity`, required terms only.
pub(super) fn add_pod_terms(pod: &mut Value, kind: &str, most_terms: usize, draw: &mut Draw) {
    let labels = pod["metadata"]["labels"].clone();
    let terms =
        (0..1 + draw.below(most_terms)).map(|_| term(&labels, draw)).collect::<Vec<Value>>();
    pod["spec"]["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"] =
        Value::Array(terms);
}

fn term(labels: &Value, draw: &mut Draw) -> Value {
    let mut term = json!({"topologyKey": topology_key(draw)});
    if draw.chance(97) {
        term["labelSelector"] = selector(draw);
        if draw.chance(20) {
            add_label_keys(&mut term, labels, draw);
        }
    }
    match draw.below(10) {
        0 | 1 => term["namespaces"] = json!(draw.some(&NAMESPACES, 2)),
        2 => term["namespaceSelector"] = json!({}),
        3 => term["namespaceSelector"] = json!({"matchLabels": {"team": "a"}}),
        4 => {
            term["namespaceSelector"] = json!({"matchExpressions":
                [{"key": "team", "operator": "In", "values": ["b", "c"]}]});
            term["namespaces"] = json!([draw.pick(&NAMESPACES)]);
        }
        _ => {}
    }
    term
}

/// A topology key; one in twenty is on no node.
pub(super) fn topology_key(draw: &mut Draw) -> &'static str {
    if draw.chance(5) { TOPOLOGY_KEYS[3] } else { draw.pick(&TOPOLOGY_KEYS[..3]) }
}

/// The server turns both lists into expressions of the selector when the pod is created, and keeps
/// the lists; keys that the pod does not carry are left out.
fn add_label_keys(term: &mut Value, labels: &Value, draw: &mut Draw) {
    let (field, operator) = draw.pick(&[("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")]);
    let key = draw.pick(&["pod-template-hash", "tier", "absent-key"]);
    term[field] = json!([key]);
    let Some(value) = labels[key].as_str() else { return };
    let expression = json!({"key": key, "operator": operator, "values": [value]});
    match term["labelSelector"]["matchExpressions"].as_array_mut() {
        Some(expressions) => expressions.push(expression),
        None => term["labelSelector"]["matchExpressions"] = json!([expression]),
    }
}

/// A label selector over the labels that pods carry; one in twelve is empty and matches all.
pub(super) fn selector(draw: &mut Draw) -> Value {
    match draw.below(12) {
        0 => json!({}),
        1..=6 => json!({"matchLabels": {"app": draw.pick(&APPS)}}),
        7 => {
            json!({"matchLabels": {"app": draw.pick(&APPS), "tier": draw.pick(&["front", "back"])}})
        }
        8 => {
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": draw.some(&APPS, 3)}]})
        }
        9 => {
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": draw.some(&APPS, 2)}]})
        }
        10 => json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
        _ => json!({
            "matchLabels": {"app": draw.pick(&APPS)},
            "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}],
        }),
    }
}
