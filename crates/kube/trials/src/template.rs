//! What a patch of an owner changes of the pods that it makes.
//!
//! Pods have more than their template says: admission adds tolerations, limits become requests. So
//! a pod gets what the template gains and loses what the template loses, and keeps the rest.

use std::sync::Arc;

use dovetail_model::{SelectorTerm, Toleration};
use dovetail_objects::{Labels, Pod, read};
use dovetail_patches::{Edited, Form, Json, Patch};

/// Kinds whose controllers replace their pods after a change of the template.
pub(super) const REPLACING: [&str; 4] = ["DaemonSet", "Deployment", "Rollout", "StatefulSet"];

/// A change of one pod template.
pub(super) struct TemplateChange {
    /// Names of the containers of the template.
    pub(super) containers: Vec<String>,
    /// Whether the pods that are there are replaced; else only new ones have the change.
    pub(super) replaces_pods: bool,
    before: Pod,
    after: Pod,
    /// The template before and after, as JSON.
    pub(super) texts: [String; 2],
}

/// The templates of an object that a patch changes.
pub(super) fn changes(patch: &Patch, edited: &Edited) -> Vec<TemplateChange> {
    let mut found = Vec::new();
    let replaces = REPLACING.contains(&patch.object.kind.as_str())
        && patch.form != Form::Source
        && edited.after.at(&["spec", "updateStrategy", "type"]).and_then(Json::text)
            != Some("OnDelete");
    collect(&edited.before, &edited.after, replaces, &mut found);
    found
}

/// Walks both trees side by side to everything that has the shape of a pod template.
fn collect(before: &Json, after: &Json, replaces_pods: bool, found: &mut Vec<TemplateChange>) {
    if before == after {
        return;
    }
    if matches!(before.at(&["spec", "containers"]), Some(Json::List(_))) {
        let pod = |text: &str| read::<Pod>("Pod", text.as_bytes()).ok();
        let texts = [before.to_line(), after.to_line()];
        if let (Some(old), Some(new)) = (pod(&texts[0]), pod(&texts[1])) {
            let lists = ["containers", "initContainers"];
            let items = lists
                .iter()
                .flat_map(|list| before.at(&["spec", list]).into_iter().flat_map(Json::items));
            let names = items.filter_map(|item| item.get("name")?.text().map(str::to_owned));
            let containers = names.collect();
            let (before, after) = (old, new);
            found.push(TemplateChange { containers, replaces_pods, before, after, texts });
        }
        return;
    }
    for (field, before) in before.fields() {
        if let Some(after) = after.get(field) {
            collect(before, after, replaces_pods, found);
        }
    }
    for (before, after) in before.items().iter().zip(after.items()) {
        collect(before, after, replaces_pods, found);
    }
}

impl TemplateChange {
    /// Whether pods get a priority class that they did not have.
    pub(super) fn prioritises(&self) -> bool {
        self.before.priority_class != self.after.priority_class
    }

    /// A pod as it would be made from the changed template.
    pub(super) fn applied(&self, pod: &Pod) -> Pod {
        let Self { before, after, .. } = self;
        let mut pod = pod.clone();
        pod.tolerations = tolerations(&pod.tolerations, &before.tolerations, &after.tolerations);
        pod.node_selector =
            selector(&pod.node_selector, &before.node_selector, &after.node_selector);
        if before.node_affinity != after.node_affinity {
            pod.node_affinity = affinity(
                pod.node_affinity.as_deref(),
                before.node_affinity.as_deref(),
                after.node_affinity.as_deref(),
            );
        }
        let (old, new) = (&before.requests, &after.requests);
        let moved = |own: i64, old: i64, new: i64| own.saturating_add(new.saturating_sub(old));
        let own = &mut pod.requests;
        own.cpu_milli = moved(own.cpu_milli, old.cpu_milli, new.cpu_milli);
        own.memory_bytes = moved(own.memory_bytes, old.memory_bytes, new.memory_bytes);
        own.ephemeral_bytes = moved(own.ephemeral_bytes, old.ephemeral_bytes, new.ephemeral_bytes);
        for name in old.extended.keys().chain(new.extended.keys()) {
            let amount =
                |of: &dovetail_model::Resources| of.extended.get(name).copied().unwrap_or(0);
            let (old, new) = (amount(old), amount(new));
            if old != new {
                // One that the template names is the pod's own amount, whatever it was before.
                own.extended.insert(name.clone(), new);
            }
        }
        own.extended.retain(|_, amount| *amount != 0);
        pod
    }
}

fn tolerations(
    own: &[Toleration],
    before: &[Toleration],
    after: &[Toleration],
) -> Arc<[Toleration]> {
    let is_kept =
        |toleration: &&Toleration| !before.contains(toleration) || after.contains(toleration);
    let kept = own.iter().filter(is_kept);
    let new = after.iter().filter(|toleration| !own.contains(toleration));
    kept.chain(new).cloned().collect()
}

fn selector(own: &Labels, before: &Labels, after: &Labels) -> Labels {
    let kept = own.iter().filter(|(key, _)| before.get(key).is_none() || after.get(key).is_some());
    let kept = kept.filter(|(key, _)| after.get(key).is_none());
    kept.chain(after.iter()).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Terms that alternatives gain, in each alternative of the pod; alternatives that are new as a
/// whole where it had none.
fn affinity(
    own: Option<&[Vec<SelectorTerm>]>,
    before: Option<&[Vec<SelectorTerm>]>,
    after: Option<&[Vec<SelectorTerm>]>,
) -> Option<Box<[Vec<SelectorTerm>]>> {
    let (Some(own), Some(after)) = (own, after) else { return after.map(Box::from) };
    let old: Vec<&SelectorTerm> = before.into_iter().flatten().flatten().collect();
    let mut gained: Vec<&SelectorTerm> =
        after.iter().flatten().filter(|term| !old.contains(term)).collect();
    gained.dedup();
    let with = |terms: &Vec<SelectorTerm>| {
        let new = gained.iter().filter(|term| !terms.contains(term));
        terms.iter().chain(new.copied()).cloned().collect()
    };
    Some(own.iter().map(with).collect())
}
