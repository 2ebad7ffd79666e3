//! The object that a person edits, as it was read.

use dovetail_facts::{Container, ObjectRef};

use super::json::Json;

/// An object with the fields that patches look at. Environment values, arguments and commands are
/// not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceObject {
    /// Kind, namespace and name.
    pub object: ObjectRef,
    /// Group and version, for example `apps/v1`.
    pub api_version: String,
    /// The version of the object that was read; `None` if the dump does not tell.
    pub resource_version: Option<String>,
    /// Whoever writes the object from a source of its own.
    pub manager: Option<Manager>,
    /// Its fields, as they were written.
    pub content: Json,
}

/// Whoever writes an object from a source of its own, and undoes what is changed beside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    pub tool: Tool,
    /// Its release, application or customization, where the object names it.
    pub name: Option<String>,
}

impl Manager {
    /// Who undoes a live change, and where it belongs, in words.
    pub fn advice(&self) -> String {
        let (owner, when, place) = match self.tool {
            Tool::Helm => ("Helm release", "on its next upgrade", "the chart or its values"),
            Tool::ArgoCd => ("Argo CD application", "when it syncs", REPOSITORY),
            Tool::Flux => ("Flux resource", "at its next interval", REPOSITORY),
            Tool::FieldManager => ("Field manager", "when it syncs", REPOSITORY),
        };
        let name = self.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        format!(
            "{owner}{name} manages this object and reverts live changes {when}: add the fragment to {place}"
        )
    }
}

/// What writes objects from sources of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Helm, on the next upgrade.
    Helm,
    /// Argo CD, within minutes where it heals itself.
    ArgoCd,
    /// Flux, at its next interval.
    Flux,
    /// Fleet, Config Sync or kapp, known by what they call themselves.
    FieldManager,
}

const REPOSITORY: &str = "the repository that it reads";

/// Kinds whose lists the API server merges by name.
const STRATEGIC: [&str; 6] =
    ["CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"];

/// Kinds whose pod template the API server lets nobody change.
const FROZEN: [&str; 2] = ["Job", "JobSet"];

impl SourceObject {
    /// Whether lists of it can be patched by the names of their items.
    pub(super) fn merges_by_name(&self) -> bool {
        STRATEGIC.contains(&self.object.kind.as_str())
            && (self.api_version.starts_with("apps/") || self.api_version.starts_with("batch/"))
    }

    /// Whether the template of its pods cannot be changed.
    pub(super) fn is_frozen(&self) -> bool {
        FROZEN.contains(&self.object.kind.as_str())
    }

    /// Paths of the templates that pods of these containers are made from.
    pub(super) fn templates_of(&self, containers: &[Container]) -> Vec<Vec<PathStep>> {
        let mut found = Vec::new();
        let mut path = Vec::new();
        templates(&self.content, &mut path, &mut found);
        found.retain(|path| {
            let template = at(&self.content, path);
            template.is_some_and(|template| is_made_from(containers, template))
        });
        found
    }
}

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathStep {
    /// Into a field.
    Field(String),
    /// To an item of a list by the value of one of its fields; it may not be there yet.
    Item {
        /// The field that names items.
        key: &'static str,
        value: String,
    },
    /// To an item of a list by its place, in a list whose items have no names.
    Place(usize),
}

/// What a path leads to.
pub(super) fn at<'a>(value: &'a Json, path: &[PathStep]) -> Option<&'a Json> {
    path.iter().try_fold(value, |value, step| match step {
        PathStep::Field(field) => value.get(field),
        PathStep::Item { key, value: name } => {
            value.items().iter().find(|item| item.get(key).and_then(Json::text) == Some(name))
        }
        PathStep::Place(place) => value.items().get(*place),
    })
}

/// Paths of everything that has the shape of a pod template.
fn templates(value: &Json, path: &mut Vec<PathStep>, found: &mut Vec<Vec<PathStep>>) {
    if matches!(value.at(&["spec", "containers"]), Some(Json::List(_))) {
        found.push(path.clone());
        return;
    }
    for (field, value) in value.fields() {
        path.push(PathStep::Field(field.clone()));
        templates(value, path, found);
        path.pop();
    }
    let has_names =
        value.items().iter().all(|item| item.get("name").is_some_and(|n| n.text().is_some()));
    for (place, item) in value.items().iter().enumerate() {
        path.push(match item.get("name").and_then(Json::text) {
            Some(name) if has_names => PathStep::Item { key: "name", value: name.to_owned() },
            _ => PathStep::Place(place),
        });
        templates(item, path, found);
        path.pop();
    }
}

/// Whether pods as these come from a template: each of its containers is in them with the same
/// GPUs. Pods may have more, which were added when they were let in.
fn is_made_from(containers: &[Container], template: &Json) -> bool {
    let mut has_any = false;
    for list in ["containers", "initContainers"] {
        for container in template.at(&["spec", list]).into_iter().flat_map(Json::items) {
            let Some(name) = container.get("name").and_then(Json::text) else { return false };
            let Some(known) = containers.iter().find(|known| known.name == name) else {
                return false;
            };
            let limits = container.at(&["resources", "limits"]);
            let count = |resource: &str| match limits.and_then(|limits| limits.get(resource)) {
                Some(Json::Integer(count)) => Some(*count),
                Some(Json::Text(text)) => text.parse().ok(),
                _ => None,
            };
            if known.gpu_limits().any(|(resource, wanted)| count(resource) != Some(wanted)) {
                return false;
            }
            has_any = true;
        }
    }
    has_any
}
