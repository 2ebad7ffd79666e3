//! Pods of a random world: those that run, and those that wait.

use serde_json::{Value, json};

use super::World;
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
pub(super) enum Demand {
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
pub(super) const DEMANDS: [Demand; 33] = [
    Demand::NodeName,
    Demand::NodeSelector,
    Demand::NodeAffinity,
    Demand::NodeAffinity,
    Demand::NoToleration,
    Demand::NoToleration,
    Demand::SomeTolerations,
    Demand::HostPorts,
    Demand::HostPorts,
    Demand::HostPorts,
    Demand::Capacity,
    Demand::Capacity,
    Demand::Capacity,
    Demand::Disk,
    Demand::Disk,
    Demand::Disk,
    Demand::OncePodClaim,
    Demand::AffineVolume,
    Demand::ZonedVolume,
    Demand::ZonedVolume,
    Demand::DelayedVolume,
    Demand::DelayedVolume,
    Demand::SelectedVolume,
    Demand::BrokenClaim,
    Demand::Attachments,
    Demand::Attachments,
    Demand::Spread,
    Demand::Spread,
    Demand::Spread,
    Demand::Affinity,
    Demand::Affinity,
    Demand::AntiAffinity,
    Demand::NeededFeature,
];

/// A pod that runs, or is being deleted, on one of the nodes.
pub(super) fn existing(
    name: &str,
    nodes: &[String],
    setting: &Setting,
    world: &mut World,
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
pub(super) struct Setting {
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
    demands: &[Demand],
    nodes: &[String],
    world: &mut World,
    draw: &mut Draw,
) -> Value {
    let mut pod = blank(name, draw);
    let appetite = if demands.contains(&Demand::Capacity) {
        Appetite::Large
    } else {
        draw.pick(&[Appetite::None, Appetite::Small])
    };
    add_containers(&mut pod["spec"], appetite, draw);
    if !demands.contains(&Demand::NoToleration) && !demands.contains(&Demand::SomeTolerations) {
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
    demand: Demand,
    nodes: &[String],
    world: &mut World,
    draw: &mut Draw,
) {
    let spec = &mut pod["spec"];
    match demand {
        Demand::NodeName => add_node_name(spec, nodes, draw),
        Demand::NodeSelector => add_node_selector(spec, nodes, draw),
        Demand::NodeAffinity => add_node_affinity(spec, nodes, draw),
        Demand::NoToleration | Demand::Capacity => {}
        Demand::SomeTolerations => add_tolerations(spec, draw),
        Demand::HostPorts => add_host_ports(spec, draw),
        Demand::Disk => add_disk(pod, draw),
        Demand::OncePodClaim => add_shared_claim(pod, true, world, draw),
        Demand::AffineVolume => add_own_claim(pod, ClaimState::Affine, nodes, world, draw),
        Demand::ZonedVolume => add_own_claim(pod, ClaimState::Zoned, nodes, world, draw),
        Demand::DelayedVolume => add_own_claim(pod, ClaimState::Delayed, nodes, world, draw),
        Demand::SelectedVolume => add_own_claim(pod, ClaimState::Selected, nodes, world, draw),
        Demand::BrokenClaim => add_own_claim(pod, ClaimState::Broken, nodes, world, draw),
        Demand::Attachments => {
            for _ in 0..1 + draw.below(2) {
                add_own_claim(pod, ClaimState::Anywhere, nodes, world, draw);
            }
            if draw.chance(40) {
                add_shared_claim(pod, false, world, draw);
            }
        }
        Demand::Spread => add_spread(pod, draw),
        Demand::Affinity => add_pod_terms(pod, "podAffinity", 2, draw),
        Demand::AntiAffinity => add_pod_terms(pod, "podAntiAffinity", 2, draw),
        Demand::NeededFeature => add_needed_feature(spec, draw),
        Demand::Gate => spec["schedulingGates"] = json!([{"name": "example.com/quota"}]),
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
