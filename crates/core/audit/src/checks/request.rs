//! REQ: what pods ask for.

use std::collections::BTreeSet;

use dovetail_account::device_time::DeviceState;
use dovetail_facts::{Container, ContainerKind, MemoryKills, Pod, Workload, WorkloadClass};
use dovetail_model::{FreeCause, is_gpu_resource};
use dovetail_units::amount::gib;

use super::oversize::{Excess, PodSize, fits_no_node};
use super::{Run, View, advised, claims_on, measured, mend, pods_of};
use crate::catalogue::Check;
use crate::finding::{Attribution, Finding};
use crate::notation::amount_text;
use crate::remedy::PatchChange;

pub(super) const RUNS: &[Run] = &[
    ("REQ-01", request_is_limit),
    ("REQ-02", sees_gpus_without_asking),
    ("REQ-03", more_than_a_node_has),
    ("REQ-04", measured::half_used),
    ("REQ-05", measured::never_used),
    ("REQ-06", measured::fits_a_slice),
    ("REQ-07", advised::too_much),
    ("REQ-08", more_than_its_share),
    ("REQ-09", advised::too_little_cpu),
    ("REQ-10", killed_for_memory),
    ("REQ-11", helper_with_gpus),
    ("REQ-12", small_shared_memory),
];

/// What a pod asks for of CPU and memory beside its GPUs, in percent of their share of the node:
/// more of it leaves GPUs without.
const TOLERATED_PERCENT: i128 = 105;

const MINUTE_MS: u64 = 60_000;

/// The container runtime's `/dev/shm`.
const DEFAULT_SHARED_MEMORY_BYTES: i64 = 64 << 20;

fn request_is_limit(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in &view.facts.workloads {
        for container in &workload.template.containers {
            let keys = container.requests.keys().chain(container.limits.keys());
            let gpus: BTreeSet<&String> = keys.filter(|key| is_gpu_resource(key)).collect();
            for resource in gpus {
                let limit = container.limits.get(resource);
                // Kubernetes takes a missing request from the limit.
                let request = container.requests.get(resource).or(limit);
                if request != limit {
                    let show =
                        |count: Option<&i64>| count.map_or("none".to_owned(), i64::to_string);
                    let finding = Finding::new(check, &workload.owner)
                        .with("container", &container.name)
                        .with("resource", resource)
                        .with("request", show(request))
                        .with("limit", show(limit));
                    found.push(finding.affecting(pods_of(workload)));
                }
            }
        }
    }
}

fn sees_gpus_without_asking(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let without = |workload: &&Workload| !workload.has_gpus() && !workload.belongs_to_nodes();
    for workload in view.facts.workloads.iter().filter(without) {
        for container in &workload.template.containers {
            if let Some(by) = &container.sees_gpus_by {
                let finding = Finding::new(check, &workload.owner)
                    .with("container", &container.name)
                    .with("sees GPUs through", by);
                // What is mounted may be needed for something else.
                let by_variable = by.starts_with("NVIDIA_VISIBLE_DEVICES");
                let hide = PatchChange::HideGpus { container: container.name.clone() };
                let finding = finding.mended_in(workload, by_variable.then_some(hide));
                found.push(finding.affecting(pods_of(workload)));
            }
        }
    }
}

fn more_than_a_node_has(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let to_come = view.facts.to_come.iter().map(|of| &of.workload);
    // What has some of its pods is among the workloads, too.
    let to_come = to_come.filter(|workload| view.gpu_workload_of(&workload.owner).is_none());
    let to_come = to_come.filter(|workload| !is_new(view, workload));
    let without_node = to_come.filter_map(|workload| larger_than_its_nodes(view, check, workload));
    found.extend(without_node);
    for workload in view.facts.workloads.iter().filter(|workload| !is_new(view, workload)) {
        let before = found.len();
        for (resource, count) in workload.gpus_per_pod() {
            // A resource that no node has may come with a pool that is empty now.
            let Some(most) = view.most_gpus.get(resource).copied().filter(|most| *most > 0) else {
                continue;
            };
            if count > most {
                let finding = Finding::new(check, &workload.owner)
                    .with("resource", resource)
                    .with("GPUs of one pod", count)
                    .with("most GPUs of a node", most)
                    .mended_in(workload, mend::gpus(workload, resource, most));
                found.push(finding.affecting(pods_of(workload)));
            }
        }
        if found.len() == before && workload.pods.iter().all(Pod::is_pending) {
            let finding = larger_than_its_nodes(view, check, workload);
            found.extend(finding.map(|finding| finding.affecting(pods_of(workload))));
        }
    }
}

/// Whether all pods are pending and so new that an autoscaler may still add a node for them.
fn is_new(view: &View<'_>, workload: &Workload) -> bool {
    let from_ms =
        view.facts.now_ms.saturating_sub(view.facts.thresholds.oversized_minutes * MINUTE_MS);
    let is_new = |pod: &Pod| pod.is_pending() && pod.created_ms.is_some_and(|made| made > from_ms);
    !workload.pods.is_empty() && workload.pods.iter().all(is_new)
}

/// The finding of pods that request more than each node that their selectors accept has.
fn larger_than_its_nodes(
    view: &View<'_>,
    check: &'static Check,
    workload: &Workload,
) -> Option<Finding> {
    if !workload.has_gpus() || workload.pods.is_empty() || !fits_no_node(view, workload) {
        return None;
    }
    let mut finding = Finding::new(check, &workload.owner);
    let excesses = PodSize::of(workload).excesses(&view.facts.nodes);
    if excesses.is_empty() {
        finding = finding.with("nodes that have enough of each resource", "none that it may use");
    }
    for Excess { resource, asked, most } in excesses {
        let [asked, most_text] = [asked, most].map(|amount| match resource {
            "cpu" | "memory" => amount_text(resource, amount),
            _ => amount.to_string(),
        });
        let what = format!("{asked} {resource}, of which the nodes that it may use have at most");
        finding = finding.with("one pod requests", format!("{what} {most_text}"));
        finding = finding.for_example(match resource {
            "cpu" | "memory" => share_example(None, resource, most),
            _ => format!(
                "resources: {{limits: {{{resource}: {most}}}}}  # and more replicas in a gang"
            ),
        });
    }
    Some(finding)
}

fn more_than_its_share(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in view.gpu_workloads() {
        let needs = workload.gpus_per_pod();
        // Several kinds of GPU in one pod have no share that could be compared.
        let needed = needs.iter().filter(|(_, count)| **count > 0);
        let [(gpu, count)] = needed.collect::<Vec<_>>()[..] else { continue };
        let works = workload.template.containers.iter().filter(|c| c.kind != ContainerKind::Init);
        let requested = |resource: &str| -> i64 {
            let of = works.clone().filter_map(|container| {
                container.requests.get(resource).or(container.limits.get(resource))
            });
            of.fold(0, |sum, amount| sum.saturating_add(*amount))
        };
        for (resource, asked) in [("cpu", requested("cpu")), ("memory", requested("memory"))] {
            // A share on any node it may use is enough. Of all nodes the most generous counts.
            let shares = view.nodes_meant_for(workload, gpu).map(|node| {
                let offered = match resource {
                    "cpu" => node.node.allocatable.cpu_milli,
                    _ => node.node.allocatable.memory_bytes,
                };
                (offered, node.gpus[*gpu].allocatable)
            });
            let Some((offered, gpus)) = shares.max_by(|a, b| {
                (i128::from(a.0) * i128::from(b.1)).cmp(&(i128::from(b.0) * i128::from(a.1)))
            }) else {
                continue;
            };
            // A pod of all GPUs of the node strands none.
            let strands = *count < gpus
                && i128::from(asked) * i128::from(gpus) * 100
                    > i128::from(offered) * i128::from(*count) * TOLERATED_PERCENT;
            if strands {
                let amount = |amount: i64| match resource {
                    "cpu" => format!("{amount}m"),
                    _ => gib(amount.max(0).unsigned_abs()),
                };
                let finding = Finding::new(check, &workload.owner)
                    .with("resource", resource)
                    .with("request per GPU", amount(asked / count))
                    .with("share of the node per GPU", amount(offered / gpus));
                let share = i128::from(offered) * i128::from(*count) / i128::from(gpus);
                let share = i64::try_from(share).unwrap_or(i64::MAX);
                let change = mend::no_more_than(workload, resource, share);
                let finding = finding.for_example(share_example(change.as_ref(), resource, share));
                let mut finding = finding.mended_in(workload, change);
                finding.claims = stranded(view, workload, resource);
                found.push(finding.affecting(pods_of(workload)));
            }
        }
    }
}

/// The request that is the share of the pod's GPUs, of the container that a patch would change.
fn share_example(change: Option<&PatchChange>, resource: &str, share: i64) -> String {
    let (amount, place) = match change {
        Some(PatchChange::Amount { container, request, .. }) => {
            (*request, format!("of container {container}"))
        }
        _ => (share, "of all containers together".to_owned()),
    };
    let amount = match resource {
        "cpu" => format!("\"{}\"", amount_text(resource, amount)),
        _ => amount_text(resource, amount),
    };
    format!("resources: {{requests: {{{resource}: {amount}}}}} {place}")
}

/// GPUs that stand free beside the pods of a workload because the CPU or memory of their nodes is
/// gone.
fn stranded(view: &View<'_>, workload: &Workload, resource: &str) -> Vec<Attribution> {
    let cause = match resource {
        "cpu" => FreeCause::StrandedByCpu,
        _ => FreeCause::StrandedByMemory,
    };
    let nodes: BTreeSet<&str> =
        workload.pods.iter().filter_map(|pod| pod.node.as_deref()).collect();
    let nodes = nodes.into_iter().filter_map(|name| view.node_of.get(name));
    let states = [DeviceState::Free(Some(cause))];
    nodes.flat_map(|node| claims_on(node, None, &states, view.facts.period)).collect()
}

fn killed_for_memory(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let limits = &view.facts.thresholds;
    for workload in view.gpu_workloads() {
        let is_often =
            |kills: &MemoryKills| u64::from(kills.proven) > limits.tolerated_memory_kills;
        let Some(kills) = workload.memory_kills.filter(is_often) else { continue };
        let mut finding = Finding::new(check, &workload.owner)
            .with("kills in seven days", kills)
            .mended_in(workload, mend::more_memory(workload, limits.memory_raise_percent))
            .affecting(pods_of(workload));
        let containers = workload.template.containers.iter();
        for container in containers.filter(|container| !container.limits.contains_key("memory")) {
            finding = finding.with("container without a memory limit", &container.name);
        }
        found.push(finding);
    }
}

fn helper_with_gpus(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for (workload, number) in view.facts.workloads.iter().zip(0..) {
        let holds = workload.gpus_per_pod();
        let mut explained: usize = 0;
        let helpers = workload.template.containers.iter().enumerate();
        let has_gpus = |of: &Container| of.gpu_limits().next().is_some();
        let helpers = helpers.filter(|(_, c)| c.kind != ContainerKind::Main && has_gpus(c));
        for (index, helper) in helpers {
            let without = workload.gpus_without(Some(index));
            for (resource, count) in helper.gpu_limits() {
                let left = without.get(resource).copied().unwrap_or(0);
                // An init container that needs no more than the work costs nothing.
                if left > 0 && left < holds[resource] {
                    let mut finding = Finding::new(check, &workload.owner)
                        .with("container", &helper.name)
                        .with("GPUs of the container", count)
                        .with("GPUs of the pod without the container", left);
                    // What two resources are on nobody can tell apart.
                    if holds.len() == 1 {
                        let added = usize::try_from(holds[resource] - left).unwrap_or(0);
                        let ranks = explained..explained.saturating_add(added);
                        finding.claims =
                            measured::idle_of_least_active(view, number, workload, ranks);
                        explained = explained.saturating_add(added);
                    }
                    // An init container that needs no more than the work costs nothing.
                    let count = if helper.kind == ContainerKind::Init { left } else { 0 };
                    let change = PatchChange::Gpus {
                        container: helper.name.clone(),
                        resource: resource.to_owned(),
                        count,
                    };
                    let finding = finding.mended_in(workload, [change]);
                    found.push(finding.affecting(pods_of(workload)));
                }
            }
        }
    }
}

/// Whole MiB where it is so many, else bytes.
fn mib(bytes: i64) -> String {
    match bytes % (1 << 20) {
        0 => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}

fn small_shared_memory(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let small_bytes = (view.facts.thresholds.small_shared_memory_mib << 20) as i64;
    let trains = |workload: &&Workload| workload.class == Some(WorkloadClass::Training);
    for workload in view.gpu_workloads().filter(trains) {
        let bytes = match workload.template.shared_memory {
            None => DEFAULT_SHARED_MEMORY_BYTES,
            Some(memory) => memory.limit_bytes.unwrap_or(i64::MAX),
        };
        if bytes <= small_bytes {
            let finding = Finding::new(check, &workload.owner)
                .with("size of /dev/shm", mib(bytes))
                .mended_in(workload, mend::shared_memory(workload))
                .affecting(pods_of(workload));
            found.push(finding);
        }
    }
}
