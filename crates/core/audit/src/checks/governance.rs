//! GOV: who may use how much, and who pays.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Namespace, ObjectRef, Workload};

use super::{Run, View, measured, pending, pods_of};
use crate::catalogue::Check;
use crate::finding::Finding;
use crate::remedy::PatchChange;

pub(super) const RUNS: &[Run] = &[
    ("GOV-01", no_quota),
    ("GOV-02", no_team),
    ("GOV-03", measured::owned_and_idle),
    ("GOV-04", no_admission_policy),
    ("GOV-05", pending::lacks_quota),
];

/// In the name of what a quota limits of claims:
/// `gpu.nvidia.com.deviceclass.resource.k8s.io/devices`.
const DEVICE_CLASS: &str = "deviceclass.resource.";

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
    let scaled: BTreeSet<&ObjectRef> = view.facts.autoscalers.iter().map(|of| &of.scales).collect();
    let grows = view.gpu_workloads().filter(|workload| may_grow(workload, &scaled));
    let growing: BTreeSet<&str> = grows.map(|workload| &*workload.owner.namespace).collect();
    let namespaces = namespaces(view);
    for workload in view.gpu_workloads() {
        let Some(namespace) = namespaces.get(&*workload.owner.namespace) else { continue };
        let Some(limited) = &namespace.quota_resources else { continue };
        for resource in workload.gpus_per_pod().into_keys() {
            // Claims are counted by their class, which is a quota of its own.
            let is_claimed = workload.template.claimed_gpus.contains_key(resource);
            if is_claimed && limited.iter().any(|name| name.contains(DEVICE_CLASS)) {
                continue;
            }
            if !limited.contains(&format!("requests.{resource}")) {
                let object = ObjectRef::new("Namespace", "", &namespace.name);
                let wanted = held.get(&(&*namespace.name, resource)).copied().unwrap_or_default();
                let units = wanted.0.saturating_add(wanted.1);
                let mut finding = Finding::new(check, &object)
                    .with("resource without quota", resource)
                    .affecting([workload.owner.clone()]);
                if !is_claimed && !growing.contains(&*namespace.name) {
                    let change = PatchChange::Quota { resource: resource.to_owned(), units };
                    finding = finding.mended_by(change);
                }
                found.push(finding);
            }
        }
    }
}

/// Whether it may have more pods tomorrow than it wants now, which a quota of today's size would
/// refuse: what an autoscaler scales, what comes and goes (jobs and their like), and what a
/// scheduler makes for the pods of others.
fn may_grow(workload: &Workload, scaled: &BTreeSet<&ObjectRef>) -> bool {
    let mut owners = workload.made_by.iter().chain([&workload.owner]);
    let mut is_scaled = || owners.any(|owner| scaled.contains(owner));
    let is_fixed = ["Deployment", "StatefulSet"].contains(&workload.owner.kind.as_str());
    !is_fixed || workload.reserves_for_others || is_scaled()
}

/// What a quota has to leave room for.
fn pods_wanted(workload: &Workload) -> i64 {
    i64::from(workload.replicas).max(workload.pods.len() as i64)
}

fn namespaces<'f>(view: &View<'f>) -> BTreeMap<&'f str, &'f Namespace> {
    let namespaces = view.facts.namespaces.iter();
    namespaces.map(|namespace| (&*namespace.name, namespace)).collect()
}

fn no_team(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let wanted = &view.facts.team_labels;
    if wanted.is_empty() {
        return;
    }
    let is_wanted = |label: &String| wanted.contains(label);
    let namespaces = namespaces(view);
    for workload in view.gpu_workloads() {
        // Without the namespace nobody knows its labels.
        let Some(namespace) = namespaces.get(&*workload.owner.namespace) else { continue };
        let labels = &workload.template.labels;
        let place = labels.keys().position(is_wanted);
        let finding = Finding::new(check, &workload.owner).affecting(pods_of(workload));
        match place {
            _ if namespace.labels.keys().any(is_wanted) => {}
            None => {
                let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
                found.push(finding.with("labels searched for", wanted.join(", ")));
            }
            Some(place) if place >= EXPORTED_LABELS => {
                found.push(finding.with("position of the label among those of the pod", place + 1));
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
        // Such a policy reads what containers ask for.
        let offered = view.facts.nodes.iter().flat_map(|node| &node.gpus);
        let by_plugin: BTreeSet<&str> =
            offered.filter(|(_, gpus)| !gpus.by_claims).map(|(resource, _)| &**resource).collect();
        let most = view.most_gpus.iter().filter(|(resource, _)| by_plugin.contains(**resource));
        for (resource, most) in most.filter(|(_, most)| **most > 0) {
            let resource = (*resource).to_owned();
            finding = finding.mended_by(PatchChange::WarnOfLargePods { resource, most: *most });
        }
        found.push(finding);
    }
}
