//! Devices that a device plugin offers: a number of them, of one model; the kubelet chooses which.

use dovetail_gpus::{MOST_UNITS, offered};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{Device, DeviceAmount, HeldDevices};
use dovetail_objects::{GpuLabels, Node};

const MIB: i64 = 1 << 20;

/// The devices of a node: as many as its capacity of the resource; those that are not allocatable
/// are not healthy. Where a plugin offers MIG slices or replicas under the name of whole devices,
/// each of them is one device here, of the model that the plugin's label names (`…-MIG-1g.5gb`,
/// `…-SHARED`).
pub(super) fn devices(node: &Node, resource: &str) -> Vec<Device> {
    let (usable, built_in) = offered(node, resource);
    alike(node, usable, built_in)
}

/// The devices of a node that pods have by claims.
pub(super) fn devices_of_claims(node: &Node, count: i64) -> Vec<Device> {
    let count = count.clamp(0, MOST_UNITS);
    alike(node, count, count)
}

/// Devices of the model that the labels of a node name, of which the first are usable.
fn alike(node: &Node, usable: i64, built_in: i64) -> Vec<Device> {
    let labels = GpuLabels::read(|key| node.meta.labels.get(key));
    let model = labels.product.unwrap_or_default();
    let mib = labels.memory_mib.filter(|_| !labels.is_replicated()).unwrap_or(0);
    let memory_bytes = mib.clamp(0, i64::MAX / MIB) * MIB;
    let device = |place| Device { healthy: place < usable, ..Device::plain(model, memory_bytes) };
    (0..built_in).map(device).collect()
}

/// How many devices a node says that it has, and how many count, where these are fewer.
pub fn devices_not_counted(node: &Node, resource: &str) -> Option<(i64, i64)> {
    let of = |amounts: &dovetail_model::Resources| amounts.extended.get(resource).copied();
    let said = of(&node.capacity).max(of(&node.allocatable)).unwrap_or(0);
    (said > MOST_UNITS).then_some((said, MOST_UNITS))
}

/// What a pod holds that was given `count` whole devices of a node with counted devices of this
/// memory.
pub fn whole_devices(count: u16, memory_bytes: i64) -> HeldDevices {
    let amount = DeviceAmount::share(WHOLE_DEVICE_MILLI, memory_bytes);
    (0..count).map(|place| (place, amount.clone())).collect()
}
