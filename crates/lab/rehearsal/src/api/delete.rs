//! Deletion: preconditions, finalizers, and the grace of pods.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::call::Call;
use super::failure::ApiFailure;
use super::kind::ResourceKind;
use super::now::{after_s, read, stamp};
use super::reply::ApiReply;
use super::state::ServerState;
use super::store::{StoredObject, key_of};

/// What a deletion asks for beside the object's name, and whether it is only tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_s: Option<i64>,
    pub(crate) is_trial: bool,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

impl DeleteOptions {
    /// From a body, or from the address where there is no body: nothing in the address counts
    /// beside one.
    pub(crate) fn read(call: &Call, body: &[u8]) -> Result<Self, ApiFailure> {
        if body.is_empty() {
            let grace_s = call.query.number("gracePeriodSeconds")?;
            let (grace_s, is_trial) = (grace_s.map(|grace| grace as i64), call.query.has("dryRun"));
            return Ok(Self { grace_s, is_trial, ..Self::default() });
        }
        let body = serde_json::from_slice(body).map_err(|error| {
            ApiFailure::bad_request(format!("error decoding DeleteOptions: {error}"))
        })?;
        Ok(Self::from_value(&body))
    }

    pub(crate) fn from_value(body: &Value) -> Self {
        let text =
            |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            grace_s: body["gracePeriodSeconds"].as_i64(),
            is_trial: body["dryRun"].as_array().is_some_and(|all| !all.is_empty()),
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
        }
    }
}

/// `DELETE` of one object.
pub(crate) fn delete(
    call: &Call,
    options: &DeleteOptions,
    state: &mut ServerState,
) -> Result<ApiReply, ApiFailure> {
    let old = state.named(call)?;
    let kind = &call.kind;
    let last = delete_object(kind, &old, options, state)?;
    if kind.returns_deleted {
        return Ok(ApiReply::object(200, kind, &last));
    }
    let mut details =
        json!({"name": call.name, "kind": kind.plural, "uid": last.value["metadata"]["uid"]});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    Ok(ApiReply::json(200, &status))
}

/// Deletes an object or begins to, and returns its last state.
pub(crate) fn delete_object(
    kind: &ResourceKind,
    old: &Arc<StoredObject>,
    options: &DeleteOptions,
    state: &mut ServerState,
) -> Result<Arc<StoredObject>, ApiFailure> {
    check_preconditions(kind, &old.value["metadata"], options)?;
    let metadata = &old.value["metadata"];
    let text = |key: &str| metadata[key].as_str();
    let key = key_of(text("namespace"), text("name").unwrap_or_default());
    let (collection, now) = (kind.collection(), state.now());
    let mut new = old.value.clone();
    let mut tried = None;
    let graceful = kind.group.is_empty() && kind.plural == "pods";
    if graceful {
        match shorten(&mut new, options, now) {
            Grace::Pending => return Ok(old.clone()),
            Grace::Now => {}
            Grace::Written => {
                let kept =
                    new["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
                let stored = state.store.put(&collection, key.clone(), new.clone());
                if kept > 0 || has_finalizers(&new) {
                    return Ok(stored);
                }
                tried = state.store.is_trial.then_some(stored);
            }
        }
    } else if kind.group.is_empty() && kind.plural == "namespaces" {
        mark(&mut new, now);
        new["status"]["phase"] = json!("Terminating");
        return Ok(state.store.put(&collection, key, new));
    }
    if has_finalizers(&new) {
        if !metadata["deletionTimestamp"].is_null() {
            return Ok(old.clone());
        }
        mark(&mut new, now);
        return Ok(state.store.put(&collection, key, new));
    }
    let gone = tried.or_else(|| state.store.remove(&collection, &key));
    Ok(gone.unwrap_or_else(|| old.clone()))
}

pub(crate) fn check_preconditions(
    kind: &ResourceKind,
    metadata: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiFailure> {
    let name = metadata["name"].as_str().unwrap_or_default();
    let parts = [
        ("UID", &options.uid, &metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", &options.resource_version, &metadata["resourceVersion"], "modified"),
    ];
    for (what, asked, found, happened) in parts {
        let found = found.as_str().unwrap_or_default();
        if let Some(asked) = asked
            && asked != found
        {
            let why = format!(
                "the {what} in the precondition ({asked}) does not match the {what} in record \
                 ({found}). The object might have been {happened}"
            );
            return Err(ApiFailure::conflict_of(&kind.group, &kind.kind, name, &why));
        }
    }
    Ok(())
}

enum Grace {
    /// It is already going, and not later than asked.
    Pending,
    /// It was at its end already.
    Now,
    /// The object carries a new end.
    Written,
}

/// The rules of `rest.BeforeDelete` for pods.
fn shorten(pod: &mut Value, options: &DeleteOptions, now: Timestamp) -> Grace {
    let asked = options.grace_s.map(|grace| if grace < 0 { 1 } else { grace });
    let metadata = &pod["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        let current = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
        return match asked {
            _ if current == 0 => Grace::Now,
            Some(asked) if asked < current => {
                let end = after_s(read(&metadata["deletionTimestamp"]), asked - current);
                let (end, asked) = match end < now {
                    true => (now, asked.min(1)),
                    false => (end, asked),
                };
                pod["metadata"]["deletionTimestamp"] = stamp(end);
                pod["metadata"]["deletionGracePeriodSeconds"] = json!(asked);
                Grace::Written
            }
            _ => Grace::Pending,
        };
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or_default();
    let unbound = pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    let period = if unbound || ended { 0 } else { asked.unwrap_or(own).max(0) };
    pod["metadata"]["deletionTimestamp"] = stamp(after_s(now, period));
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(period);
    raise_generation(pod);
    Grace::Written
}

fn mark(object: &mut Value, now: Timestamp) {
    if object["metadata"]["deletionTimestamp"].is_null() {
        raise_generation(object);
        object["metadata"]["deletionTimestamp"] = stamp(now);
    }
    if object["metadata"]["finalizers"].is_array() {
        object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    }
}

fn raise_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_u64() {
        object["metadata"]["generation"] = json!(generation + 1);
    }
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
}
