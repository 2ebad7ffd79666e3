//! What a collection keeps of an object: fields by allow-list, nothing else.
//!
//! Environment variables, arguments, commands, messages, Secrets and ConfigMaps are on no list. Of
//! the environment one fact is kept: that a container is shown all GPUs; of command and arguments
//! two: how large the model is that they name, and by which argument they count processes.

use dovetail_audit::names_a_repair;
use dovetail_objects::labels;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::described::{keep_described, keep_success};
use super::devices::{
    in_stable_shape, keep_known_of_devices, keep_known_of_requests, keep_known_of_selectors,
};
use super::fields::{CONTAINER, Fields, METADATA, OTHERS, OWNER, POD_SPEC, STATUS, paths};
use crate::facts::launcher::count_of_processes;
use crate::facts::layout_change;
use crate::facts::model::{argument, model_of_words};
use crate::facts::policy::{is_policy, speaks_of_gpus};
use crate::facts::unmade::quota::{QUOTA_RESERVED, REPLICA_FAILURE, speaks_of_quota};

/// Annotations that a check reads.
const ANNOTATIONS: [&str; 35] = [
    labels::ARGO_CD_TRACKING,
    labels::SAFE_TO_EVICT,
    labels::SCALE_DOWN_DISABLED,
    labels::CHECKPOINT_INTERVAL,
    labels::LAST_CHECKPOINT,
    labels::RESTART_COST,
    labels::SAVE_ON_NOTICE,
    labels::IGNORE,
    labels::STOPPED,
    labels::NOTEBOOK_STOPPED,
    labels::FRACTION[0],
    labels::FRACTION[1],
    labels::HAMI_REGISTER,
    labels::HAMI_CHOICES[0],
    labels::HAMI_CHOICES[1],
    labels::HAMI_CHOICES[2],
    labels::HAMI_CHOICES[3],
    labels::KARPENTER_DO_NOT_CONSOLIDATE,
    labels::KARPENTER_DO_NOT_DISRUPT,
    labels::KARPENTER_DO_NOT_EVICT,
    labels::HELM_RELEASE,
    labels::KAI_GROUP,
    labels::BIND_COMPLETED,
    labels::EXTENDED_RESOURCE_CLAIM,
    labels::VOLCANO_GROUP[0],
    labels::VOLCANO_GROUP[1],
    labels::VOLCANO_TASK,
    labels::KUEUE_TOTAL_COUNT,
    labels::KUEUE_SERVING,
    labels::LEADER_WORKER_SET_SIZE,
    labels::MIN_MEMBERS,
    labels::MAX_MEMBERS,
    labels::MIGRATED_PLUGINS,
    layout_change::RECORD,
    labels::KURED_REBOOTING,
];

/// A tree of fields; one without branches is kept with all that is in it.
#[derive(Default)]
pub(super) struct Tree(BTreeMap<String, Tree>);

impl Tree {
    fn add(&mut self, path: &str) {
        let mut at = self;
        for field in path.split('.') {
            at = at.0.entry(field.to_owned()).or_default();
        }
    }

    /// The kept part of a value; a list is a list of kept parts.
    pub(super) fn keep(&self, value: &Value) -> Option<Value> {
        if self.0.is_empty() {
            return Some(value.clone());
        }
        match value {
            Value::Object(fields) => {
                let kept = self.0.iter().filter_map(|(name, inner)| {
                    Some((name.clone(), inner.keep(fields.get(name)?)?))
                });
                Some(Value::Object(kept.collect()))
            }
            Value::Array(items) => {
                Some(Value::Array(items.iter().filter_map(|item| self.keep(item)).collect()))
            }
            Value::Null => None,
            // Fields were to be here. What stood there is not kept, and that it is no object is.
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(Value::Bool(true)),
        }
    }
}

/// What a collection keeps of each kind.
pub struct Keeper {
    any: Tree,
    /// A pod template, wherever it stands.
    template: Tree,
    kinds: BTreeMap<&'static str, Tree>,
}

impl Default for Keeper {
    fn default() -> Self {
        let pod = |fields: &mut Tree, spec: &str| {
            paths(POD_SPEC).for_each(|field| fields.add(&format!("{spec}.{field}")));
            for list in ["containers", "initContainers"] {
                paths(CONTAINER).for_each(|field| fields.add(&format!("{spec}.{list}.{field}")));
            }
        };
        let with = |own: Fields| {
            let mut fields = Tree::default();
            paths(METADATA).chain(paths(own)).for_each(|path| fields.add(path));
            fields
        };
        // Whatever may own pods.
        let mut any = with(OWNER);
        paths(METADATA).for_each(|path| any.add(&format!("spec.template.{path}")));
        pod(&mut any, "spec.template.spec");
        let mut template = with(&[]);
        pod(&mut template, "spec");
        let mut kinds: BTreeMap<&'static str, Tree> = BTreeMap::new();
        for (kind, fields) in OTHERS {
            kinds.insert(kind, with(fields));
        }
        let mut pods = with(STATUS);
        pod(&mut pods, "spec");
        kinds.insert("Pod", pods);
        let nodes = kinds.entry("Node").or_default();
        paths(STATUS).for_each(|path| nodes.add(path));
        kinds.insert("Namespace", with(&[]));
        Self { any, template, kinds }
    }
}

impl Keeper {
    /// The kept part of an object; `None` if nothing of its kind is kept.
    pub fn keep(&self, kind: &str, api_version: &str, object: &Value) -> Option<Value> {
        if ["ConfigMap", "Secret", "Event", "Lease"].contains(&kind) {
            return None;
        }
        if let Some(stable) = in_stable_shape(kind, api_version, object) {
            return self.keep(kind, labels::RESOURCE_V1, &stable);
        }
        let fields = self.kinds.get(kind).unwrap_or(&self.any);
        let mut kept = fields.keep(object)?;
        let top = kept.as_object_mut()?;
        top.insert("kind".to_owned(), json!(kind));
        top.insert("apiVersion".to_owned(), json!(api_version));
        if is_policy(kind, api_version) {
            // Of a policy nothing but whether it is about GPUs.
            let about = if speaks_of_gpus(&object.to_string()) { "gpu" } else { "other" };
            top.insert("spec".to_owned(), json!({"about": about}));
        }
        // Those of a node may mark it for a repair, under any name.
        let is_of_repair = |key: &str| kind == "Node" && names_a_repair(key);
        keep_annotations(object, &mut kept, is_of_repair);
        if let Some(spec) = kept.get_mut("spec") {
            match kind {
                "ResourceSlice" => keep_known_of_devices(spec),
                "DeviceClass" => {
                    spec.get_mut("selectors").into_iter().for_each(keep_known_of_selectors)
                }
                "ResourceClaim" => keep_known_of_requests(spec),
                "ResourceClaimTemplate" => {
                    spec.get_mut("spec").into_iter().for_each(keep_known_of_requests);
                }
                _ => {}
            }
        }
        for path in ["/spec", "/spec/template/spec"] {
            if let (Some(from), Some(to)) = (object.pointer(path), kept.pointer_mut(path)) {
                keep_told_of_containers(from, to);
            }
        }
        if let (Some(from), Some(to)) =
            (object.pointer("/spec/template"), kept.pointer_mut("/spec/template"))
        {
            keep_annotations(from, to, |_| false);
        }
        if !self.kinds.contains_key(kind) {
            keep_what_conditions_are_about(object, &mut kept);
            keep_described(&self.template, object, &mut kept);
            keep_success(object, &mut kept);
        }
        Some(kept)
    }
}

/// Of the messages of two conditions one thing: whether they are about quota.
fn keep_what_conditions_are_about(object: &Value, kept: &mut Value) {
    let from = object.pointer("/status/conditions").and_then(Value::as_array);
    let to = kept.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    let (Some(from), Some(to)) = (from, to) else { return };
    // An item that is no object is not kept; behind one nothing belongs together any more.
    if from.len() != to.len() {
        return;
    }
    for (from, to) in from.iter().zip(to) {
        let kind = from["type"].as_str().unwrap_or_default();
        let told = |message: &str| if speaks_of_quota(kind, message) { "quota" } else { "other" };
        let about = match (from["message"].as_str(), from["about"].as_str()) {
            _ if ![REPLICA_FAILURE, QUOTA_RESERVED].contains(&kind) => continue,
            // Of a collection that is collected again.
            (None, Some(about)) if ["quota", "other"].contains(&about) => about,
            (None | Some(""), _) => continue,
            (Some(message), _) => told(message),
        };
        if let Some(condition) = to.as_object_mut() {
            condition.insert("about".to_owned(), json!(about));
        }
    }
}

/// Annotations that a check reads, and others that are wanted.
pub(super) fn keep_annotations(object: &Value, kept: &mut Value, is_wanted: impl Fn(&str) -> bool) {
    let Some(annotations) = object.pointer("/metadata/annotations").and_then(Value::as_object)
    else {
        return;
    };
    let is_kept = |key: &str| ANNOTATIONS.contains(&key) || is_wanted(key);
    let known = annotations.iter().filter(|(key, _)| is_kept(key));
    let value_of = |key: &str, value: &Value| match key {
        layout_change::RECORD => json!(layout_change::told_alone(value.as_str().unwrap_or(""))),
        _ => value.clone(),
    };
    let known: Map<String, Value> =
        known.map(|(key, value)| (key.clone(), value_of(key, value))).collect();
    let metadata = kept.get_mut("metadata").and_then(Value::as_object_mut);
    if let (false, Some(metadata)) = (known.is_empty(), metadata) {
        metadata.insert("annotations".to_owned(), Value::Object(known));
    }
}

/// Of the environment one thing: that the container is shown all GPUs; of command and arguments
/// two: how large its model is, and by which argument it counts its processes.
pub(super) fn keep_told_of_containers(from: &Value, to: &mut Value) {
    let shows_all = |env: &Value| {
        env["name"] == "NVIDIA_VISIBLE_DEVICES"
            && env["value"].as_str().map(str::trim) == Some("all")
    };
    for list in ["containers", "initContainers"] {
        let to = to.get_mut(list).and_then(Value::as_array_mut);
        let (Some(from), Some(to)) = (from[list].as_array(), to) else { continue };
        // An item that is no object is not kept; behind one nothing belongs together any more.
        if from.len() != to.len() {
            continue;
        }
        for (from, to) in from.iter().zip(to) {
            let Some(container) = to.as_object_mut() else { continue };
            if from["env"].as_array().is_some_and(|env| env.iter().any(shows_all)) {
                let env = json!([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]);
                container.insert("env".to_owned(), env);
            }
            let words = ["command", "args"].into_iter().filter_map(|words| from[words].as_array());
            let words: Vec<&str> = words.flatten().filter_map(Value::as_str).collect();
            let model = model_of_words(words.iter().copied()).map(argument);
            let processes = count_of_processes(words.into_iter()).map(str::to_owned);
            let told: Vec<String> = model.into_iter().chain(processes).collect();
            if !told.is_empty() {
                container.insert("args".to_owned(), json!(told));
            }
        }
    }
}
