//! What was reported to the engine of queues, and for which queue each running job is counted.

use std::collections::BTreeMap;

use dovetail_model::{Event, JobId, Queue, QueueName};

use super::missing::Missing;
use crate::queues::shown_name;
use crate::world::missing_queue::MissingQueue;
use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;

/// The queues as the engine knows them.
#[derive(Debug, Default)]
pub(crate) struct ReportedQueues {
    is_recounted: bool,
    /// The queues that are there, and those that are missing.
    reported: BTreeMap<QueueName, Queue>,
    /// Queues of the jobs that run, apart from those of the default queue.
    by_job: BTreeMap<JobId, QueueName>,
    missing: Missing,
}

impl ReportedQueues {
    pub(crate) fn reported(&self) -> impl Iterator<Item = &Queue> {
        self.reported.values()
    }

    /// The queue that the engine counts a running job for.
    pub(crate) fn counted_for(&self, job: JobId) -> &str {
        self.by_job.get(&job).map_or("", |queue| queue)
    }

    /// The engine counts the job of a pod for the pod's queue.
    pub(crate) fn count(&mut self, objects: &Objects, slot: Slot) {
        let Some(id) = objects.pods.get(slot).id else { return };
        let queue = objects.queue_of(slot);
        if *self.counted_for(id.job) == *queue {
            return;
        }
        self.stop(id.job);
        if !queue.is_empty() {
            let is_reported = self.is_reported_up(&queue);
            self.missing.begins(&queue, is_reported);
            self.by_job.insert(id.job, queue);
        }
    }

    /// What a pod that ran is counted for is forgotten with the last pod of its job.
    pub(crate) fn stop_counting(&mut self, objects: &Objects, slot: Slot) {
        let Some(job) = objects.pods.get(slot).id.map(|id| id.job) else { return };
        if !self.by_job.contains_key(&job) {
            return;
        }
        let runs = |other: Slot| other != slot && objects.pods.get(other).reported.runs();
        if !objects.pods.of_job(job).any(runs) {
            self.stop(job);
        }
    }

    fn stop(&mut self, job: JobId) {
        if let Some(queue) = self.by_job.remove(&job) {
            self.missing.ends(&queue);
        }
    }

    /// All that runs counts for the queue that it is in now.
    pub(crate) fn count_anew(&mut self, objects: &mut Objects) {
        objects.queues.mark();
        for slot in objects.pods.in_order() {
            if objects.pods.get(slot).reported.runs() {
                self.count(objects, slot);
            }
        }
        self.is_recounted = true;
    }

    /// There are no queues at all: those that were deleted are forgotten.
    pub(crate) fn forget_missing(&mut self) {
        self.missing.forget();
    }

    /// Whether running jobs count for other queues than was reported, since the last call: only a
    /// new engine learns that, from the snapshot.
    pub(crate) fn take_recounted(&mut self) -> bool {
        std::mem::take(&mut self.is_recounted)
    }

    /// Whether a pod runs and is in another queue than its job is counted for.
    pub(crate) fn counts_elsewhere(&self, objects: &Objects, slot: Slot) -> bool {
        let entry = objects.pods.get(slot);
        let job = entry.id.filter(|_| entry.reported.runs()).map(|id| id.job);
        job.is_some_and(|job| self.counted_for(job) != objects.queue_of(slot))
    }

    /// Whether a queue and all above it were reported.
    fn is_reported_up(&self, name: &str) -> bool {
        let (mut next, mut steps) = (Some(name), 0);
        while let Some(name) = next.filter(|_| steps <= self.reported.len()) {
            let Some(queue) = self.reported.get(name) else { return false };
            next = queue.parent.as_deref();
            steps += 1;
        }
        true
    }

    /// A queue and those above it, as they were reported; a circle ends where it closes.
    fn way_up<'a>(&'a self, name: &str) -> Vec<&'a str> {
        let mut way: Vec<&str> = Vec::new();
        let mut next = self.reported.get(name);
        while let Some(queue) = next.filter(|queue| !way.contains(&&*queue.name)) {
            way.push(&queue.name);
            next = queue.parent.as_ref().and_then(|parent| self.reported.get(parent));
        }
        way
    }

    /// Which queues are different, if any may be.
    pub(crate) fn settle(&mut self, objects: &mut Objects) -> Option<QueuesNoted> {
        let deleted = objects.queues.settle(&objects.settings.rules)?;
        deleted.into_iter().for_each(|queue| self.missing.deleted(queue));
        Some(self.note(objects))
    }

    /// Queues that are missing and were not in use before, or are no more.
    pub(crate) fn settle_missing(&mut self, objects: &Objects) -> Option<QueuesNoted> {
        self.missing.take_dirty().then(|| self.note(objects))
    }

    /// Which queues are different, and which are missing that were not before.
    fn note(&mut self, objects: &Objects) -> QueuesNoted {
        let (missing, there) = (&mut self.missing, objects.queues.translated());
        let was_missing: Vec<QueueName> =
            self.reported.keys().filter(|name| missing.has(name)).cloned().collect();
        let missing = missing.find(there).clone();
        let now = there.clone().into_iter().chain(missing).collect();
        let before = std::mem::replace(&mut self.reported, now);
        let mut events = Vec::new();
        for (name, queue) in &self.reported {
            if before.get(name) != Some(queue) {
                events.push(Event::QueueChanged(Box::new(queue.clone())));
            }
        }
        let gone = before.into_keys().filter(|name| !self.reported.contains_key(name));
        events.extend(gone.map(|name| Event::QueueRemoved { name }));
        let mut missing = self.missing_queues(objects);
        missing.retain(|one| !was_missing.contains(&one.name));
        QueuesNoted { events, missing }
    }

    /// Queues that are not there and in which pods run, by name.
    pub(crate) fn missing_queues(&self, objects: &Objects) -> Vec<MissingQueue> {
        if self.missing.found().is_empty() {
            return Vec::new();
        }
        let gpu_resource = &objects.settings.rules.device_resource;
        let held = pods_by_queue(objects);
        let missing = |(name, queue): (&QueueName, &Queue)| {
            let is_below = |below: &str| self.way_up(below).contains(&name.as_str());
            let below = held.iter().filter(|(below, _)| is_below(below)).map(|(_, sum)| sum);
            let sum =
                below.fold((0, 0_i64), |sum, one| (sum.0 + one.0, sum.1.saturating_add(one.1)));
            MissingQueue {
                name: name.clone(),
                is_known: self.missing.was_seen(name),
                parent: queue.parent.as_deref().map(|parent| shown_name(parent).to_owned()),
                pods: sum.0,
                gpus: sum.1,
                gpu_resource: gpu_resource.clone(),
            }
        };
        self.missing.found().iter().map(missing).collect()
    }
}

/// What follows from queues that are different.
#[derive(Debug)]
pub(crate) struct QueuesNoted {
    pub(crate) events: Vec<Event>,
    /// Those that are missing and were not before.
    pub(crate) missing: Vec<MissingQueue>,
}

/// How many pods run in each queue, and how many units of the resource of whole GPUs they hold.
fn pods_by_queue(objects: &Objects) -> BTreeMap<QueueName, (usize, i64)> {
    let mut sums: BTreeMap<QueueName, (usize, i64)> = BTreeMap::new();
    for slot in objects.pods.in_order() {
        let entry = objects.pods.get(slot);
        if !entry.reported.runs() {
            continue;
        }
        let gpus = entry.pod.holds().extended.get(&objects.settings.rules.device_resource);
        let sum = sums.entry(objects.queue_of(slot)).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(gpus.copied().unwrap_or(0)));
    }
    sums
}
