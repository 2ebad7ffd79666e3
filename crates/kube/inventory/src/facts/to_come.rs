//! Pods that are yet to be made: those of a CronJob between its runs unless it is suspended, of a
//! Deployment at zero replicas, of a Job that is suspended; and those that an object wants beyond
//! the pods that are there, which it makes one after the other (StatefulSet, LeaderWorkerSet) or
//! once a quota lets it. None of what was stopped until a person starts it again.
//!
//! The object of an operator may describe its pods in a way of its own, or be missing. So the
//! replicas of Deployments and StatefulSets that it has made count, too, and the size that pods of
//! a LeaderWorkerSet name: of these whichever wants more.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Autoscaler, ObjectRef, Pod as FactPod, ToCome, Workload};
use dovetail_model::is_gpu_resource;
use dovetail_objects::{Pod, labels, read};
use serde_json::{Value, json};

use super::detail::{OwnerStatusDetail, PodDetail};
use super::pod_fields::{has_succeeded, requests_gpus};
use super::source::SourceTexts;
use super::template::template;

/// Pods of one object; more change nothing.
const MOST_PODS: u64 = 100;

/// Kinds, by the ends of their names, whose objects describe pods that others make
/// (WorkflowTemplate, ServingRuntime).
const DESCRIBES_ALONE: [&str; 2] = ["Runtime", "Template"];

/// Kinds that make all their pods from one template.
const OF_ONE_TEMPLATE: [&str; 4] = ["Deployment", "Job", "ReplicaSet", "StatefulSet"];

/// A version of a service of Knative. One at zero replicas starts no more once another one serves.
const VERSION: &str = "Revision";

/// What objects are going to make.
#[derive(Default)]
pub(super) struct Coming<'s> {
    /// A pod of each template, with its object, if that owns none of the pods that are there.
    pub(super) pods: Vec<(&'s ObjectRef, Pod)>,
    /// All pods with GPUs.
    pub(super) with_gpus: Vec<ToCome>,
}

/// Something that an object makes pods from.
pub(super) struct Template {
    /// What is made from it.
    pub(super) pod: Pod,
    text: String,
    /// How many pods at a time the fields around it ask for; one of something that is at zero.
    count: u64,
    /// Whether it has the shape of a pod template. What has another shape need not run beside the
    /// others of its object: steps of a workflow.
    is_plain: bool,
}

/// What objects are going to make, beside the pods of these workloads. `lacking`: pods that groups
/// of a LeaderWorkerSet lack, by place of the workload; `chain`: an object and its owners, the
/// nearest first.
pub(super) fn coming<'s>(
    sources: &'s SourceTexts,
    (there, lacking): (&[Workload], BTreeMap<usize, u64>),
    autoscalers: &[Autoscaler],
    chain: &dyn Fn(&ObjectRef) -> Vec<ObjectRef>,
) -> Coming<'s> {
    let mut by_owner: BTreeMap<&ObjectRef, Vec<&Workload>> = BTreeMap::new();
    for workload in there {
        by_owner.entry(&workload.owner).or_default().push(workload);
    }
    let starting = autoscalers.iter().filter(|by| by.starts_from_zero());
    let started: BTreeSet<&ObjectRef> = starting.map(|by| &by.scales).collect();
    let mut coming = Coming::default();
    let mut wanted: BTreeMap<ObjectRef, Vec<ToCome>> = BTreeMap::new();
    let mut described: BTreeSet<&ObjectRef> = BTreeSet::new();
    let mut stopped: BTreeSet<&ObjectRef> = BTreeSet::new();
    for (object, text) in sources.texts() {
        let there = by_owner.get(object).map_or(&[][..], Vec::as_slice);
        if are_all(object, there) {
            continue;
        }
        let Ok(value) = serde_json::from_str::<Value>(text) else { continue };
        let found = templates(object, &value);
        if !found.is_empty() {
            described.insert(object);
        }
        // A DaemonSet follows the nodes that there are.
        if there.is_empty() && is_stopped(&value) && !started.contains(object) {
            stopped.insert(object);
        } else if object.kind != "DaemonSet" && !is_suspended_schedule(object, &value) {
            let with_gpus = match there.is_empty() {
                true => with_gpus(object, &value["status"], &found),
                false => missing(object, &value["status"], (&found, there)),
            };
            if !with_gpus.is_empty() {
                wanted.insert(object.clone(), with_gpus);
            }
        }
        if there.is_empty() {
            coming.pods.extend(found.into_iter().map(|template| (object, template.pod)));
        }
    }
    let made = MadeByOthers { there: &by_owner, described: &described, stopped: &stopped, chain };
    let made = made.coming(sources, &wanted, &mut coming.pods);
    let alike = lacking.into_iter().map(|(number, count)| like(&there[number], count));
    for (top, more) in made.into_iter().chain(alike) {
        let own = wanted.entry(top).or_default();
        if pods_of(&more) > pods_of(own) {
            *own = more;
        }
    }
    coming.with_gpus = wanted.into_values().flatten().collect();
    coming
}

/// So many more pods like those of a workload, with its owner.
fn like(workload: &Workload, count: u64) -> (ObjectRef, Vec<ToCome>) {
    let count = count.min(MOST_PODS);
    let pods = (0..count).map(|_| FactPod::default()).collect();
    let workload = Workload { pods, replicas: count as u32, ..workload.clone() };
    let owner = workload.owner.clone();
    let to_come = workload.has_gpus().then_some(ToCome { workload, last_ms: None });
    (owner, to_come.into_iter().collect())
}

fn pods_of(to_come: &[ToCome]) -> usize {
    to_come.iter().map(|of| of.workload.pods.len()).sum()
}

/// What is known where objects that others control are asked for their pods.
struct MadeByOthers<'a, 's> {
    /// Workloads by their top owners.
    there: &'a BTreeMap<&'a ObjectRef, Vec<&'a Workload>>,
    /// Objects at the top that describe pods themselves.
    described: &'a BTreeSet<&'s ObjectRef>,
    /// Those whose pods come only once a person starts them again.
    stopped: &'a BTreeSet<&'s ObjectRef>,
    chain: &'a dyn Fn(&ObjectRef) -> Vec<ObjectRef>,
}

impl MadeByOthers<'_, '_> {
    /// The pods with GPUs that Deployments and StatefulSets lack which others control, by the
    /// object at the top. Adds a pod of each template to `pods`, if there is none otherwise.
    fn coming<'s>(
        &self,
        sources: &'s SourceTexts,
        wanted: &BTreeMap<ObjectRef, Vec<ToCome>>,
        pods: &mut Vec<(&'s ObjectRef, Pod)>,
    ) -> BTreeMap<ObjectRef, Vec<ToCome>> {
        let mut made: BTreeMap<ObjectRef, Vec<ToCome>> = BTreeMap::new();
        for (object, text) in sources.controlled() {
            let Ok(value) = serde_json::from_str::<Value>(text) else { continue };
            let chain = (self.chain)(object);
            let Some(top) = chain.last() else { continue };
            let there = self.there.get(top).map_or(&[][..], Vec::as_slice);
            let is_at_zero = value["spec"]["replicas"] == 0;
            let others_serve = !there.is_empty() || wanted.contains_key(top);
            if is_at_zero && others_serve && chain.iter().any(|of| of.kind == VERSION) {
                continue;
            }
            let found = templates(object, &value);
            // What no status tells the pods of its owner show.
            let with_gpus_there = there.iter().filter(|of| of.has_gpus());
            let status = match &value["status"] {
                Value::Null => {
                    let pods: usize = with_gpus_there.map(|of| of.pods.len()).sum();
                    json!({ "replicas": pods })
                }
                status => status.clone(),
            };
            if !chain.iter().any(|of| self.stopped.contains(of)) {
                made.entry(top.clone()).or_default().extend(with_gpus(object, &status, &found));
            }
            if there.is_empty() && !self.described.contains(top) {
                pods.extend(found.into_iter().map(|template| (object, template.pod)));
            }
        }
        made
    }
}

/// Whether an object makes no more pods than are there, as its replicas show.
fn are_all(object: &ObjectRef, there: &[&Workload]) -> bool {
    let [there] = there else { return false };
    let is_there = there.pods.len() >= there.replicas as usize;
    OF_ONE_TEMPLATE.contains(&&*object.kind) && (is_there || !there.has_gpus())
}

/// The templates of an object; none of one that is over, which makes no pods any more.
pub(super) fn templates(object: &ObjectRef, value: &Value) -> Vec<Template> {
    let mut found = Vec::new();
    if !is_over(&value["status"]) {
        let around = Around { count: 1, selector: &Value::Null, tolerations: &Value::Null };
        collect(&value["spec"], around, &mut found);
    }
    if DESCRIBES_ALONE.iter().any(|end| object.kind.ends_with(end)) {
        found.retain(|template| template.is_plain || !template.has_gpus());
    }
    for template in &mut found {
        template.pod.meta.namespace = object.namespace.as_str().into();
    }
    found
}

impl Template {
    fn has_gpus(&self) -> bool {
        let mut extended = self.pod.requests.extended.keys();
        extended.any(|name| is_gpu_resource(name))
    }
}

/// Whether a Job, or the job of an operator, is over.
fn is_over(status: &Value) -> bool {
    let text = status.to_string();
    serde_json::from_str::<OwnerStatusDetail<'_>>(&text).is_ok_and(|status| status.is_over())
}

/// What the fields around a template say of its pods.
#[derive(Clone, Copy)]
struct Around<'v> {
    count: u64,
    selector: &'v Value,
    tolerations: &'v Value,
}

impl<'v> Around<'v> {
    /// The same with what a value says itself.
    fn within(self, value: &'v Value) -> Self {
        let own = |field: &str, around: &'v Value| match &value[field] {
            Value::Null => around,
            own => own,
        };
        // Of what a Job completes once no more pods start than are left.
        let most = value["completions"].as_u64().unwrap_or(u64::MAX);
        let said = ["parallelism", "replicas", "minReplicas"];
        let said = said.iter().find_map(|field| value[*field].as_u64()).unwrap_or(1).min(most);
        // Of a group of Ray's workers with several hosts each replica has so many pods.
        let hosts = value["numOfHosts"].as_u64().unwrap_or(1);
        Self {
            selector: own("nodeSelector", self.selector),
            tolerations: own("tolerations", self.tolerations),
            ..self.times(said.max(1)).times(hosts.max(1))
        }
    }

    fn times(self, count: u64) -> Self {
        Self { count: self.count.saturating_mul(count).min(MOST_PODS), ..self }
    }

    /// A pod with one container, or none, as the fields around it say.
    fn pod(self, containers: &Value) -> String {
        let mut spec = json!({ "containers": containers });
        for (field, value) in [("nodeSelector", self.selector), ("tolerations", self.tolerations)] {
            if !value.is_null() {
                spec[field] = value.clone();
            }
        }
        json!({ "spec": spec }).to_string()
    }
}

/// Whatever has the shape of a pod template, and whatever selects nodes or requests GPUs for pods
/// whose template has another shape (an Argo workflow, a predictor of KServe).
fn collect(value: &Value, around: Around<'_>, found: &mut Vec<Template>) {
    let mut add = |text: String, count: u64, is_plain: bool| {
        let pod = read::<Pod>("Pod", text.as_bytes());
        found.extend(pod.map(|pod| Template { pod, text, count, is_plain }));
    };
    if value["spec"]["containers"].is_array() {
        add(value.to_string(), around.count, true);
        return;
    }
    let own = around.within(value);
    if value["nodeSelector"].is_object() {
        add(own.pod(&json!([])), around.count, false);
    }
    if requests_gpus(&value["resources"]) {
        let container = json!([{"name": "main", "resources": value["resources"]}]);
        add(own.pod(&container), own.count, false);
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let members = if name == "workerTemplate" { workers(value) } else { 1 };
                collect(field, own.times(members), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, own, found)),
        _ => {}
    }
}

/// Pods of a group of a LeaderWorkerSet that are made from the template of its workers.
fn workers(set: &Value) -> u64 {
    let leaders = u64::from(set["leaderTemplate"].is_object());
    set["size"].as_u64().unwrap_or(1).saturating_sub(leaders).max(1)
}

/// The pods that an object without pods is going to make of each of its templates that has GPUs.
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

/// The pods with GPUs that an object wants beside those that are there. Pods of several templates
/// are told apart by the GPUs that each requests.
fn missing(
    object: &ObjectRef,
    status: &Value,
    (templates, there): (&[Template], &[&Workload]),
) -> Vec<ToCome> {
    // Of work that is done in part, nothing says which of its pods are done.
    if has_succeeded(status) {
        return Vec::new();
    }
    let with_gpus = there.iter().filter(|workload| workload.has_gpus());
    let mut present: BTreeMap<BTreeMap<String, i64>, u64> = BTreeMap::new();
    for workload in with_gpus {
        *present.entry(gpus_of(workload)).or_default() += workload.pods.len() as u64;
    }
    let wanted = templates.iter().filter(|template| template.is_plain || present.is_empty());
    let wanted: Vec<(&Template, Workload)> =
        wanted.filter_map(|of| Some((of, workload(object, of, of.count)?))).collect();
    if let [(_, alone)] = &wanted[..] {
        // Whatever is there is of this template, maybe as it was before a change.
        let all: u64 = present.values().sum();
        present = BTreeMap::from([(gpus_of(alone), all)]);
    }
    let of_template = |(of, like): (&Template, Workload)| {
        let there = present.entry(gpus_of(&like)).or_default();
        let left = of.count.saturating_sub(*there);
        *there = there.saturating_sub(of.count);
        let workload = workload(object, of, left).filter(|_| left > 0)?;
        Some(ToCome { workload, last_ms: None })
    };
    wanted.into_iter().filter_map(of_template).collect()
}

fn gpus_of(workload: &Workload) -> BTreeMap<String, i64> {
    let gpus = workload.gpus_per_pod().into_iter();
    gpus.map(|(resource, count)| (resource.to_owned(), count)).collect()
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

/// Whether an object was stopped until a person starts it again: by a patch of the audit, as long
/// as it asks for no pods and the mark is a time, or a notebook of Kubeflow.
fn is_stopped(value: &Value) -> bool {
    let (spec, annotations) = (&value["spec"], &value["metadata"]["annotations"]);
    let asks_for_none =
        spec["replicas"] == 0 || spec["suspend"] == true || spec["runPolicy"]["suspend"] == true;
    annotations[labels::NOTEBOOK_STOPPED].is_string()
        || asks_for_none && is_time(&annotations[labels::STOPPED])
}

fn is_time(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok())
}
