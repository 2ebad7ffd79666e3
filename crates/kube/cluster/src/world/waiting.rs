//! Pods that wait, as what is announced about them needs them.

use dovetail_model::{JobId, NodeName};
use dovetail_objects::Pod;

use super::World;
use super::standing::Told;
use crate::translate::{NotYet, Rules};

impl World {
    /// The pods of a job that have no node, and for which none is decided.
    pub fn waiting_pods(&self, job: JobId) -> Vec<&Pod> {
        let entries = self.slots_of(job).map(|slot| self.pods.get(slot));
        entries.filter(|entry| entry.waits()).map(|entry| &*entry.pod).collect()
    }

    /// A pod that has no node, and for which none is decided, or that waits for volumes there.
    pub fn waiting_pod(&self, namespace: &str, name: &str) -> Option<&Pod> {
        let slot = self.pods.find(namespace, name)?;
        self.says_why_it_waits(slot).then(|| &*self.pods.get(slot).pod)
    }

    /// A pod, whatever became of it.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<&Pod> {
        Some(&self.pods.get(self.pods.find(namespace, name)?).pod)
    }

    /// Whether the engine was told that a pod waits, and has not decided about it.
    pub fn is_asked_about(&self, namespace: &str, name: &str) -> bool {
        let slot = self.pods.find(namespace, name);
        slot.is_some_and(|slot| {
            matches!(self.pods.get(slot).told, Told::Waiting { .. } | Told::Member { .. })
        })
    }

    /// Pods of ours that have no node, and for which one is decided.
    pub fn pods_to_start(&self) -> impl Iterator<Item = &Pod> {
        let all = self.pods.in_order().map(|slot| self.pods.get(slot));
        let decided = all.filter(|entry| entry.assumed.is_some() && entry.pod.node.is_empty());
        decided.map(|entry| &*entry.pod)
    }

    /// Why a pod of ours is left untouched, if it is.
    pub fn left_untouched(&self, namespace: &str, name: &str) -> Option<&NotYet> {
        self.pods.get(self.pods.find(namespace, name)?).refused.as_ref()
    }

    /// Model of a node's GPUs; empty if it has none, or if it does not say.
    pub fn gpu_model(&self, node: &str) -> &str {
        self.nodes.device_model(node)
    }

    /// Names of the nodes that the engine knows.
    pub fn node_names(&self) -> Vec<NodeName> {
        self.nodes.told().map(|node| node.name.clone()).collect()
    }

    /// How objects are translated.
    pub fn rules(&self) -> &Rules {
        &self.settings.rules
    }
}
