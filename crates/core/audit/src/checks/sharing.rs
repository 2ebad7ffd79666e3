//! SHR: several pods on one GPU.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::DeviceState;
use dovetail_facts::{Node, ObjectRef, Workload, WorkloadClass};
use dovetail_model::labels;
use dovetail_model::{FreeCause, NodeAvailability};
use dovetail_units::amount::gpu_count;
use dovetail_units::duration::duration_at_least;

use super::autoscaling::free_since;
use super::layout_advice::LayoutAdvice;
use super::{Run, View, claims_on, measured, mend, missing_instances, node_ref, pods_of, shapes};
use crate::catalogue::Check;
use crate::finding::Finding;

pub(super) const RUNS: &[Run] = &[
    ("SHR-01", sliced_inference),
    ("SHR-02", measured::notebook_on_large_gpu),
    ("SHR-03", replicas_as_gpus),
    ("SHR-04", layout_not_applied),
    ("SHR-05", measured::shared_memory_is_full),
    ("SHR-06", training_on_parts),
    ("SHR-07", left_over_by_layout),
    ("SHR-08", missing_instances::instances_of_no_layout),
    ("SHR-09", without_instances),
    ("SHR-10", mixed_classes),
    ("SHR-11", shapes::unused_profiles),
];

/// Labels of NVIDIA's GPU feature discovery and MIG manager.
const MIG_CONFIG: &str = labels::NVIDIA_MIG_CONFIG;
const MIG_STATE: &str = labels::NVIDIA_MIG_STATE;

const WHOLE: &str = labels::NVIDIA_GPU;

/// GPUs that no instance of a requested layout makes usable.
const NOT_THERE: [DeviceState; 2] =
    [DeviceState::Unavailable, DeviceState::Free(Some(FreeCause::LayoutRest))];

/// Why GPUs of a node are free that stays tainted after a change.
const CLOSED: [FreeCause; 3] = [FreeCause::Taint, FreeCause::TypeMismatch, FreeCause::NoDemand];

/// What to do about a node whose change is stuck: nothing goes on by itself there.
const REPAIR: &str = "repair the GPUs of the node (see its events), then: dovetail partition \
                      rollback --node NODE  # removes the taint dovetail.dev/repartition";

/// Units of whole GPUs that a plugin makes of each GPU of a node: by the label, else as many more
/// as there are than GPUs. 1 where it makes no replicas.
fn replicas_of_each(node: &Node, offered: i64) -> i64 {
    let by_label = i64::from(node.replicas());
    let gpus = i64::try_from(node.devices.len()).unwrap_or(0);
    let is_mig = node.offers_instances_as_gpus();
    match by_label > 1 || gpus == 0 || is_mig || offered % gpus != 0 {
        true => by_label,
        false => offered / gpus,
    }
}

fn sliced_inference(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let serves = |workload: &&Workload| workload.class == Some(WorkloadClass::Inference);
    for workload in view.gpu_workloads().filter(serves) {
        let mut finding = Finding::new(check, &workload.owner);
        for (pod, node) in view.pods_on_gpu_nodes(workload) {
            let ways = node.time_slices;
            if ways > 1 {
                let shares = format!("{} shares each GPU {ways} ways", node.node.name);
                finding = finding.with("node", shares).affecting([pod]);
            }
        }
        if !finding.affected.is_empty() {
            found.push(finding);
        }
    }
}

fn replicas_as_gpus(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for node in view.gpu_nodes() {
        let Some(gpus) = node.gpus.get(WHOLE).filter(|gpus| gpus.allocatable > 0) else { continue };
        let of_each = replicas_of_each(node, gpus.built_in);
        if of_each <= 1 {
            continue;
        }
        let offered = format!("{} on {}, {of_each} of each GPU", gpus.allocatable, node.node.name);
        let finding = Finding::new(check, &node.pool).with("offered", offered);
        found.push(finding.affecting([node_ref(node)]));
    }
}

fn layout_not_applied(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for node in view.facts.nodes.iter().filter(|node| node.has_failed_layout()) {
        let label = |key: &str| node.node.labels.get(key).map(String::as_str);
        let failed = label(MIG_STATE).filter(|state| *state == "failed");
        let mut finding = Finding::new(check, &node.pool);
        if let Some(state) = failed {
            finding = finding
                .with("requested layout", label(MIG_CONFIG).unwrap_or("none"))
                .with("state", format!("{state} on {}", node.node.name));
        }
        if let Some(since_ms) = node.stuck_since_ms {
            let length_ms = view.facts.now_ms.saturating_sub(since_ms);
            let stuck = format!("{} for {}", node.node.name, duration_at_least(length_ms));
            finding = finding.with("change stuck", stuck).for_example(REPAIR);
            finding.since_ms = Some(since_ms);
            // Its taint keeps every pod away, so that none is free for want of demand alone.
            finding.claims = free_since(node, since_ms, view.facts.period, &CLOSED);
        }
        finding.claims.extend(claims_on(node, None, &NOT_THERE, view.facts.period));
        found.push(finding.affecting([node_ref(node)]));
    }
}

fn left_over_by_layout(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let lacks = |node: &&Node| node.layout_rest_milli > 0 && !node.is_changing_layout();
    let mut advice: Option<LayoutAdvice<'_>> = None;
    for node in view.facts.nodes.iter().filter(lacks) {
        let gpus = gpu_count(node.layout_rest_milli);
        let mut finding = Finding::new(check, &node.pool)
            .with("GPUs left over", format!("{gpus} on {}", node.node.name))
            .affecting([node_ref(node)]);
        let states = [DeviceState::Free(Some(FreeCause::LayoutRest))];
        finding.claims = claims_on(node, None, &states, view.facts.period);
        let advice = advice.get_or_insert_with(|| LayoutAdvice::of(view));
        found.push(advice.advise(finding, node, false));
    }
}

/// GPUs of a node that is cut into MIG instances of which no instance is offered.
fn without_instances(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let is_up = |node: &&Node| {
        node.node.condition != NodeAvailability::NotReady && !node.is_between_layouts()
    };
    let mut advice: Option<LayoutAdvice<'_>> = None;
    for node in view.facts.nodes.iter().filter(is_up).filter(|node| node.lacks_instances()) {
        let config = node.node.labels.get(MIG_CONFIG).map_or("unknown", String::as_str);
        let mut finding = Finding::new(check, &node.pool)
            .with(
                "GPUs without instances",
                format!("{} on {}", node.uncounted_gpus, node.node.name),
            )
            .with("requested layout", config)
            .affecting([node_ref(node)]);
        finding.claims = claims_on(node, None, &[DeviceState::Unavailable], view.facts.period);
        let stays = node.has_mig_instances() && node.node.labels.contains_key(MIG_CONFIG);
        let advice = advice.get_or_insert_with(|| LayoutAdvice::of(view));
        found.push(advice.advise(finding, node, stays));
    }
}

fn mixed_classes(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let mut by_node: BTreeMap<&str, SharedNode<'_>> = BTreeMap::new();
    for workload in view.gpu_workloads() {
        let label = workload.template.labels.get(labels::CLASS).map(String::as_str);
        let label = label.filter(|label| !label.is_empty());
        let Some(name) = label.or(workload.class.map(named)) else { continue };
        for (pod, node) in view.pods_on_gpu_nodes(workload) {
            if node.time_slices <= 1 {
                continue;
            }
            let shared = by_node.entry(&node.node.name).or_default();
            shared.labels.extend(label);
            shared.kinds.extend(workload.class);
            shared.owners.entry(name).or_insert(&workload.owner.name);
            shared.pods.push(pod);
        }
    }
    for (name, shared) in by_node {
        // Inference on time slices is a finding of its own, whatever is beside it.
        if !shared.is_mixed() || shared.kinds.contains(&WorkloadClass::Inference) {
            continue;
        }
        let mixed: Vec<String> =
            shared.owners.iter().map(|(class, owner)| format!("{class} ({owner})")).collect();
        let finding = Finding::new(check, &view.node_of[name].pool)
            .with("kinds of work", format!("{} on {name}", mixed.join(", ")))
            .affecting(shared.pods);
        found.push(finding);
    }
}

/// Who shares the GPUs of a node in turns.
#[derive(Default)]
struct SharedNode<'f> {
    /// Classes by label, of any value, as the scheduler compares them.
    labels: BTreeSet<&'f str>,
    kinds: BTreeSet<WorkloadClass>,
    /// The name of an owner by the name of its class.
    owners: BTreeMap<&'f str, &'f str>,
    pods: Vec<ObjectRef>,
}

impl SharedNode<'_> {
    /// A class of one's own beside a kind of work that is only known by its owner may be the same.
    fn is_mixed(&self) -> bool {
        self.labels.len() > 1 || self.kinds.len() > 1
    }
}

fn named(class: WorkloadClass) -> &'static str {
    match class {
        WorkloadClass::Training => "training",
        WorkloadClass::Inference => "inference",
        WorkloadClass::Interactive => "interactive",
        WorkloadClass::Batch => "batch",
    }
}

fn training_on_parts(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let trains = |workload: &&Workload| workload.class == Some(WorkloadClass::Training);
    for workload in view.gpu_workloads().filter(trains) {
        for (resource, count) in workload.gpus_per_pod() {
            let is_part = resource.contains("/mig-") || resource.ends_with(".shared");
            if is_part && (count > 1 || workload.replicas > 1) {
                let finding = Finding::new(check, &workload.owner)
                    .with("resource", resource)
                    .with("amount that one pod requests", count)
                    .mended_in(workload, mend::other_gpus(view, workload, resource, WHOLE))
                    .affecting(pods_of(workload));
                found.push(finding);
            }
        }
    }
}
