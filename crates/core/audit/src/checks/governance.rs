//! GOV: who may use how much, and who pays.

use std::collections::BTreeMap;

use super::{Run, View, measured, pods_of};
use crate::catalogue::Check;
use crate::facts::ObjectRef;
use crate::finding::Finding;

pub(super) const RUNS: &[Run] = &[
    ("GOV-01", no_quota),
    ("GOV-02", no_team),
    ("GOV-03", measured::owned_and_idle),
    ("GOV-04", no_admission_policy),
];

/// AWS exports so many labels of a pod, by name, and drops the rest.
const EXPORTED_LABELS: usize = 50;

fn no_quota(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let names = view.facts.namespaces.iter().map(|namespace| (&*namespace.name, namespace));
    let namespaces: BTreeMap<&str, _> = names.collect();
    for workload in view.gpu_workloads() {
        let Some(namespace) = namespaces.get(&*workload.owner.namespace) else { continue };
        let Some(limited) = &namespace.quota_resources else { continue };
        for resource in workload.gpus_per_pod().into_keys() {
            if !limited.contains(&format!("requests.{resource}")) {
                let object = ObjectRef::new("Namespace", "", &namespace.name);
                let finding = Finding::new(check, &object)
                    .with("resource without quota", resource)
                    .affecting([workload.owner.clone()]);
                found.push(finding);
            }
        }
    }
}

fn no_team(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let wanted = &view.facts.team_labels;
    if wanted.is_empty() {
        return;
    }
    let is_wanted = |label: &String| wanted.contains(label);
    for workload in view.gpu_workloads() {
        let namespace = view.facts.namespaces.iter().find(|n| n.name == workload.owner.namespace);
        // Without the namespace nobody knows its labels.
        let Some(namespace) = namespace else { continue };
        let labels = &workload.template.labels;
        let place = labels.keys().position(is_wanted);
        let finding = Finding::new(check, &workload.owner).affecting(pods_of(workload));
        match place {
            _ if namespace.labels.keys().any(is_wanted) => {}
            None => {
                let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
                found.push(finding.with("labels looked for", wanted.join(", ")));
            }
            Some(place) if place >= EXPORTED_LABELS => {
                found.push(finding.with("place of the label among those of the pod", place + 1));
            }
            Some(_) => {}
        }
    }
}

fn no_admission_policy(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let is_used = view.gpu_workloads().next().is_some();
    if is_used && view.facts.has_gpu_admission_policy == Some(false) {
        let cluster = ObjectRef::new("Cluster", "", "");
        found.push(Finding::new(check, &cluster).with("policies about GPU resources", 0));
    }
}
