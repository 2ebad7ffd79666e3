//! Pods that request extended resources which devices may serve.

use std::collections::BTreeMap;

use dovetail_objects::{Pod, labels};

use super::pods::Slot;

/// Pods by what they request of extended resources.
#[derive(Debug, Default)]
pub(crate) struct ExtendedPods {
    /// Those without a node, by identity.
    unplaced: BTreeMap<Box<str>, Slot>,
    /// Resources that stand for a device class, with the number of pods that ask for each.
    by_class: BTreeMap<Box<str>, usize>,
    /// Whether the first pod that asks for one of them came.
    is_newly_asked: bool,
}

impl ExtendedPods {
    /// Those without a node.
    pub(crate) fn unplaced(&self) -> impl Iterator<Item = Slot> {
        self.unplaced.values().copied()
    }

    /// The one of these of an identity.
    pub(crate) fn unplaced_of(&self, uid: &str) -> Option<Slot> {
        self.unplaced.get(uid).copied()
    }

    /// Resources that stand for a device class, and that pods ask for.
    pub(crate) fn resources_by_class(&self) -> impl Iterator<Item = &str> {
        self.by_class.keys().map(|name| &**name)
    }

    /// Whether a pod came that asks for a resource which stands for a device class, and that no
    /// other one asked for.
    pub(crate) fn take_newly_asked(&mut self) -> bool {
        std::mem::take(&mut self.is_newly_asked)
    }

    /// Adds a pod, or takes it out.
    pub(super) fn index(&mut self, slot: Slot, pod: &Pod, there: bool) {
        let Self { unplaced, by_class, is_newly_asked } = self;
        if !pod.extended.is_empty() {
            match there {
                true => _ = unplaced.insert(pod.meta.uid.clone(), slot),
                false => _ = unplaced.remove(&pod.meta.uid),
            }
        }
        let asked = pod.requests.extended.keys();
        for resource in asked.filter(|name| name.starts_with(labels::DEVICE_CLASS_RESOURCE)) {
            let count = by_class.entry(resource.as_str().into()).or_default();
            match there {
                true => *count += 1,
                false => *count -= 1,
            }
            *is_newly_asked |= there && *count == 1;
        }
        by_class.retain(|_, count| *count > 0);
    }
}
