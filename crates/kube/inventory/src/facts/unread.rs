//! GPUs of which nobody can say whether they are held: pods and nodes that could not be read, pods
//! on nodes that were not handed over or list no GPUs, and what nodes offer under other names.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{NodeGpus, PendingDemand, Untold};
use dovetail_gpus::discovered_gpus;
use dovetail_model::is_gpu_resource;
use dovetail_objects::Node;
use serde_json::Value;

use super::node::ReadNode;
use super::pods::Pods;
use crate::dump::RawObject;

/// More GPUs of one object are a slip.
const MOST: i64 = 4096;

/// How many GPUs are neither held nor free as far as anybody knows, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownGpus {
    /// Held by pods on nodes that were not read.
    pub on_unread_nodes: i64,
    pub pods_on_unread_nodes: usize,
    pub nodes_not_read: BTreeSet<String>,
    /// Asked for by pods that could not be read and are on no node that was.
    pub of_unread_pods: i64,
    /// Pods that could not be read and may hold GPUs, also those that say no number.
    pub unread_pods: usize,
    /// Of nodes that could not be read.
    pub of_unread_nodes: i64,
    /// Nodes that could not be read and may have GPUs.
    pub unread_nodes: usize,
    /// Held by pods on nodes that were read and have no GPUs.
    pub unlisted: UnlistedGpus,
    /// Pods that use GPUs without requests: which of the GPUs of their nodes, nobody knows.
    pub unrequested: UnrequestedGpus,
    /// Nodes by the resources that may be GPUs of them and are not counted as such.
    pub other_names: BTreeMap<String, BTreeSet<String>>,
    /// Nodes that stand for machines that somebody else runs: their GPUs do not count.
    pub virtual_nodes: BTreeSet<String>,
}

/// GPUs that pods hold on nodes that have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnlistedGpus {
    pub gpus: i64,
    pub pods: usize,
    pub nodes: BTreeSet<String>,
}

impl UnlistedGpus {
    /// Adds what a pod holds on a node.
    fn add(&mut self, node: &str, gpus: i64) {
        if gpus > 0 {
            self.gpus += gpus;
            self.pods += 1;
            self.nodes.insert(node.to_owned());
        }
    }
}

/// Pods that use GPUs without requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnrequestedGpus {
    /// Namespaces and names of the pods.
    pub pods: BTreeSet<String>,
    /// Nodes of which GPUs may be in use by these pods.
    pub nodes: BTreeSet<String>,
}

impl UnknownGpus {
    /// Notes a node whose GPUs are not counted like those of others.
    pub(super) fn note_node(&mut self, name: &str, read: &ReadNode) {
        if read.is_virtual {
            self.virtual_nodes.insert(name.to_owned());
            return;
        }
        for resource in &read.other_names {
            self.other_names.entry(resource.clone()).or_default().insert(name.to_owned());
        }
    }

    /// All of them.
    pub fn gpus(&self) -> i64 {
        self.on_unread_nodes + self.of_unread_pods + self.of_unread_nodes + self.unlisted.gpus
    }

    /// Whether there is an object that may hold or have GPUs and was not understood.
    pub fn is_any(&self) -> bool {
        self.pods_on_unread_nodes + self.unread_pods + self.unread_nodes + self.unlisted.pods > 0
            || !self.unrequested.nodes.is_empty()
            || !self.other_names.is_empty()
    }
}

/// A pod that could not be read, as far as it can be told.
pub(super) struct UnreadPod {
    /// Its node; `None` if it says none.
    pub(super) node: Option<String>,
    /// Units that it asks for, by resource; `None` if it does not say what its containers ask for.
    pub(super) units: Option<BTreeMap<String, i64>>,
}

impl UnreadPod {
    /// Units of a resource that it may hold, of so many.
    fn at_most(&self, resource: &str, all: i64) -> i64 {
        match &self.units {
            Some(units) => units.get(resource).copied().unwrap_or(0),
            None => all,
        }
    }
}

/// Objects that could not be read and may be about GPUs.
#[derive(Default)]
pub(super) struct Unread {
    /// Whether a pod that is not over could not be read, with GPUs or without.
    pub(super) lacks_pods: bool,
    pub(super) pods: Vec<UnreadPod>,
    /// Names and GPUs of nodes, as far as they say a number.
    pub(super) nodes: Vec<(String, i64)>,
}

impl Unread {
    /// Notes what an object that could not be read says of GPUs.
    pub(super) fn note(&mut self, raw: &RawObject<'_>) {
        let object = || serde_json::from_str::<Value>(raw.json).unwrap_or_default();
        match raw.kind {
            "Pod" => {
                let object = object();
                if !is_over(&object) {
                    self.lacks_pods = true;
                    self.pods.extend(pod(&object));
                }
            }
            "Node" => {
                let object = object();
                let of = |field: &str| amounts(&object["status"][field]);
                let (capacity, allocatable) = (of("capacity"), of("allocatable"));
                let named = capacity.keys().chain(allocatable.keys()).next().is_some();
                let labels = serde_json::from_value(object["metadata"]["labels"].clone());
                let counted = labels.map_or(0, |labels| discovered_gpus(&labels));
                let said = capacity.values().chain(allocatable.values()).flatten();
                let most = said.copied().chain([counted]).max();
                if named {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    self.nodes.push((name.to_owned(), most.unwrap_or(0).max(0)));
                }
            }
            _ => {}
        }
    }
}

impl Unread {
    /// Adds GPUs of which nobody can say whether they are held. Those on nodes that are known are
    /// marked there.
    pub(super) fn add_to(
        &self,
        unknown: &mut UnknownGpus,
        (pods, nodes): (&Pods, &BTreeMap<String, Node>),
        gpus: &mut [NodeGpus],
    ) {
        unknown.unread_pods = self.pods.len();
        unknown.unread_nodes = self.nodes.len();
        unknown.of_unread_nodes = self.nodes.iter().map(|(_, gpus)| gpus).sum();
        // What pods hold of nodes whose GPUs are counted is not counted again.
        let mut counted: BTreeMap<&str, i64> = BTreeMap::new();
        for (name, gpus) in &self.nodes {
            *counted.entry(name).or_default() += gpus;
        }
        let has_gpus: BTreeSet<&str> = gpus.iter().map(|of| &*of.node).collect();
        let placed = pods.list.iter().filter(|record| !record.pod.node.is_empty());
        for record in placed.filter(|record| !has_gpus.contains(&*record.pod.node)) {
            let held = record.pod.holds().extended.iter();
            let units = held.filter(|(name, count)| **count > 0 && is_gpu_resource(name));
            let units: i64 = units.map(|(_, count)| (*count).min(MOST)).sum();
            if nodes.contains_key(&*record.pod.node) {
                unknown.unlisted.add(&record.pod.node, units);
                continue;
            }
            let of_node = counted.entry(&record.pod.node).or_default();
            unknown.on_unread_nodes += (units - *of_node).max(0);
            *of_node = (*of_node - units).max(0);
            if units > 0 {
                unknown.pods_on_unread_nodes += 1;
                unknown.nodes_not_read.insert(record.pod.node.to_string());
            }
        }
        let mut places: BTreeMap<String, &mut NodeGpus> =
            gpus.iter_mut().map(|of| (of.node.clone(), of)).collect();
        for pod in &self.pods {
            let node = pod.node.as_deref().and_then(|node| places.get_mut(node));
            if node.is_none() {
                unknown.of_unread_pods += pod.units.iter().flat_map(BTreeMap::values).sum::<i64>();
            }
            for of in node.into_iter().flat_map(|node| &mut node.units) {
                of.unknown = (of.unknown + pod.at_most(&of.resource, of.count)).min(of.count);
            }
        }
    }

    /// A pod without a node may want what nothing else does.
    pub(super) fn may_want(&self, demand: &mut [PendingDemand]) {
        for pod in self.pods.iter().filter(|pod| pod.node.is_none()) {
            for of in &mut *demand {
                let units = pod.units.as_ref().map(|units| units.get(&of.resource));
                of.untold = of.untold.and(match units {
                    Some(units) => Untold::AtMost(units.copied().unwrap_or(0)),
                    None => Untold::Any,
                });
            }
        }
    }
}

fn is_over(pod: &Value) -> bool {
    ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase)
}

/// What a pod says, if a container of it names a resource of GPUs or it has no containers.
fn pod(object: &Value) -> Option<UnreadPod> {
    let spec = &object["spec"];
    let node = spec["nodeName"].as_str().filter(|node| !node.is_empty()).map(str::to_owned);
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        return Some(UnreadPod { node, units: None });
    }
    let mut units: BTreeMap<String, i64> = BTreeMap::new();
    for container in spec["containers"].as_array().into_iter().flatten() {
        let mut of_container = amounts(&container["resources"]["requests"]);
        of_container.extend(amounts(&container["resources"]["limits"]));
        for (resource, count) in of_container {
            let Some(count) = count else {
                // It requests GPUs, and nobody knows how many.
                return Some(UnreadPod { node, units: None });
            };
            let sum = units.entry(resource).or_default();
            *sum = (*sum + count.max(0)).min(MOST);
        }
    }
    (!units.is_empty()).then_some(UnreadPod { node, units: Some(units) })
}

/// Amounts of resources of GPUs; `None` for what is no number.
fn amounts(of: &Value) -> BTreeMap<String, Option<i64>> {
    let amounts = of.as_object().into_iter().flatten();
    let gpus = amounts.filter(|(name, _)| is_gpu_resource(name));
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_i64(),
    };
    gpus.map(|(name, value)| (name.clone(), number(value).map(|count| count.clamp(-1, MOST))))
        .collect()
}
