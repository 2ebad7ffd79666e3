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

/// What objects are going to make that own none of the pods that are there.
#[derive(Default)]
pub(super) struct Coming<'s> {
    /// A pod of each template, with its object.
    pub(super) pods: Vec<(&'s ObjectRef, Pod)>,
    /// All pods with GPUs.
    pub(super) with_gpus: Vec<ToCome>,
}

/// Something that an object makes pods from.
pub(super) struct Template {
    /// A pod of it.
    pub(super) pod: Pod,
    text: String,
    /// How many pods at a time the fields around it ask for; one of something that is at zero.
    count: u64,
}

/// What objects are going to make that own none of the pods of these workloads.
pub(super) fn coming<'s>(sources: &'s SourceTexts, there: &[Workload]) -> Coming<'s> {
    let owners: BTreeSet<&ObjectRef> = there.iter().map(|of| &of.owner).collect();
    let mut coming = Coming::default();
    for (object, text) in sources.texts().filter(|(object, _)| !owners.contains(object)) {
        let Ok(value) = serde_json::from_str::<Value>(text) else { continue };
        let found = templates(object, &value);
        // A DaemonSet follows the nodes that there are.
        if object.kind != "DaemonSet" && !is_suspended_schedule(object, &value) {
            coming.with_gpus.extend(with_gpus(object, &value["status"], &found));
        }
        coming.pods.extend(found.into_iter().map(|template| (object, template.pod)));
    }
    coming
}

/// The templates of an object; none of one that is over, which makes no pods any more.
pub(super) fn templates(object: &ObjectRef, value: &Value) -> Vec<Template> {
    let mut found = Vec::new();
    if !is_over(&value["status"]) {
        collect(&value["spec"], 1, &mut found);
    }
    for template in &mut found {
        template.pod.meta.namespace = object.namespace.as_str().into();
    }
    found
}

/// Whether a Job, or the job of an operator, is over.
fn is_over(status: &Value) -> bool {
    let text = status.to_string();
    serde_json::from_str::<OwnerStatusDetail<'_>>(&text).is_ok_and(|status| status.is_over())
}

/// Whatever has the shape of a pod template, and whatever selects nodes for pods whose template has
/// another shape (an Argo workflow, a predictor of KServe).
fn collect(value: &Value, count: u64, found: &mut Vec<Template>) {
    let mut add = |text: String| {
        let pod = read::<Pod>("Pod", text.as_bytes());
        found.extend(pod.map(|pod| Template { pod, text, count }));
    };
    if value["spec"]["containers"].is_array() {
        add(value.to_string());
        return;
    }
    if value["nodeSelector"].is_object() {
        let [selector, tolerations] = ["nodeSelector", "tolerations"].map(|field| &value[field]);
        let spec = json!({"nodeSelector": selector, "tolerations": tolerations, "containers": []});
        add(json!({ "spec": spec }).to_string());
    }
    let said = ["parallelism", "replicas"].iter().find_map(|field| value[*field].as_u64());
    let count = count.saturating_mul(said.unwrap_or(1).max(1)).min(MOST_PODS);
    match value {
        Value::Object(fields) => fields.values().for_each(|value| collect(value, count, found)),
        Value::Array(items) => items.iter().for_each(|value| collect(value, count, found)),
        _ => {}
    }
}

/// The pods that an object is going to make of each of its templates that has GPUs.
fn with_gpus(object: &ObjectRef, status: &Value, templates: &[Template]) -> Vec<ToCome> {
    let last = status["lastScheduleTime"].as_str();
    let last = last.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let last_ms = last.and_then(|time| u64::try_from(time.as_millisecond()).ok());
    // Pods that are there and were not read are not to come.
    let there = status["replicas"].as_u64().unwrap_or(0);
    let of_template = |of: &Template| {
        let left = of.count.checked_sub(there).filter(|left| *left > 0)?;
        Some(ToCome { workload: workload(object, of, left)?, last_ms })
    };
    templates.iter().filter_map(of_template).collect()
}

/// So many pods of a template that have no node; `None` if they need no GPUs.
fn workload(object: &ObjectRef, of: &Template, count: u64) -> Option<Workload> {
    let detail: PodDetail<'_> = serde_json::from_str(&of.text).ok()?;
    let to_come =
        |number: u64| FactPod { name: format!("{}-{number}", object.name), ..FactPod::default() };
    let workload = Workload {
        owner: object.clone(),
        template: template(&of.pod, &detail),
        pods: (0..count).map(to_come).collect(),
        replicas: u32::try_from(count).unwrap_or(u32::MAX),
        ..Workload::default()
    };
    workload.has_gpus().then_some(workload)
}

/// Whether an object that makes pods at set times (a CronJob, a CronWorkflow, a
/// ScheduledSparkApplication) is suspended: only a person resumes it. A suspended Job starts once a
/// queue lets it.
fn is_suspended_schedule(object: &ObjectRef, value: &Value) -> bool {
    let is_schedule = ["Cron", "Scheduled"].iter().any(|start| object.kind.starts_with(start));
    is_schedule && value["spec"]["suspend"] == true
}
