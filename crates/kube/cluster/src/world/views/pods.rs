//! Pods, as the scheduler and people ask about them.

use dovetail_model::{JobId, NodeName, PodId};
use dovetail_objects::Pod;

use crate::world::key::PodKey;
use crate::world::objects::Objects;
use crate::world::objects::decisions::DecisionStage;
use crate::world::objects::pods::PodEntry;
use dovetail_translate::NotYet;
use dovetail_translate::gang::GangName;

/// Questions about pods.
#[derive(Clone, Copy, Debug)]
pub struct PodView<'w> {
    pub(crate) objects: &'w Objects,
}

impl<'w> PodView<'w> {
    fn entry(self, namespace: &str, name: &str) -> Option<&'w PodEntry> {
        let pods = &self.objects.pods;
        Some(pods.get(pods.find(namespace, name)?))
    }

    fn by_id(self, pod: PodId) -> Option<&'w PodEntry> {
        let pods = &self.objects.pods;
        Some(pods.get(pods.by_id(pod)?))
    }

    fn by_key(self, pod: &PodKey) -> Option<&'w PodEntry> {
        let pods = &self.objects.pods;
        Some(pods.get(pods.by_key(pod)?))
    }

    fn of_job(self, job: JobId) -> impl Iterator<Item = &'w PodEntry> + use<'w> {
        let pods = &self.objects.pods;
        pods.of_job(job).map(|slot| pods.get(slot))
    }

    /// A pod, whatever became of it.
    pub fn pod(self, namespace: &str, name: &str) -> Option<&'w Pod> {
        Some(&self.entry(namespace, name)?.pod)
    }

    /// Whether the pod is still there.
    pub fn has(self, key: &PodKey) -> bool {
        self.by_key(key).is_some()
    }

    /// The name of a pod in the engine, if it has one.
    pub fn id_of(self, pod: &PodKey) -> Option<PodId> {
        self.by_key(pod)?.id
    }

    /// A pod that the engine knows, to be bound: its namespace, name and identity.
    pub fn pod_of(self, pod: PodId) -> Option<&'w Pod> {
        Some(&self.by_id(pod)?.pod)
    }

    /// All pods that the engine knows as pods of a job.
    pub fn pods_of(self, job: JobId) -> impl Iterator<Item = &'w Pod> + use<'w> {
        self.of_job(job).map(|entry| &*entry.pod)
    }

    /// The job of a pod that waits or runs, if the engine places it.
    pub fn job_of(self, namespace: &str, name: &str) -> Option<JobId> {
        Some(self.entry(namespace, name)?.id?.job)
    }

    /// The gang that a pod belongs to.
    pub fn gang_of(self, namespace: &str, name: &str) -> Option<&'w GangName> {
        self.entry(namespace, name)?.gang.as_deref()
    }

    /// Where a pod is assumed to run: decided, and not seen on the watch yet.
    pub fn assumed_on(self, pod: PodId) -> Option<&'w NodeName> {
        let decision = self.objects.pods.decision_of(self.by_id(pod)?)?;
        Some(&decision.bind.node)
    }

    /// Pods of ours that are left untouched, and why, by namespace and name.
    pub fn refused(self) -> impl Iterator<Item = (&'w Pod, &'w NotYet)> + use<'w> {
        let all = self.objects.pods.entries();
        all.filter_map(|entry| Some((&*entry.pod, entry.refused.as_ref()?)))
    }

    /// Why a pod of ours is left untouched, if it is.
    pub fn left_untouched(self, namespace: &str, name: &str) -> Option<&'w NotYet> {
        self.entry(namespace, name)?.refused.as_ref()
    }

    /// The pods of a job that have no node, and for which none is decided.
    pub fn pending_pods(self, job: JobId) -> Vec<&'w Pod> {
        self.of_job(job).filter(|entry| entry.waits()).map(|entry| &*entry.pod).collect()
    }

    /// A pod that has no node, and for which none is decided, or that waits for volumes there.
    pub fn pending_pod(self, namespace: &str, name: &str) -> Option<&'w Pod> {
        let entry = self.entry(namespace, name)?;
        let pod = &entry.pod;
        let is_open = pod.node.is_empty() && !pod.meta.is_deleting() && !pod.is_over();
        let decision = self.objects.pods.decision_of(entry);
        let waits_there = is_open
            && decision.is_some_and(|decision| decision.stage == DecisionStage::Provisioning);
        (entry.waits() || waits_there).then_some(&**pod)
    }

    /// Whether a pod was reported to the engine as pending, and is not decided.
    pub fn is_submitted(self, namespace: &str, name: &str) -> bool {
        self.entry(namespace, name).is_some_and(|entry| entry.reported.waits())
    }

    /// Pods of ours that have no node, and for which one is decided.
    pub fn pods_to_start(self) -> impl Iterator<Item = &'w Pod> + use<'w> {
        let all = self.objects.pods.entries();
        let decided = all.filter(|entry| entry.is_decided() && entry.pod.node.is_empty());
        decided.map(|entry| &*entry.pod)
    }
}
