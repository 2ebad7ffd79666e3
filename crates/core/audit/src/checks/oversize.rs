//! Pods of which each is larger than every node that it may use: no node can ever run one, whatever
//! else runs there. Such a pod explains no free GPU and keeps no node; REQ-03 reports it.
//!
//! A node counts with all that it has, GPUs included that are broken, that pods share now, or that
//! are cut into MIG instances. Taints do not count, since a toleration is soon added, and neither
//! does the number of MIG instances, which another layout changes. A pod whose selectors accept no
//! node with its GPUs is none of these: it may wait for a pool that is empty now.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Gpus, Node, Workload};
use dovetail_model::{
    DeviceRequest, JobId, NodeCondition, Requirement, Resources, Snapshot, is_gpu_resource, labels,
};
use rustc_hash::FxHashMap;

use super::View;
use super::view::{OF_ONE_NODE, keys_of, label_keys};

/// Labels that say what the GPUs of a node are.
const OF_GPUS: [&str; 3] = [labels::NVIDIA_COUNT, labels::NVIDIA_PRODUCT, labels::GKE_PARTITION];

/// What one pod requests of its node, and which nodes it may use.
pub(super) struct PodSize<'p> {
    requests: &'p Resources,
    /// Units by resource, none of which is 0.
    gpus: Vec<(&'p str, i64)>,
    conditions: &'p [NodeCondition],
}

/// An amount that a pod requests, and the most of it that a node has.
pub(super) struct Excess<'p> {
    pub(super) resource: &'p str,
    pub(super) asked: i64,
    pub(super) most: i64,
}

impl<'p> PodSize<'p> {
    pub(super) fn of(workload: &'p Workload) -> Self {
        let gpus = workload.gpus_per_pod().into_iter().filter(|(_, count)| *count > 0);
        let template = &workload.template;
        let (requests, conditions) = (&template.requests, &*template.node_conditions);
        Self { requests, gpus: gpus.collect(), conditions }
    }

    /// What pods of a simulated cluster request, whose GPUs all have this resource name.
    fn in_world(requirement: &'p Requirement, resource: &'p str) -> Self {
        let others = requirement.resources.extended.iter();
        let others = others.filter(|(name, count)| is_gpu_resource(name) && **count > 0);
        let mut gpus: Vec<(&str, i64)> =
            others.map(|(name, count)| (name.as_str(), *count)).collect();
        if let DeviceRequest::Whole { count, .. } = requirement.device {
            gpus.push((resource, i64::from(count)));
        }
        let conditions = &*requirement.node_conditions;
        Self { requests: &requirement.resources, gpus, conditions }
    }

    /// The nodes that it may use: its selectors accept them, and they have its kinds of
    /// GPUs.
    fn nodes<'n>(&self, all: &'n [Node]) -> impl Iterator<Item = &'n Node> {
        all.iter().filter(move |node| {
            self.gpus.iter().all(|(resource, _)| offered(node, resource) > 0)
                && self.conditions.iter().all(|condition| condition.accepts(&node.node))
        })
    }

    /// Whether it is larger than each node that it may use, and may use one. `sizes` are those of
    /// all nodes.
    fn fits_no_node(&self, sizes: &[Node], all: &[Node]) -> bool {
        let is_pinned = keys_of(self.conditions).any(|key| OF_ONE_NODE.contains(&key));
        let nodes = self.nodes(if is_pinned { all } else { sizes });
        let mut fits = nodes.map(|node| self.fits(node)).peekable();
        fits.peek().is_some() && !fits.any(|fits| fits)
    }

    /// What it requests more of than any node that it may use has.
    pub(super) fn excesses(&self, all: &[Node]) -> Vec<Excess<'p>> {
        let most = |of: &dyn Fn(&Node) -> i64| self.nodes(all).map(of).max().unwrap_or(0);
        let gpus = self.gpus.iter().map(|(resource, asked)| {
            let most = most(&|node: &Node| offered(node, resource));
            Excess { resource, asked: *asked, most }
        });
        let cpu = Excess {
            resource: "cpu",
            asked: self.requests.cpu_milli,
            most: most(&|node: &Node| node.node.allocatable.cpu_milli),
        };
        let memory = Excess {
            resource: "memory",
            asked: self.requests.memory_bytes,
            most: most(&|node: &Node| node.node.allocatable.memory_bytes),
        };
        gpus.chain([cpu, memory]).filter(|of| of.asked > of.most).collect()
    }

    fn fits(&self, node: &Node) -> bool {
        let has = &node.node.allocatable;
        self.requests.cpu_milli <= has.cpu_milli
            && self.requests.memory_bytes <= has.memory_bytes
            && self.gpus.iter().all(|(resource, count)| *count <= offered(node, resource))
    }
}

/// How many units of a resource a node has for one pod at most. Which resource those are for that
/// no plugin counts yet is unknown.
fn offered(node: &Node, resource: &str) -> i64 {
    let is_whole = resource == labels::NVIDIA_GPU;
    let are_instances =
        resource.starts_with(labels::NVIDIA_MIG) || is_whole && node.offers_instances_as_gpus();
    if are_instances {
        return if has_any(node) { i64::MAX } else { 0 };
    }
    let own = node.gpus.get(resource).map_or(0, units);
    let in_parts = if is_whole { gpus_in_parts(node) } else { 0 };
    own.saturating_add(in_parts).saturating_add(node.uncounted_gpus.max(0))
}

/// Whether a node has GPUs, of whatever kind.
fn has_any(node: &Node) -> bool {
    !node.gpus.is_empty() || node.uncounted_gpus > 0
}

fn units(gpus: &Gpus) -> i64 {
    gpus.built_in.max(gpus.allocatable).saturating_add(gpus.set_apart)
}

/// GPUs of a node that it offers as MIG instances, or as replicas under a name of their own, and
/// could offer as whole ones: no more than these units, and no more than its label counts.
fn gpus_in_parts(node: &Node) -> i64 {
    let is_part =
        |name: &str| name == labels::NVIDIA_SHARED || name.starts_with(labels::NVIDIA_MIG);
    let parts = node.gpus.iter().filter(|(name, _)| is_part(name));
    let all = parts.map(|(_, gpus)| units(gpus)).fold(0, i64::saturating_add);
    let counted = node.node.label(labels::NVIDIA_COUNT).and_then(|text| text.parse::<i64>().ok());
    all.min(counted.filter(|count| *count > 0).unwrap_or(i64::MAX))
}

/// One node for all that have the same GPUs and the same labels as far as pods ask for `keys`, with
/// the most CPU and memory of them.
fn sizes(all: &[Node], keys: BTreeSet<&str>) -> Vec<Node> {
    let keys = keys.into_iter().chain(OF_GPUS);
    let keys: Vec<&str> = keys.filter(|key| !OF_ONE_NODE.contains(key)).collect();
    let mut sizes: BTreeMap<_, Node> = BTreeMap::new();
    for node in all.iter().filter(|node| has_any(node)) {
        let labels: Vec<Option<&str>> = keys.iter().map(|key| node.node.label(key)).collect();
        let size = sizes.entry((&node.gpus, node.uncounted_gpus, labels));
        let most = &mut size.or_insert_with(|| node.clone()).node.allocatable;
        most.cpu_milli = most.cpu_milli.max(node.node.allocatable.cpu_milli);
        most.memory_bytes = most.memory_bytes.max(node.node.allocatable.memory_bytes);
    }
    sizes.into_values().collect()
}

/// Whether each pod of a workload is larger than every node that it may use.
pub(super) fn fits_no_node(view: &View<'_>, workload: &Workload) -> bool {
    let facts = view.facts;
    let of_cluster = view.sizes.get_or_init(|| {
        let to_come = facts.to_come.iter().map(|of| &of.workload);
        let workloads = facts.workloads.iter().chain(to_come);
        sizes(&facts.nodes, workloads.flat_map(label_keys).collect())
    });
    !workload.belongs_to_nodes() && PodSize::of(workload).fits_no_node(of_cluster, &facts.nodes)
}

/// Pending jobs of the world of a resource that can never start: each has a pod that is larger than
/// every node that it may use.
pub fn jobs_without_node(world: &Snapshot, resource: &str, nodes: &[Node]) -> BTreeSet<JobId> {
    let waiting = || world.jobs.iter().filter(|job| job.start_ms.is_none());
    let sets = waiting().flat_map(|job| &job.pod_sets);
    let keys = sets.flat_map(|set| keys_of(&set.requirement.node_conditions));
    let sizes = sizes(nodes, keys.collect());
    let mut known: FxHashMap<&Requirement, bool> = FxHashMap::default();
    let mut found = BTreeSet::new();
    for job in waiting() {
        let fits_no_node = job.pod_sets.iter().filter(|set| set.min > 0).any(|set| {
            let requirement = &*set.requirement;
            let ask = || PodSize::in_world(requirement, resource).fits_no_node(&sizes, nodes);
            *known.entry(requirement).or_insert_with(ask)
        });
        if fits_no_node {
            found.insert(job.id);
        }
    }
    found
}
