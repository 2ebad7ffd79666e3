//! Nodes on which pods that ask for MIG instances can start: what is free there, and what pods use.

use std::collections::BTreeMap;

use dovetail_facts::{Node, Pod, Workload};
use dovetail_model::{Layout, NodeAvailability, Resources, labels};

use super::View;
use super::cut_gpus::{CutGpus, KnownLayouts};
use super::gpu_pods::GpuPods;
use super::instance_request::InstanceRequest;
use super::node_room::requests_by_node;
use super::oversize::fits_no_node;
use super::profile_names::ProfileNames;

/// A node that pods can start on, and what is left of it beside those that do.
pub(super) struct SupplyNode<'f> {
    pub(super) node: &'f Node,
    /// Free units by resource.
    free: BTreeMap<&'f str, i64>,
    /// What pods there request.
    used: Resources,
    /// The part of it that belongs to the node.
    pub(super) used_by_own: Resources,
    /// How many pods have GPUs there.
    pub(super) pods: usize,
    /// How many pending pods start there as it is.
    starting: i64,
    /// Its GPUs that can get other layouts, and the number of this state of them.
    pub(super) gpus: CutGpus,
    pub(super) state: usize,
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
            Some(pods) => pods.min(self.rooms(request)),
        }
    }

    /// How many pods it has room for, whatever instances it has.
    pub(super) fn rooms(&self, request: &InstanceRequest<'_>) -> i64 {
        let beside = request.beside.iter();
        let beside = beside.map(|(resource, count)| self.free_of(resource) / count);
        beside.chain([request.rooms(self.node, &self.used)]).min().unwrap_or(0)
    }

    /// So many pods, as many as start there at most, get free instances of it.
    pub(super) fn take(&mut self, request: &InstanceRequest<'_>, pods: i64) {
        for (resource, count) in &request.instances {
            if let Some(free) = self.free.get_mut(*resource) {
                *free -= count * pods;
            }
        }
        self.starting += pods;
        self.take_beside(request, pods);
    }

    /// How many pods are in the way of another layout: those that are there, or start there first.
    pub(super) fn in_the_way(&self) -> i64 {
        (self.pods as i64).saturating_add(self.starting)
    }

    /// So many pods, as many as it has room for at most, get all of it but the instances.
    pub(super) fn take_beside(&mut self, request: &InstanceRequest<'_>, pods: i64) {
        for (resource, count) in &request.beside {
            if let Some(free) = self.free.get_mut(*resource) {
                *free -= count * pods;
            }
        }
        request.take(&mut self.used, pods);
        let whole = usize::try_from(self.free_of(labels::NVIDIA_GPU)).unwrap_or(0);
        self.gpus.keep_whole(whole);
    }

    /// Gives its GPUs, in the order of [`CutGpus::layouts`], further instances that stay, for so
    /// many pods. Returns how many whole GPUs are cut for that.
    pub(super) fn cut(
        &mut self,
        request: &InstanceRequest<'_>,
        layouts: Vec<Layout>,
        pods: i64,
    ) -> usize {
        let cut = self.gpus.set(layouts);
        if let Some(free) = self.free.get_mut(labels::NVIDIA_GPU) {
            *free -= cut as i64;
        }
        self.take_beside(request, pods);
        cut
    }

    /// Looks which GPUs can get other layouts, beside what is used.
    pub(super) fn open_gpus(&mut self, names: &ProfileNames<'_>, known: &mut KnownLayouts) {
        if let Some(table) = names.table(self.node) {
            self.gpus = CutGpus::of(self.node, table, &self.free, known);
        }
        self.state = known.number_of(&self.gpus);
    }
}

/// All nodes with GPUs that take pods: first those with pods that use GPUs, by name.
pub(super) fn nodes<'f>(view: &View<'f>, pods: &GpuPods<'f>) -> Vec<SupplyNode<'f>> {
    let mut free: BTreeMap<&str, BTreeMap<&str, i64>> = BTreeMap::new();
    for (resource, of_nodes) in view.free_gpus(NodeAvailability::Ready) {
        for (node, count) in of_nodes {
            free.entry(&*node.node.name).or_default().insert(resource, count);
        }
    }
    let mut used = requests_by_node(view.facts, |_| true);
    let mut own = requests_by_node(view.facts, Workload::belongs_to_nodes);
    let nodes = view.facts.nodes.iter();
    let ready = nodes.filter(|node| node.node.condition == NodeAvailability::Ready);
    let nodes = ready.filter(|node| !node.gpus.is_empty()).map(|node| {
        let name = &*node.node.name;
        SupplyNode {
            node,
            free: free.remove(name).unwrap_or_default(),
            used: used.remove(name).unwrap_or_default(),
            used_by_own: own.remove(name).unwrap_or_default(),
            pods: pods.count_on(node),
            starting: 0,
            gpus: CutGpus::default(),
            state: 0,
        }
    });
    let mut nodes: Vec<SupplyNode<'f>> = nodes.collect();
    nodes.sort_by_key(|of| (of.pods == 0, &of.node.node.name));
    nodes
}

/// How many free whole GPUs of each table can be cut: pending pods that ask for whole ones get them
/// before, whichever these are.
pub(super) fn whole_to_cut(
    view: &View<'_>,
    names: &ProfileNames<'_>,
    nodes: &[SupplyNode<'_>],
) -> BTreeMap<String, usize> {
    let others = view.gpu_workloads().filter(|of| InstanceRequest::of(of).is_none());
    let waits = |of: &&Workload| of.pods.iter().any(Pod::is_pending) && !fits_no_node(view, of);
    let asked = others.filter(waits).map(|workload| {
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
