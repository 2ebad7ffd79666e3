//! Pods without a node that have claims of devices.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_objects::Pod;

use super::pods::{Slot, leave};

/// Pods without a node by the claims that they use.
#[derive(Debug, Default)]
pub(crate) struct Claimants {
    /// All of them, also those whose claims are yet to be made.
    unplaced: BTreeSet<Slot>,
    /// By namespace and name of the claim.
    by_claim: BTreeMap<(Box<str>, Box<str>), BTreeSet<Slot>>,
}

impl Claimants {
    pub(crate) fn all(&self) -> impl Iterator<Item = Slot> {
        self.unplaced.iter().copied()
    }

    /// Those that use this claim.
    pub(crate) fn of(&self, namespace: &str, claim: &str) -> impl Iterator<Item = Slot> {
        let key = (namespace.into(), claim.into());
        self.by_claim.get(&key).into_iter().flatten().copied()
    }

    /// Adds a pod, or takes it out.
    pub(super) fn index(&mut self, slot: Slot, pod: &Pod, there: bool) {
        if !pod.has_resource_claims || !pod.node.is_empty() {
            return;
        }
        match there {
            true => _ = self.unplaced.insert(slot),
            false => _ = self.unplaced.remove(&slot),
        }
        for claim in pod.device_claims.iter().filter_map(|named| named.claim.as_deref()) {
            let key = (pod.meta.namespace.clone(), claim.into());
            match there {
                true => _ = self.by_claim.entry(key).or_default().insert(slot),
                false => leave(&mut self.by_claim, &key, slot),
            }
        }
    }
}
