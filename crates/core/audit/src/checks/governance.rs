//! GOV: who may use how much, and who pays.

use std::collections::BTreeMap;

use super::{Run, View, measured, pods_of};
use crate::catalogue::Check;
use crate::facts::{ObjectRef, Workload};
use crate::finding::Finding;
use crate::patch::Change;

pub(super) const RUNS: &[Run] = &[
    ("GOV-01", no_quota),
    ("GOV-02", no_team),
    ("GOV-03", measured::owned_and_idle),
    ("GOV-04", no_admission_policy),
];

/// AWS exports so many labels of a pod, by name, and drops the rest.
const EXPORTED_LABELS: usize = 50;

fn no_quota(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    // All that is wanted, and one pod more: a rollout starts a new one before an old one goes.
    let mut held: BTreeMap<(&str, &str), (i64, i64)> = BTreeMap::new();
    for workload in view.gpu_workloads() {
        for (resource, units) in workload.gpus_per_pod() {
            let (sum, most) = held.entry((&workload.owner.namespace, resource)).or_default();
            *sum = sum.saturating_add(units.saturating_mul(pods_wanted(workload)));
            *most = units.max(*most);
        }
    }
    let names = view.facts.namespaces.iter().map(|namespace| (&*namespace.name, namespace));
    let namespaces: BTreeMap<&str, _> = names.collect();
    for workload in view.gpu_workloads() {
        let Some(namespace) = namespaces.get(&*workload.owner.namespace) else { continue };
        let Some(limited) = &namespace.quota_resources else { continue };
        for resource in workload.gpus_per_pod().into_keys() {
            if !limited.contains(&format!("requests.{resource}")) {
                let object = ObjectRef::new("Namespace", "", &namespace.name);
                let wanted = held.get(&(&*namespace.name, resource)).copied().unwrap_or_default();
                let units = wanted.0.saturating_add(wanted.1);
                let finding = Finding::new(check, &object)
                    .with("resource without quota", resource)
                    .mended_by(Change::Quota { resource: resource.to_owned(), units })
                    .affecting([workload.owner.clone()]);
                found.push(finding);
            }
        }
    }
}

/// What a quota has to leave room for.
fn pods_wanted(workload: &Workload) -> i64 {
    i64::from(workload.replicas).max(workload.pods.len() as i64)
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
        let mut finding = Finding::new(check, &cluster).with("policies about GPU resources", 0);
        for (resource, most) in view.most_gpus.iter().filter(|(_, most)| **most > 0) {
            let resource = (*resource).to_owned();
            finding = finding.mended_by(Change::WarnOfLargePods { resource, most: *most });
        }
        found.push(finding);
    }
}
