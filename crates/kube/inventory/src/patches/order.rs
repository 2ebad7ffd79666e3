//! In which order patches are applied, and what comes first where one would do harm.

use std::collections::BTreeSet;

use dovetail_audit::{Form, ObjectRef, Patch};
use dovetail_model::Taint;

use super::reach::PatchReach;
use super::trial::Harmed;

/// Owners that a sentence names.
const MOST_NAMED: usize = 10;

/// Pods before nodes, and nodes that accept more pods before nodes that accept fewer.
pub(super) fn rank(patch: &Patch) -> u8 {
    match (&patch.nodes, &patch.form) {
        (None, Form::Command(_)) => 1,
        (None, _) => 0,
        (Some(change), _) if !change.drained => 2,
        (Some(_), _) => 3,
    }
}

/// What to do first so that the change harms no pod.
pub(super) fn safe_order(patch: &Patch, harmed: &[Harmed]) -> String {
    let owners: BTreeSet<String> = harmed.iter().map(|harmed| words(&harmed.owner)).collect();
    let named = owners.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let named = match owners.len().saturating_sub(MOST_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    };
    match &patch.nodes {
        Some(change) if !change.added.is_empty() => {
            let taints: Vec<String> = change.added.iter().map(written).collect();
            let taints = taints.join(", ");
            format!(
                "1. add a toleration for {taints} to {named}; 2. wait until their pods are replaced; 3. run the \
                 audit again to get the patch that sets the taint"
            )
        }
        Some(change) if change.drained => format!(
            "1. add nodes that {named} can use, or relax the node selectors and affinity of these pods; 2. run the \
             audit again to get the patch that drains the nodes"
        ),
        _ => format!(
            "1. add nodes that {named} can use after the change; 2. run the audit again to get the patch"
        ),
    }
}

/// What to do before a namespace gets a quota while objects in it are yet to make pods with GPUs,
/// which the quota does not count; with these objects. `None` for other patches.
pub(super) fn later_pods_beyond_quota(
    patch: &Patch,
    reach: &PatchReach,
) -> Option<(String, Vec<ObjectRef>)> {
    if patch.object.kind != "ResourceQuota" || !matches!(patch.form, Form::Create(_)) {
        return None;
    }
    let namespace = &patch.object.namespace;
    let later = reach.groups.iter().filter(|group| {
        group.owner.namespace == *namespace && group.is_to_come() && group.has_gpus()
    });
    let owners: BTreeSet<&ObjectRef> = later.map(|group| &group.owner).collect();
    let first = owners.first()?;
    let order = format!(
        "{} and possibly others create pods with GPUs later, which a quota for the present pods would reject. 1. \
         decide how many GPUs namespace {namespace} may use with them; 2. create a ResourceQuota for that number",
        words(first)
    );
    Some((order, owners.into_iter().cloned().collect()))
}

fn words(object: &ObjectRef) -> String {
    let slash = if object.namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", object.kind, object.namespace, object.name)
}

fn written(taint: &Taint) -> String {
    let equals = if taint.value.is_empty() { "" } else { "=" };
    format!("{}{equals}{}:{}", taint.key, taint.value, taint.effect.name())
}
