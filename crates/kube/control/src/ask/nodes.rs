//! Nodes and their GPUs, and who holds them.

use std::collections::BTreeMap;

use dovetail_cluster::world::{PodKey, World};
use dovetail_model::{HoldingPhase, NodeAvailability, Owner, Snapshot};
use serde::Serialize;

/// A node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeLine {
    pub node: String,
    /// Model of its GPUs; null if it has none or does not say.
    pub gpu_model: Option<String>,
    pub gpus: usize,
    /// GPUs that are lost: in its capacity and not allocatable.
    pub lost: usize,
    /// GPUs that are held.
    pub held: usize,
    /// GPUs that are free, below 0 where more is held than there is.
    pub free: i64,
    pub takes_pods: bool,
    /// Who holds how many of its GPUs, most first.
    pub holders: Vec<GpuHolder>,
}

/// A pod that holds GPUs of a node.
#[derive(Clone, Debug, Serialize)]
pub struct GpuHolder {
    /// Namespace and name.
    pub pod: String,
    /// GPUs that it holds.
    pub gpus: usize,
    pub is_ending: bool,
}

/// The nodes of a world, with what is held there.
pub(super) fn nodes(world: &Snapshot, objects: &World, all: bool) -> Vec<NodeLine> {
    let mut held: BTreeMap<&str, Vec<GpuHolder>> = BTreeMap::new();
    // What would be decided now is not held.
    let is_real = |phase: &HoldingPhase| *phase != HoldingPhase::Assumed;
    let real = world.holdings.iter().filter(|holding| is_real(&holding.phase));
    for holding in real.filter(|holding| !holding.devices.is_empty()) {
        let pod = match &holding.owner {
            Owner::Pod(pod) => {
                let pod = objects.pods().pod_of(*pod).map(PodKey::of);
                pod.map(|pod| pod.to_string()).unwrap_or_default()
            }
            Owner::Foreign(name) => name.clone(),
            Owner::Reservation => "reserved".to_owned(),
        };
        let is_ending = matches!(holding.phase, HoldingPhase::Releasing { .. });
        let holder = GpuHolder { pod, gpus: holding.devices.len(), is_ending };
        held.entry(&holding.node).or_default().push(holder);
    }
    let mut lines = Vec::new();
    for node in &world.nodes {
        let mut holders = held.remove(&*node.name).unwrap_or_default();
        if node.devices.is_empty() && holders.is_empty() && !all {
            continue;
        }
        holders.sort_by(|one, other| (other.gpus, &one.pod).cmp(&(one.gpus, &other.pod)));
        let gpus = node.devices.len();
        let lost = node.devices.iter().filter(|device| !device.healthy).count();
        let count: usize = holders.iter().map(|holder| holder.gpus).sum();
        let model = node.devices.first().map(|device| device.model.clone());
        lines.push(NodeLine {
            node: node.name.to_string(),
            gpu_model: model.filter(|model| !model.is_empty()),
            gpus,
            lost,
            held: count,
            free: gpus as i64 - lost as i64 - count as i64,
            takes_pods: node.condition == NodeAvailability::Ready && !node.unschedulable,
            holders,
        });
    }
    lines
}
