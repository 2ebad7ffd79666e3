//! Jobs and JobSets that are suspended in place of evicting their pods, and those that are to be
//! resumed.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_objects::{Kind, Meta, Pod, WorkloadKind, WorkloadObject, labels};
use dovetail_translate::gang::made_by;

use crate::world::key::PodKey;
use crate::world::objects::Objects;
use crate::world::objects::receipts::LastingOwner;

/// The value of the annotation `dovetail.dev/preemption` by which a Job or JobSet chooses to be
/// suspended.
const SUSPEND: &str = "suspend";

/// Questions about Jobs and JobSets that are suspended for others.
#[derive(Clone, Copy, Debug)]
pub struct SuspensionView<'w> {
    pub(crate) objects: &'w Objects,
}

/// A Job or JobSet that dovetail has suspended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuspendedJob {
    pub job: LastingOwner,
    /// The value of its annotation `dovetail.dev/suspended`: another suspension has another.
    pub mark: Box<str>,
}

impl<'w> SuspensionView<'w> {
    /// The Jobs and JobSets that may be suspended in place of evicting these pods, by pod. One may
    /// be if it has chosen so, nobody else manages it, all its pods are among these, and no
    /// disruption budget selects any of them: the Job controller, which then deletes them, asks no
    /// budget.
    pub fn in_place_of(self, victims: &[PodKey]) -> BTreeMap<PodKey, LastingOwner> {
        if self.objects.settings.never_suspends {
            return BTreeMap::new();
        }
        let leave: BTreeSet<&PodKey> = victims.iter().collect();
        let mut jobs: BTreeMap<&str, bool> = BTreeMap::new();
        let of_pod = |victim: &PodKey| {
            let slot = self.objects.pods.by_key(victim)?;
            let (kind, job) = self.outer_of(&self.objects.pods.get(slot).pod)?;
            let may_be = *jobs.entry(&*job.meta.uid).or_insert_with(|| {
                let all_leave = |pod: &Pod| leave.contains(&PodKey::of(pod));
                may_be_suspended(job)
                    && self
                        .pods_of(kind, &job.meta)
                        .all(|pod| all_leave(pod) && !self.has_budget(pod))
            });
            may_be.then(|| (victim.clone(), owner(kind, &job.meta)))
        };
        victims.iter().filter_map(of_pod).collect()
    }

    /// The Jobs and JobSets that dovetail has suspended and whose pods have terminated.
    pub fn ended(self) -> Vec<SuspendedJob> {
        let suspended = self.objects.descriptions.suspended_by_us();
        let ended =
            suspended.filter(move |(kind, job, _)| self.pods_of(*kind, &job.meta).next().is_none());
        let of = |(kind, job, mark): (_, &WorkloadObject, &str)| SuspendedJob {
            job: owner(kind, &job.meta),
            mark: mark.into(),
        };
        ended.map(of).collect()
    }

    /// The JobSet that controls the Job of a pod, else the Job.
    fn outer_of(self, pod: &Pod) -> Option<(WorkloadKind, &'w WorkloadObject)> {
        let job = self.job_of(pod)?;
        let Some((kind, name)) = made_by(pod).find(|(kind, _)| *kind == WorkloadKind::JobSet)
        else {
            return Some((WorkloadKind::Job, job));
        };
        let set = self.objects.descriptions.workload(kind, &pod.meta.namespace, name)?;
        (job.meta.controller.uid == set.meta.uid).then_some((kind, set))
    }

    /// The Job that controls a pod.
    fn job_of(self, pod: &Pod) -> Option<&'w WorkloadObject> {
        let (kind, name) = made_by(pod).find(|(kind, _)| *kind == WorkloadKind::Job)?;
        let job = self.objects.descriptions.workload(kind, &pod.meta.namespace, name)?;
        (job.meta.uid == pod.meta.controller.uid).then_some(job)
    }

    /// The pods of a Job or JobSet that have not terminated. Those of a JobSet name it: its Jobs
    /// control them.
    fn pods_of(self, kind: WorkloadKind, job: &'w Meta) -> impl Iterator<Item = &'w Pod> {
        let pods = &self.objects.pods;
        let there = pods.of_namespace(&job.namespace).map(move |slot| &*pods.get(slot).pod);
        let is_of = move |pod: &Pod| match kind {
            WorkloadKind::JobSet => made_by(pod).any(|made| made == (kind, &*job.name)),
            _ => pod.meta.controller.uid == job.uid,
        };
        there.filter(move |pod| is_of(pod) && !pod.is_over())
    }

    fn has_budget(self, pod: &Pod) -> bool {
        self.objects.budgets.selects(&pod.meta)
    }
}

/// Whether a Job or JobSet has chosen to be suspended, and nobody else decides about that: not the
/// object that controls it (a `JobSet`, a `CronJob`), and not Kueue.
fn may_be_suspended(job: &WorkloadObject) -> bool {
    let Meta { annotations, labels: marks, controller, .. } = &job.meta;
    annotations.get(labels::PREEMPTION) == Some(SUSPEND)
        && !job.suspended
        && !job.meta.is_deleting()
        && controller.uid.is_empty()
        && marks.get(labels::KUEUE_QUEUE).is_none()
}

fn owner(kind: WorkloadKind, job: &Meta) -> LastingOwner {
    LastingOwner {
        kind: Kind::Workload(kind),
        namespace: job.namespace.clone(),
        name: job.name.clone(),
        uid: job.uid.clone(),
    }
}
