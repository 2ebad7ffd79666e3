//! What names a pod for as long as it exists, whatever the engine calls it.

use dovetail_objects::Pod;

use super::World;
use super::pods::Slot;

/// A pod by namespace, name and identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// Identity: another pod of the same name has another.
    pub uid: Box<str>,
}

impl PodKey {
    /// Names a pod.
    pub fn of(pod: &Pod) -> Self {
        let meta = &pod.meta;
        let (namespace, name, uid) = (meta.namespace.clone(), meta.name.clone(), meta.uid.clone());
        Self { namespace, name, uid }
    }
}

impl World {
    /// Whether the pod is still there.
    pub fn has(&self, key: &PodKey) -> bool {
        self.find(key).is_some()
    }

    /// The pod, if it is still there.
    pub(super) fn find(&self, key: &PodKey) -> Option<Slot> {
        let slot = self.pods.find(&key.namespace, &key.name)?;
        (self.pods.get(slot).pod.meta.uid == key.uid).then_some(slot)
    }
}
