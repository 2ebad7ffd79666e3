//! In which order patches are applied, and what comes first where one would do harm.

use std::collections::BTreeSet;

use dovetail_facts::ObjectRef;
use dovetail_inventory::reach::PatchReach;
use dovetail_model::Taint;
use dovetail_patches::{Edited, Form, Json, Patch};

use super::trial::{Harmed, Trial};

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
pub(super) fn safe_order(patch: &Patch, harmed: &[Harmed], trial: &Trial<'_>) -> String {
    let named = named(harmed.iter());
    match &patch.nodes {
        Some(_) if harmed.iter().any(|harmed| harmed.has_no_room) => format!(
            "pods of {named} run on the nodes, do not tolerate the taint, and have no room on other nodes when they \
             are replaced, as far as the audit can check. 1. add nodes that they can use, or free capacity there, or \
             add a toleration to them; 2. run the audit again to get the patch"
        ),
        Some(change) if !change.added.is_empty() => before_taints(&change.added, harmed, trial),
        Some(change) if change.drained => format!(
            "1. add nodes that {named} can use, or relax the node selectors and affinity of these pods; 2. run the \
             audit again to get the patch that drains the nodes"
        ),
        _ if harmed.iter().any(|of| trial.is_bound_by_name(&of.owner)) => format!(
            "the template of {named} sets spec.nodeName, so its pods start on that node without the scheduler, and \
             the kubelet would reject each new pod. 1. remove spec.nodeName from the template; 2. run the audit again \
             to get the patch"
        ),
        _ if harmed.iter().any(|of| trial.has_allocated_claims(&of.owner)) => format!(
            "the devices allocated to ResourceClaims of pods of {named} can be used only on nodes that the change \
             excludes. 1. keep these pods where they are, or delete the pods and the claims when other nodes have \
             free devices for them; 2. run the audit again to get the patch"
        ),
        _ => format!(
            "1. add nodes that {named} can use after the change; 2. run the audit again to get the patch"
        ),
    }
}

/// What to do before nodes get taints that pods do not tolerate.
fn before_taints(added: &[Taint], harmed: &[Harmed], trial: &Trial<'_>) -> String {
    let taints = added.iter().map(written).collect::<Vec<_>>().join(", ");
    let (rolling, lacking): (Vec<&Harmed>, Vec<&Harmed>) =
        harmed.iter().partition(|of| trial.rolls_to_tolerate(&of.owner, added));
    let mut steps = Vec::new();
    // The API server lets tolerations be added to a pod that exists, and nothing replaces a pod
    // that no controller owns.
    let (bare, lacking): (Vec<&Harmed>, Vec<&Harmed>) =
        lacking.into_iter().partition(|of| of.owner.kind == "Pod");
    if !bare.is_empty() {
        steps.push(format!(
            "add a toleration for {taints} to {} (no controller replaces such a pod: add the toleration with kubectl \
             edit, or delete the pod and create it with the toleration)",
            named(bare.into_iter())
        ));
    }
    if !lacking.is_empty() {
        steps.push(format!("add a toleration for {taints} to {}", named(lacking.into_iter())));
        steps.push("wait until their pods are replaced".to_owned());
    }
    if !rolling.is_empty() {
        steps.push(format!(
            "wait until the rollout of {} has replaced the pods that do not tolerate {taints} (if no node has room for \
             the extra pod of a rolling update, set spec.strategy.rollingUpdate to maxSurge 0 and maxUnavailable 1)",
            named(rolling.into_iter())
        ));
    }
    steps.push("run the audit again to get the patch that sets the taint".to_owned());
    let steps = steps.iter().enumerate().map(|(place, step)| format!("{}. {step}", place + 1));
    steps.collect::<Vec<_>>().join("; ")
}

/// The owners of pods in words: the first of them, and how many more there are.
fn named<'h>(harmed: impl Iterator<Item = &'h Harmed>) -> String {
    let owners: BTreeSet<String> = harmed.map(|harmed| harmed.owner.in_words()).collect();
    let named = owners.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match owners.len().saturating_sub(MOST_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What to do before a change of nodes where the pods on them are not all known.
const LACKS_PODS: &str = "the audit did not read all pods and nodes, so it cannot check which pods this change \
                          affects. 1. run the audit with the nodes and pods of all namespaces (kubectl get \
                          nodes,pods -A -o json), none of them skipped; 2. apply the patch that this audit writes";

/// What to do before a patch that affects pods of which the audit does not know; with the objects
/// that make them, where these are known. `None` for other patches.
pub(super) fn of_unknown_pods(
    patch: &Patch,
    reach: &PatchReach,
) -> Option<(String, Vec<ObjectRef>)> {
    match reach.lacks_pods && changes_nodes(patch) {
        true => Some((LACKS_PODS.to_owned(), Vec::new())),
        false => later_pods_beyond_quota(patch, reach),
    }
}

/// Whether nodes are tainted or drained, or Karpenter replaces them.
fn changes_nodes(patch: &Patch) -> bool {
    let template = |content: &Json| content.at(&["spec", "template"]).cloned();
    let drifts = |edited: &Edited| template(&edited.before) != template(&edited.after);
    let of_pool = || patch.object.kind == "NodePool" && patch.edited.as_ref().is_some_and(drifts);
    patch.nodes.is_some() || of_pool()
}

/// What to do before a namespace gets a quota while objects in it are yet to make pods with GPUs,
/// which the quota does not count; with these objects. `None` for other patches.
fn later_pods_beyond_quota(patch: &Patch, reach: &PatchReach) -> Option<(String, Vec<ObjectRef>)> {
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
        "{} and possibly others create pods with GPUs later, which a quota for the current pods \
         would reject. 1. decide how many GPUs namespace {namespace} may use with them; \
         2. create a ResourceQuota for that number",
        first.in_words()
    );
    Some((order, owners.into_iter().cloned().collect()))
}

fn written(taint: &Taint) -> String {
    let equals = if taint.value.is_empty() { "" } else { "=" };
    format!("{}{equals}{}:{}", taint.key, taint.value, taint.effect.name())
}
