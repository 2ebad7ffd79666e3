//! Nodes on which pods that ask for MIG instances can start: what is free there, and what pods use.

use std::collections::BTreeMap;

use dovetail_model::{NodeAvailability, Resources, labels};

use super::View;
use super::cut_gpus::{CutGpus, KnownLayouts};
use super::gpu_pods::GpuPods;
use super::instance_request::InstanceRequest;
use super::node_room::requests_by_node;
use super::profile_names::ProfileNames;
use crate::facts::{Node, Workload};

/// A node that pods can start on.
pub(super) struct SupplyNode<'f> {
    pub(super) node: &'f Node,
    /// Free units by resource.
    pub(super) free: BTreeMap<&'f str, i64>,
    /// What pods there request.
    pub(super) used: Resources,
    /// The part of it that belongs to the node.
    pub(super) used_by_own: Resources,
    /// What is requested once the pods that lacked instances are there, too.
    pub(super) used_later: Resources,
    pub(super) pods: usize,
    pub(super) gpus: CutGpus,
    /// The same beside the instances of these pods.
    pub(super) gpus_later: CutGpus,
    /// How often they were cut for such pods.
    pub(super) cuts: u64,
}

impl SupplyNode<'_> {
    pub(super) fn free_of(&self, resource: &str) -> i64 {
        self.free.get(resource).copied().unwrap_or(0)
    }

    /// How many pods start there as it is.
    pub(super) fn starts_now(&self, request: &InstanceRequest<'_>) -> i64 {
        let of_resource = |(resource, count): &(&str, i64)| {
            let gpus = self.node.gpus.get(*resource);
            let is_open = gpus.is_some_and(|gpus| request.workload.can_get(resource, gpus));
            if is_open { self.free_of(resource) / count } else { 0 }
        };
        match request.instances.iter().map(of_resource).min() {
            None | Some(0) => 0,
            Some(pods) => pods.min(self.rooms(request, &self.used)),
        }
    }

    /// How many pods it has room for beside what is used, whatever instances it has.
    pub(super) fn rooms(&self, request: &InstanceRequest<'_>, used: &Resources) -> i64 {
        let beside = request.beside.iter();
        let beside = beside.map(|(resource, count)| self.free_of(resource) / count);
        beside.chain([request.rooms(self.node, used)]).min().unwrap_or(0)
    }
}

/// All nodes with GPUs that take pods.
pub(super) fn nodes<'f>(
    view: &View<'f>,
    names: &ProfileNames<'f>,
    known: &mut KnownLayouts,
) -> Vec<SupplyNode<'f>> {
    let mut free: BTreeMap<&str, BTreeMap<&str, i64>> = BTreeMap::new();
    for (resource, of_nodes) in view.free_gpus(NodeAvailability::Ready) {
        for (node, count) in of_nodes {
            free.entry(&*node.node.name).or_default().insert(resource, count);
        }
    }
    let mut used = requests_by_node(view.facts, |_| true);
    let mut own = requests_by_node(view.facts, Workload::belongs_to_nodes);
    let pods = GpuPods::of(view);
    let nodes = view.facts.nodes.iter();
    let ready = nodes.filter(|node| node.node.condition == NodeAvailability::Ready);
    let nodes = ready.filter(|node| !node.gpus.is_empty()).map(|node| {
        let name = &*node.node.name;
        let free = free.remove(name).unwrap_or_default();
        let table = names.table(node);
        let gpus = table.map(|table| CutGpus::of(node, table, &free, known)).unwrap_or_default();
        let used = used.remove(name).unwrap_or_default();
        SupplyNode {
            node,
            free,
            used_later: used.clone(),
            used,
            used_by_own: own.remove(name).unwrap_or_default(),
            pods: pods.count_on(node),
            gpus_later: gpus.clone(),
            gpus,
            cuts: 0,
        }
    });
    nodes.collect()
}

/// How many free whole GPUs of each table can be cut: pending pods that ask for whole ones get them
/// before, whichever these are.
pub(super) fn whole_to_cut(
    view: &View<'_>,
    names: &ProfileNames<'_>,
    nodes: &[SupplyNode<'_>],
) -> BTreeMap<String, usize> {
    let others = view.gpu_workloads().filter(|of| InstanceRequest::of(of).is_none());
    let asked = others.map(|workload| {
        let each = workload.gpus_per_pod().get(labels::NVIDIA_GPU).copied().unwrap_or(0);
        let pending = workload.pods.iter().filter(|pod| pod.is_pending()).count();
        each.max(0).saturating_mul(pending as i64)
    });
    let kept = asked.fold(0i64, i64::saturating_add);
    let kept = usize::try_from(kept).unwrap_or(usize::MAX);
    let mut whole: BTreeMap<String, usize> = BTreeMap::new();
    for of in nodes {
        if let Some(table) = names.table(of.node) {
            *whole.entry(table.name.clone()).or_default() += of.gpus.whole();
        }
    }
    whole.values_mut().for_each(|count| *count = count.saturating_sub(kept));
    whole
}
