//! `pods/NAME/eviction`: deletion that asks the disruption budgets first.
//!
//! Follows `EvictionREST` in `k8s.io/kubernetes/pkg/registry/core/pod/storage`.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::binding::set_condition;
use super::call::Call;
use super::condition::put_condition;
use super::delete::{DeleteOptions, check_preconditions, delete_object};
use super::failure::ApiFailure;
use super::now::stamp;
use super::reply::ApiReply;
use super::selector::label_selector_matches;
use super::state::ServerState;
use super::store::{StoredObject, key_of};

const WOULD_VIOLATE: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

pub(crate) fn evict(
    call: &Call,
    eviction: &Value,
    state: &mut ServerState,
) -> Result<ApiReply, ApiFailure> {
    if eviction["metadata"]["name"].as_str() != Some(&call.name) {
        return Err(ApiFailure::bad_request("name in URL does not match name in Eviction object"));
    }
    let namespace = call.namespace.as_deref().unwrap_or_default();
    state.check_namespace(&call.kind, namespace, &call.name)?;
    let options = DeleteOptions::from_value(&eviction["deleteOptions"]);
    let pod = state.named(call)?;
    if !ignores_budgets(&pod.value) {
        let budgets = budgets_of(state, &pod.value);
        match budgets.as_slice() {
            [] => {}
            [budget] => ask(&pod.value, budget, state)?,
            _ => {
                let message = "This pod has more than one PodDisruptionBudget, which the eviction \
                               subresource does not support.";
                let status = ApiFailure::new(500, "", message);
                return Ok(ApiReply { code: 201, ..ApiReply::failure(&status) });
            }
        }
    }
    mark_and_delete(call, &pod, &options, state)?;
    Ok(ApiReply::success(201))
}

fn ignores_budgets(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"))
        || !pod["metadata"]["deletionTimestamp"].is_null()
}

fn budgets_of(state: &ServerState, pod: &Value) -> Vec<Arc<StoredObject>> {
    let collection = ("policy".to_owned(), "poddisruptionbudgets".to_owned());
    let selects = |budget: &Value| {
        budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
            && label_selector_matches(&budget["spec"]["selector"], &pod["metadata"]["labels"])
                == Some(true)
    };
    state.store.all(&collection).filter(|budget| selects(&budget.value)).cloned().collect()
}

/// Takes one disruption from the budget, if the pod's health asks for it and the budget has one.
fn ask(pod: &Value, budget: &StoredObject, state: &mut ServerState) -> Result<(), ApiFailure> {
    let (spec, status) = (&budget.value["spec"], &budget.value["status"]);
    let number = |key: &str| status[key].as_i64().unwrap_or_default();
    let (current, desired) = (number("currentHealthy"), number("desiredHealthy"));
    let always = spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
    if !is_ready(pod) && (always || current >= desired && desired > 0) {
        return Ok(());
    }
    let name = budget.value["metadata"]["name"].as_str().unwrap_or_default();
    let generation = budget.value["metadata"]["generation"].as_i64().unwrap_or_default();
    if number("observedGeneration") < generation {
        let message =
            format!("The disruption budget {name} is still being processed by the server.");
        let failure = ApiFailure::too_many_requests(WOULD_VIOLATE, 10);
        return Err(failure.caused_by("DisruptionBudget", &message));
    }
    if number("disruptionsAllowed") <= 0 {
        let message = if current <= desired {
            format!(
                "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
            )
        } else {
            format!("The disruption budget {name} does not allow evicting pods currently")
        };
        let failure = ApiFailure::too_many_requests(WOULD_VIOLATE, 0);
        return Err(failure.caused_by("DisruptionBudget", &message));
    }
    let mut new = budget.value.clone();
    let left = number("disruptionsAllowed") - 1;
    new["status"]["disruptionsAllowed"] = json!(left);
    if left == 0 {
        say_used_up(&mut new["status"], generation, state.now());
    }
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    new["status"]["disruptedPods"][pod_name] = stamp(state.now());
    let key = key_of(budget.value["metadata"]["namespace"].as_str(), name);
    let collection = ("policy".to_owned(), "poddisruptionbudgets".to_owned());
    state.store.put(&collection, key, new);
    Ok(())
}

/// The condition that the real server keeps beside the count.
fn say_used_up(status: &mut Value, generation: i64, now: Timestamp) {
    let condition = json!({
        "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
        "observedGeneration": generation,
    });
    put_condition(status, condition, now);
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn mark_and_delete(
    call: &Call,
    pod: &Arc<StoredObject>,
    options: &DeleteOptions,
    state: &mut ServerState,
) -> Result<(), ApiFailure> {
    check_preconditions(&call.kind, &pod.value["metadata"], options)?;
    let mut marked = pod.value.clone();
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    });
    set_condition(&mut marked["status"], &condition, state.now());
    let key = key_of(call.namespace.as_deref(), &call.name);
    let marked = state.store.put(&call.kind.collection(), key, marked);
    let options = DeleteOptions { resource_version: None, ..options.clone() };
    delete_object(&call.kind, &marked, &options, state)?;
    Ok(())
}
