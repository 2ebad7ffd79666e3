//! The facts as checks read them, and what several of them do with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use dovetail_account::device_time::{DeviceState, Span};
use dovetail_facts::{Facts, Gpus, Moment, Node, ObjectRef, Pod, Workload};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::node::NAME_LABEL;
use dovetail_model::{FreeCause, NodeAvailability, NodeCondition, labels};
use rustc_hash::FxHashMap;

use super::pending::{
    Binds, PendingOwners, PendingProbe, WorkloadNames, owners_of_pending, workload_names,
};
use super::resource_cluster::{Hosts, PodPlaces, Removal, ResourceCluster};
use crate::catalogue::Check;
use crate::finding::{Attribution, Finding};

/// A check by id.
pub(super) type Run = (&'static str, fn(&View<'_>, &'static Check, &mut Vec<Finding>));

/// Why GPUs are free that no pending pod could use if they stayed: none asks for GPUs, or those
/// that do accept others only.
pub(super) const UNWANTED: [FreeCause; 2] = [FreeCause::NoDemand, FreeCause::TypeMismatch];

/// The facts with what several checks look up.
pub(super) struct View<'a> {
    pub(super) facts: &'a Facts,
    pub(super) moment: &'a Moment,
    /// Pending jobs in each world of the moment.
    pub(super) pending: OnceLock<Vec<PendingProbe>>,
    /// Where they would start if their selectors and models excluded no node, in each of these that
    /// has any.
    pub(super) unbound: OnceLock<Vec<Binds>>,
    pub(super) pending_owners: PendingOwners<'a>,
    /// Empty if no world of the moment has a pending job.
    pub(super) workload_names: WorkloadNames<'a>,
    /// What pending pods lack of MIG instances (SHR-08).
    pub(super) shortages: OnceLock<Vec<Finding>>,
    /// Nodes with pods that can go, by name.
    pub(super) removals: OnceLock<BTreeMap<String, Removal>>,
    /// Nodes by name.
    pub(super) node_of: FxHashMap<&'a str, &'a Node>,
    /// Their places in the order in which they were read.
    place_of: FxHashMap<&'a str, usize>,
    places: OnceLock<PodPlaces>,
    /// Which pods are on which nodes, by resource.
    hosts: BTreeMap<&'a str, OnceLock<Hosts>>,
    /// How much is free of each resource of each node, in their order.
    free: OnceLock<Vec<Vec<i64>>>,
    /// Most GPUs of a node, by resource.
    pub(super) most_gpus: BTreeMap<&'a str, i64>,
    pub(super) kinds: Vec<Node>,
    /// The nodes as pods see them that look for one that is large enough.
    pub(super) sizes: OnceLock<Vec<Node>>,
    /// Those whose pods hold GPUs.
    pub(super) gpu_workloads: Vec<&'a Workload>,
    /// The first of them of each owner, at the top or below.
    pub(super) by_owner: BTreeMap<&'a ObjectRef, &'a Workload>,
}

impl<'a> View<'a> {
    pub(super) fn of(facts: &'a Facts, moment: &'a Moment) -> Self {
        let node_of = facts.nodes.iter().map(|node| (&*node.node.name, node)).collect();
        let places = facts.nodes.iter().enumerate();
        let place_of = places.map(|(place, node)| (&*node.node.name, place)).collect();
        let mut most_gpus: BTreeMap<&str, i64> = BTreeMap::new();
        for (resource, gpus) in facts.nodes.iter().flat_map(|node| &node.gpus) {
            let most = most_gpus.entry(resource).or_default();
            *most = gpus.allocatable.saturating_add(gpus.set_apart).max(*most);
        }
        let gpu_workloads: Vec<&Workload> =
            facts.workloads.iter().filter(|workload| workload.has_gpus()).collect();
        let mut by_owner = BTreeMap::new();
        for workload in &gpu_workloads {
            for owner in workload.made_by.iter().chain([&workload.owner]) {
                by_owner.entry(owner).or_insert(*workload);
            }
        }
        let asks = moment.demand.iter().any(|demand| !demand.world.jobs.is_empty());
        let of_names = if asks { &gpu_workloads[..] } else { &[] };
        let offered = most_gpus.keys().copied().chain([labels::NVIDIA_GPU]);
        Self {
            facts,
            moment,
            pending: OnceLock::new(),
            unbound: OnceLock::new(),
            shortages: OnceLock::new(),
            pending_owners: owners_of_pending(&gpu_workloads),
            workload_names: workload_names(of_names),
            removals: OnceLock::new(),
            node_of,
            place_of,
            places: OnceLock::new(),
            hosts: offered.map(|resource| (resource, OnceLock::new())).collect(),
            free: OnceLock::new(),
            most_gpus,
            kinds: kinds(facts),
            sizes: OnceLock::new(),
            gpu_workloads,
            by_owner,
        }
    }

    /// All nodes and pods, for a resource that nodes have.
    pub(super) fn cluster<'b>(&'b self, resource: &'b str) -> ResourceCluster<'b> {
        let hosts = self.hosts[resource].get_or_init(|| {
            let places = self.places.get_or_init(|| PodPlaces::of(self.facts));
            Hosts::of(self.facts, resource, places)
        });
        ResourceCluster::of(self.facts, resource, hosts)
    }

    /// The same for the resource of most GPUs.
    pub(super) fn gpu_cluster(&self) -> ResourceCluster<'_> {
        self.cluster(labels::NVIDIA_GPU)
    }

    /// Nodes in a condition with free GPUs, by resource.
    pub(super) fn free_gpus(
        &self,
        condition: NodeAvailability,
    ) -> BTreeMap<&'a str, Vec<(&'a Node, i64)>> {
        let free = self.free.get_or_init(|| free_of_nodes(self));
        let mut pieces: BTreeMap<&str, Vec<(&Node, i64)>> = BTreeMap::new();
        let nodes = self.facts.nodes.iter().zip(free);
        for (node, free) in nodes.filter(|(node, _)| node.node.condition == condition) {
            for (resource, free) in node.gpus.keys().zip(free).filter(|(_, free)| **free > 0) {
                pieces.entry(resource).or_default().push((node, *free));
            }
        }
        pieces
    }

    /// The nodes with these names, in the order in which they were read.
    pub(super) fn nodes_named<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<&'a Node> {
        let places: BTreeSet<usize> =
            names.filter_map(|name| self.place_of.get(name).copied()).collect();
        places.into_iter().map(|place| &self.facts.nodes[place]).collect()
    }

    /// Nodes on which pods can ask for GPUs.
    pub(super) fn gpu_nodes(&self) -> impl Iterator<Item = &'a Node> {
        self.facts.nodes.iter().filter(|node| node.has_gpus())
    }

    /// The first workload of an owner that asks for GPUs.
    pub(super) fn gpu_workload_of(&self, owner: &ObjectRef) -> Option<&'a Workload> {
        self.by_owner.get(owner).copied()
    }

    pub(super) fn gpu_workloads(&self) -> impl Iterator<Item = &'a Workload> + use<'a, '_> {
        self.gpu_workloads.iter().copied()
    }

    /// The pods of a workload that are bound to nodes with GPUs, and those nodes.
    pub(super) fn pods_on_gpu_nodes(&self, workload: &'a Workload) -> Vec<(ObjectRef, &'a Node)> {
        let placed = self.placed(workload).filter(|(_, node)| node.has_gpus());
        placed.map(|(pod, node)| (pod_ref(workload, pod), node)).collect()
    }

    /// Names of the nodes on which a pod with GPUs runs, or one may that was not read.
    pub(super) fn nodes_of_gpu_pods(&self) -> BTreeSet<&'a str> {
        let pods = self.gpu_workloads().filter(|workload| !workload.belongs_to_nodes());
        let open = self.facts.nodes.iter().filter(|node| node.may_be_held);
        pods.flat_map(|workload| workload.pods.iter().filter_map(|pod| pod.node.as_deref()))
            .chain(open.map(|node| &*node.node.name))
            .collect()
    }

    /// The kind of the node pool that a finding concerns: of its nodes, else of any with GPUs.
    pub(super) fn pool_kind(&self, finding: &Finding) -> Option<&'a str> {
        let nodes = finding.affected.iter().filter(|object| object.kind == "Node");
        let concerned = nodes.filter_map(|object| self.node_of.get(object.name.as_str())).next();
        let any = || self.facts.nodes.iter().find(|node| node.has_gpus());
        Some(&concerned.copied().or_else(any)?.pool.kind)
    }

    /// The pods of a workload that are bound, and their nodes.
    pub(super) fn placed<'b>(
        &'b self,
        workload: &'a Workload,
    ) -> impl Iterator<Item = (&'a Pod, &'a Node)> + use<'a, 'b> {
        workload.pods.iter().filter_map(|pod| Some((pod, *self.node_of.get(pod.node.as_deref()?)?)))
    }

    /// Nodes with the resource whose labels the workload accepts; of nodes that are alike to every
    /// check one, with the most CPU and memory of them.
    pub(super) fn nodes_meant_for<'b>(
        &'b self,
        workload: &'b Workload,
        resource: &'b str,
    ) -> impl Iterator<Item = &'b Node> + use<'a, 'b> {
        let has = move |node: &&Node| {
            let gpus = node.gpus.get(resource);
            gpus.is_some_and(|gpus| gpus.allocatable > 0 && workload.can_get(resource, gpus))
        };
        let accepts = move |node: &&Node| workload.accepts_labels(node);
        let is_pinned = label_keys(workload).any(|key| OF_ONE_NODE.contains(&key));
        let nodes = if is_pinned { &self.facts.nodes } else { &self.kinds };
        nodes.iter().filter(has).filter(accepts)
    }
}

/// Labels that each node has for itself.
pub(super) const OF_ONE_NODE: [&str; 2] = [NAME_LABEL, labels::HOST_NAME];

/// Labels that a workload asks of nodes.
pub(super) fn label_keys(workload: &Workload) -> impl Iterator<Item = &str> {
    keys_of(&workload.template.node_conditions)
}

/// The labels of these conditions.
pub(super) fn keys_of(conditions: &[NodeCondition]) -> impl Iterator<Item = &str> {
    let terms = conditions.iter().flat_map(|condition| condition.any_of.iter().flatten());
    terms.map(|term| term.key.as_str())
}

/// How much is free of each resource of each node, in their order.
fn free_of_nodes(view: &View<'_>) -> Vec<Vec<i64>> {
    let nodes = || view.facts.nodes.iter().map(|node| (&*node.node.name, &node.gpus));
    let mut free: BTreeMap<&str, BTreeMap<&str, i64>> = BTreeMap::new();
    for (name, gpus) in nodes() {
        let offered = gpus.iter().map(|(resource, gpus)| (resource.as_str(), gpus.allocatable));
        free.insert(name, offered.collect());
    }
    for workload in view.gpu_workloads() {
        for (resource, gpus) in workload.gpus_per_pod() {
            for node in workload.pods.iter().filter_map(|pod| pod.node.as_deref()) {
                if let Some(free) = free.get_mut(node).and_then(|free| free.get_mut(resource)) {
                    *free = free.saturating_sub(gpus);
                }
            }
        }
    }
    let of_node = |(name, gpus): (&str, &BTreeMap<String, Gpus>)| -> Vec<i64> {
        gpus.keys().map(|resource| free[name][resource.as_str()]).collect()
    };
    nodes().map(of_node).collect()
}

/// One node for all that have the same GPUs and taints, and the same labels as far as any workload
/// asks: large clusters have few kinds of nodes and many workloads.
fn kinds(facts: &Facts) -> Vec<Node> {
    let keys: BTreeSet<&str> = facts.workloads.iter().flat_map(label_keys).collect();
    let keys: Vec<&str> = keys.into_iter().filter(|key| !OF_ONE_NODE.contains(key)).collect();
    let mut kinds: BTreeMap<_, Node> = BTreeMap::new();
    for node in facts.nodes.iter().filter(|node| !node.gpus.is_empty()) {
        let labels: Vec<Option<&str>> = keys.iter().map(|key| node.node.label(key)).collect();
        let kind = kinds.entry((&node.gpus, &node.node.taints, labels));
        let most = &mut kind.or_insert_with(|| node.clone()).node.allocatable;
        most.cpu_milli = most.cpu_milli.max(node.node.allocatable.cpu_milli);
        most.memory_bytes = most.memory_bytes.max(node.node.allocatable.memory_bytes);
    }
    kinds.into_values().collect()
}

pub(super) fn pods_of(workload: &Workload) -> impl Iterator<Item = ObjectRef> {
    workload.pods.iter().map(|pod| pod_ref(workload, pod))
}

pub(super) fn pod_ref(workload: &Workload, pod: &Pod) -> ObjectRef {
    ObjectRef::new("Pod", &workload.owner.namespace, &pod.name)
}

/// All that the devices of a node were in some states, held by a workload or by nobody, in a span.
pub(super) fn claims_on(
    node: &Node,
    holder: Option<u32>,
    states: &[DeviceState],
    span: Span,
) -> Vec<Attribution> {
    if span.from_ms >= span.to_ms {
        return Vec::new();
    }
    let states: BTreeSet<DeviceState> = states.iter().copied().collect();
    let claim = |device: &u32| Attribution {
        device: *device,
        holder,
        states: states.clone(),
        span,
        gpu_milli: WHOLE_DEVICE_MILLI,
    };
    node.devices.iter().map(claim).collect()
}

/// So many percent of an amount, cut off.
pub(super) fn percent_of(amount: i64, percent: u64) -> i64 {
    let part = i128::from(amount) * i128::from(percent) / 100;
    i64::try_from(part).unwrap_or(i64::MAX)
}

pub(super) fn node_ref(node: &Node) -> ObjectRef {
    ObjectRef::new("Node", "", &node.node.name)
}
