//! Nodes that reach what was allocated to claims, be it GPUs, network devices or storage: no other
//! node can run a pod with such a claim.

use std::collections::BTreeMap;

use dovetail_model::SelectorTerm;
use dovetail_objects::Pod;

use super::{DeviceObjects, Key};

/// Alternatives of terms that nodes satisfy.
pub(crate) type NodeTerms = Vec<Vec<SelectorTerm>>;

/// Claims with devices that only some nodes reach, with what these satisfy.
#[derive(Default)]
pub(crate) struct ClaimedNodes {
    by_claim: BTreeMap<Key, NodeTerms>,
    /// By pod for which the claim is reserved: a pod does not name the claim by which it has
    /// extended resources.
    by_pod: BTreeMap<Key, Vec<NodeTerms>>,
}

impl ClaimedNodes {
    /// The claims among these objects that only some nodes can use.
    pub(in crate::facts) fn of(objects: &DeviceObjects) -> Self {
        let mut found = Self::default();
        for (key, claim) in &objects.claims {
            let Some(nodes) = &claim.nodes else { continue };
            found.by_claim.insert(key.clone(), nodes.clone());
            for pod in &claim.pods {
                let pods = found.by_pod.entry((key.0.clone(), pod.clone())).or_default();
                pods.push(nodes.clone());
            }
        }
        found
    }

    /// For each such claim of a pod in a namespace, what a node satisfies that can use it. A claim
    /// may come twice.
    pub(crate) fn of_pod(&self, namespace: &str, pod: &Pod) -> Vec<&NodeTerms> {
        if self.by_claim.is_empty() {
            return Vec::new();
        }
        let key = |name: &str| -> Key { (namespace.into(), name.into()) };
        let named = pod.device_claims.iter().filter_map(|of| of.claim.as_deref());
        let named = named.filter_map(|claim| self.by_claim.get(&key(claim)));
        let reserved = self.by_pod.get(&key(&pod.meta.name)).into_iter().flatten();
        named.chain(reserved).collect()
    }
}
