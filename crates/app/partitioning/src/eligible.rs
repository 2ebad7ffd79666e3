//! Which nodes a pending pod may go to, whatever instances they have.

use std::collections::BTreeMap;

use dovetail_model::{Node as ModelNode, Requirement, Resources, TaintEffect};
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
        pods.iter().for_each(|pod| free.add_times(pod.holds(), -1));
        Self { node, free }
    }

    /// What pods there do not hold of its CPU, memory, disk and pod slots.
    pub(crate) fn free(&self) -> [i64; 4] {
        amounts(&self.free)
    }

    /// A pod with these needs goes there.
    pub(crate) fn take(&mut self, needs: &Requirement) {
        self.free.add_times(&needs.resources, -1);
    }

    /// Whether a pod with these needs may go there: labels, taints, and CPU, memory and disk for it
    /// alone. GPUs and their parts are left to the plan.
    pub(crate) fn takes(&self, needs: &Requirement) -> bool {
        let tolerates = |taint: &dovetail_model::Taint| {
            taint.effect == TaintEffect::PreferNoSchedule
                || needs.tolerations.iter().any(|toleration| toleration.accepts(taint))
        };
        let asked = &needs.resources;
        !self.node.unschedulable
            && needs.node_conditions.iter().all(|condition| condition.accepts(&self.node))
            && self.node.taints.iter().all(tolerates)
            && asked.cpu_milli <= self.free.cpu_milli
            && asked.memory_bytes <= self.free.memory_bytes
            && asked.ephemeral_bytes <= self.free.ephemeral_bytes
            && asked.pod_slots <= self.free.pod_slots
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
