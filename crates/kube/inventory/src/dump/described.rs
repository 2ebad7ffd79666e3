//! What a collection keeps of pods that an object describes, wherever in its spec: pod templates,
//! and, of pods described in another shape (an Argo workflow, a predictor of KServe), the GPUs that
//! they request and the nodes that they select.

use serde_json::{Map, Value, json};

use super::keep::{Tree, keep_annotations, keep_told_of_containers};
use crate::facts::pod_fields::{has_succeeded, requests_gpus};

/// Numbers and switches beside a template, wherever it stands: how many pods are made from it, and
/// whether they are.
const OF_TEMPLATES: [&str; 8] = [
    "completions",
    "count",
    "minReplicas",
    "numOfHosts",
    "parallelism",
    "replicas",
    "size",
    "suspend",
];

/// Adds to what is kept of an object what its spec says of pods in places of its own; `template` is
/// what is kept of a pod template.
pub(super) fn keep_described(template: &Tree, object: &Value, kept: &mut Value) {
    let Some(spec) = object.get("spec").and_then(Value::as_object) else { return };
    // What has the shape of a pod template is kept there already.
    let is_kept = |field: &str, value: &Value| {
        field == "template" && value.pointer("/spec/containers").is_some()
    };
    let others = spec.iter().filter(|(field, value)| !is_kept(field, value));
    let found = others.filter_map(|(field, value)| Some((field.clone(), found(template, value)?)));
    let mut found: Map<String, Value> = found.chain(of_other_shape(spec)).collect();
    if !found.is_empty() {
        found.extend(beside(spec));
        add(&mut kept["spec"], Value::Object(found));
    }
}

/// Adds that pods of an object have succeeded, if a part of its status says so that is not kept.
pub(super) fn keep_success(object: &Value, kept: &mut Value) {
    let has_any = |of: &Value| has_succeeded(&of["status"]);
    if !has_any(object) || has_any(kept) {
        return;
    }
    if let Some(status) = kept.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("jobs".to_owned(), json!({"succeeded": 1}));
    }
}

/// The pods that are described somewhere in a value, with the way to them and how many are made
/// from each; other items of lists keep their names.
fn found(template: &Tree, value: &Value) -> Option<Value> {
    match value {
        Value::Object(_) if value.pointer("/spec/containers").is_some() => {
            let mut kept = template.keep(value)?;
            keep_annotations(value, &mut kept, |_| false);
            keep_told_of_containers(&value["spec"], &mut kept["spec"]);
            Some(kept)
        }
        Value::Object(fields) => {
            let within = fields
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), found(template, value)?)));
            let mut found: Map<String, Value> = within.chain(of_other_shape(fields)).collect();
            if found.is_empty() {
                return None;
            }
            let texts = ["groupName", "name"].map(|name| (name, fields.get(name)));
            let texts = texts.into_iter().filter(|(_, value)| value.is_some_and(Value::is_string));
            found.extend(texts.filter_map(|(name, value)| Some((name.to_owned(), value?.clone()))));
            found.extend(beside(fields));
            Some(Value::Object(found))
        }
        Value::Array(items) => {
            let found: Vec<Option<Value>> =
                items.iter().map(|item| found(template, item)).collect();
            let has_any = found.iter().any(Option::is_some);
            let others = items.iter().map(|item| match item["name"].as_str() {
                Some(name) => json!({"name": name}),
                None => json!({}),
            });
            let items = found.into_iter().zip(others);
            has_any.then(|| items.map(|(found, other)| found.unwrap_or(other)).collect())
        }
        _ => None,
    }
}

/// Of pods that are described in another shape than a template: what a container with GPUs
/// requests, and which nodes are selected.
fn of_other_shape(fields: &Map<String, Value>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let resources = fields.get("resources").filter(|resources| requests_gpus(resources));
    if let Some(resources) = resources {
        let amounts = ["limits", "requests"].map(|of| (of, resources.get(of)));
        let amounts = amounts.into_iter().filter_map(|(of, value)| Some((of.to_owned(), value?)));
        let amounts: Map<String, Value> = amounts.map(|(of, value)| (of, value.clone())).collect();
        found.push(("resources".to_owned(), Value::Object(amounts)));
    }
    if let Some(selector) = fields.get("nodeSelector").filter(|selector| selector.is_object()) {
        found.push(("nodeSelector".to_owned(), selector.clone()));
    }
    found
}

/// What stands beside pods that are described: how many there are, and what they tolerate.
fn beside(fields: &Map<String, Value>) -> Vec<(String, Value)> {
    let is_number = |value: &&Value| value.is_number() || value.is_boolean();
    let numbers = OF_TEMPLATES.map(|name| (name, fields.get(name).filter(is_number)));
    let tolerations = fields.get("tolerations").filter(|tolerations| tolerations.is_array());
    let all = numbers.into_iter().chain([("tolerations", tolerations)]);
    all.filter_map(|(name, value)| Some((name.to_owned(), value?.clone()))).collect()
}

/// Adds the fields of one value to those of another.
fn add(to: &mut Value, from: Value) {
    match (to, from) {
        (Value::Object(fields), Value::Object(more)) => {
            for (name, value) in more {
                add(fields.entry(name).or_insert(Value::Null), value);
            }
        }
        (to, from) => *to = from,
    }
}
