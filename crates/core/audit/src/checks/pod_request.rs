//! Nodes that could hold a pod if no other work ran there: neither labels nor taints keep it away,
//! and it requests no more than the node has.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Facts, Node, Workload};
use dovetail_model::Resources;

use super::View;
use super::node_room::{requests_by_node, rooms};
use super::resource_cluster::resources;
use super::taints::{keeping_away, passes};

/// What one pod of a workload requests of a resource that counts GPUs.
#[derive(Clone, Copy)]
pub(super) struct PodRequest<'v> {
    workload: &'v Workload,
    pub(super) resource: &'v str,
    gpus: i64,
}

impl<'v> PodRequest<'v> {
    /// One for each resource of its pods.
    pub(super) fn all_of(workload: &'v Workload) -> impl Iterator<Item = PodRequest<'v>> {
        let each = workload.gpus_per_pod().into_iter();
        each.map(move |(resource, gpus)| PodRequest { workload, resource, gpus })
    }

    /// One node of each kind that could hold the pod, by its GPUs and by the most CPU and memory
    /// of a node of the kind.
    pub(super) fn open_nodes(self, view: &'v View<'_>) -> impl Iterator<Item = &'v Node> {
        let asks = resources(&self.workload.template, self.resource);
        let is_open = move |node: &&Node| {
            let has = &node.node.allocatable;
            self.has_gpus(node)
                && asks.cpu_milli <= has.cpu_milli
                && asks.memory_bytes <= has.memory_bytes
                && self.passes_taints(node)
        };
        view.nodes_meant_for(self.workload, self.resource).filter(is_open)
    }

    /// The models of these nodes, as labels spell them, of which any node has all that the pod
    /// requests, beside pods that belong to the node.
    pub(super) fn models_with_room(
        self,
        nodes: &[&'v Node],
        all: &NodesByModel<'_>,
    ) -> BTreeSet<&'v str> {
        let asks = resources(&self.workload.template, self.resource);
        let takes_pod = |node: &Node| {
            // A pod of a DaemonSet is one of those that belong to the node.
            let own = all.own.get(&*node.node.name);
            let own = own.filter(|_| !self.workload.belongs_to_nodes());
            self.has_gpus(node)
                && rooms(&node.node.allocatable, &asks, own) > 0
                && self.workload.accepts_labels(node)
                && self.passes_taints(node)
        };
        let models = nodes.iter().copied().filter_map(|node| self.model_of(node));
        let mut models: BTreeSet<&'v str> = models.collect();
        models.retain(|model| {
            let of_model = all.nodes.get(&(self.resource, *model));
            of_model.is_some_and(|nodes| nodes.iter().any(|node| takes_pod(node)))
        });
        models
    }

    /// The model of a node's GPUs, as its label spells it.
    pub(super) fn model_of(self, node: &Node) -> Option<&str> {
        node.gpus.get(self.resource)?.model.as_deref()
    }

    /// Whether the node has so many GPUs, and gives them to such a pod. GPUs that pods share now
    /// could be whole ones.
    fn has_gpus(self, node: &Node) -> bool {
        node.gpus.get(self.resource).is_some_and(|gpus| {
            gpus.allocatable > 0
                && gpus.allocatable.saturating_add(gpus.set_apart) >= self.gpus
                && self.workload.can_get(self.resource, gpus)
        })
    }

    fn passes_taints(self, node: &Node) -> bool {
        keeping_away(node).all(|taint| passes(self.workload, self.resource, taint))
    }
}

/// All nodes, for pods that look for one of a model: of most models the first one does.
pub(super) struct NodesByModel<'f> {
    /// By resource and model, as labels spell it.
    nodes: BTreeMap<(&'f str, &'f str), Vec<&'f Node>>,
    /// What pods that belong to their node request there, by node.
    own: BTreeMap<&'f str, Resources>,
}

impl<'f> NodesByModel<'f> {
    pub(super) fn of(facts: &'f Facts) -> Self {
        let mut nodes: BTreeMap<(&str, &str), Vec<&Node>> = BTreeMap::new();
        for node in &facts.nodes {
            for (resource, gpus) in &node.gpus {
                if let Some(model) = gpus.model.as_deref() {
                    nodes.entry((resource.as_str(), model)).or_default().push(node);
                }
            }
        }
        Self { nodes, own: requests_by_node(facts, Workload::belongs_to_nodes) }
    }
}
