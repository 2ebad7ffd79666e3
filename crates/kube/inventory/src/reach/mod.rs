//! What decides which nodes pods could use, kept apart from the rest of the inventory: nodes, and
//! one pod of each group with the names and places of the others.

mod apart;
mod confined;
mod platform;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use dovetail_audit::comes_and_goes;
use dovetail_facts::{ObjectRef, Workload};
use dovetail_model::{Node, NodeAvailability, Taint, TaintEffect, Toleration, is_gpu_resource};
use dovetail_objects::{Object, Pod};
use dovetail_translate::{NodeSetting, ReferredObjects as Volumes, Rules, node};

pub use apart::Apart;
use platform::Platforms;

use crate::facts::claims::ClaimedNodes;
use crate::facts::{LimitRange, QuotaRoom};
use confined::Confinements;

/// Nodes and pods, for the question which nodes a pod could use.
#[derive(Default)]
pub struct PatchReach {
    /// Nodes as they are when they accept pods: without the taints that come and go with their
    /// state.
    pub nodes: Vec<Node>,
    /// Which of them do not accept pods at present: cordoned, not ready, under pressure.
    pub closed: Vec<bool>,
    pub places: BTreeMap<String, usize>,
    pub groups: Vec<PodGroup>,
    pub volumes: Volumes,
    platforms: Platforms,
    /// What quotas leave, by namespace.
    pub quotas: BTreeMap<String, Vec<QuotaRoom>>,
    /// What LimitRanges ask of pods, by namespace.
    pub limit_ranges: BTreeMap<String, Vec<LimitRange>>,
    /// Whether there are pods that were not read, or nodes with such pods: what a change of nodes
    /// does to them is unknown.
    pub lacks_pods: bool,
}

impl fmt::Debug for PatchReach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} nodes, {} groups of pods", self.nodes.len(), self.groups.len())
    }
}

/// Pods of one owner from one template.
pub struct PodGroup {
    /// The top owner, which a person edits.
    pub owner: ObjectRef,
    /// Names of the containers.
    pub containers: Vec<String>,
    /// A pod of it, as far as nodes decide about it.
    pub pod: Pod,
    /// Every pod: its name, and the place of its node if it has one. A pod to come has no name.
    pub pods: Vec<(String, Option<usize>)>,
    /// Of pods, by their places among these, that some nodes alone can run whatever their labels
    /// are, the places of these nodes: their claims are allocated there, the template names the
    /// node, or they use GPUs of it that they do not request.
    pub confined: BTreeMap<usize, Arc<BTreeSet<usize>>>,
    /// Whether a template of the owner names the node (`spec.nodeName`): no scheduler places its
    /// pods, and the kubelet rejects those that the node does not suit.
    pub is_bound_by_name: bool,
    /// Whether its pods need devices by claims: which a new pod would get is unknown.
    pub has_claims: bool,
    /// Whether each pod belongs to one node, and is lost with it.
    pub is_daemon: bool,
    /// Whether other pods decide where its pods can run: by required affinity between pods, hard
    /// spread constraints or host ports.
    pub has_neighbors: bool,
    /// Whether its pods have a directory of their node (hostPath): what is in it is on no other.
    pub has_host_path: bool,
    /// What keeps its pods off the nodes of others.
    pub apart: Apart,
}

impl PodGroup {
    /// Whether its pods request GPUs, or parts of them.
    pub fn has_gpus(&self) -> bool {
        let mut extended = self.pod.requests.extended.iter();
        extended.any(|(name, amount)| *amount > 0 && is_gpu_resource(name))
    }

    /// Whether its pods are yet to come.
    pub fn is_to_come(&self) -> bool {
        self.pods.iter().all(|(name, _)| name.is_empty())
    }
}

/// No resource is a device of its own here: GPUs are counted like any other.
pub fn rules() -> Rules {
    Rules { device_resource: String::new(), mixes_shared_gpus: true, ..Rules::default() }
}

impl PatchReach {
    pub(crate) fn take_nodes<'n>(
        &mut self,
        nodes: impl Iterator<Item = (&'n dovetail_objects::Node, NodeAvailability)>,
    ) {
        for (object, condition) in nodes {
            let mut node = node(object, &NodeSetting::default(), &rules());
            let is_shut = |taint: &Taint| {
                comes_and_goes(taint) && taint.effect != TaintEffect::PreferNoSchedule
            };
            let is_closed = node.unschedulable
                || condition != NodeAvailability::Ready
                || node.taints.iter().any(is_shut);
            node.taints.retain(|taint| !comes_and_goes(taint));
            (node.unschedulable, node.condition) = (false, NodeAvailability::Ready);
            self.places.insert(node.name.to_string(), self.nodes.len());
            self.platforms.add(&node);
            self.nodes.push(node);
            self.closed.push(is_closed);
        }
    }

    /// Takes pods of one template, of which `first` is one. `claimed`: where claims can be used.
    pub(crate) fn take_group(
        &mut self,
        workload: &Workload,
        first: &Pod,
        pods: &[&Pod],
        claimed: &ClaimedNodes,
    ) {
        let is_daemon = workload.belongs_to_nodes();
        let is_bound_by_name = workload.is_bound_by_name;
        let containers = workload.template.containers.iter();
        let confined = self.confined(workload, pods, claimed);
        let place = |pod: &Pod| self.places.get(&*pod.node).copied();
        let pods: Vec<(String, Option<usize>)> =
            pods.iter().map(|pod| (pod.meta.name.to_string(), place(pod))).collect();
        let mut pod = of_nodes_alone(first, is_daemon);
        match () {
            // The kubelet runs it whatever the taints are.
            () if workload.is_static() => pod.tolerations = [every_taint(None)].into(),
            () if is_bound_by_name => pass_scheduler(&mut pod),
            () => {}
        }
        if !is_daemon {
            let own = pods.iter().filter_map(|(_, node)| Some(&self.nodes[(*node)?]));
            self.platforms.keep(&mut pod, &own.collect::<Vec<_>>());
        }
        self.groups.push(PodGroup {
            owner: workload.owner.clone(),
            containers: containers.map(|container| container.name.clone()).collect(),
            pod,
            pods,
            confined,
            is_bound_by_name,
            has_claims: !workload.template.resource_claims.is_empty(),
            is_daemon,
            has_neighbors: has_neighbors(first),
            has_host_path: workload.template.has_host_path,
            apart: Apart::of(first),
        });
    }

    /// The places of nodes that offer GPUs, also if nobody can ask for one now.
    fn nodes_with_gpus(&self) -> Arc<BTreeSet<usize>> {
        let has_gpus =
            |node: &Node| node.allocatable.extended.keys().any(|name| is_gpu_resource(name));
        let places = self.nodes.iter().enumerate().filter(|(_, node)| has_gpus(node));
        Arc::new(places.map(|(place, _)| place).collect())
    }

    /// Of pods that some nodes alone can run, by number, the places of these nodes.
    fn confined(
        &self,
        workload: &Workload,
        pods: &[&Pod],
        claimed: &ClaimedNodes,
    ) -> BTreeMap<usize, Arc<BTreeSet<usize>>> {
        let is_bound_by_name = workload.is_bound_by_name;
        let with_gpus = workload.uses_unrequested_gpus().then(|| self.nodes_with_gpus());
        let mut confined = BTreeMap::new();
        let mut confinements = Confinements::new((&self.nodes[..], &self.places), claimed);
        for (number, pod) in pods.iter().enumerate() {
            let node = self.places.get(&*pod.node);
            let named = node.filter(|_| is_bound_by_name);
            let nodes = match named {
                Some(node) => Some(Arc::new(BTreeSet::from([*node]))),
                None => confinements.of(&pod.meta.namespace, pod),
            };
            let is_on_gpus =
                |nodes: &&Arc<BTreeSet<usize>>| node.is_some_and(|at| nodes.contains(at));
            let nodes = nodes.or_else(|| with_gpus.as_ref().filter(is_on_gpus).cloned());
            confined.extend(nodes.map(|nodes| (number, nodes)));
        }
        confined
    }

    /// Takes a template of an object that has no pods now and makes some later.
    pub(crate) fn take_pods_to_come(
        &mut self,
        owner: &ObjectRef,
        template: &Pod,
        claimed: &ClaimedNodes,
    ) {
        let is_daemon = owner.kind == "DaemonSet";
        let is_bound_by_name = !template.node.is_empty();
        let mut pod = of_nodes_alone(template, is_daemon);
        let nodes = if is_bound_by_name {
            pass_scheduler(&mut pod);
            let node = self.places.get(&*template.node).copied();
            Some(Arc::new(node.into_iter().collect()))
        } else {
            Confinements::new((&self.nodes[..], &self.places), claimed)
                .of(&owner.namespace, template)
        };
        self.groups.push(PodGroup {
            owner: owner.clone(),
            containers: Vec::new(),
            pod,
            pods: vec![(String::new(), None)],
            confined: nodes.map(|nodes| (0, nodes)).into_iter().collect(),
            is_bound_by_name,
            has_claims: template.has_resource_claims,
            is_daemon,
            has_neighbors: has_neighbors(template),
            // Pods to come have nothing there yet.
            has_host_path: false,
            apart: Apart::of(template),
        });
    }

    /// Takes what decides where volumes can be used.
    pub(crate) fn take_volumes<'o>(&mut self, objects: impl Iterator<Item = &'o Object>) {
        for object in objects {
            match object {
                Object::Claim(claim) => drop(self.volumes.set_claim((**claim).clone())),
                Object::PersistentVolume(volume) => {
                    drop(self.volumes.set_volume((**volume).clone()));
                }
                Object::StorageClass(class) => drop(self.volumes.set_class(class.clone())),
                _ => {}
            }
        }
    }
}

/// Such a toleration; without an effect, whatever the effect is.
fn every_taint(effect: Option<TaintEffect>) -> Toleration {
    Toleration { any_value: true, effect, ..Toleration::default() }
}

/// Lets a pod onto its node as the kubelet does, to which no taint matters that keeps the scheduler
/// away.
fn pass_scheduler(pod: &mut Pod) {
    let own = pod.tolerations.iter().cloned();
    pod.tolerations = own.chain([every_taint(Some(TaintEffect::NoSchedule))]).collect();
}

fn has_neighbors(pod: &Pod) -> bool {
    pod.between_pods.is_some() || !pod.spread.is_empty() || !pod.ports.is_empty()
}

/// A pod without what other pods decide, and without the node that a DaemonSet gave it: each of its
/// pods is asked about on its own node.
fn of_nodes_alone(pod: &Pod, is_daemon: bool) -> Pod {
    let mut pod = pod.clone();
    pod.between_pods = None;
    pod.spread = Box::default();
    pod.soft_spread = Box::default();
    pod.preferred_nodes = Box::default();
    pod.ports = Box::default();
    pod.has_resource_claims = false;
    pod.node = Box::default();
    if is_daemon && let Some(alternatives) = &mut pod.node_affinity {
        for terms in alternatives.iter_mut() {
            terms.retain(|term| term.key != dovetail_model::node::NAME_LABEL);
        }
        // An alternative without a term would be satisfied by no node.
        if alternatives.iter().any(Vec::is_empty) {
            pod.node_affinity = None;
        }
    }
    pod
}
