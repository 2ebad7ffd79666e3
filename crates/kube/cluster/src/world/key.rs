//! What names a pod, or a claim, for as long as it exists, whatever the engine calls it.

use dovetail_objects::{Pod, VolumeClaim};

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

/// A claim by namespace, name and identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimKey {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// Identity: another claim of the same name has another.
    pub uid: Box<str>,
}

impl ClaimKey {
    pub(crate) fn of(claim: &VolumeClaim) -> Self {
        let meta = &claim.meta;
        let (namespace, name, uid) = (meta.namespace.clone(), meta.name.clone(), meta.uid.clone());
        Self { namespace, name, uid }
    }
}
