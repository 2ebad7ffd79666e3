//! By which edit a workload gets fewer pods, or none. Numbers are those of the workload: an example
//! that stops pods that work would be applied as it stands.

use std::collections::BTreeSet;

use dovetail_facts::{ObjectRef, Pod, Workload};
use dovetail_model::owner_kind;

use super::View;
use super::ordinals::{GROUPS, has_ordinals};
use crate::finding::Finding;
use crate::names::is_name;

/// Kinds with a number of replicas that `kubectl scale` sets.
const SCALABLE: [&str; 6] = [
    "Deployment",
    "LeaderWorkerSet",
    "ReplicaSet",
    "ReplicationController",
    "Rollout",
    "StatefulSet",
];

/// What fewer replicas leave, where they have ordinals.
const WITHOUT_LAST: &str = "without the idle ones with the highest ordinals";

fn is_scalable(kind: &str) -> bool {
    SCALABLE.contains(&kind)
}

/// What ends all pods of an object, or takes their GPUs from them.
pub(super) fn no_pods(owner: &ObjectRef) -> String {
    let ObjectRef { kind, namespace, name } = owner;
    match kind.as_str() {
        of if is_scalable(of) && is_name(owner) => format!(
            "kubectl scale --replicas=0 {}/{name} -n {namespace}  # or request no GPU",
            of.to_lowercase()
        ),
        of if is_scalable(of) => "spec: {replicas: 0}  # or request no GPU".to_owned(),
        "CronJob" => "spec: {suspend: true}  # no more runs start; or request no GPU".to_owned(),
        "Pod" => "delete the pod, or create it again without GPUs".to_owned(),
        _ => match owner_kind(kind).suspend {
            [first, rest @ ..] => {
                let field = |value: String, key: &&str| format!("{{{key}: {value}}}");
                let value = rest.iter().rev().fold("true".to_owned(), field);
                format!("{first}: {value}  # its pods end; or request no GPU")
            }
            [] => "request no GPU in its pod template, or delete it".to_owned(),
        },
    }
}

/// Names as many replicas as stay where these idle pods go, or the autoscaler that would undo
/// another number.
pub(super) fn fewer_replicas(
    finding: Finding,
    view: &View<'_>,
    workload: &Workload,
    idle: &BTreeSet<&str>,
) -> Finding {
    let mut autoscalers = view.facts.autoscalers.iter();
    let by = autoscalers.find(|by| workload.is_made_by(&by.scales));
    let scaled = by.map_or(&workload.owner, |by| &by.scales);
    // While a rollout goes on, pods of two templates are replicas of one object.
    let made = view.facts.workloads.iter().filter(|of| of.is_made_by(scaled));
    let pods: Vec<&Pod> = made.flat_map(|of| &of.pods).collect();
    let idle = pods.iter().filter(|pod| idle.contains(&*pod.name)).count();
    let (replicas, busy) = (pods.len(), (pods.len() - idle).max(1));
    let has_order = has_ordinals(workload);
    let which = if has_order { WITHOUT_LAST } else { "as many as are busy" };
    let Some(by) = by else {
        let kind = workload.owner.kind.as_str();
        // Its replicas are groups of pods.
        let is_of_pods = is_scalable(kind) && kind != GROUPS;
        return finding.for_example(match (is_of_pods, has_order) {
            (true, _) => format!("spec: {{replicas: {busy}}}  # {which}; keep more for bursts"),
            (false, true) => {
                format!(
                    "fewer replicas, {which}: {busy} of {replicas} pods stay; keep more for bursts"
                )
            }
            (false, false) => {
                format!("fewer replicas: {busy} of {replicas} pods are busy; keep more for bursts")
            }
        });
    };
    let field = if by.starts_from_zero() { "minReplicaCount" } else { "minReplicas" };
    let of = by.object.in_words();
    let finding = finding.with("replicas set by", &of);
    if scaled.kind == GROUPS {
        return finding.for_example(format!(
            "a lower {field} of {of}, which sets the number of groups, {which}: {busy} of \
             {replicas} pods stay; or a higher target of its metrics"
        ));
    }
    finding.for_example(format!(
        "{field}: {busy}  # of {of}, which sets the number of replicas: {which}; or a higher target of \
         its metrics"
    ))
}
