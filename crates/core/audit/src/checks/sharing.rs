//! SHR: several pods on one GPU.

use dovetail_account::device_time::DeviceState;
use dovetail_model::FreeCause;
use dovetail_model::labels;
use dovetail_units::amount::gpu_count;

use super::{Run, View, claims_on, measured, mend, node_ref, pods_of, shapes};
use crate::catalogue::Check;
use crate::facts::{Class, Node};
use crate::finding::Finding;

pub(super) const RUNS: &[Run] = &[
    ("SHR-01", sliced_inference),
    ("SHR-02", measured::notebook_on_large_gpu),
    ("SHR-03", replicas_as_gpus),
    ("SHR-04", mig_not_applied),
    ("SHR-05", measured::shared_memory_is_full),
    ("SHR-06", training_on_parts),
    ("SHR-07", left_over_by_layout),
    ("SHR-08", shapes::instances_of_no_layout),
];

/// Labels of NVIDIA's GPU feature discovery and MIG manager.
const REPLICAS: &str = labels::NVIDIA_REPLICAS;
const MIG_CONFIG: &str = labels::NVIDIA_MIG_CONFIG;
const MIG_STATE: &str = labels::NVIDIA_MIG_STATE;

const WHOLE: &str = labels::NVIDIA_GPU;

/// How many units a plugin makes of each GPU of a node, by its label; 1 where it makes none.
fn replicas(node: &Node) -> u32 {
    let label = node.node.labels.get(REPLICAS).and_then(|text| text.parse().ok());
    label.unwrap_or(1)
}

/// Units of whole GPUs that a plugin makes of each GPU of a node: by the label, else as many more
/// as there are than GPUs. 1 where it makes no replicas.
fn replicas_of_each(node: &Node, offered: i64) -> i64 {
    let by_label = i64::from(replicas(node));
    let gpus = i64::try_from(node.devices.len()).unwrap_or(0);
    let product = node.node.labels.get(labels::NVIDIA_PRODUCT);
    // There the name of whole GPUs is that of instances.
    let is_mig = product.is_some_and(|product| product.contains("-MIG-"));
    match by_label > 1 || gpus == 0 || is_mig || offered % gpus != 0 {
        true => by_label,
        false => offered / gpus,
    }
}

fn sliced_inference(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let serves = |workload: &&crate::Workload| workload.class == Some(Class::Inference);
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

fn mig_not_applied(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for node in &view.facts.nodes {
        let label = |key: &str| node.node.labels.get(key).map(String::as_str);
        let Some(state) = label(MIG_STATE).filter(|state| *state == "failed") else {
            continue;
        };
        let finding = Finding::new(check, &node.pool)
            .with("layout asked for", label(MIG_CONFIG).unwrap_or("none"))
            .with("state", format!("{state} on {}", node.node.name));
        found.push(finding.affecting([node_ref(node)]));
    }
}

fn left_over_by_layout(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for node in view.facts.nodes.iter().filter(|node| node.layout_rest_milli > 0) {
        let gpus = gpu_count(node.layout_rest_milli);
        let mut finding = Finding::new(check, &node.pool)
            .with("GPUs left over", format!("{gpus} on {}", node.node.name))
            .affecting([node_ref(node)]);
        let states = [DeviceState::Free(Some(FreeCause::LayoutRest))];
        finding.claims = claims_on(node, None, &states, view.facts.period);
        found.push(finding);
    }
}

fn training_on_parts(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let trains = |workload: &&crate::Workload| workload.class == Some(Class::Training);
    for workload in view.gpu_workloads().filter(trains) {
        for (resource, count) in workload.gpus_per_pod() {
            let is_part = resource.contains("/mig-") || resource.ends_with(".shared");
            if is_part && (count > 1 || workload.replicas > 1) {
                let finding = Finding::new(check, &workload.owner)
                    .with("resource", resource)
                    .with("of it in one pod", count)
                    .mended_in(workload, mend::other_gpus(view, workload, resource, WHOLE))
                    .affecting(pods_of(workload));
                found.push(finding);
            }
        }
    }
}
