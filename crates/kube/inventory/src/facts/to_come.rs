//! Pods that an object makes at another time: those of a CronJob between its runs unless it is
//! suspended, of a Deployment at zero replicas, of a Job that is suspended.

use std::collections::BTreeSet;

use dovetail_audit::{ObjectRef, Pod as FactPod, ToCome, Workload};
use dovetail_objects::{Pod, read};
use serde_json::{Value, json};

use super::detail::{OwnerStatusDetail, PodDetail};
use super::source::SourceTexts;
use super::template::template;

/// Pods of one object; more change nothing.
const MOST_PODS: u64 = 100;

/// Objects that make pods with GPUs and are no owner of these, which are there.
pub(super) fn with_gpus(sources: &SourceTexts, there: &[Workload]) -> Vec<ToCome> {
    let owners: BTreeSet<&ObjectRef> = there.iter().map(|of| &of.owner).collect();
    let idle = sources.texts().filter(|(object, _)| !owners.contains(object));
    // A DaemonSet follows the nodes that there are.
    let idle = idle.filter(|(object, _)| object.kind != "DaemonSet");
    idle.flat_map(|(object, text)| of_object(object, text)).collect()
}

/// What an object is going to make of each of its templates, where that has GPUs.
fn of_object(object: &ObjectRef, text: &str) -> Vec<ToCome> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    if makes_none_any_more(&value) || is_suspended_schedule(object, &value) {
        return Vec::new();
    }
    let last = value["status"]["lastScheduleTime"].as_str();
    let last = last.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let last_ms = last.and_then(|time| u64::try_from(time.as_millisecond()).ok());
    let mut templates = Vec::new();
    counted_templates(&value["spec"], 1, &mut templates);
    // Pods that are there and were not read are not to come.
    let there = value["status"]["replicas"].as_u64().unwrap_or(0);
    let of_template = |(template, count): (&Value, u64)| {
        let left = count.checked_sub(there).filter(|left| *left > 0)?;
        let workload = workload(object, template, left)?;
        Some(ToCome { workload, last_ms })
    };
    templates.into_iter().filter_map(of_template).collect()
}

/// So many pods of a template that have no node; `None` if they need no GPUs.
fn workload(object: &ObjectRef, value: &Value, count: u64) -> Option<Workload> {
    let text = value.to_string();
    let pod = read::<Pod>("Pod", text.as_bytes()).ok()?;
    let detail: PodDetail<'_> = serde_json::from_str(&text).ok()?;
    let to_come =
        |number: u64| FactPod { name: format!("{}-{number}", object.name), ..FactPod::default() };
    let workload = Workload {
        owner: object.clone(),
        template: template(&pod, &detail),
        pods: (0..count).map(to_come).collect(),
        replicas: u32::try_from(count).unwrap_or(u32::MAX),
        ..Workload::default()
    };
    workload.has_gpus().then_some(workload)
}

/// Pod templates, with how many pods at a time the fields around each ask for; one of something
/// that is at zero.
fn counted_templates<'v>(value: &'v Value, count: u64, found: &mut Vec<(&'v Value, u64)>) {
    if value["spec"]["containers"].is_array() {
        found.push((value, count));
        return;
    }
    let said = ["parallelism", "replicas"].iter().find_map(|field| value[*field].as_u64());
    let count = count.saturating_mul(said.unwrap_or(1).max(1)).min(MOST_PODS);
    match value {
        Value::Object(fields) => {
            fields.values().for_each(|value| counted_templates(value, count, found));
        }
        Value::Array(items) => {
            items.iter().for_each(|value| counted_templates(value, count, found));
        }
        _ => {}
    }
}

/// Whether a Job, or the job of an operator, is over.
fn makes_none_any_more(object: &Value) -> bool {
    let text = object["status"].to_string();
    serde_json::from_str::<OwnerStatusDetail<'_>>(&text).is_ok_and(|status| status.is_over())
}

/// Whether an object that makes pods at set times (a CronJob, a CronWorkflow, a
/// ScheduledSparkApplication) is suspended: only a person resumes it. A suspended Job starts once a
/// queue lets it.
fn is_suspended_schedule(object: &ObjectRef, value: &Value) -> bool {
    let is_schedule = ["Cron", "Scheduled"].iter().any(|start| object.kind.starts_with(start));
    is_schedule && value["spec"]["suspend"] == true
}

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
