//! Pods that run and cannot be stopped: for a while the engine takes them for protected ones.
//!
//! The engine learns who is protected when a job begins to run, so it is told of such a job anew.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Event, JobId, PodId};
use dovetail_objects::Pod;

use super::World;
use super::key::PodKey;
use super::pods::Slot;
use super::standing::{Standing, Told};
use super::tell::{Events, LAST_AHEAD, Place};

impl World {
    /// The name of a pod in the engine, if it has one.
    pub fn id_of(&self, pod: &PodKey) -> Option<PodId> {
        self.pods.get(self.find(pod)?).id
    }

    /// A pod is stopped for nobody, or may be again. With it are the others of its job.
    pub fn spare(&mut self, pod: &PodKey, is_spared: bool) -> Vec<Event> {
        let Some(slot) = self.find(pod) else { return Vec::new() };
        self.pods.get_mut(slot).is_spared = is_spared;
        let job = self.pods.get(slot).id.map(|id| id.job);
        self.tell_protection(job.into_iter().collect())
    }

    /// No pod of a namespace is stopped for anybody, or each may be again.
    pub fn spare_namespace(&mut self, namespace: &str, is_spared: bool) -> Vec<Event> {
        let is_new = match is_spared {
            true => self.spared_namespaces.insert(namespace.into()),
            false => self.spared_namespaces.remove(namespace),
        };
        if !is_new {
            return Vec::new();
        }
        let slots: Vec<Slot> = self.pods.of_namespace(namespace).collect();
        let jobs = slots.into_iter().filter_map(|slot| Some(self.pods.get(slot).id?.job));
        self.tell_protection(jobs.collect())
    }

    /// Whether a pod counts as one that may not be stopped, apart from what it says itself.
    pub(super) fn is_spared(&self, slot: Slot) -> bool {
        let entry = self.pods.get(slot);
        entry.is_spared || self.spared_namespaces.contains(&entry.pod.meta.namespace)
    }

    /// Tells anew of those of these jobs that run: who of them is protected is another than before.
    fn tell_protection(&mut self, jobs: BTreeSet<JobId>) -> Vec<Event> {
        let mut events = Vec::new();
        for job in jobs {
            let slots: Vec<Slot> = self.slots_of(job).collect();
            let runs = |slot: &Slot| matches!(self.pods.get(*slot).told, Told::Running { .. });
            // Where a part of it is on its way, the whole is told when the engine begins anew; and
            // who leaves needs no protection.
            let leaves = slots.iter().all(|slot| self.pods.get(*slot).pod.meta.is_deleting());
            if slots.iter().all(runs) && !leaves {
                events.extend(self.tell_anew(job, &slots));
            }
        }
        if !events.is_empty() {
            events.extend(self.settle());
        }
        events
    }

    /// A pod of a namespace that runs and could be stopped, as far as that lies with it.
    pub fn stoppable_in(&self, namespace: &str) -> Option<PodKey> {
        self.running_in(namespace).map(|(_, pod)| PodKey::of(pod)).next()
    }

    /// Pods of a namespace that run and could be stopped, as far as that lies with them, with their
    /// jobs.
    pub fn running_in(&self, namespace: &str) -> impl Iterator<Item = (JobId, &Pod)> {
        let entries = self.pods.of_namespace(namespace).map(|slot| self.pods.get(slot));
        entries.filter_map(|entry| {
            let pod = &*entry.pod;
            let is_there = !pod.node.is_empty() && !pod.is_over() && !pod.meta.is_deleting();
            let runs = is_there && !pod.preemption.is_protected;
            Some((entry.id.filter(|_| runs)?.job, pod))
        })
    }

    /// Pods that run and that the server did not let go when they were to be stopped, and when that
    /// was, as they say themselves; those that are spared already aside.
    pub fn kept_pods(&self) -> Vec<(PodKey, u64)> {
        let entries = self.pods.in_order().map(|slot| self.pods.get(slot));
        let kept = entries.filter_map(|entry| {
            let pod = &entry.pod;
            let kept_ms = pod.preemption.kept_ms.filter(|_| !entry.is_spared)?.get();
            let stands = !pod.node.is_empty() && !pod.is_over() && !pod.meta.is_deleting();
            stands.then(|| (PodKey::of(pod), kept_ms))
        });
        kept.collect()
    }

    /// Pods that were not let go, that say so no more, and that are not about to be stopped:
    /// whoever took that back says that they may be stopped again. Since the last call.
    pub fn take_let_go(&mut self) -> Vec<PodKey> {
        std::mem::take(&mut self.let_go)
    }

    /// Notes what a pod said before that is new or different.
    pub(super) fn note_let_go(&mut self, before: &Pod, slot: Slot) {
        let pod = &self.pods.get(slot).pod;
        let is_kept = pod.preemption.kept_ms.is_some() || pod.preemption.is_target;
        if before.preemption.kept_ms.is_some() && !is_kept {
            self.let_go.push(PodKey::of(pod));
        }
    }

    /// A waiting job stops nobody, or may again. What is kept for it is given back.
    pub fn wait_patiently(&mut self, job: JobId, is_patient: bool) -> Vec<Event> {
        match is_patient {
            true => self.patient.insert(job),
            false => self.patient.remove(&job),
        };
        let gang = self.slots_of(job).next().and_then(|slot| self.pods.get(slot).gang.clone());
        self.dirty.gangs.extend(gang);
        let mut events = self.settle();
        events.extend(self.submit_again(job));
        events
    }

    /// Whether a job stops nobody for the time being, whatever its pods say.
    pub fn is_patient(&self, job: JobId) -> bool {
        self.patient.contains(&job)
    }

    /// A job waits no more.
    pub fn forget_patience(&mut self, job: JobId) {
        self.patient.remove(&job);
    }

    /// A waiting job as if it were new: what is kept for it is given back.
    pub fn submit_again(&self, job: JobId) -> Vec<Event> {
        let Some(slot) = self.slots_of(job).next() else { return Vec::new() };
        let entry = self.pods.get(slot);
        let waiting = match &entry.told {
            Told::Waiting { requirement, .. } => Some(self.job(slot, job, requirement.clone())),
            Told::Member { .. } => self.gangs.waiting_jobs().find(|one| one.id == job).cloned(),
            _ => None,
        };
        let Some(waiting) = waiting else { return Vec::new() };
        vec![Event::Ended { job }, Event::Submitted(Box::new(waiting))]
    }

    /// The pods of a running job run on as those of a new one.
    fn tell_anew(&mut self, job: JobId, slots: &[Slot]) -> Vec<Event> {
        let anew = self.new_job(Place::ahead(job.0 <= LAST_AHEAD));
        self.tell_again(slots, |world| {
            for slot in slots {
                let entry = world.pods.get(*slot);
                let id = entry.id.map(|id| PodId { job: anew, ..id });
                world.set_id(*slot, id, entry.is_in_job);
            }
        })
    }

    /// Pods that run, each by its own job or with others, run on as those of one gang's job.
    pub(super) fn tell_as_one_job(&mut self, slots: &[Slot]) -> Vec<Event> {
        let Some(first) = slots.first() else { return Vec::new() };
        self.tell_again(slots, |world| {
            world.set_own_job(*first, Place::Behind);
            world.join_in_one_job(slots);
        })
    }

    /// Ends pods that run for the engine, gives them other names in one job, and tells that it
    /// runs.
    fn tell_again(&mut self, slots: &[Slot], name: impl FnOnce(&mut Self)) -> Vec<Event> {
        let mut events = Events::default();
        let mut told = Vec::new();
        for slot in slots.iter().copied() {
            self.tell_end(slot, &mut events);
            told.push(std::mem::take(&mut self.pods.get_mut(slot).told));
        }
        name(self);
        let mut pods = BTreeMap::new();
        for (slot, told) in slots.iter().copied().zip(told) {
            self.pods.get_mut(slot).told = told;
            self.count_job(slot);
            pods.extend(self.pods.get(slot).id.map(|id| (id, slot)));
        }
        let is_gang = slots.iter().any(|slot| self.pods.get(*slot).is_in_job);
        let job = pods.keys().next().map(|id| id.job);
        let (Some(job), Some(first)) = (job, slots.first()) else { return events.freed };
        let new = match is_gang {
            false => {
                let start_ms = self.pods.get(*first).pod.meta.created_ms;
                self.running_job(*first, job, start_ms)
            }
            true => self.running_gang(job, &pods, self.now_ms),
        };
        let holdings = slots.iter().filter_map(|slot| match self.standing(*slot) {
            Standing::Running(holding) => Some(*holding),
            _ => None,
        });
        let holdings = holdings.collect();
        events.freed.push(Event::Adopted { job: Box::new(new), holdings });
        events.freed
    }

    /// Whether any of these pods cannot be stopped.
    pub(super) fn any_is_spared(&self, mut slots: impl Iterator<Item = Slot>) -> bool {
        slots.any(|slot| self.is_spared(slot))
    }
}
