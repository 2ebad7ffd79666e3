//! Which nodes a pending pod may go to, whatever instances they have.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::labels::NVIDIA_MIG;
use dovetail_model::{Node as ModelNode, Requirement, Resources, TaintEffect, is_gpu_resource};
use dovetail_objects::Pod;
use dovetail_translate::{NodeSetting, Rules, node as translated, pod as needs};

use crate::objects::{Objects, SeenNode};
use crate::waiting::amounts;

/// A node that pods may go to, with what they hold there.
#[derive(Clone)]
pub(crate) struct Target {
    node: ModelNode,
    free: Resources,
}

impl Target {
    pub(crate) fn of(seen: &SeenNode, name: &str, objects: &Objects, pods: &[&Pod]) -> Self {
        let setting = NodeSetting { csi: objects.csi.get(name), ..NodeSetting::default() };
        let node = translated(&seen.node, &setting, &Rules::default());
        let mut free = node.allocatable.clone();
        // With whole GPUs, which are devices of the translated node.
        free.extended = seen.node.allocatable.extended.clone();
        pods.iter().for_each(|pod| free.add_times(pod.holds(), -1));
        Self { node, free }
    }

    /// The same once a taint of this key is removed.
    pub(crate) fn without_taint(mut self, key: &str) -> Self {
        self.node.taints.retain(|taint| taint.key != key);
        self
    }

    /// What pods there do not hold of its CPU, memory, disk and pod slots, and of these resources.
    pub(crate) fn free(&self, beside: &BTreeSet<&str>) -> Vec<i64> {
        amounts_with(&self.free, &self.free, beside)
    }

    /// A pod with these needs goes there.
    pub(crate) fn take(&mut self, needs: &Requirement) {
        self.free.add_times(&needs.resources, -1);
    }

    /// Whether a pod with these needs may go there: labels, taints, and CPU, memory, disk and
    /// devices other than GPUs for it alone. GPUs and their parts are left to the plan.
    pub(crate) fn takes(&self, needs: &Requirement) -> bool {
        let tolerates = |taint: &dovetail_model::Taint| {
            taint.effect == TaintEffect::PreferNoSchedule
                || needs.tolerations.iter().any(|toleration| toleration.accepts(taint))
        };
        let asked = &needs.resources;
        let has = |(name, count): (&String, &i64)| {
            *count <= 0
                || is_gpu_resource(name)
                || self.free.extended.get(name).is_some_and(|free| free >= count)
        };
        !self.node.unschedulable
            && needs.node_conditions.iter().all(|condition| condition.accepts(&self.node))
            && self.node.taints.iter().all(tolerates)
            && asked.cpu_milli <= self.free.cpu_milli
            && asked.memory_bytes <= self.free.memory_bytes
            && asked.ephemeral_bytes <= self.free.ephemeral_bytes
            && asked.pod_slots <= self.free.pod_slots
            && asked.extended.iter().all(has)
    }
}

/// The pods that hold something, by node.
pub(crate) fn holders(objects: &Objects) -> BTreeMap<&str, Vec<&Pod>> {
    use dovetail_objects::PodPhase::{Failed, Succeeded};
    let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in objects.pods.values() {
        if !pod.node.is_empty() && !matches!(pod.phase, Succeeded | Failed) {
            by_node.entry(&pod.node).or_default().push(pod);
        }
    }
    by_node
}

/// What a pending pod needs, or why that is not known.
pub(crate) fn requirement(pod: &Pod, objects: &Objects) -> Result<Requirement, String> {
    needs(pod, &objects.facts, &Rules::default()).map_err(|reason| reason.to_string())
}

/// Whether a resource is MIG instances of a profile.
pub(crate) fn is_mig(resource: &str) -> bool {
    resource.starts_with(NVIDIA_MIG)
}

/// The extended resources that pods request beside MIG instances: a pod starts only where it gets
/// these, too.
pub(crate) fn beside_instances<'o>(pods: impl Iterator<Item = &'o Pod>) -> BTreeSet<&'o str> {
    let with_instances = pods.filter(|pod| pod.requests.extended.keys().any(|name| is_mig(name)));
    let asked = with_instances.flat_map(|pod| pod.requests.extended.iter());
    let others = asked.filter(|(name, count)| !is_mig(name) && **count > 0);
    others.map(|(name, _)| name.as_str()).collect()
}

/// CPU, memory, disk and pod slots that a pod with these needs takes, and these resources.
pub(crate) fn each(pod: &Pod, needs: &Requirement, beside: &BTreeSet<&str>) -> Vec<i64> {
    amounts_with(&needs.resources, &pod.requests, beside)
}

fn amounts_with(of: &Resources, extended: &Resources, beside: &BTreeSet<&str>) -> Vec<i64> {
    let count = |name: &&str| extended.extended.get(*name).copied().unwrap_or(0);
    amounts(of).into_iter().chain(beside.iter().map(count)).collect()
}

/// Whether a pod that needs so much fits into what is free.
pub(crate) fn fits(each: &[i64], free: &[i64]) -> bool {
    each.iter().zip(free).all(|(each, free)| *each <= 0 || each <= free)
}
