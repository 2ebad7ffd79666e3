//! Pods that run and cannot be stopped: for a while the engine takes them for protected ones.
//!
//! The engine learns who is protected when a job begins to run, so it is told of such a job anew.

use std::collections::BTreeMap;

use dovetail_model::{Event, JobId, PodId};

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
        let Some(id) = self.pods.get(slot).id else { return Vec::new() };
        let slots: Vec<Slot> = self.slots_of(id.job).collect();
        let runs = |slot: &Slot| matches!(self.pods.get(*slot).told, Told::Running { .. });
        // Where a part of it is on its way, the whole is told when the engine begins anew.
        if !slots.iter().all(runs) {
            return Vec::new();
        }
        let mut events = self.tell_anew(id.job, &slots);
        events.extend(self.settle());
        events
    }

    /// Pods that run and that the server did not let go when they were to be stopped, and when that was, as they say
    /// themselves; those that are spared already aside.
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
        let mut events = Events::default();
        let mut told = Vec::new();
        for slot in slots.iter().copied() {
            self.tell_end(slot, &mut events);
            told.push(std::mem::take(&mut self.pods.get_mut(slot).told));
        }
        let mut pods = BTreeMap::new();
        for (slot, told) in slots.iter().copied().zip(told) {
            let entry = self.pods.get_mut(slot);
            entry.told = told;
            let (id, is_in_job) = (entry.id.map(|id| PodId { job: anew, ..id }), entry.is_in_job);
            self.set_id(slot, id, is_in_job);
            self.count_job(slot);
            pods.extend(id.map(|id| (id, slot)));
        }
        let is_gang = slots.iter().any(|slot| self.pods.get(*slot).is_in_job);
        let new = match slots.first().filter(|_| !is_gang) {
            Some(slot) => {
                let start_ms = self.pods.get(*slot).pod.meta.created_ms;
                self.running_job(*slot, anew, start_ms)
            }
            None => self.running_gang(anew, &pods, self.now_ms),
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
        slots.any(|slot| self.pods.get(slot).is_spared)
    }
}
