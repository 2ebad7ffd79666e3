//! Claims that get their volumes once the nodes of their pods are decided.

use std::sync::Arc;

use dovetail_model::{ConditionCause, PodId, Requirement};
use dovetail_objects::{PodVolume, VolumeClaim};

use crate::world::key::ClaimKey;
use crate::world::objects::Objects;
use crate::world::readings::standing::requirement;

/// Questions about claims and their volumes.
#[derive(Clone, Copy, Debug)]
pub struct VolumeView<'w> {
    pub(crate) objects: &'w Objects,
}

impl<'w> VolumeView<'w> {
    /// The claims of a pod that are there and have no volume.
    pub fn claims_without_volume(self, pod: PodId) -> Vec<ClaimKey> {
        let Objects { pods, facts, .. } = self.objects;
        let Some(slot) = pods.by_id(pod) else { return Vec::new() };
        let pod = &pods.get(slot).pod;
        let named = pod.volumes.iter().filter_map(|volume| match volume {
            PodVolume::Claim(name) | PodVolume::Ephemeral(name) => Some(name),
            PodVolume::Disk(_) => None,
        });
        let claims = named.filter_map(|name| facts.claim(&pod.meta.namespace, name));
        claims.filter(|claim| !claim.is_bound()).map(ClaimKey::of).collect()
    }

    /// A claim, if it is still there.
    pub fn claim(self, key: &ClaimKey) -> Option<&'w VolumeClaim> {
        let claim = self.objects.facts.claim(&key.namespace, &key.name)?;
        (claim.meta.uid == key.uid).then_some(claim)
    }

    /// Whether a claim has a volume, and the volume is known.
    pub fn has_volume(self, claim: &VolumeClaim) -> bool {
        claim.is_bound() && self.objects.facts.volume(&claim.volume).is_some()
    }

    /// What makes the volumes of a claim; empty if that is not known.
    pub fn provisioner(self, claim: &VolumeClaim) -> &'w str {
        self.objects.facts.class(&claim.class).map_or("", |class| &class.provisioner)
    }

    /// What the volumes of a pod that are there ask of its node, and nothing else; `None` if it is
    /// gone or cannot be placed as it is.
    pub fn asked_by_volumes(self, pod: PodId) -> Option<Arc<Requirement>> {
        let slot = self.objects.pods.by_id(pod)?;
        let all = requirement(self.objects, slot).ok()?;
        let mut node_conditions = all.node_conditions;
        node_conditions.retain(|condition| is_of_volumes_there(condition.cause));
        let tolerations = all.tolerations;
        Some(Arc::new(Requirement { node_conditions, tolerations, ..Requirement::default() }))
    }
}

/// Whether a condition is one of volumes that are there: they alone may contradict a decision for
/// which volumes are made. What a storage class says of volumes to be made, such as its capacity,
/// changes while they are, and is left out here on purpose; where a pod is to do without its
/// volumes (`gangs/lost.rs`) all that they ask for is meant.
fn is_of_volumes_there(cause: ConditionCause) -> bool {
    matches!(cause, ConditionCause::VolumeNodeAffinity | ConditionCause::VolumeZone)
}
