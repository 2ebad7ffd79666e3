//! What a finding would change, ready to be applied: to the object that a person edits, and never
//! to what is made from it.
//!
//! Checks attach a [`Remedy`] to what they find. With the [`Source`] of the object it becomes a
//! [`Patch`] in the narrowest form that is exact:
//!
//! | what changes | form |
//! |---|---|
//! | fields alone, or a list as a whole | merge patch (RFC 7386) |
//! | items of lists that the server merges by name (containers of a Deployment) | strategic merge patch |
//! | items of lists in other kinds | JSON patch (RFC 6902), after tests that each item is still the one meant |
//!
//! A list that is written whole is guarded by the version of the object that was read: where
//! somebody changed it since, the server refuses. A workload without a source, or whose template
//! has another shape, has no patch.

mod change;
mod command;
mod edit;
mod json;
mod object;
mod pool;
mod source;
mod template;
#[cfg(test)]
mod tests;

use crate::facts::{Facts, ObjectRef};
use crate::finding::Finding;
pub use change::Remedy;
pub(crate) use change::{Change, Limit};
use edit::Edits;
pub use json::Json;
pub use source::{Manager, Source, Tool};
use template::Template;

/// A change of one object that mends a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The object, or the node pool.
    pub object: ObjectRef,
    /// Its group and version; empty where it is no object of the cluster.
    pub api_version: String,
    /// The change, in the form that is exact.
    pub form: Form,
    /// The part of the object's own source that changes; `null` removes a field. `None` for
    /// commands.
    pub fragment: Option<Json>,
    /// What it restarts or evicts.
    pub effect: String,
    /// What else to know before it is applied.
    pub warnings: Vec<String>,
}

/// Forms of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// RFC 7386.
    Merge(Json),
    /// Kubernetes' own, where lists are merged by name.
    Strategic(Json),
    /// RFC 6902.
    Operations(Vec<Operation>),
    /// A new object.
    Create(Json),
    /// The object cannot be changed on the server: only its source can.
    Source,
    /// Words of a command.
    Command(Vec<String>),
}

/// An operation of RFC 6902.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Nothing is changed unless this is there.
    Test {
        /// JSON pointer.
        path: String,
        /// What must be there.
        value: Json,
    },
    /// Writes a value, instead of one that is there.
    Add {
        /// JSON pointer.
        path: String,
        /// The value.
        value: Json,
    },
    /// Takes a value away.
    Remove {
        /// JSON pointer.
        path: String,
    },
}

/// The patches of a finding, in the order in which they are to be applied. `source_of` has the
/// objects that were read.
pub fn patches(
    facts: &Facts,
    finding: &Finding,
    source_of: &dyn Fn(&ObjectRef) -> Option<Source>,
) -> Vec<Patch> {
    // No server holds an object of another name.
    if finding.remedies.is_empty() || !command::is_name(&finding.object) {
        return Vec::new();
    }
    let changes: Vec<&Change> = finding.remedies.iter().map(|remedy| &remedy.change).collect();
    let source = source_of(&finding.object);
    let edited = source.and_then(|source| edited(facts, finding, &source));
    let mut found: Vec<Patch> = object::created(&finding.object, &changes)
        .into_iter()
        // A class that no template names is of no use.
        .filter(|(object, ..)| object.kind != "PriorityClass" || edited.is_some())
        .map(|(object, api_version, fields)| created(object, api_version, fields))
        .collect();
    found.extend(edited);
    for change in changes {
        let told = command::of_object(&finding.object, change)
            .or_else(|| pool::command(facts, &finding.object, &finding.affected, change));
        if let Some(told) = told.filter(|told| command::is_plain(&told.words)) {
            found.push(Patch {
                object: finding.object.clone(),
                api_version: String::new(),
                form: Form::Command(told.words),
                fragment: None,
                effect: told.effect.to_owned(),
                warnings: told.warnings,
            });
        }
    }
    found
}

fn created(object: ObjectRef, api_version: &str, fields: Json) -> Patch {
    let manifest = object::manifest(&object, api_version, fields);
    let effect = match object.kind.as_str() {
        "ResourceQuota" => "nothing; pods that are there stay, more than this is refused",
        "PriorityClass" => "nothing; a running pod keeps what it has",
        _ => "nothing; it warns and refuses nobody",
    };
    Patch {
        object,
        api_version: api_version.to_owned(),
        fragment: Some(manifest.clone()),
        form: Form::Create(manifest),
        effect: effect.to_owned(),
        warnings: Vec::new(),
    }
}

/// The one patch of an object that is there, if anything of it changes.
fn edited(facts: &Facts, finding: &Finding, source: &Source) -> Option<Patch> {
    if !command::is_version(&source.api_version) {
        return None;
    }
    let mut edits = Edits::default();
    let mut of_template = false;
    for remedy in &finding.remedies {
        if remedy.containers.is_empty() {
            object::change(source, &remedy.change, facts.now_ms / 1000, &mut edits);
            pool::change(source, &remedy.change, &mut edits);
        } else if !object::change(source, &remedy.change, facts.now_ms / 1000, &mut edits) {
            for path in source.templates_of(&remedy.containers) {
                of_template |= Template::new(source, &path, &mut edits).change(&remedy.change);
            }
        }
    }
    if edits.applied(source) == source.content {
        return None;
    }
    let mut warnings = Vec::new();
    let form = match () {
        () if of_template && source.is_frozen() => Form::Source,
        () if edits.is_guarded && source.resource_version.is_none() => {
            let text = "the dump does not tell the version of the object, and a list that is written whole must not \
                        undo what somebody else changed: audit the cluster itself, or edit the source";
            warnings.push(text.to_owned());
            Form::Source
        }
        () => edits.form(source),
    };
    let is_gang = |remedy: &Remedy| matches!(remedy.change, Change::Gang { .. });
    if finding.remedies.iter().any(is_gang) {
        let text = "the label binds pods of the scheduler dovetail (schedulerName); with Kueue it is \
                    kueue.x-k8s.io/queue-name, with others a PodGroup";
        warnings.push(text.to_owned());
    }
    warnings.extend(source.manager.as_ref().map(managed));
    Some(Patch {
        object: source.object.clone(),
        api_version: source.api_version.clone(),
        effect: effect(source, of_template, finding),
        fragment: Some(edits.fragment(source)),
        form,
        warnings,
    })
}

/// Who undoes a live change, and where it belongs.
fn managed(manager: &Manager) -> String {
    let (owner, when, place) = match manager.tool {
        Tool::Helm => ("Helm release", "on its next upgrade", "the chart or its values"),
        Tool::ArgoCd => {
            ("Argo CD application", "when it synchronises", "the repository that it reads")
        }
        Tool::Flux => ("Flux resource", "at its next interval", "the repository that it reads"),
    };
    let name = manager.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    format!(
        "{owner}{name} writes this object and undoes a live change {when}: put the fragment into {place}"
    )
}

/// What a patch of an object restarts or evicts.
fn effect(source: &Source, of_template: bool, finding: &Finding) -> String {
    let pods = finding.affected.iter().filter(|object| object.kind == "Pod").count();
    let kind = source.object.kind.as_str();
    let removes_empty =
        finding.remedies.iter().any(|remedy| remedy.change == Change::RemoveEmptyNodes);
    let stops = finding.remedies.iter().any(|remedy| remedy.change == Change::Stop);
    match kind {
        _ if stops => format!("its pods ({pods}) end"),
        "Job" | "JobSet" if of_template => {
            format!(
                "a {kind} keeps its template: delete it and create it with the change; its pods ({pods}) start anew"
            )
        }
        "CronJob" => "nothing; the next run has it".to_owned(),
        "Deployment" if of_template => format!("its pods ({pods}), step by step"),
        "StatefulSet" | "DaemonSet" if of_template => {
            format!("its pods ({pods}), one by one, unless its update strategy is OnDelete")
        }
        "NodePool" if removes_empty => {
            "nodes of the pool that stand empty for five minutes go".to_owned()
        }
        "NodePool" => {
            "nodes of the pool with their pods: Karpenter replaces them step by step (drift)"
                .to_owned()
        }
        _ if of_template => {
            format!("as the controller of {kind} does it: its pods ({pods}), or the next run alone")
        }
        "Job" => {
            "nothing, unless the job has failed as often already: then its pods end".to_owned()
        }
        _ => "nothing".to_owned(),
    }
}
