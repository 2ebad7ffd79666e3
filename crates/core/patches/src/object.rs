//! Changes of an object beside its pod template, and objects that are made new.

use dovetail_audit::PatchChange;
use dovetail_facts::ObjectRef;
use dovetail_model::{labels, owner_kind};
use dovetail_units::time::time;

use super::edit::Edits;
use super::json::Json;
use super::source::{PathStep, SourceObject, at};

/// Tries of a Job before it gives up, and how long it then stays.
const TRIES: i64 = 3;
const KEPT_S: i64 = 600;

fn path(fields: &[&str]) -> Vec<PathStep> {
    fields.iter().map(|name| PathStep::Field((*name).to_owned())).collect()
}

/// Makes a change of the object; `false` if objects of its kind have no place for it.
pub(super) fn change(
    source: &SourceObject,
    change: &PatchChange,
    now_s: u64,
    edits: &mut Edits,
) -> bool {
    match change {
        PatchChange::Stop => stop(source, now_s, edits),
        PatchChange::LimitRetries => limit_retries(source, edits),
        PatchChange::RollInPlace if source.object.kind == "Deployment" => {
            let strategy = path(&["spec", "strategy"]);
            edits.set([&strategy[..], &path(&["type"])].concat(), "RollingUpdate".into());
            for (name, pods) in [("maxSurge", 0), ("maxUnavailable", 1)] {
                let place = [&strategy[..], &path(&["rollingUpdate", name])].concat();
                edits.set(place, Json::Integer(pods));
            }
            true
        }
        PatchChange::LetOneGo => {
            edits.set(path(&["spec", "maxUnavailable"]), Json::Integer(1));
            if source.content.at(&["spec", "minAvailable"]).is_some() {
                edits.remove(path(&["spec", "minAvailable"]));
            }
            true
        }
        _ => false,
    }
}

/// Where objects of a kind say that they want no pods, and that this lasts: what is at zero for a
/// while only would keep its nodes.
fn stop(source: &SourceObject, now_s: u64, edits: &mut Edits) -> bool {
    let mut mark = labels::STOPPED;
    let kind = source.object.kind.as_str();
    let suspend = owner_kind(kind).suspend;
    match kind {
        "Deployment" | "StatefulSet" | "ReplicaSet" | "Rollout" => {
            edits.set(path(&["spec", "replicas"]), Json::Integer(0));
        }
        // Kubeflow's notebook controller wants the time at which it was stopped.
        "Notebook" => mark = labels::NOTEBOOK_STOPPED,
        _ if !suspend.is_empty() => edits.set(path(suspend), Json::Bool(true)),
        _ => return false,
    }
    edits.set(path(&["metadata", "annotations", mark]), time(now_s * 1_000).into());
    true
}

fn limit_retries(source: &SourceObject, edits: &mut Edits) -> bool {
    let spec = match source.object.kind.as_str() {
        // Jobs of Volcano count their tries in another field.
        "Job" if source.api_version.starts_with("batch/") => path(&["spec"]),
        "CronJob" => path(&["spec", "jobTemplate", "spec"]),
        _ => return false,
    };
    let now = |name: &str| match at(&source.content, &[&spec[..], &path(&[name])].concat()) {
        Some(Json::Integer(number)) => Some(*number),
        _ => None,
    };
    // Kubernetes' own default is six.
    if now("backoffLimit").is_none_or(|tries| tries > TRIES) {
        edits.set([&spec[..], &path(&["backoffLimit"])].concat(), Json::Integer(TRIES));
    }
    if now("ttlSecondsAfterFinished").is_none() {
        edits.set([&spec[..], &path(&["ttlSecondsAfterFinished"])].concat(), Json::Integer(KEPT_S));
    }
    true
}

/// New objects that changes of one finding ask for.
pub(super) fn created(
    object: &ObjectRef,
    changes: &[&PatchChange],
) -> Vec<(ObjectRef, &'static str, Json)> {
    let mut made = Vec::new();
    let quota: Vec<(&str, i64)> = changes
        .iter()
        .filter_map(|change| match change {
            PatchChange::Quota { resource, units } => Some((resource.as_str(), *units)),
            _ => None,
        })
        .collect();
    if !quota.is_empty() {
        let hard = quota.iter().map(|(resource, units)| {
            (format!("requests.{resource}"), Json::from(units.to_string()))
        });
        let hard = Json::Object(hard.collect());
        let named = ObjectRef::new("ResourceQuota", &object.name, "gpus");
        let spec = Json::object([("hard", hard)]);
        made.push((named, "v1", spec));
    }
    let large: Vec<(&str, i64)> = changes
        .iter()
        .filter_map(|change| match change {
            PatchChange::WarnOfLargePods { resource, most } => Some((resource.as_str(), *most)),
            _ => None,
        })
        .collect();
    if !large.is_empty() {
        made.extend(policy(&large));
    }
    for change in changes {
        if let PatchChange::Prioritise { class, value } = change {
            let named = ObjectRef::new("PriorityClass", "", class);
            let fields = Json::object([
                ("value", Json::Integer(*value)),
                ("description", "Latency-sensitive inference on GPUs".into()),
            ]);
            made.push((named, "scheduling.k8s.io/v1", fields));
        }
    }
    made
}

/// A policy that warns of pods with more GPUs than any node has, and where it counts: everywhere.
fn policy(large: &[(&str, i64)]) -> [(ObjectRef, &'static str, Json); 2] {
    const VERSION: &str = "admissionregistration.k8s.io/v1";
    const NAME: &str = "gpu-requests";
    let list = |item: &str| Json::List(vec![item.into()]);
    let rule = |(resource, most): &(&str, i64)| {
        let each = |field: &str, is_there: &str| {
            format!(
                "{is_there}{field}.all(c, !has(c.resources) || !has(c.resources.limits) || !('{resource}' in \
                 c.resources.limits) || quantity(string(c.resources.limits['{resource}'])).compareTo(quantity('{most}')) \
                 <= 0)"
            )
        };
        let main = each("object.spec.containers", "");
        let init = each("object.spec.initContainers", "!has(object.spec.initContainers) || ");
        Json::object([
            ("expression", format!("{main} && ({init})").into()),
            ("message", format!("no node has more than {most} of {resource}").into()),
        ])
    };
    let rules = Json::object([
        ("apiGroups", list("")),
        ("apiVersions", list("v1")),
        ("operations", list("CREATE")),
        ("resources", list("pods")),
    ]);
    let spec = Json::object([
        ("failurePolicy", "Ignore".into()),
        ("matchConstraints", Json::object([("resourceRules", Json::List(vec![rules]))])),
        ("validations", Json::List(large.iter().map(rule).collect())),
    ]);
    let actions = Json::List(vec!["Warn".into(), "Audit".into()]);
    let binding = Json::object([("policyName", NAME.into()), ("validationActions", actions)]);
    [
        (ObjectRef::new("ValidatingAdmissionPolicy", "", NAME), VERSION, spec),
        (ObjectRef::new("ValidatingAdmissionPolicyBinding", "", NAME), VERSION, binding),
    ]
}

/// A new object in full.
pub(super) fn manifest(object: &ObjectRef, api_version: &str, fields: Json) -> Json {
    let mut metadata = vec![("name", Json::from(object.name.as_str()))];
    if !object.namespace.is_empty() {
        metadata.push(("namespace", object.namespace.as_str().into()));
    }
    let metadata = metadata.into_iter().map(|(name, value)| (name.to_owned(), value));
    let head = [
        ("apiVersion", Json::from(api_version)),
        ("kind", object.kind.as_str().into()),
        ("metadata", Json::Object(metadata.collect())),
    ];
    let mut whole: std::collections::BTreeMap<String, Json> =
        head.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    match fields {
        Json::Object(own) if object.kind == "PriorityClass" => whole.extend(own),
        spec => {
            whole.insert("spec".to_owned(), spec);
        }
    }
    Json::Object(whole)
}
