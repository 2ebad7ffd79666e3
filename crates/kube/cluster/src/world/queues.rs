//! Queues: the objects, what the engine was told of them, and for which queue each running job is
//! counted.
//!
//! A server without the kind has one queue for all pods, whatever their labels say.

use std::collections::BTreeMap;

use dovetail_model::{Event, JobId, QueueName};
use dovetail_objects::{Kind, Labels, Queue};

use super::World;
use super::missing_queues::Missing;
use super::pods::Slot;
use super::report::Report;
use super::standing::Told;
use super::tell::Events;
use crate::queues::{DEFAULT_QUEUE, Problem, admit, engine_name, problems, queue, queue_of};
use crate::translate::NotYet;

/// No object can have this name.
pub(super) const NO_QUEUE: &str = "/";

/// The queues.
#[derive(Debug, Default)]
pub(super) struct Queues {
    is_absent: bool,
    is_recounted: bool,
    objects: BTreeMap<Box<str>, Queue>,
    problems: BTreeMap<Box<str>, Problem>,
    /// The objects in the words of the engine.
    there: BTreeMap<QueueName, dovetail_model::Queue>,
    /// These, and those that are missing.
    told: BTreeMap<QueueName, dovetail_model::Queue>,
    is_dirty: bool,
    /// Queues of the jobs that run, apart from those of the default queue.
    counted: BTreeMap<JobId, QueueName>,
    pub(super) missing: Missing,
}

impl Queues {
    pub(super) fn get(&self, name: &str) -> Option<&Queue> {
        self.objects.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.objects.keys().map(|name| &**name)
    }

    /// As the engine was told them.
    pub(super) fn told(&self) -> impl Iterator<Item = &dovetail_model::Queue> {
        self.told.values()
    }

    /// The queue that the engine counts a running job for.
    pub(super) fn counted_for(&self, job: JobId) -> &str {
        self.counted.get(&job).map_or("", |queue| queue)
    }

    fn count(&mut self, job: JobId, queue: QueueName) {
        if *self.counted_for(job) == *queue {
            return;
        }
        self.stop_counting(job);
        if !queue.is_empty() {
            let is_told = self.is_told_up(&queue);
            self.missing.begins(&queue, is_told);
            self.counted.insert(job, queue);
        }
    }

    fn stop_counting(&mut self, job: JobId) {
        if let Some(queue) = self.counted.remove(&job) {
            self.missing.ends(&queue);
        }
    }

    /// Whether the engine was told of a queue and of all above it.
    fn is_told_up(&self, name: &str) -> bool {
        let (mut next, mut steps) = (Some(name), 0);
        while let Some(name) = next.filter(|_| steps <= self.told.len()) {
            let Some(queue) = self.told.get(name) else { return false };
            next = queue.parent.as_deref();
            steps += 1;
        }
        true
    }

    /// A queue and those above it, as the engine was told them; a circle ends where it closes.
    pub(super) fn way_up<'a>(&'a self, name: &str) -> Vec<&'a str> {
        let mut way: Vec<&str> = Vec::new();
        let mut next = self.told.get(name);
        while let Some(queue) = next.filter(|queue| !way.contains(&&*queue.name)) {
            way.push(&queue.name);
            next = queue.parent.as_ref().and_then(|parent| self.told.get(parent));
        }
        way
    }
}

impl World {
    /// The queues by name, each with what is wrong with it.
    pub fn queues(&self) -> impl Iterator<Item = (&Queue, Option<&Problem>)> {
        let all = self.queues.objects.iter();
        all.map(|(name, queue)| (queue, self.queues.problems.get(name)))
    }

    /// A queue by its name.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name)
    }

    /// Whether the server has the kind of queues.
    pub fn has_queues(&self) -> bool {
        !self.queues.is_absent
    }

    /// The server has no queues, or has them no more: everybody is in the one queue that there is
    /// then.
    pub(super) fn note_absent(&mut self, kind: Kind) {
        if kind != Kind::Queue || std::mem::replace(&mut self.queues.is_absent, true) {
            return;
        }
        self.queues.missing.forget();
        if self.is_ready {
            self.count_anew();
        }
    }

    /// The server has the kind after all: whatever runs is in the queue that it names.
    pub(super) fn note_present(&mut self, kind: Kind) {
        if kind != Kind::Queue || !std::mem::take(&mut self.queues.is_absent) {
            return;
        }
        self.count_anew();
    }

    /// All that runs counts for the queue that it is in now.
    fn count_anew(&mut self) {
        self.queues.is_dirty = true;
        let runs = |slot: &Slot| {
            let told = &self.pods.get(*slot).told;
            matches!(told, Told::Assumed { .. } | Told::Running { .. })
        };
        let running: Vec<Slot> = self.pods.in_order().filter(runs).collect();
        running.into_iter().for_each(|slot| self.count_job(slot));
        self.queues.is_recounted = true;
    }

    /// Whether jobs that run count for other queues than an engine was told, since the last call:
    /// only a new one learns that, from the snapshot.
    pub fn take_recounted(&mut self) -> bool {
        std::mem::take(&mut self.queues.is_recounted)
    }

    pub(super) fn put_queue(&mut self, queue: Queue) {
        let name = queue.meta.name.clone();
        let before = self.queues.objects.get(&name);
        // Its own status says nothing about what it is given.
        let is_new = before.is_none_or(|before| {
            let status = before.status.clone();
            let meta = before.meta.clone();
            Queue { status, meta, ..queue.clone() } != *before
        });
        self.queues.missing.created(&name);
        self.queues.objects.insert(name, queue);
        self.queues.is_dirty |= is_new;
    }

    pub(super) fn remove_queue(&mut self, name: &str) {
        let Some(object) = self.queues.objects.remove(name) else { return };
        self.queues.is_dirty = true;
        // The default queue is there without an object, too: bounded by nothing, and below none.
        if name != DEFAULT_QUEUE {
            self.queues.missing.deleted(queue(&object, &self.settings.rules));
        }
    }

    /// Tells which queues are different, and looks again at all who wait.
    pub(super) fn settle_queues(&mut self, events: &mut Events) {
        if !std::mem::take(&mut self.queues.is_dirty) {
            return;
        }
        let rules = &self.settings.rules;
        self.queues.problems = problems(&self.queues.objects, rules);
        let there = self.queues.objects.values().map(|object| queue(object, rules));
        self.queues.there = there.map(|queue| (queue.name.clone(), queue)).collect();
        self.tell_queues(events);
        self.mark_unplaced();
    }

    /// Tells of queues that are missing and were not in use before, or are no more.
    pub(super) fn settle_missing_queues(&mut self, events: &mut Events) {
        if self.queues.missing.take_dirty() {
            self.tell_queues(events);
        }
    }

    /// Tells which queues are different, and says which are missing that were not before.
    fn tell_queues(&mut self, events: &mut Events) {
        let Queues { missing, there, told, .. } = &mut self.queues;
        let was_missing: Vec<QueueName> =
            told.keys().filter(|name| missing.has(name)).cloned().collect();
        let missing = missing.find(there).clone();
        let before = std::mem::replace(told, there.clone().into_iter().chain(missing).collect());
        for (name, queue) in &*told {
            if before.get(name) != Some(queue) {
                events.queues.push(Event::QueueChanged(queue.clone()));
            }
        }
        let gone = before.into_keys().filter(|name| !told.contains_key(name));
        events.queues.extend(gone.map(|name| Event::QueueRemoved { name }));
        let new = self.missing_queues().into_iter().filter(|one| !was_missing.contains(&one.name));
        self.reports.extend(new.map(|one| Report::QueueMissing(Box::new(one))));
    }

    /// The engine counts the job of a pod for the pod's queue.
    pub(super) fn count_job(&mut self, slot: Slot) {
        let Some(id) = self.pods.get(slot).id else { return };
        self.queues.count(id.job, self.queue_of(slot));
    }

    /// Whether a pod runs and is in another queue than its job is counted for.
    pub(super) fn counts_elsewhere(&self, slot: Slot) -> bool {
        let entry = self.pods.get(slot);
        let runs = matches!(entry.told, Told::Assumed { .. } | Told::Running { .. });
        let job = entry.id.filter(|_| runs).map(|id| id.job);
        job.is_some_and(|job| self.queues.counted_for(job) != self.queue_of(slot))
    }

    /// What a pod that ran is counted for is forgotten with the last pod of its job.
    pub(super) fn stop_counting(&mut self, slot: Slot) {
        let Some(job) = self.pods.get(slot).id.map(|id| id.job) else { return };
        if !self.queues.counted.contains_key(&job) {
            return;
        }
        let runs = |other: Slot| {
            let told = &self.pods.get(other).told;
            other != slot && matches!(told, Told::Assumed { .. } | Told::Running { .. })
        };
        if !self.slots_of(job).any(runs) {
            self.queues.stop_counting(job);
        }
    }

    /// The queue of a pod, by its name in the engine. Pods of other schedulers are in none.
    pub(super) fn queue_of(&self, slot: Slot) -> QueueName {
        match self.is_ours(&self.pods.get(slot).pod) {
            true => engine_name(self.queue_name(slot)),
            false => NO_QUEUE.to_owned(),
        }
    }

    fn queue_name(&self, slot: Slot) -> &str {
        if self.queues.is_absent {
            return DEFAULT_QUEUE;
        }
        let entry = self.pods.get(slot);
        let group = entry.gang.as_ref().and_then(|gang| self.gangs.labels(gang));
        queue_of(&entry.pod.meta.labels, group, self.labels_of_namespace(slot))
    }

    /// Whether its queue takes a pod.
    pub(super) fn admission(&self, slot: Slot) -> Result<(), NotYet> {
        if self.queues.is_absent {
            return Ok(());
        }
        let namespace = (&*self.pods.get(slot).pod.meta.namespace, self.labels_of_namespace(slot));
        admit(self.queue_name(slot), &self.queues.objects, &self.queues.problems, namespace)
    }

    fn labels_of_namespace(&self, slot: Slot) -> Option<&Labels> {
        self.namespace_labels(&self.pods.get(slot).pod)
    }
}
