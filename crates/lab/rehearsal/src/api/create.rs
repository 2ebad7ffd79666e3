//! Creation: names, system metadata, and refusals in the order of the real server.

use std::sync::Arc;

use serde_json::{Value, json};

use super::defaults;
use super::failure::{ApiFailure, FieldCause, FieldFault};
use super::kind::ResourceKind;
use super::now::stamp;
use super::state::ServerState;
use super::store::{StoredObject, key_of};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Creates an object. `namespace` is the one of the path.
pub(crate) fn create(
    kind: &Arc<ResourceKind>,
    namespace: Option<&str>,
    mut value: Value,
    state: &mut ServerState,
) -> Result<Arc<StoredObject>, ApiFailure> {
    check_body(kind, &value)?;
    let name = name_of(&mut value, state);
    settle_namespace(kind, namespace, &mut value)?;
    if let Some(namespace) = namespace {
        state.check_namespace(kind, namespace, &name)?;
    }
    let sets_version =
        value["metadata"]["resourceVersion"].as_str().is_some_and(|text| !text.is_empty());
    if sets_version {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(ApiFailure::new(500, "", message));
    }
    defaults::on_create(state, kind, &mut value)?;
    check_name(kind, &name, &value)?;
    let key = key_of(namespace, &name);
    if let Some(there) = state.store.get(&kind.collection(), &key) {
        let mut failure = ApiFailure::already_exists(kind, &name);
        if !there.value["metadata"]["deletionTimestamp"].is_null() {
            failure.message = format!("object is being deleted: {}", failure.message);
        }
        return Err(failure);
    }
    let uid = state.store.next_uid();
    let metadata = &mut value["metadata"];
    for own in ["deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"] {
        if let Some(fields) = metadata.as_object_mut() {
            fields.remove(own);
        }
    }
    metadata["uid"] = json!(uid);
    metadata["creationTimestamp"] = stamp(state.now());
    if kind.counts_generations {
        metadata["generation"] = json!(1);
    }
    if kind.plural == "customresourcedefinitions" {
        state.kinds.register_definition(&value);
    }
    Ok(state.store.put(&kind.collection(), key, value))
}

/// Takes kind and version off a body, or says that it is not what the path is for.
pub(crate) fn check_body(kind: &ResourceKind, value: &Value) -> Result<(), ApiFailure> {
    let Some(body) = value.as_object() else {
        let message =
            format!("the object provided is unrecognized (must be of type {})", kind.kind);
        return Err(ApiFailure::bad_request(message));
    };
    let stated = |key: &str| body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(stated_kind) = stated("kind")
        && stated_kind != kind.kind
    {
        return Err(ApiFailure::bad_request(format!(
            "{stated_kind} in version {:?} cannot be handled as a {}",
            stated("apiVersion").unwrap_or_default(),
            kind.kind
        )));
    }
    if let Some(version) = stated("apiVersion")
        && version != kind.api_version()
    {
        return Err(ApiFailure::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    Ok(())
}

fn name_of(value: &mut Value, state: &mut ServerState) -> String {
    if let Some(body) = value.as_object_mut() {
        body.remove("kind");
        body.remove("apiVersion");
        if !body.get("metadata").is_some_and(Value::is_object) {
            body.insert("metadata".to_owned(), json!({}));
        }
    }
    let metadata = &mut value["metadata"];
    let given = metadata["name"].as_str().unwrap_or_default();
    if !given.is_empty() {
        return given.to_owned();
    }
    let Some(start) = metadata["generateName"].as_str().filter(|start| !start.is_empty()) else {
        return String::new();
    };
    let name = format!("{start}{}", suffix(state.store.revision));
    metadata["name"] = json!(name);
    name
}

/// Five letters and digits that differ for versions less than 14 million apart.
fn suffix(revision: u64) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rest = revision;
    let mut letters = [' '; 5];
    for letter in &mut letters {
        *letter = char::from(LETTERS[(rest % 27) as usize]);
        rest /= 27;
    }
    letters.iter().rev().collect()
}

fn settle_namespace(
    kind: &ResourceKind,
    namespace: Option<&str>,
    value: &mut Value,
) -> Result<(), ApiFailure> {
    let metadata = &mut value["metadata"];
    let stated = metadata["namespace"].as_str().unwrap_or_default();
    match namespace {
        Some(namespace) if stated.is_empty() => metadata["namespace"] = json!(namespace),
        Some(namespace) if stated != namespace => {
            return Err(ApiFailure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        None if kind.namespaced => {
            let message = "an empty namespace may not be set during creation";
            return Err(ApiFailure::bad_request(message));
        }
        None => {
            if let Some(fields) = metadata.as_object_mut() {
                fields.remove("namespace");
            }
        }
        Some(_) => {}
    }
    Ok(())
}

fn check_name(kind: &ResourceKind, name: &str, value: &Value) -> Result<(), ApiFailure> {
    let refuse = |cause| Err(ApiFailure::invalid(&kind.group, &kind.kind, name, &[cause]));
    if name.is_empty() {
        let detail = "name or generateName is required";
        return refuse(FieldCause::new("metadata.name", FieldFault::Required, detail));
    }
    if !is_subdomain(name) {
        let shown = FieldFault::Invalid(format!("{name:?}"));
        return refuse(FieldCause::new("metadata.name", shown, SUBDOMAIN));
    }
    let no_containers = value["spec"]["containers"].as_array().is_none_or(Vec::is_empty);
    if kind.group.is_empty() && kind.plural == "pods" && no_containers {
        return refuse(FieldCause::new("spec.containers", FieldFault::Required, ""));
    }
    Ok(())
}

/// Lower-case letters, digits, `-` and `.`; each part starts and ends with a letter or digit.
pub(crate) fn is_subdomain(name: &str) -> bool {
    let letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 253
        && name.split('.').all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(letter)
                && bytes.last().is_some_and(letter)
                && bytes.iter().all(|byte| letter(byte) || *byte == b'-')
        })
}

pub(crate) const NOT_A_SUBDOMAIN: &str = SUBDOMAIN;
