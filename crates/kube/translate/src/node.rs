//! Nodes.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Knowledge, Node as ModelNode, NodeAvailability, is_gpu_resource};
use dovetail_objects::{CsiNode, Node};

use super::Rules;
use super::devices::{devices, devices_of_claims};
use super::sharing;

/// What is known about a node from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct NodeSetting<'a> {
    pub csi: Option<&'a CsiNode>,
    /// Drivers that offer devices of the node through resource slices (DRA).
    pub device_drivers: BTreeSet<&'a str>,
    /// Extended resources that it has by devices of claims (DRA), with how many of each.
    pub by_claims: &'a [(Box<str>, i64)],
    /// Its domains of topology levels, as labels that no real node has.
    pub domains: &'a [(String, String)],
    /// What it has devices for, each as a label ([`devices_label`]).
    pub devices_for: &'a [String],
    /// Whether a pod there holds nobody knows what.
    pub unknown_holder: bool,
    /// Whether HAMi or Volcano allocates its GPUs, or has allocated some: then none is free.
    pub vgpus: bool,
}

/// A node for the engine.
///
/// What is not a label of the node but must be asked of it stands as a label with a colon in its
/// key, which no real label can have. A node that must not be used is cordoned: see
/// [`twice_offered`].
pub fn node(node: &Node, setting: &NodeSetting<'_>, rules: &Rules) -> ModelNode {
    let mut labels: BTreeMap<String, String> =
        node.meta.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let features = node.declared_features.iter().map(|name| feature_label(name));
    labels.extend(features.map(|label| (label, String::new())));
    labels.extend(setting.domains.iter().cloned());
    labels.extend(sharing::labels(node));
    labels.extend(setting.devices_for.iter().map(|label| (label.clone(), String::new())));
    let drivers = setting.csi.map(|csi| &csi.drivers).into_iter().flatten();
    let mut attach_limits = BTreeMap::new();
    for (driver, limit) in drivers {
        labels.insert(driver_label(driver), String::new());
        attach_limits.extend(limit.map(|limit| (driver.to_string(), limit)));
    }
    let mut allocatable = node.allocatable.clone();
    allocatable.extended.remove(&rules.device_resource);
    let mut devices = devices(node, &rules.device_resource);
    for (resource, amount) in setting.by_claims {
        match **resource == *rules.device_resource {
            true => devices = devices_of_claims(node, *amount),
            false => _ = allocatable.extended.insert(resource.to_string(), *amount),
        }
    }
    if setting.vgpus {
        devices.iter_mut().for_each(|device| device.healthy = false);
        allocatable.extended.retain(|resource, _| !is_gpu_resource(resource));
    }
    let unusable = setting.unknown_holder || !twice_offered(node, setting).is_empty();
    ModelNode {
        name: (*node.meta.name).into(),
        allocatable,
        devices,
        knowledge: Knowledge::Counted,
        attach_limits,
        labels,
        taints: node.taints.clone(),
        images: node.images.clone(),
        unschedulable: node.unschedulable,
        condition: if unusable { NodeAvailability::Cordoned } else { NodeAvailability::Ready },
        price_usd_micros_per_hour: None,
        interruption_ppm_per_hour: None,
        drain_window: None,
    }
}

/// Resources that the node offers by device plugin while a driver offers the same devices through
/// resource slices: whoever asks for one could be given a device that another holds.
///
/// Drivers and plugins of one vendor are known by their names: `gpu.nvidia.com` and `nvidia.com/…`.
pub fn twice_offered<'a>(node: &'a Node, setting: &NodeSetting<'_>) -> Vec<(&'a str, String)> {
    let offered = node.allocatable.extended.iter().filter(|(_, amount)| **amount > 0);
    offered
        .filter_map(|(resource, _)| {
            let (vendor, _) = resource.split_once('/')?;
            let same =
                |driver: &&&str| **driver == vendor || driver.ends_with(&format!(".{vendor}"));
            let driver = setting.device_drivers.iter().find(same)?;
            Some((resource.as_str(), (*driver).to_owned()))
        })
        .collect()
}

/// The label of a feature that a node declares.
pub(super) fn feature_label(name: &str) -> String {
    format!("dovetail.dev/feature:{name}")
}

/// The label of a node that has devices for claims; `asked` is a digest of what they ask for.
pub fn devices_label(asked: &str) -> String {
    format!("dovetail.dev/devices:{asked}")
}

/// The label of a CSI driver that runs on a node.
pub(super) fn driver_label(name: &str) -> String {
    format!("dovetail.dev/csi-driver:{name}")
}
