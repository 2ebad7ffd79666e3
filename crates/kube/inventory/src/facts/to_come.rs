//! Pods that an object makes at another time: those of a CronJob between its runs, of a Deployment
//! at zero replicas, of a Job that is suspended.

use dovetail_audit::ObjectRef;
use dovetail_objects::{Pod, read};
use serde_json::{Value, json};

/// The templates of an object, as pods; none of a Job that is over, which makes none any more.
pub(super) fn pods(object: &ObjectRef, text: &str) -> Vec<Pod> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let mut found = Vec::new();
    if !(object.kind == "Job" && is_over(&value)) {
        templates(&value["spec"], &mut found);
    }
    for pod in &mut found {
        pod.meta.namespace = object.namespace.as_str().into();
    }
    found
}

fn is_over(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| {
        condition["status"] == "True"
            && ["Complete", "Failed"].iter().any(|kind| condition["type"] == *kind)
    })
}

/// Whatever has the shape of a pod template, and whatever selects nodes for pods whose template has
/// another shape (an Argo workflow, a predictor of KServe).
fn templates(value: &Value, found: &mut Vec<Pod>) {
    if value["spec"]["containers"].is_array() {
        found.extend(read::<Pod>("Pod", value.to_string().as_bytes()));
        return;
    }
    if value["nodeSelector"].is_object() {
        let [selector, tolerations] = ["nodeSelector", "tolerations"].map(|field| &value[field]);
        let spec = json!({"nodeSelector": selector, "tolerations": tolerations, "containers": []});
        found.extend(read::<Pod>("Pod", json!({ "spec": spec }).to_string().as_bytes()));
    }
    match value {
        Value::Object(fields) => fields.values().for_each(|value| templates(value, found)),
        Value::Array(items) => items.iter().for_each(|value| templates(value, found)),
        _ => {}
    }
}
