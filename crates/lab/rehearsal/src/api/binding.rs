//! `pods/NAME/binding`: the one write that gives a pod its node.
//!
//! The checks and their order are those of `BindingREST` in
//! `k8s.io/kubernetes/pkg/registry/core/pod/storage`. Capacity is not among them.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Bound;
use super::call::Call;
use super::condition::put_condition;
use super::create::{NOT_A_SUBDOMAIN, is_subdomain};
use super::failure::ApiFailure;
use super::reply::ApiReply;
use super::state::{ServerState, wrong_object};
use super::store::key_of;

pub(crate) fn bind(
    call: &Call,
    binding: &Value,
    state: &mut ServerState,
) -> Result<ApiReply, ApiFailure> {
    let (metadata, target) = (&binding["metadata"], &binding["target"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if text(&metadata["name"]) != call.name {
        return Err(ApiFailure::bad_request("name in URL does not match name in Binding object"));
    }
    let namespace = call.namespace.as_deref().unwrap_or_default();
    let stated = text(&metadata["namespace"]);
    if !stated.is_empty() && stated != namespace {
        return Err(ApiFailure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let node = text(&target["name"]);
    check_target(&text(&target["kind"]), &node)?;
    state.check_namespace(&call.kind, namespace, &call.name)?;
    let old = state.named(call)?;
    for (what, field) in [("UID", "uid"), ("ResourceVersion", "resourceVersion")] {
        let (asked, found) = (text(&metadata[field]), &old.value["metadata"][field]);
        if !asked.is_empty() && found.as_str() != Some(&asked) {
            return Err(wrong_object(&call.kind, Some(namespace), &call.name, what, &asked, found));
        }
    }
    if let Some(why) = refusal(&call.name, &old.value) {
        return Err(ApiFailure::conflict_of("", "pods/binding", &call.name, &why));
    }
    let mut pod = old.value.clone();
    assign(&mut pod, &node, metadata, state.settings.minor, state.now());
    let key = key_of(Some(namespace), &call.name);
    let uid = text(&pod["metadata"]["uid"]);
    let stored = state.store.put(&call.kind.collection(), key, pod);
    state.bound.push(Bound {
        namespace: namespace.to_owned(),
        pod: call.name.clone(),
        uid,
        node,
        revision: stored.revision,
    });
    Ok(ApiReply::success(201))
}

fn check_target(kind: &str, node: &str) -> Result<(), ApiFailure> {
    let refuse = |message: String| Err(ApiFailure::new(500, "", message));
    if !matches!(kind, "" | "Node") {
        return refuse(format!(
            r#"target.kind: Unsupported value: {kind:?}: supported values: "Node", "<empty>""#
        ));
    }
    if node.is_empty() {
        return refuse("target.name: Required value".to_owned());
    }
    if !is_subdomain(node) {
        return refuse(format!("target.name: Invalid value: {node:?}: {NOT_A_SUBDOMAIN}"));
    }
    Ok(())
}

fn refusal(name: &str, pod: &Value) -> Option<String> {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if !node.is_empty() {
        return Some(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

fn assign(pod: &mut Value, node: &str, metadata: &Value, minor: u32, now: Timestamp) {
    pod["spec"]["nodeName"] = json!(node);
    for key in ["annotations", "labels"] {
        // Labels are copied since 1.35 (PodTopologyLabelsAdmission).
        if key == "labels" && minor < 35 {
            continue;
        }
        for (name, value) in metadata[key].as_object().into_iter().flatten() {
            if !pod["metadata"][key].is_object() {
                pod["metadata"][key] = Value::Object(Map::new());
            }
            pod["metadata"][key][name] = value.clone();
        }
    }
    let status = &mut pod["status"];
    // Since 1.35 (ClearingNominatedNodeNameAfterBinding).
    if let Some(fields) = status.as_object_mut()
        && minor >= 35
    {
        fields.remove("nominatedNodeName");
    }
    set_condition(status, &json!({"type": "PodScheduled", "status": "True"}), now);
}

/// Sets a condition of a pod, which pods alone probe.
pub(crate) fn set_condition(status: &mut Value, condition: &Value, now: Timestamp) {
    let mut condition = condition.clone();
    condition["lastProbeTime"] = Value::Null;
    put_condition(status, condition, now);
}
