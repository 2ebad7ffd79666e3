//! IDL: pods that hold GPUs and cannot use them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::DeviceState;
use dovetail_facts::{Facts, Node, ObjectRef, Pod, Workload};
use dovetail_model::owner_kind;
use dovetail_units::amount::gpu_hours;
use dovetail_units::duration::duration_at_least;

use super::measured::{all_units, idle_claims};
use super::{Run, View, claims_on, measured, pod_ref, pods_of};
use crate::catalogue::Check;
use crate::finding::Finding;
use crate::remedy::PatchChange;

pub(super) const RUNS: &[Run] = &[
    ("IDL-01", measured::idle_notebook),
    ("IDL-02", measured::idle_server),
    ("IDL-03", scaled_by_cpu),
    ("IDL-04", holds_after_the_end),
    ("IDL-05", starts_for_long),
    ("IDL-06", should_be_gone),
    ("IDL-07", two_revisions),
    ("IDL-08", hangs),
    ("IDL-09", measured::idle_replicas),
];

const MINUTE_MS: u64 = 60_000;

/// What ends a pod whose work is over while a helper runs on.
const HELPER_ENDS: &str = "initContainers: [{name: HELPER, restartPolicy: Always}]  # a helper \
                           that terminates with the work";

/// What to do about a crash while other pods of the owner run.
const OTHERS_RUN: &str = "fix the container that crashes: a limit on retries (backoffLimit) would \
                          also terminate the pods that still run";

/// Metrics that say nothing of a GPU.
const OF_THE_HOST: [&str; 2] = ["cpu", "memory"];

fn scaled_by_cpu(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for autoscaler in &view.facts.autoscalers {
        let of_the_host =
            autoscaler.metrics.iter().all(|metric| OF_THE_HOST.contains(&metric.as_str()));
        let scaled = view.gpu_workload_of(&autoscaler.scales);
        if let (Some(workload), true, false) = (scaled, of_the_host, autoscaler.metrics.is_empty())
        {
            let metrics: Vec<&str> = autoscaler.metrics.iter().map(String::as_str).collect();
            let finding = Finding::new(check, &autoscaler.object)
                .with("scales by", metrics.join(", "))
                .affecting(pods_of(workload));
            found.push(finding);
        }
    }
}

fn holds_after_the_end(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for (workload, number) in view.facts.workloads.iter().zip(0..) {
        if !workload.has_gpus() {
            continue;
        }
        // A limit that ends a Job ends all its pods.
        let is_limited = !workload.pods.iter().any(works);
        for pod in workload.pods.iter().filter(|pod| pod.node.is_some()) {
            let (why, example) = match pod {
                Pod { is_done_but_for_helpers: true, .. } => {
                    ("the main container finished and a sidecar is still running", HELPER_ENDS)
                }
                Pod { crash_loops: true, .. } if is_limited => {
                    ("CrashLoopBackOff", end_of_crashes(&workload.owner))
                }
                Pod { crash_loops: true, .. } => ("CrashLoopBackOff", OTHERS_RUN),
                _ => continue,
            };
            let is_limited = is_limited && pod.crash_loops && !pod.is_done_but_for_helpers;
            let mut finding = Finding::new(check, &workload.owner)
                .with("GPUs still allocated because", why)
                .mended_in(workload, is_limited.then_some(PatchChange::LimitRetries))
                .for_example(example)
                .affecting([pod_ref(workload, pod)]);
            finding.claims = idle_claims(view, number, all_units(pod), (1, 1));
            found.push(finding);
        }
    }
}

/// Whether a pod has its node and may still do its work there.
fn works(pod: &Pod) -> bool {
    pod.node.is_some()
        && !(pod.crash_loops || pod.is_done_but_for_helpers)
        && pod.should_be_gone_ms.is_none()
}

/// What ends pods whose containers crash again and again, in fields that their owner has.
fn end_of_crashes(owner: &ObjectRef) -> &'static str {
    match owner.kind.as_str() {
        "Job" | "CronJob" => "{backoffLimit: 3, ttlSecondsAfterFinished: 600}",
        "JobSet" => "{failurePolicy: {maxRestarts: 3}, ttlSecondsAfterFinished: 600}",
        "Pod" => "kubectl delete pod POD -n NAMESPACE  # no controller starts it again",
        "Deployment" | "StatefulSet" | "ReplicaSet" | "Rollout" | "LeaderWorkerSet" => {
            "replicas: 0  # until the container no longer crashes"
        }
        kind if owner_kind(kind).has_replica_roles => {
            "runPolicy: {backoffLimit: 3, ttlSecondsAfterFinished: 600}"
        }
        _ => "fix the container that crashes, or delete the object until then",
    }
}

fn starts_for_long(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let numbered = view.facts.workloads.iter().enumerate();
    for (number, workload) in numbered.filter(|(_, workload)| workload.has_gpus()) {
        let mut finding = Finding::new(check, &workload.owner);
        let mut nodes: BTreeMap<&str, &Node> = BTreeMap::new();
        for (pod, length_ms) in starting(workload, view.facts) {
            finding = finding
                .with("never ready", format!("{} for {}", pod.name, duration_at_least(length_ms)))
                .affecting([pod_ref(workload, pod)]);
            let node = pod.node.as_deref().and_then(|name| view.node_of.get_key_value(name));
            nodes.extend(node);
        }
        let states = [DeviceState::Provisioning];
        for node in nodes.into_values() {
            let claims = claims_on(node, Some(number as u32), &states, view.facts.period);
            finding.claims.extend(claims);
        }
        if !finding.affected.is_empty() {
            found.push(finding);
        }
    }
}

/// Pods that were never ready, with the ms since they have their node, where that is too long.
fn starting<'w>(workload: &'w Workload, facts: &Facts) -> impl Iterator<Item = (&'w Pod, u64)> {
    let (now_ms, most_ms) = (facts.now_ms, facts.thresholds.starting_minutes * MINUTE_MS);
    workload.pods.iter().filter(|pod| pod.is_starting).filter_map(move |pod| {
        let length_ms = now_ms.saturating_sub(pod.placed_since_ms?);
        (length_ms > most_ms).then_some((pod, length_ms))
    })
}

fn should_be_gone(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for (workload, number) in view.facts.workloads.iter().zip(0..) {
        if !workload.has_gpus() {
            continue;
        }
        for pod in workload.pods.iter().filter(|pod| pod.node.is_some()) {
            let Some(end_ms) = pod.should_be_gone_ms else { continue };
            let length_ms = view.facts.now_ms.saturating_sub(end_ms);
            if length_ms > view.facts.thresholds.overdue_minutes * MINUTE_MS {
                let gone = format!("{} for {}", pod.name, duration_at_least(length_ms));
                let mut finding = Finding::new(check, &workload.owner).with("overdue for", gone);
                finding.claims = idle_claims(view, number, all_units(pod), (1, 1));
                finding.since_ms = Some(end_ms);
                found.push(finding.affecting([pod_ref(workload, pod)]));
            }
        }
    }
}

/// A Deployment whose old pods hold GPUs beside the new ones.
fn two_revisions(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let mut revisions: BTreeMap<&ObjectRef, BTreeSet<&str>> = BTreeMap::new();
    for workload in view.gpu_workloads().filter(|workload| workload.owner.kind == "Deployment") {
        let placed = workload.pods.iter().filter(|pod| pod.node.is_some());
        let placed = placed.filter_map(|pod| pod.revision.as_deref());
        revisions.entry(&workload.owner).or_default().extend(placed);
    }
    for workload in view.gpu_workloads() {
        let several = revisions.get(&workload.owner).filter(|revisions| revisions.len() > 1);
        if let Some(revisions) = several {
            let names: Vec<&str> = revisions.iter().copied().collect();
            let finding = Finding::new(check, &workload.owner)
                .with("revisions that have GPUs", names.join(", "))
                .mended_in(workload, [PatchChange::RollInPlace])
                .affecting(pods_of(workload));
            found.push(finding);
        }
    }
}

fn hangs(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let Some(period) = view.facts.usage else { return };
    let least_ms = view.facts.thresholds.hung_minutes * MINUTE_MS;
    for workload in view.gpu_workloads() {
        let Some(hang) = workload.hang.filter(|hang| hang.length_ms() >= least_ms) else {
            continue;
        };
        let ended_ms = period.span.to_ms.saturating_sub(hang.longest.to_ms);
        let until = match ended_ms {
            // The last sample stands for a step.
            ended_ms if ended_ms <= period.step_ms => "and hangs now".to_owned(),
            ended_ms => format!("ended {} before the last sample", duration_at_least(ended_ms)),
        };
        let finding = Finding::new(check, &workload.owner)
            .with("still hung", format!("{}, {until}", duration_at_least(hang.length_ms())))
            .with("GPU-hours of all its hangs", gpu_hours(hang.gpu_milli_ms))
            .with("measured", measured::period(view));
        found.push(finding.affecting(pods_of(workload)));
    }
}
