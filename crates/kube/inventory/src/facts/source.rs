//! Objects that a person edits, kept as they were read until somebody asks for one.

use dovetail_objects::labels;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use dovetail_facts::ObjectRef;
use dovetail_patches::{Json, Manager, SourceObject, Tool};
use serde_json::Value;

use crate::dump::{Keeper, RawObject};

/// Kinds without a pod template that findings are mended in.
const OTHERS: [&str; 2] = ["NodePool", "PodDisruptionBudget"];

/// Kinds that make pods one after the other, whatever object has made one of them.
const OF_REPLICAS: [&str; 2] = ["Deployment", "StatefulSet"];

/// Objects by what they are called.
#[derive(Default)]
pub struct SourceTexts {
    texts: BTreeMap<ObjectRef, (Box<str>, Box<str>)>,
    /// Those that another object controls: no person edits them, and pods are made from them.
    controlled: BTreeMap<ObjectRef, Box<str>>,
}

// The texts hold what must not be shown: environment, arguments.
impl fmt::Debug for SourceTexts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} objects", self.texts.len())
    }
}

impl SourceTexts {
    /// Takes an object, if it could be one that is edited: pods are made from it, or it is of a
    /// kind that stands for itself; also one that says on which nodes pods of it may run, or what
    /// these may use.
    pub(super) fn add(&mut self, raw: &RawObject<'_>) {
        let makes_pods = ["\"containers\"", "\"limits\"", "\"nodeSelector\""];
        if OTHERS.contains(&raw.kind) || makes_pods.iter().any(|field| raw.json.contains(field)) {
            let object = ObjectRef::new(raw.kind, raw.namespace, raw.name);
            self.texts.insert(object, (raw.api_version.into(), raw.json.into()));
        }
    }

    /// Takes an object that another one controls, if it makes pods one after the other.
    pub(super) fn add_controlled(&mut self, raw: &RawObject<'_>) {
        if OF_REPLICAS.contains(&raw.kind) && raw.json.contains("\"containers\"") {
            let object = ObjectRef::new(raw.kind, raw.namespace, raw.name);
            self.controlled.insert(object, raw.json.into());
        }
    }

    /// Deployments and StatefulSets that another object controls, with their text.
    pub(super) fn controlled(&self) -> impl Iterator<Item = (&ObjectRef, &str)> {
        self.controlled.iter().map(|(object, text)| (object, &**text))
    }

    /// Objects with their text, by what they are called.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&ObjectRef, &str)> {
        self.texts.iter().map(|(object, (_, text))| (object, &**text))
    }

    /// The API version of an object and its UID; `None` if it was not read.
    pub fn identity(&self, object: &ObjectRef) -> Option<(String, String)> {
        let (api_version, text) = self.texts.get(object)?;
        let value: Value = serde_json::from_str(text).ok()?;
        Some((api_version.to_string(), value["metadata"]["uid"].as_str()?.to_owned()))
    }

    /// An object with the fields that a collection would keep of it; `None` if it was not read.
    pub fn source(&self, object: &ObjectRef) -> Option<SourceObject> {
        let (api_version, text) = self.texts.get(object)?;
        let value: Value = serde_json::from_str(text).ok()?;
        let kept = KEEPER.keep(&object.kind, api_version, &value)?;
        let version = value["metadata"]["resourceVersion"].as_str();
        Some(SourceObject {
            object: object.clone(),
            api_version: api_version.to_string(),
            resource_version: version.map(str::to_owned),
            manager: manager(&value["metadata"]),
            content: json(&kept)?,
        })
    }
}

/// What a collection keeps: the same for every object.
static KEEPER: LazyLock<Keeper> = LazyLock::new(Keeper::default);

/// As a tree of whole numbers and texts; `None` if something else is in it, which no field of
/// interest is.
fn json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) => Json::Integer(number.as_i64()?),
        Value::String(text) => Json::Text(text.clone()),
        Value::Array(items) => Json::List(items.iter().map(json).collect::<Option<_>>()?),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| Some((name.clone(), json(value)?));
            Json::Object(fields.iter().map(field).collect::<Option<_>>()?)
        }
    })
}

/// Who writes the object: what it says of itself first, then who was seen to write it.
///
/// Labels and annotations are those of the tools' own documentation: Helm
/// (`meta.helm.sh/release-name`), Argo CD (resource tracking), Flux (kustomize-controller and
/// helm-controller, `<name>.toolkit.fluxcd.io/name`).
pub fn manager(metadata: &Value) -> Option<Manager> {
    let label = |key: &str| metadata["labels"][key].as_str();
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    let found = |tool, name: &str| Some(Manager { tool, name: Some(name.to_owned()) });
    let flux = ["kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name"];
    if let Some(name) = flux.into_iter().find_map(label) {
        return found(Tool::Flux, name);
    }
    let tracked = annotation(labels::ARGO_CD_TRACKING)
        .map(|id| id.split_once(':').map_or(id, |(application, _)| application));
    if let Some(name) = tracked.or_else(|| label("argocd.argoproj.io/instance")) {
        return found(Tool::ArgoCd, name);
    }
    if let Some(name) = annotation(labels::HELM_RELEASE) {
        return found(Tool::Helm, name);
    }
    if label("app.kubernetes.io/managed-by") == Some("Helm") {
        return Some(Manager { tool: Tool::Helm, name: None });
    }
    let writers = metadata["managedFields"].as_array().into_iter().flatten();
    let mut writers = writers.filter_map(|field| field["manager"].as_str());
    writers.find_map(|writer| {
        let (tool, name) = match writer {
            "kustomize-controller" | "helm-controller" => (Tool::Flux, None),
            "argocd-controller" | "argocd-application-controller" => (Tool::ArgoCd, None),
            "helm" | "Helm" => (Tool::Helm, None),
            "fleetagent" | "configsync" | "kapp" => (Tool::FieldManager, Some(writer.to_owned())),
            _ => return None,
        };
        Some(Manager { tool, name })
    })
}
