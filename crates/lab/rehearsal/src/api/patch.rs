//! Patches: JSON patch, merge patch, and the strategic merge patch for the lists that schedulers
//! touch.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::Call;
use super::failure::{ApiFailure, FieldCause, FieldFault};
use super::kind::ResourceKind;
use super::state::ServerState;
use super::store::StoredObject;
use super::update::replace;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

pub(crate) fn patch(
    call: &Call,
    content_type: &str,
    body: &[u8],
    state: &mut ServerState,
) -> Result<Arc<StoredObject>, ApiFailure> {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    let accepted: &[&str] =
        if call.kind.custom { &[JSON, MERGE] } else { &[JSON, MERGE, STRATEGIC] };
    if ![JSON, MERGE, STRATEGIC].contains(&media_type) {
        return Err(ApiFailure::unknown_media_type());
    }
    if !accepted.contains(&media_type) {
        let accepted = [accepted, &["application/apply-patch+yaml"]].concat();
        return Err(ApiFailure::unsupported_media_type(&accepted.join(", ")));
    }
    let patch: Value = serde_json::from_slice(body)
        .map_err(|error| ApiFailure::bad_request(format!("error decoding patch: {error}")))?;
    let old = state.named(call)?;
    let mut new = old.with_kind(&call.kind);
    match media_type {
        JSON => apply_operations(&mut new, patch)?,
        MERGE => json_patch::merge(&mut new, &patch),
        _ => merge_strategically(&mut new, patch),
    }
    if new["metadata"]["name"] != old.value["metadata"]["name"] {
        return Err(ApiFailure::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            new["metadata"]["name"].as_str().unwrap_or_default(),
            call.name
        )));
    }
    check_identity(&call.kind, &call.name, &old.value["metadata"], &new["metadata"])?;
    replace(call, &old, new, state)
}

/// A patch that states a UID other than the object's asks for what is never done.
fn check_identity(
    kind: &ResourceKind,
    name: &str,
    old: &Value,
    new: &Value,
) -> Result<(), ApiFailure> {
    let stated = new["uid"].as_str().unwrap_or_default();
    if stated.is_empty() || new["uid"] == old["uid"] {
        return Ok(());
    }
    let fault = FieldFault::Invalid(format!("{stated:?}"));
    let cause = FieldCause::new("metadata.uid", fault, "field is immutable");
    Err(ApiFailure::invalid(&kind.group, &kind.kind, name, &[cause]))
}

fn apply_operations(object: &mut Value, operations: Value) -> Result<(), ApiFailure> {
    let operations: json_patch::Patch = serde_json::from_value(operations)
        .map_err(|error| ApiFailure::bad_request(format!("error decoding patch: {error}")))?;
    json_patch::patch(object, &operations).map_err(|_| {
        let message = "the server rejected our request due to an error in our request";
        ApiFailure::new(422, "Invalid", message)
    })
}

/// The key by which items of a list are matched; lists that are not here are replaced.
fn merge_key(list: &str) -> Option<&'static str> {
    match list {
        "conditions" => Some("type"),
        "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets"
        | "schedulingGates" => Some("name"),
        "taints" => Some("key"),
        "ownerReferences" => Some("uid"),
        _ => None,
    }
}

/// Lists that are sets of texts.
fn is_set(list: &str) -> bool {
    list == "finalizers"
}

fn merge_strategically(object: &mut Value, patch: Value) {
    let Value::Object(mut patch) = patch else {
        *object = patch;
        return;
    };
    if patch.get("$patch") == Some(&json!("replace")) {
        patch.remove("$patch");
        *object = Value::Object(patch);
        return;
    }
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(fields) = object else { return };
    for (key, part) in patch {
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = part.as_array().cloned().unwrap_or_default();
            if let Some(Value::Array(items)) = fields.get_mut(list) {
                items.retain(|item| !gone.contains(item));
            }
        } else if key.starts_with('$') {
            // `$setElementOrder` and `$retainKeys` order what is merged; nothing here depends on
            // it.
        } else if part.is_null() {
            fields.remove(&key);
        } else {
            merge_field(fields.entry(key.clone()).or_insert(Value::Null), &key, part);
        }
    }
}

fn merge_field(field: &mut Value, name: &str, part: Value) {
    match part {
        Value::Array(items) if is_set(name) => {
            let mut all = field.as_array().cloned().unwrap_or_default();
            all.extend(
                items
                    .into_iter()
                    .filter(|item| !field.as_array().is_some_and(|all| all.contains(item))),
            );
            *field = Value::Array(all);
        }
        Value::Array(items) => match merge_key(name) {
            Some(key) => merge_list(field, key, items),
            None => *field = Value::Array(items),
        },
        Value::Object(_) => merge_strategically(field, part),
        other => *field = other,
    }
}

fn merge_list(field: &mut Value, key: &str, items: Vec<Value>) {
    let mut all = field.as_array().cloned().unwrap_or_default();
    if items.iter().any(|item| item["$patch"] == "replace") {
        all.clear();
    }
    let order = all.clone();
    let patched: Vec<Value> = items.iter().map(|item| item[key].clone()).collect();
    for item in items {
        let place = all.iter().position(|one| one[key] == item[key]);
        match (item["$patch"].as_str(), place) {
            (Some("delete"), Some(place)) => {
                all.remove(place);
            }
            (Some("delete" | "replace"), _) => {}
            (_, Some(place)) => merge_strategically(&mut all[place], item),
            (_, None) => all.push(item),
        }
    }
    let (ours, theirs) = all.into_iter().partition(|item| patched.contains(&item[key]));
    *field = Value::Array(interleaved(theirs, ours, &order, key));
}

/// What is there alone and what the patch speaks of, in the order of the real server
/// (`mergeSortedSlice` of its strategic merge patch): what is new comes before what follows.
fn interleaved(theirs: Vec<Value>, ours: Vec<Value>, order: &[Value], key: &str) -> Vec<Value> {
    let place = |item: &Value| order.iter().position(|one| one[key] == item[key]);
    let (mut theirs, mut ours) = (theirs.into_iter().peekable(), ours.into_iter().peekable());
    let mut all = Vec::new();
    while let (Some(their), Some(our)) = (theirs.peek(), ours.peek()) {
        let before = place(their).zip(place(our)).is_some_and(|(their, our)| their < our);
        all.extend(if before { theirs.next() } else { ours.next() });
    }
    all.extend(theirs);
    all.extend(ours);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(object: Value, patch: Value) -> Value {
        let mut object = object;
        merge_strategically(&mut object, patch);
        object
    }

    #[test]
    fn conditions_are_merged_by_type() {
        let old = json!({"status": {"conditions": [{"type": "A", "status": "True", "reason": "r"}, {"type": "B"}]}});
        let patch = json!({"status": {"conditions": [
            {"type": "A", "status": "False"}, {"type": "C"}, {"type": "B", "$patch": "delete"}
        ]}});
        let new = merged(old, patch);
        let expected = json!([{"type": "A", "status": "False", "reason": "r"}, {"type": "C"}]);
        assert_eq!(new["status"]["conditions"], expected);
    }

    #[test]
    fn finalizers_are_a_set_and_other_lists_are_replaced() {
        let old = json!({"finalizers": ["a"], "tolerations": [{"key": "x"}], "labels": {"l": "1", "m": "2"}});
        let patch = json!({"finalizers": ["b", "a"], "tolerations": [], "labels": {"l": null}});
        let expected = json!({"finalizers": ["a", "b"], "tolerations": [], "labels": {"m": "2"}});
        assert_eq!(merged(old.clone(), patch), expected);
        let removed = merged(old, json!({"$deleteFromPrimitiveList/finalizers": ["a"]}));
        assert_eq!(removed["finalizers"], json!([]));
    }
}
