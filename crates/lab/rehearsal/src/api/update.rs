//! Replacing an object: optimistic locking, what a path may change, and what is immutable.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call::Call;
use super::create::check_body;
use super::failure::{ApiFailure, FieldCause, FieldFault, MODIFIED};
use super::kind::ResourceKind;
use super::state::{ServerState, wrong_object};
use super::store::{StoredObject, key_of};

const POD_FIELDS: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// `PUT`: the body replaces the object, or its status.
pub(crate) fn update(
    call: &Call,
    body: Value,
    state: &mut ServerState,
) -> Result<Arc<StoredObject>, ApiFailure> {
    check_body(&call.kind, &body)?;
    let name = body["metadata"]["name"].as_str().unwrap_or_default();
    if name != call.name {
        return Err(ApiFailure::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    let old = state.named(call)?;
    replace(call, &old, body, state)
}

/// Puts `new` in the place of `old`, for a `PUT` or a patch.
pub(crate) fn replace(
    call: &Call,
    old: &Arc<StoredObject>,
    mut new: Value,
    state: &mut ServerState,
) -> Result<Arc<StoredObject>, ApiFailure> {
    let kind = &*call.kind;
    check_versions(call, old, &new)?;
    if let Some(fields) = new.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    keep_what_the_path_leaves(call, &old.value, &mut new);
    keep_system_metadata(&old.value["metadata"], &mut new["metadata"]);
    if kind.group.is_empty() && kind.plural == "pods" && call.subresource.is_empty() {
        check_pod_spec(&call.name, &old.value["spec"], &new["spec"])?;
    }
    count_generation(kind, &old.value, &mut new);
    if new == old.value {
        return Ok(old.clone());
    }
    let key = key_of(call.namespace.as_deref(), &call.name);
    let collection = kind.collection();
    if is_finished(&old.value, &new) {
        // The answer shows what was asked for, the watch what was stored.
        let gone = state.store.remove(&collection, &key);
        let gone = gone.unwrap_or_else(|| old.clone());
        return Ok(Arc::new(StoredObject::new(new, gone.revision)));
    }
    if kind.plural == "customresourcedefinitions" {
        state.kinds.register_definition(&new);
    }
    Ok(state.store.put(&collection, key, new))
}

fn check_versions(call: &Call, old: &StoredObject, new: &Value) -> Result<(), ApiFailure> {
    let (kind, name) = (&*call.kind, call.name.as_str());
    let (stated, current) = (&new["metadata"], &old.value["metadata"]);
    let text = |key: &str| stated[key].as_str().unwrap_or_default();
    if !text("uid").is_empty() && stated["uid"] != current["uid"] {
        let namespace = call.namespace.as_deref();
        return Err(wrong_object(kind, namespace, name, "UID", text("uid"), &current["uid"]));
    }
    let version = text("resourceVersion");
    if version.is_empty() && !kind.updates_blindly {
        let fault = FieldFault::Invalid("0".to_owned());
        let detail = "must be specified for an update";
        let cause = FieldCause::new("metadata.resourceVersion", fault, detail);
        return Err(ApiFailure::invalid(&kind.group, &kind.plural, name, &[cause]));
    }
    if !version.is_empty() && stated["resourceVersion"] != current["resourceVersion"] {
        return Err(ApiFailure::conflict(kind, name, MODIFIED));
    }
    Ok(())
}

/// The status path changes the status, any other path all but the status.
fn keep_what_the_path_leaves(call: &Call, old: &Value, new: &mut Value) {
    let kind = &*call.kind;
    if call.subresource == "status" {
        let mut kept = old.clone();
        if !kind.custom {
            for key in ["labels", "annotations", "finalizers"] {
                set_or_remove(&mut kept["metadata"], key, new["metadata"].get(key).cloned());
            }
        }
        set_or_remove(&mut kept, "status", new.get("status").cloned());
        *new = kept;
    } else if kind.has_status {
        set_or_remove(new, "status", old.get("status").cloned());
    }
}

fn set_or_remove(value: &mut Value, key: &str, part: Option<Value>) {
    let Some(fields) = value.as_object_mut() else { return };
    match part {
        Some(part) => fields.insert(key.to_owned(), part),
        None => fields.remove(key),
    };
}

fn keep_system_metadata(old: &Value, new: &mut Value) {
    if !new.is_object() {
        *new = json!({});
    }
    for key in [
        "name",
        "namespace",
        "generateName",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ] {
        set_or_remove(new, key, old.get(key).cloned());
    }
    set_or_remove(new, "managedFields", None);
    set_or_remove(new, "selfLink", None);
}

fn check_pod_spec(name: &str, old: &Value, new: &Value) -> Result<(), ApiFailure> {
    if old == new {
        return Ok(());
    }
    let mut with_old = new.clone();
    for list in ["containers", "initContainers"] {
        let images =
            old[list].as_array().into_iter().flatten().map(|container| &container["image"]);
        let containers = with_old[list].as_array_mut().into_iter().flatten();
        for (container, image) in containers.zip(images) {
            container["image"] = image.clone();
        }
    }
    let list = |spec: &Value, key: &str| spec[key].as_array().cloned().unwrap_or_default();
    let was_gated = !list(old, "schedulingGates").is_empty();
    let mut free = vec!["activeDeadlineSeconds"];
    let kept = list(new, "tolerations");
    if list(old, "tolerations").iter().all(|one| kept.contains(one)) {
        free.push("tolerations");
    }
    let gates = list(old, "schedulingGates");
    if list(new, "schedulingGates").iter().all(|gate| gates.contains(gate)) {
        free.push("schedulingGates");
    }
    if was_gated {
        free.extend(["nodeSelector", "affinity"]);
    }
    for key in free {
        set_or_remove(&mut with_old, key, old.get(key).cloned());
    }
    with_old.as_object_mut().into_iter().for_each(|spec| spec.retain(|_, value| !value.is_null()));
    if with_old == *old {
        return Ok(());
    }
    let cause = FieldCause::new("spec", FieldFault::Forbidden, POD_FIELDS);
    Err(ApiFailure::invalid("", "Pod", name, &[cause]))
}

fn count_generation(kind: &ResourceKind, old: &Value, new: &mut Value) {
    if !kind.counts_generations {
        return;
    }
    let without = |value: &Value| {
        let mut value = value.clone();
        set_or_remove(&mut value, "metadata", None);
        set_or_remove(&mut value, "status", None);
        value
    };
    if without(old) != without(new) {
        let generation = old["metadata"]["generation"].as_u64().unwrap_or_default() + 1;
        new["metadata"]["generation"] = json!(generation);
    }
}

/// Whether the last finalizer of an object that is being deleted was taken away.
fn is_finished(old: &Value, new: &Value) -> bool {
    let finalizers = new["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let old = &old["metadata"];
    let grace = old["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    !finalizers && !old["deletionTimestamp"].is_null() && grace == 0
}
