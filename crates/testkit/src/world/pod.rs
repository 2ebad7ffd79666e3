//! Pods of a random world: those that run, and those that wait.

use serde_json::{Value, json};

use super::GeneratedCluster;
use super::affinity::{APPS, NAMESPACES, REVISIONS, add_pod_terms};
use super::claim::ClaimState;
use super::node_choice::{
    add_needed_feature, add_node_affinity, add_node_name, add_node_selector, add_tolerations,
    add_universal_toleration,
};
use super::port::add_host_ports;
use super::random::Draw;
use super::request::{Appetite, add_containers, add_resize};
use super::spread::add_spread;
use super::volume::{add_disk, add_own_claim, add_shared_claim};

/// One thing that a pending pod asks for. A pod draws a few, so that a filter often is the only one
/// that rejects it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PodDemand {
    NodeName,
    NodeSelector,
    NodeAffinity,
    NoToleration,
    SomeTolerations,
    HostPorts,
    Capacity,
    Disk,
    OncePodClaim,
    AffineVolume,
    ZonedVolume,
    DelayedVolume,
    SelectedVolume,
    BrokenClaim,
    Attachments,
    Spread,
    Affinity,
    AntiAffinity,
    NeededFeature,
    Gate,
}

/// Demands, those that often meet no resistance more than once.
pub(super) const DEMANDS: [PodDemand; 33] = [
    PodDemand::NodeName,
    PodDemand::NodeSelector,
    PodDemand::NodeAffinity,
    PodDemand::NodeAffinity,
    PodDemand::NoToleration,
    PodDemand::NoToleration,
    PodDemand::SomeTolerations,
    PodDemand::HostPorts,
    PodDemand::HostPorts,
    PodDemand::HostPorts,
    PodDemand::Capacity,
    PodDemand::Capacity,
    PodDemand::Capacity,
    PodDemand::Disk,
    PodDemand::Disk,
    PodDemand::Disk,
    PodDemand::OncePodClaim,
    PodDemand::AffineVolume,
    PodDemand::ZonedVolume,
    PodDemand::ZonedVolume,
    PodDemand::DelayedVolume,
    PodDemand::DelayedVolume,
    PodDemand::SelectedVolume,
    PodDemand::BrokenClaim,
    PodDemand::Attachments,
    PodDemand::Attachments,
    PodDemand::Spread,
    PodDemand::Spread,
    PodDemand::Spread,
    PodDemand::Affinity,
    PodDemand::Affinity,
    PodDemand::AntiAffinity,
    PodDemand::NeededFeature,
];

/// A pod that runs, or is being deleted, on one of the nodes.
pub(super) fn existing(
    name: &str,
    nodes: &[String],
    setting: &PodSetting,
    world: &mut GeneratedCluster,
    draw: &mut Draw,
) -> Value {
    let volumes = setting.volumes;
    let mut pod = blank(name, draw);
    if draw.chance(50) {
        pod["spec"]["schedulerName"] = json!("default-scheduler");
    }
    let largest = if setting.crowded { Appetite::Large } else { Appetite::Small };
    let appetite = draw.pick(&[Appetite::None, Appetite::Small, Appetite::Small, largest]);
    add_containers(&mut pod["spec"], appetite, draw);
    let node = draw.below(nodes.len());
    pod["spec"]["nodeName"] = json!(nodes[node]);
    if !setting.crowded {
        drop_what_is_not_there(&mut pod["spec"], &world.nodes[node]);
    }
    pod["status"] = json!({"phase": draw.pick(&["Running", "Running", "Running", "Pending"])});
    if draw.chance(35) {
        add_host_ports(&mut pod["spec"], draw);
    }
    if draw.chance(9) {
        add_pod_terms(&mut pod, "podAntiAffinity", 2, draw);
    }
    if draw.chance(10) {
        add_pod_terms(&mut pod, "podAffinity", 1, draw);
    }
    if draw.chance(35) {
        add_disk(&mut pod, draw);
    }
    if volumes && draw.chance(60) {
        let state = draw.pick(&[ClaimState::Anywhere, ClaimState::Anywhere, ClaimState::Affine]);
        add_own_claim(&mut pod, state, nodes, world, draw);
    }
    if volumes && draw.chance(15) {
        add_shared_claim(&mut pod, false, world, draw);
    }
    if draw.chance(if setting.crowded { 20 } else { 6 }) {
        add_resize(&mut pod, draw);
    }
    match draw.below(20) {
        0 | 1 => pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
        // Over: it holds nothing, counts for nothing.
        2 => pod["status"] = json!({"phase": draw.pick(&["Succeeded", "Failed"])}),
        _ => {}
    }
    pod
}

/// What is the same for all pods of a world.
pub(super) struct PodSetting {
    /// There is storage.
    pub(super) volumes: bool,
    /// Pods may together hold more than their node has.
    pub(super) crowded: bool,
}

/// A node without a resource does not run pods that ask for it.
fn drop_what_is_not_there(spec: &mut Value, node: &Value) {
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        if let Some(requests) = container["resources"]["requests"].as_object_mut() {
            requests.retain(|name, _| node["status"]["allocatable"].get(name).is_some());
        }
    }
}

/// A pod that waits, with these demands.
pub(super) fn pending(
    name: &str,
    demands: &[PodDemand],
    nodes: &[String],
    world: &mut GeneratedCluster,
    draw: &mut Draw,
) -> Value {
    let mut pod = blank(name, draw);
    let appetite = if demands.contains(&PodDemand::Capacity) {
        Appetite::Large
    } else {
        draw.pick(&[Appetite::None, Appetite::Small])
    };
    add_containers(&mut pod["spec"], appetite, draw);
    if !demands.contains(&PodDemand::NoToleration) && !demands.contains(&PodDemand::SomeTolerations)
    {
        add_universal_toleration(&mut pod["spec"]);
    }
    pod["status"] = json!({"phase": "Pending"});
    for &demand in demands {
        add_demand(&mut pod, demand, nodes, world, draw);
    }
    pod
}

fn add_demand(
    pod: &mut Value,
    demand: PodDemand,
    nodes: &[String],
    world: &mut GeneratedCluster,
    draw: &mut Draw,
) {
    let spec = &mut pod["spec"];
    match demand {
        PodDemand::NodeName => add_node_name(spec, nodes, draw),
        PodDemand::NodeSelector => add_node_selector(spec, nodes, draw),
        PodDemand::NodeAffinity => add_node_affinity(spec, nodes, draw),
        PodDemand::NoToleration | PodDemand::Capacity => {}
        PodDemand::SomeTolerations => add_tolerations(spec, draw),
        PodDemand::HostPorts => add_host_ports(spec, draw),
        PodDemand::Disk => add_disk(pod, draw),
        PodDemand::OncePodClaim => add_shared_claim(pod, true, world, draw),
        PodDemand::AffineVolume => add_own_claim(pod, ClaimState::Affine, nodes, world, draw),
        PodDemand::ZonedVolume => add_own_claim(pod, ClaimState::Zoned, nodes, world, draw),
        PodDemand::DelayedVolume => add_own_claim(pod, ClaimState::Delayed, nodes, world, draw),
        PodDemand::SelectedVolume => add_own_claim(pod, ClaimState::Selected, nodes, world, draw),
        PodDemand::BrokenClaim => add_own_claim(pod, ClaimState::Broken, nodes, world, draw),
        PodDemand::Attachments => {
            for _ in 0..1 + draw.below(2) {
                add_own_claim(pod, ClaimState::Anywhere, nodes, world, draw);
            }
            if draw.chance(40) {
                add_shared_claim(pod, false, world, draw);
            }
        }
        PodDemand::Spread => add_spread(pod, draw),
        PodDemand::Affinity => add_pod_terms(pod, "podAffinity", 2, draw),
        PodDemand::AntiAffinity => add_pod_terms(pod, "podAntiAffinity", 2, draw),
        PodDemand::NeededFeature => add_needed_feature(spec, draw),
        PodDemand::Gate => spec["schedulingGates"] = json!([{"name": "example.com/quota"}]),
    }
}

/// A pod with a name, a namespace and labels.
fn blank(name: &str, draw: &mut Draw) -> Value {
    let namespace = draw.pick(&[NAMESPACES[0], NAMESPACES[0], NAMESPACES[1], NAMESPACES[2]]);
    let mut labels = json!({});
    if draw.chance(90) {
        labels["app"] = json!(draw.pick(&APPS));
    }
    if draw.chance(60) {
        labels["tier"] = json!(draw.pick(&["front", "back"]));
    }
    if draw.chance(70) {
        labels["pod-template-hash"] = json!(draw.pick(&REVISIONS));
    }
    json!({
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"), "labels": labels},
        "spec": {"schedulerName": "dovetail", "restartPolicy": "Always"},
    })
}
