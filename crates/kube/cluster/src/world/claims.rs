//! Claims that get their volumes once the nodes of their pods are decided.

use std::sync::Arc;

use dovetail_model::{ConditionCause, JobId, PodId, Requirement};
use dovetail_objects::{PodVolume, VolumeClaim};

use super::World;
use super::pods::Slot;
use super::report::Report;

/// How long the volumes of a pod's claims are waited for once its node is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumePatience {
    /// Then the decision is undone, in milliseconds.
    pub wait_ms: u64,
}

impl Default for VolumePatience {
    /// As long as kube-scheduler waits (`bindTimeoutSeconds`).
    fn default() -> Self {
        Self { wait_ms: 600_000 }
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
    fn of(claim: &VolumeClaim) -> Self {
        let meta = &claim.meta;
        let (namespace, name, uid) = (meta.namespace.clone(), meta.name.clone(), meta.uid.clone());
        Self { namespace, name, uid }
    }
}

impl World {
    /// The claims of a pod that are there and have no volume.
    pub fn claims_without_volume(&self, pod: PodId) -> Vec<ClaimKey> {
        let Some(pod) = self.pod_of(pod) else { return Vec::new() };
        let named = pod.volumes.iter().filter_map(|volume| match volume {
            PodVolume::Claim(name) | PodVolume::Ephemeral(name) => Some(name),
            PodVolume::Disk(_) => None,
        });
        let claims = named.filter_map(|name| self.facts.claim(&pod.meta.namespace, name));
        claims.filter(|claim| !claim.is_bound()).map(ClaimKey::of).collect()
    }

    /// A claim, if it is still there.
    pub fn claim(&self, key: &ClaimKey) -> Option<&VolumeClaim> {
        let claim = self.facts.claim(&key.namespace, &key.name)?;
        (claim.meta.uid == key.uid).then_some(claim)
    }

    /// Whether a claim has a volume, and the volume is known.
    pub fn has_volume(&self, claim: &VolumeClaim) -> bool {
        claim.is_bound() && self.facts.volume(&claim.volume).is_some()
    }

    /// What makes the volumes of a claim; empty if that is not known.
    pub fn provisioner(&self, claim: &VolumeClaim) -> &str {
        self.facts.class(&claim.class).map_or("", |class| &class.provisioner)
    }

    /// What the volumes of a pod that are there ask of its node, and nothing else; `None` if it is
    /// gone or cannot be placed as it is.
    pub fn asked_by_volumes(&self, pod: PodId) -> Option<Arc<Requirement>> {
        let slot = *self.ids.get(&pod)?;
        let all = self.requirement(&self.pods.get(slot).pod).ok()?;
        let mut node_conditions = all.node_conditions;
        node_conditions.retain(|condition| is_of_volumes_there(condition.cause));
        let tolerations = all.tolerations;
        Some(Arc::new(Requirement { node_conditions, tolerations, ..Requirement::default() }))
    }

    /// A node is decided for a pod, and it waits for volumes there: for those of its own `claims`,
    /// or, if it has none without, for those `of_all` that start with it.
    pub fn waits_for_volumes(&mut self, pod: PodId, claims: &[ClaimKey], of_all: &[ClaimKey]) {
        let Some(slot) = self.ids.get(&pod).copied() else { return };
        let entry = self.pods.get_mut(slot);
        let Some(node) = entry.assumed.as_deref().map(str::to_owned) else { return };
        entry.waits_for_volumes = true;
        let meta = &entry.pod.meta;
        let [namespace, name, uid] =
            [&meta.namespace, &meta.name, &meta.uid].map(ToString::to_string);
        self.reports.push(match claims.is_empty() {
            false => {
                Report::WaitsForVolumes { namespace, name, uid, claims: names_of(claims), node }
            }
            true => {
                let claims = names_of(of_all);
                Report::WaitsForVolumesOfOthers { namespace, name, uid, claims, node }
            }
        });
    }

    /// Nodes are decided for the pods of a job, and some of its claims get their volumes before
    /// they start.
    pub fn group_waits_for_volumes(&mut self, job: JobId, claims: &[ClaimKey]) {
        let Some(meta) = self.group_of_job(job).map(|group| &group.meta) else { return };
        let (namespace, name) = (meta.namespace.to_string(), meta.name.to_string());
        let claims = names_of(claims);
        self.reports.push(Report::GroupWaitsForVolumes { namespace, name, claims });
    }

    /// A pod waits for no volumes any more.
    pub fn has_its_volumes(&mut self, pod: PodId) {
        if let Some(slot) = self.ids.get(&pod).copied() {
            self.pods.get_mut(slot).waits_for_volumes = false;
        }
    }

    /// Whether a pod without a node says why: none is decided for it, or it waits for volumes
    /// there.
    pub(super) fn says_why_it_waits(&self, slot: Slot) -> bool {
        let entry = self.pods.get(slot);
        let pod = &entry.pod;
        let is_open = pod.node.is_empty() && !pod.meta.is_deleting() && !pod.is_over();
        entry.waits() || (is_open && entry.waits_for_volumes && entry.assumed.is_some())
    }
}

fn names_of(claims: &[ClaimKey]) -> Vec<String> {
    claims.iter().map(|claim| claim.name.to_string()).collect()
}

/// Whether a condition is one of volumes that are there: they alone may contradict a decision for
/// which volumes are made. What a storage class says of volumes to be made, such as its capacity,
/// changes while they are, and is left out here on purpose; where a pod is to do without its
/// volumes (`gangs/lost.rs`) all that they ask for is meant.
fn is_of_volumes_there(cause: ConditionCause) -> bool {
    matches!(cause, ConditionCause::VolumeNodeAffinity | ConditionCause::VolumeZone)
}
