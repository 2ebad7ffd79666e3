//! What names a pod, or a claim, for as long as it exists, whatever the engine calls it.

use std::fmt;

use dovetail_objects::{Meta, Pod, VolumeClaim};

/// A pod by namespace, name and identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    pub namespace: Box<str>,
    pub name: Box<str>,
    /// Identity: another pod of the same name has another.
    pub uid: Box<str>,
}

impl PodKey {
    /// Names a pod.
    pub fn of(pod: &Pod) -> Self {
        Self::of_meta(&pod.meta)
    }

    /// Names a pod, or another object of a namespace that events are about.
    pub fn of_meta(meta: &Meta) -> Self {
        let (namespace, name, uid) = (meta.namespace.clone(), meta.name.clone(), meta.uid.clone());
        Self { namespace, name, uid }
    }
}

/// As people name it.
impl fmt::Display for PodKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// A claim by namespace, name and identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimKey {
    pub namespace: Box<str>,
    pub name: Box<str>,
    /// Identity: another claim of the same name has another.
    pub uid: Box<str>,
}

impl ClaimKey {
    pub(crate) fn of(claim: &VolumeClaim) -> Self {
        Self::of_meta(&claim.meta)
    }

    /// Names a claim of devices.
    pub(crate) fn of_meta(meta: &Meta) -> Self {
        let (namespace, name, uid) = (meta.namespace.clone(), meta.name.clone(), meta.uid.clone());
        Self { namespace, name, uid }
    }
}
