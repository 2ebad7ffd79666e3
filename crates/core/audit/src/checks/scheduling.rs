//! SCH: where pods may go.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::DeviceState;
use dovetail_facts::{GangCounts, Node, NumaPolicy, ObjectRef, Scoring, Workload, WorkloadClass};
use dovetail_model::{FreeCause, Taint, TaintEffect, canonical_gpu_model, labels};

use super::measured::is_idle_server;
use super::pod_request::{NodesByModel, PodRequest};
use super::taints::{keeping_away, passes, tolerates};
use super::{Run, View, claims_on, mend, node_ref, packing, pending, pods_of};
use crate::catalogue::Check;
use crate::finding::{Attribution, Finding};
use crate::remedy::PatchChange;

pub(super) const RUNS: &[Run] = &[
    ("SCH-01", node_without_taint),
    ("SCH-02", pod_without_gpus_on_gpu_node),
    ("SCH-03", tolerates_without_gpus),
    ("SCH-04", tolerates_no_node),
    ("SCH-05", takes_any_model),
    ("SCH-06", taint_of_another_name),
    ("SCH-07", spreads_over_empty_nodes),
    ("SCH-08", packing::free_in_pieces),
    ("SCH-09", training_without_gang),
    ("SCH-10", one_pod_per_node),
    ("SCH-11", inference_without_priority),
    ("SCH-12", across_numa_nodes),
    ("SCH-13", pending::lacks_nodes),
    ("SCH-14", pending::excludes_models),
    ("SCH-15", gang_is_short),
];

/// A class for servers, above every class that nobody made for something more urgent: users may go
/// up to 10^9.
const PRIORITISE: PatchChange =
    PatchChange::Prioritise { class: "gpu-inference", value: 1_000_000 };

/// What fixes a pod that only nodes with unhealthy GPUs could take.
const REPAIR_FIRST: &str =
    "tolerations: []  # none: the taints mark unhealthy nodes, which need a repair first";

fn written(taint: &Taint) -> String {
    let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
    format!("{}{value}:{:?}", taint.key, taint.effect)
}

fn node_without_taint(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    // In a cluster of GPU nodes alone everything has to run on them.
    let has_others = view.facts.nodes.iter().any(|node| !node.has_gpus());
    for node in view.gpu_nodes().filter(|node| has_others && keeping_away(node).next().is_none()) {
        let mut finding = Finding::new(check, &node.pool).affecting([node_ref(node)]);
        // The name of the resource, so that Kubernetes can add the toleration itself.
        // Who gets GPUs by a claim gets no toleration with them.
        let offered = node.gpus.iter().find(|(_, gpus)| !gpus.by_claims);
        if let Some(key) = offered.map(|(resource, _)| resource.clone()) {
            let taint = Taint { key, value: String::new(), effect: TaintEffect::NoSchedule };
            let example =
                format!("taints: [{{key: {}, value: \"true\", effect: NoSchedule}}]", taint.key);
            finding = finding.for_example(example);
            finding = finding.mended_by(PatchChange::TaintNodes { taint });
        }
        found.push(finding);
    }
}

/// What keeps pods off GPU nodes where no known label tells these from others.
const LABEL_FIRST: &str = "affinity: {}  # nodeAffinity with DoesNotExist for a label that all GPU nodes have and \
                           other nodes lack: add one if there is none";

/// Whether the example for its platform excludes a node.
fn has_known_label(node: &Node) -> bool {
    node.pool.kind == "GKENodePool" || node.node.label(labels::NVIDIA_PRESENT).is_some()
}

/// So many workloads without GPUs are tried on the engine: each try is a world of its own.
const MOST_TRIES: usize = 8;

/// Whether its pods can do without the GPUs of nodes, and without these nodes.
fn needs_no_gpus(workload: &Workload) -> bool {
    !workload.has_gpus() && !workload.belongs_to_nodes() && !workload.uses_unrequested_gpus()
}

fn pod_without_gpus_on_gpu_node(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let has_others = view.facts.nodes.iter().any(|node| !node.has_gpus());
    let meant = |workload: &&Workload| has_others && needs_no_gpus(workload);
    // The same for all of them, and it looks at every node.
    let changes = mend::stay_off(view);
    let mut tries = MOST_TRIES;
    for workload in view.facts.workloads.iter().filter(meant) {
        let placed = view.pods_on_gpu_nodes(workload);
        if !placed.is_empty() {
            let nodes = placed.iter().map(|(_, node)| &*node.node.name).collect();
            let mut finding = Finding::new(check, &workload.owner)
                .with("pods on GPU nodes", placed.len())
                .mended_in(workload, changes.clone());
            if changes.is_empty() && !placed.iter().all(|(_, node)| has_known_label(node)) {
                finding = finding.for_example(LABEL_FIRST);
            }
            let stranded = (tries > 0).then(|| pending::stranded_by(view, workload, &nodes));
            tries = tries.saturating_sub(1);
            if let Some((claims, most_milli, jobs)) = stranded.flatten() {
                finding = finding.with("pending jobs that would start without them", jobs);
                (finding.claims, finding.most_milli) = (claims, Some(most_milli));
            }
            found.push(finding.affecting(placed.into_iter().map(|(pod, _)| pod)));
        }
    }
}

fn tolerates_without_gpus(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let taints: BTreeSet<&Taint> = view.gpu_nodes().flat_map(keeping_away).collect();
    let meant = |workload: &&Workload| needs_no_gpus(workload);
    for workload in view.facts.workloads.iter().filter(meant) {
        for taint in taints.iter().filter(|taint| tolerates(workload, taint)) {
            let finding = Finding::new(check, &workload.owner)
                .with("tolerated taint", written(taint))
                .mended_in(workload, [PatchChange::Respect { taint: (*taint).clone() }])
                .affecting(pods_of(workload));
            found.push(finding);
        }
    }
}

fn tolerates_no_node(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in view.gpu_workloads() {
        for resource in workload.gpus_per_pod().into_keys() {
            let obstacle = |node: &Node| {
                let mut taints = keeping_away(node);
                taints.find(|taint| !passes(workload, resource, taint)).map(written)
            };
            let nodes = view.nodes_meant_for(workload, resource).map(obstacle);
            let obstacles: Option<BTreeSet<String>> = nodes.collect();
            let Some(first) = obstacles.and_then(|obstacles| obstacles.into_iter().next()) else {
                continue;
            };
            let change = mend::tolerate(view, workload, resource);
            let mut finding = Finding::new(check, &workload.owner)
                .with("resource", resource)
                .with("taint not tolerated", first);
            if change.is_none() {
                finding = finding.for_example(REPAIR_FIRST);
            }
            finding = finding.mended_in(workload, change);
            if workload.pods.iter().any(|pod| pod.node.is_none()) {
                finding.claims = kept_from(view, workload, resource);
            }
            found.push(finding.affecting(pods_of(workload)));
        }
    }
}

/// GPUs that stand free because of a taint, on nodes whose labels the workload accepts.
fn kept_from(view: &View<'_>, workload: &Workload, resource: &str) -> Vec<Attribution> {
    let is_meant = |node: &&Node| {
        let gpus = node.gpus.get(resource);
        gpus.is_some_and(|gpus| gpus.allocatable > 0 && workload.can_get(resource, gpus))
            && workload.accepts_labels(node)
    };
    let states = [DeviceState::Free(Some(FreeCause::Taint))];
    let nodes = view.facts.nodes.iter().filter(is_meant);
    nodes.flat_map(|node| claims_on(node, None, &states, view.facts.period)).collect()
}

fn takes_any_model(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    // An annotation of its scheduler is a choice, and no patch adds to it.
    let chooses = |workload: &&Workload| workload.template.chooses_gpus_by.is_some();
    let all = LazyCell::new(|| NodesByModel::of(view.facts));
    for workload in view.gpu_workloads().filter(|workload| !chooses(workload)) {
        for request in PodRequest::all_of(workload) {
            let resource = request.resource;
            // A taint that keeps it off a model is a choice too, and a model whose nodes are too
            // small is none that it may use.
            let mut nodes: Vec<&Node> = request.open_nodes(view).collect();
            // Labels spell one model in several ways.
            let names = |nodes: &[&Node]| -> BTreeSet<String> {
                let models = nodes.iter().filter_map(|node| request.model_of(node));
                models.map(canonical_gpu_model).collect()
            };
            if names(&nodes).len() < 2 {
                continue;
            }
            let models = request.models_with_room(&nodes, &all);
            nodes.retain(|node| request.model_of(node).is_some_and(|of| models.contains(of)));
            let models = names(&nodes);
            if models.len() > 1 {
                let models: Vec<String> = models.into_iter().collect();
                let mut finding = Finding::new(check, &workload.owner)
                    .with("models it may use", models.join(", "))
                    .mended_in(workload, mend::keep_model(view, workload, resource))
                    .affecting(pods_of(workload));
                let label = nodes.iter().find_map(|node| mend::model_label(node, resource));
                if let Some((label, value)) = label {
                    finding = finding.for_example(format!("nodeSelector: {{{label}: {value}}}"));
                }
                found.push(finding);
            }
        }
    }
}

/// Values of taints that only say that there is one.
pub const PLAIN_TAINT_VALUES: [&str; 4] = ["", "present", "true", "yes"];

fn taint_of_another_name(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    // Only for what containers ask for Kubernetes adds a toleration by its name.
    let by_plugin = |node: &&Node| node.gpus.values().any(|gpus| !gpus.by_claims);
    for node in view.gpu_nodes().filter(by_plugin) {
        let resources: Vec<&String> = node.gpus.keys().collect();
        let is_named = |taint: &Taint| resources.iter().any(|resource| **resource == taint.key);
        // A value says for whom nodes are reserved: with the resource's name, Kubernetes would let
        // everybody in who asks for it.
        let is_plain = |taint: &&Taint| PLAIN_TAINT_VALUES.contains(&&*taint.value);
        let Some(first) = keeping_away(node).find(is_plain) else { continue };
        if !keeping_away(node).any(is_named) {
            let key = resources.first().map(|name| (*name).clone()).unwrap_or_default();
            let finding = Finding::new(check, &node.pool)
                .mended_by(PatchChange::RenameTaint { taint: first.clone(), key })
                .with("taint", written(first))
                .with(
                    "resource",
                    resources.iter().map(|r| r.as_str()).collect::<Vec<_>>().join(", "),
                )
                .affecting([node_ref(node)]);
            found.push(finding);
        }
    }
}

fn spreads_over_empty_nodes(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let has_room = view.most_gpus.values().any(|most| *most > 1);
    if has_room && view.facts.scoring == Some(Scoring::LeastAllocated) {
        let scheduler = ObjectRef::new("KubeSchedulerConfiguration", "", "default-scheduler");
        found.push(Finding::new(check, &scheduler).with("scoring strategy", "LeastAllocated"));
    }
}

fn training_without_gang(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let meant = |workload: &&Workload| {
        workload.class == Some(WorkloadClass::Training)
            && workload.replicas > 1
            && !workload.is_gang
    };
    for (workload, number) in view.facts.workloads.iter().zip(0..) {
        if !workload.has_gpus() || !meant(&workload) {
            continue;
        }
        let mut finding = Finding::new(check, &workload.owner)
            .with("pods wanted", workload.replicas)
            .with("pods placed", workload.pods.iter().filter(|pod| pod.node.is_some()).count())
            .mended_in(workload, [gang_of(workload)])
            .affecting(pods_of(workload));
        finding.claims = waiting_for_others(view, workload, number);
        found.push(finding);
    }
}

/// What pods of a workload that are ready hold while they wait for the others.
fn waiting_for_others(view: &View<'_>, workload: &Workload, number: u32) -> Vec<Attribution> {
    let nodes: BTreeMap<&str, &Node> =
        view.placed(workload).map(|(_, node)| (&*node.node.name, node)).collect();
    let states = [DeviceState::GangWait];
    let nodes = nodes.into_values();
    nodes.flat_map(|node| claims_on(node, Some(number), &states, view.facts.period)).collect()
}

fn gang_is_short(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let mut short: BTreeMap<usize, BTreeSet<GangCounts>> = BTreeMap::new();
    for held in &view.moment.held {
        if let Some(gang) = held.gang.filter(|gang| gang.is_short()) {
            short.entry(held.workload).or_default().insert(gang);
        }
    }
    for (place, gangs) in short {
        let (workload, number) = (&view.facts.workloads[place], place as u32);
        let mut finding = Finding::new(check, &workload.owner).affecting(pods_of(workload));
        for GangCounts { min, placed, pending } in gangs {
            let pods = format!("{placed} of at least {min}, {pending} pending");
            finding = finding.with("pods with a node", pods);
        }
        if workload.owner.kind == "LeaderWorkerSet" {
            finding = finding.for_example(SMALLER_GROUP);
        }
        finding.claims = waiting_for_others(view, workload, number);
        found.push(finding);
    }
}

/// The number that must start together of a LeaderWorkerSet, which has no PodGroup.
const SMALLER_GROUP: &str =
    "leaderWorkerTemplate: {size: 2}  # if the program can run with fewer pods";

/// All pods of a workload as a gang, which has its name: a label's value has at most 63 letters.
fn gang_of(workload: &Workload) -> PatchChange {
    let mut name = workload.owner.name.clone();
    name.truncate(name.char_indices().nth(63).map_or(name.len(), |(end, _)| end));
    let name = name.trim_end_matches(['-', '.', '_']).to_owned();
    PatchChange::Gang { name, members: workload.replicas }
}

fn one_pod_per_node(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in view.gpu_workloads().filter(|workload| workload.replicas > 1) {
        let Some(rule) = &workload.template.keeps_apart_by else { continue };
        for (resource, count) in workload.gpus_per_pod() {
            let most = view.nodes_meant_for(workload, resource);
            let most = most.map(|node| node.gpus[resource].allocatable).max().unwrap_or(0);
            if count.saturating_mul(2) <= most {
                let finding = Finding::new(check, &workload.owner)
                    .with("rule", rule)
                    .with("GPUs of one pod", count)
                    .with("most GPUs of a node", most)
                    .mended_in(workload, [PatchChange::ShareNodes])
                    .affecting(pods_of(workload));
                found.push(finding);
            }
        }
    }
}

fn inference_without_priority(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    // Only who may use the same GPUs competes for them.
    let mut can_wait: BTreeMap<(Option<&str>, &str, &str), &Workload> = BTreeMap::new();
    for workload in &view.gpu_workloads {
        if matches!(workload.class, Some(WorkloadClass::Training | WorkloadClass::Batch)) {
            for (resource, node) in places(view, workload) {
                can_wait.entry((class_of(workload), resource, node)).or_insert(workload);
            }
        }
    }
    // Work must not be preempted for a server that answers nothing.
    let serves = |workload: &&Workload| {
        workload.class == Some(WorkloadClass::Inference) && !is_idle_server(view, workload)
    };
    for workload in view.gpu_workloads().filter(serves) {
        let mut others = places(view, workload).into_iter();
        let other =
            others.find_map(|(resource, node)| can_wait.get(&(class_of(workload), resource, node)));
        if let Some(other) = other {
            let finding = Finding::new(check, &workload.owner)
                .with("priority class", class_of(workload).unwrap_or("none"))
                .with("shared with", format!("{}/{}", other.owner.namespace, other.owner.name))
                .mended_in(workload, class_of(workload).is_none().then_some(PRIORITISE))
                .affecting(pods_of(workload));
            found.push(finding);
        }
    }
}

/// Resources that a workload asks for, with the nodes that could hold a pod of it.
fn places<'v>(view: &'v View<'_>, workload: &'v Workload) -> Vec<(&'v str, &'v str)> {
    let of_resource = |request: PodRequest<'v>| {
        let nodes = request.open_nodes(view);
        nodes.map(move |node| (request.resource, &*node.node.name)).collect::<Vec<_>>()
    };
    PodRequest::all_of(workload).flat_map(of_resource).collect()
}

/// A pod with several GPUs, and not all of its node, gets any of them.
fn across_numa_nodes(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in view.gpu_workloads() {
        for (resource, count) in workload.gpus_per_pod().into_iter().filter(|(_, count)| *count > 1)
        {
            for (pod, node) in view.pods_on_gpu_nodes(workload) {
                let all = node.gpus.get(resource).map_or(0, |gpus| gpus.built_in);
                if node.numa_policy == Some(NumaPolicy::None) && count < all {
                    let finding = Finding::new(check, &node.pool)
                        .with("policy none on", &node.node.name)
                        .affecting([pod]);
                    found.push(finding);
                }
            }
        }
    }
}

fn class_of(workload: &Workload) -> Option<&str> {
    workload.template.priority_class.as_deref()
}
