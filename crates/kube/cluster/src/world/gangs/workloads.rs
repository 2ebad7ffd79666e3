//! The workloads, and which gangs each of them describes.

use std::sync::Arc;

use dovetail_objects::{Pod, Workload, WorkloadKind};

use super::Gangs;
use crate::translate::NotYet;
use crate::translate::gang::{GangName, JOB_NAME, Source, TERMS_OF_GANGS, check_apart, made_by};
use crate::world::World;
use crate::world::listing::Key;
use crate::world::pods::Slot;

impl Gangs {
    /// A workload.
    pub(in crate::world) fn workload(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Option<&Workload> {
        self.workloads.get(&kind)?.get(namespace)?.get(name)
    }

    /// Namespaces and names of all workloads of a kind.
    pub(in crate::world) fn workload_names(
        &self,
        kind: WorkloadKind,
    ) -> impl Iterator<Item = Key> + '_ {
        let of_kind = self.workloads.get(&kind).into_iter().flatten();
        of_kind.flat_map(|(namespace, all)| {
            all.keys().map(move |name| (namespace.clone(), name.clone()))
        })
    }

    /// The workload whose pods a gang has.
    pub(super) fn workload_of(&self, gang: &GangName) -> Option<&Workload> {
        match gang.source {
            Source::Workload(kind) => self.workload(kind, &gang.namespace, &gang.name),
            _ => None,
        }
    }
}

impl World {
    /// A workload is there or different.
    pub(in crate::world) fn put_workload(&mut self, kind: WorkloadKind, workload: Workload) {
        let (namespace, name) = (workload.meta.namespace.clone(), workload.meta.name.clone());
        self.mark_gangs_of(kind, &namespace, &name);
        let before = self.gangs.workload(kind, &namespace, &name);
        let turned = before.is_some_and(|before| before.suspended) != workload.suspended;
        if said_of_apart(before) != said_of_apart(Some(&workload)) {
            self.mark_apart(kind, &namespace, &name);
        }
        if turned {
            self.mark_made_by(kind, &namespace, &name);
        }
        let of_kind = self.gangs.workloads.entry(kind).or_default();
        of_kind.entry(namespace).or_default().insert(name, workload);
    }

    /// A workload is gone.
    pub(in crate::world) fn remove_workload(
        &mut self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) {
        self.mark_gangs_of(kind, namespace, name);
        let before = self.gangs.workload(kind, namespace, name);
        let was_suspended = before.is_some_and(|before| before.suspended);
        if said_of_apart(before).is_some() {
            self.mark_apart(kind, namespace, name);
        }
        if was_suspended {
            self.mark_made_by(kind, namespace, name);
        }
        let Some(of_kind) = self.gangs.workloads.get_mut(&kind) else { return };
        let Some(of_namespace) = of_kind.get_mut(namespace) else { return };
        of_namespace.remove(name);
        if of_namespace.is_empty() {
            of_kind.remove(namespace);
        }
    }

    /// That a pod in no gang is of no Job which says how many of its pods start together.
    pub(in crate::world) fn may_start_alone(&self, slot: Slot) -> Result<(), NotYet> {
        let entry = self.pods.get(slot);
        let (kind, pod) = (WorkloadKind::Job, &entry.pod);
        let Some(name) = job_of(pod).filter(|_| entry.gang.is_none()) else { return Ok(()) };
        match self.gangs.workload(kind, &pod.meta.namespace, name) {
            Some(job) => check_apart(kind, job),
            None => Ok(()),
        }
    }

    /// That no workload which made a pod is suspended: its owner, or a queueing system, holds it
    /// back.
    pub(in crate::world) fn is_resumed(&self, pod: &Pod) -> Result<(), NotYet> {
        let namespace = &pod.meta.namespace;
        let suspended = |(kind, name): &(WorkloadKind, &str)| {
            self.gangs.workload(*kind, namespace, name).is_some_and(|workload| workload.suspended)
        };
        match made_by(pod).find(suspended) {
            None => Ok(()),
            Some((kind, name)) => {
                let workload = format!("{} {namespace}/{name}", kind.noun());
                Err(NotYet::WorkloadSuspended { workload })
            }
        }
    }

    /// Pods of any gang or none stand differently when the workload that made them is suspended or
    /// resumed.
    fn mark_made_by(&mut self, kind: WorkloadKind, namespace: &str, name: &str) {
        let is_of_it = |slot: &Slot| {
            made_by(&self.pods.get(*slot).pod).any(|workload| workload == (kind, name))
        };
        let slots: Vec<Slot> = self.pods.of_namespace(namespace).filter(is_of_it).collect();
        self.dirty.pods.extend(slots);
    }

    /// What a Job says may concern pods that are in no gang of it.
    fn mark_apart(&mut self, kind: WorkloadKind, namespace: &str, name: &str) {
        if kind != WorkloadKind::Job {
            return;
        }
        let of_job = |slot: &Slot| job_of(&self.pods.get(*slot).pod) == Some(name);
        let slots: Vec<Slot> = self.pods.of_namespace(namespace).filter(of_job).collect();
        self.dirty.pods.extend(slots);
    }

    fn mark_gangs_of(&mut self, kind: WorkloadKind, namespace: &str, name: &str) {
        let first = GangName {
            namespace: namespace.into(),
            source: Source::Workload(kind),
            name: name.into(),
            part: Box::default(),
        };
        let is_of_it = |gang: &GangName| {
            (&gang.namespace, gang.source, &gang.name)
                == (&first.namespace, first.source, &first.name)
        };
        let gangs = self.gangs.by_name.range::<GangName, _>(&first..);
        let gangs = gangs.map(|(gang, _)| gang).take_while(|gang| is_of_it(gang));
        let gangs: Vec<Arc<GangName>> = gangs.map(Arc::clone).collect();
        for gang in &gangs {
            // A label of the workload may name their queue.
            self.dirty.pods.extend(self.gangs.get_mut(gang).members.values());
        }
        self.dirty.gangs.extend(gangs);
    }
}

/// The Job that made a pod, by its label.
fn job_of(pod: &Pod) -> Option<&str> {
    pod.meta.labels.get(JOB_NAME)
}

/// What a workload says about pods that are in no gang of it; `None` if nothing.
fn said_of_apart(workload: Option<&Workload>) -> Option<[Option<&str>; 4]> {
    let workload = workload?;
    let [min, max, required] = TERMS_OF_GANGS.map(|name| workload.meta.annotations.get(name));
    let has_terms = min.or(max).or(required).is_some();
    has_terms.then_some([min, max, required, Some(&*workload.apart)])
}
