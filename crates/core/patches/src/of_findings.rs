//! The patches of findings about one object: one for the object, one for each new object, and
//! commands.

use std::collections::BTreeSet;

use dovetail_audit::{Finding, PatchChange, is_name};
use dovetail_facts::ObjectRef;

use super::edit::Edits;
use super::form::{Edited, Form, NodeChange, Patch};
use super::json::Json;
use super::node_names::names_of;
use super::owned::FactsByOwner;
use super::source::{Manager, SourceObject};
use super::template::Template;
use super::{command, object, pool, risk};

/// The patches of findings about one object, in the order in which they are to be applied: the
/// object itself is changed by one patch for all of them. `source` is the object as it was read.
pub fn patches(
    facts: &FactsByOwner<'_>,
    findings: &[&Finding],
    source: Option<&SourceObject>,
) -> Vec<Patch> {
    let Some(object) = findings.first().map(|finding| &finding.object) else { return Vec::new() };
    // No server holds an object of another name.
    if !is_name(object) {
        return Vec::new();
    }
    let edited = source.and_then(|source| edited(facts, findings, source));
    let mut found: Vec<Patch> = Vec::new();
    for finding in findings {
        let changes: Vec<&PatchChange> = finding.changes().collect();
        let created = object::created(object, &changes)
            .into_iter()
            // A class that no template names is of no use.
            .filter(|(object, ..)| object.kind != "PriorityClass" || edited.is_some())
            .map(|(object, version, fields)| created(object, version, fields, finding));
        found.extend(created);
    }
    found.extend(edited);
    found.extend(findings.iter().flat_map(|finding| commands(facts, finding)));
    found
}

/// Changes that are commands: of nodes, and of pools that are no objects of the cluster.
fn commands(facts: &FactsByOwner<'_>, finding: &Finding) -> Vec<Patch> {
    let command = |change: &PatchChange| {
        let told = command::of_object(&finding.object, change)
            .or_else(|| pool::command(facts, finding, change))?;
        command::is_plain(&told.words).then(|| Patch {
            object: finding.object.clone(),
            api_version: String::new(),
            form: Form::Command(told.words),
            fragment: None,
            effect: told.effect.to_owned(),
            warnings: told.warnings.into_iter().chain(risk::of(facts, finding, change)).collect(),
            checks: vec![finding.check.id],
            edited: None,
            nodes: told.nodes,
        })
    };
    finding.changes().filter_map(command).collect()
}

fn created(object: ObjectRef, api_version: &str, fields: Json, finding: &Finding) -> Patch {
    let manifest = object::manifest(&object, api_version, fields);
    let effect = match object.kind.as_str() {
        "ResourceQuota" => "none; running pods stay, and new pods beyond the quota are rejected",
        "PriorityClass" => "none; running pods keep their priority",
        _ => "none; the policy warns but rejects no pod",
    };
    let warnings = risk::of_created(&object);
    Patch {
        object,
        api_version: api_version.to_owned(),
        fragment: Some(manifest.clone()),
        form: Form::Create(manifest),
        effect: effect.to_owned(),
        warnings,
        checks: vec![finding.check.id],
        edited: None,
        nodes: None,
    }
}

/// Makes the changes of a finding; whether one of them is of a pod template.
fn edit(
    facts: &FactsByOwner<'_>,
    finding: &Finding,
    source: &SourceObject,
    edits: &mut Edits,
) -> bool {
    let now_s = facts.now_ms / 1000;
    let mut of_template = false;
    for remedy in &finding.remedies {
        if remedy.containers.is_empty() {
            object::change(source, &remedy.change, now_s, edits);
            pool::change(source, &remedy.change, edits);
        } else if !object::change(source, &remedy.change, now_s, edits) {
            for path in source.templates_of(&remedy.containers) {
                of_template |= Template::new(source, &path, edits).change(&remedy.change);
            }
        }
    }
    of_template
}

/// The one patch of an object that is there, if anything of it changes.
fn edited(facts: &FactsByOwner<'_>, findings: &[&Finding], source: &SourceObject) -> Option<Patch> {
    if !command::is_version(&source.api_version) {
        return None;
    }
    let mut edits = Edits::default();
    let mut of_template = false;
    // What is worth most comes last, and the last change of a place counts.
    let mut effective: Vec<&Finding> = Vec::new();
    let mut after = source.content.clone();
    for finding in findings.iter().rev() {
        of_template |= edit(facts, finding, source, &mut edits);
        let before = std::mem::replace(&mut after, edits.applied(source));
        if after != before {
            effective.insert(0, finding);
        }
    }
    if after == source.content {
        return None;
    }
    let mut warnings = Vec::new();
    let form = match () {
        () if of_template && source.is_frozen() => Form::Source,
        () if edits.is_guarded && source.resource_version.is_none() => {
            let text = "the dump lacks the resourceVersion of the object, so a patch of a whole list could undo other \
                        changes: audit the cluster itself, or edit the source";
            warnings.push(text.to_owned());
            Form::Source
        }
        () => edits.form(source),
    };
    for finding in &effective {
        for risk in finding.changes().flat_map(|change| risk::of(facts, finding, change)) {
            if !warnings.contains(&risk) {
                warnings.push(risk);
            }
        }
    }
    if of_template {
        warnings.extend(risk::of_restart(facts, &source.object));
    }
    warnings.extend(source.manager.as_ref().map(Manager::advice));
    let nodes = pool::node_change(facts, source, &after);
    Some(Patch {
        object: source.object.clone(),
        api_version: source.api_version.clone(),
        effect: effect((facts, source), of_template, &effective, nodes.as_ref()),
        fragment: Some(edits.fragment(source)),
        form,
        warnings,
        checks: effective.iter().map(|finding| finding.check.id).collect(),
        edited: Some(Edited { before: source.content.clone(), after }),
        nodes,
    })
}

/// What a patch of an object restarts or evicts.
fn effect(
    (facts, source): (&FactsByOwner<'_>, &SourceObject),
    of_template: bool,
    findings: &[&Finding],
    nodes: Option<&NodeChange>,
) -> String {
    let affected = findings.iter().flat_map(|finding| &finding.affected);
    let pods: BTreeSet<&ObjectRef> = affected.filter(|object| object.kind == "Pod").collect();
    // A change of the template is one of all pods that are made from it.
    let owned = facts.workloads_of(&source.object).iter();
    let pods = pods.len().max(owned.map(|workload| workload.pods.len()).sum());
    let kind = source.object.kind.as_str();
    let changes = || findings.iter().flat_map(|finding| finding.changes());
    let removes_empty = changes().any(|change| *change == PatchChange::RemoveEmptyNodes);
    let stops = changes().any(|change| *change == PatchChange::Stop);
    match kind {
        _ if stops => format!("its pods ({pods}) are deleted"),
        "Job" | "JobSet" if of_template => {
            format!(
                "a {kind} cannot change its template: delete it and create it with the change; its pods ({pods}) restart"
            )
        }
        "CronJob" => "none; the next run uses the change".to_owned(),
        "Deployment" if of_template && is_paused(source) => format!(
            "none while the Deployment is paused; its pods ({pods}) restart in a rolling update once you resume it \
             (kubectl rollout resume)"
        ),
        "Deployment" if of_template => format!("its pods ({pods}) restart in a rolling update"),
        "StatefulSet" | "DaemonSet" if of_template => {
            format!("its pods ({pods}) restart one by one, unless its update strategy is OnDelete")
        }
        "NodePool" if nodes.is_some() => {
            let names = nodes.map(|change| names_of(&change.nodes)).unwrap_or_default();
            format!("Karpenter replaces these nodes and evicts their pods (drift): {names}")
        }
        "NodePool" if removes_empty => {
            "Karpenter removes nodes of the pool that are empty for five minutes".to_owned()
        }
        "NodePool" => "Karpenter replaces nodes of the pool (drift)".to_owned(),
        _ if of_template => {
            format!(
                "its pods ({pods}) restart, or only the next run uses the change, depending on \
                 the controller of {kind}"
            )
        }
        "Job" => "none, unless the job has already failed that often: then its pods are deleted"
            .to_owned(),
        _ => "none".to_owned(),
    }
}

/// Whether changes of a Deployment wait until a person resumes it.
fn is_paused(source: &SourceObject) -> bool {
    source.content.at(&["spec", "paused"]) == Some(&Json::Bool(true))
}
