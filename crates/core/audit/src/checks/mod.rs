//! The checks: each looks at the facts and says what it found.

mod autoscaling;
mod governance;
mod request;
mod scheduling;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::node::NAME_LABEL;

use crate::catalogue::{Check, check};
use crate::facts::{Facts, Node, ObjectRef, Workload};
use crate::finding::{Finding, group};

/// Runs every check; findings are grouped by the object that a person edits, worst first.
pub fn audit(facts: &Facts) -> Vec<Finding> {
    let view = View::of(facts);
    let families = [request::RUNS, scheduling::RUNS, governance::RUNS, autoscaling::RUNS];
    let mut findings = Vec::new();
    for (id, run) in families.into_iter().flatten() {
        let check = check(id).expect("every check that runs is in the catalogue");
        run(&view, check, &mut findings);
    }
    group(findings)
}

/// A check by id.
type Run = (&'static str, fn(&View<'_>, &'static Check, &mut Vec<Finding>));

/// The facts with what several checks look up.
struct View<'a> {
    facts: &'a Facts,
    nodes: BTreeMap<&'a str, &'a Node>,
    /// Most GPUs of a node, by resource.
    most_gpus: BTreeMap<&'a str, i64>,
    kinds: Vec<Node>,
}

impl<'a> View<'a> {
    fn of(facts: &'a Facts) -> Self {
        let nodes = facts.nodes.iter().map(|node| (&*node.node.name, node)).collect();
        let mut most_gpus: BTreeMap<&str, i64> = BTreeMap::new();
        for (resource, gpus) in facts.nodes.iter().flat_map(|node| &node.gpus) {
            let most = most_gpus.entry(resource).or_default();
            *most = gpus.allocatable.max(*most);
        }
        Self { facts, nodes, most_gpus, kinds: kinds(facts) }
    }

    /// Nodes on which pods can ask for GPUs.
    fn gpu_nodes(&self) -> impl Iterator<Item = &'a Node> {
        self.facts.nodes.iter().filter(|node| node.has_gpus())
    }

    fn gpu_workloads(&self) -> impl Iterator<Item = &'a Workload> {
        self.facts.workloads.iter().filter(|workload| workload.has_gpus())
    }

    /// The pods of a workload that are bound to nodes with GPUs, and those nodes.
    fn pods_on_gpu_nodes(&self, workload: &'a Workload) -> Vec<(ObjectRef, &'a Node)> {
        let placed = workload.pods.iter().filter_map(|pod| {
            let node = self.nodes.get(pod.node.as_deref()?).filter(|node| node.has_gpus())?;
            Some((ObjectRef::new("Pod", &workload.owner.namespace, &pod.name), *node))
        });
        placed.collect()
    }

    /// Nodes with the resource whose labels the workload accepts; of nodes that are alike to every check
    /// one, with the most CPU and memory of them.
    fn nodes_meant_for<'b>(
        &'b self,
        workload: &'b Workload,
        resource: &'b str,
    ) -> impl Iterator<Item = &'b Node> + use<'a, 'b> {
        let has = move |node: &&Node| node.gpus.get(resource).is_some_and(|g| g.allocatable > 0);
        let conditions = &workload.template.node_conditions;
        let accepts =
            move |node: &&Node| conditions.iter().all(|condition| condition.accepts(&node.node));
        let is_pinned = label_keys(workload).any(|key| OF_ONE_NODE.contains(&key));
        let nodes = if is_pinned { &self.facts.nodes } else { &self.kinds };
        nodes.iter().filter(has).filter(accepts)
    }
}

/// Labels that each node has for itself.
const OF_ONE_NODE: [&str; 2] = [NAME_LABEL, "kubernetes.io/hostname"];

/// Labels that a workload asks of nodes.
fn label_keys(workload: &Workload) -> impl Iterator<Item = &str> {
    let conditions = workload.template.node_conditions.iter();
    conditions.flat_map(|condition| condition.any_of.iter().flatten()).map(|term| term.key.as_str())
}

/// One node for all that have the same GPUs and taints, and the same labels as far as any workload asks:
/// large clusters have few kinds of nodes and many workloads.
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

fn pods_of(workload: &Workload) -> impl Iterator<Item = ObjectRef> {
    workload.pods.iter().map(|pod| ObjectRef::new("Pod", &workload.owner.namespace, &pod.name))
}

fn node_ref(node: &Node) -> ObjectRef {
    ObjectRef::new("Node", "", &node.node.name)
}
