//! Queues that are not there, and in which pods run: one that was deleted counts as it was until
//! nothing is held in it or below it, so that the queues above it stay within what they may hold.
//! Of one that was never seen only the name is known: what runs counts under that.

use std::collections::BTreeMap;

use dovetail_model::{Queue, QueueName};

use crate::world::objects::NO_QUEUE;

/// What is known of queues that are not there.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    /// As they were when they were deleted.
    last: BTreeMap<QueueName, Queue>,
    /// How many jobs that run count for each queue, apart from the default queue.
    jobs: BTreeMap<QueueName, usize>,
    /// Those that are missing and in use.
    found: BTreeMap<QueueName, Queue>,
    /// Whether that may have changed.
    is_dirty: bool,
}

impl Missing {
    pub(crate) fn deleted(&mut self, queue: Queue) {
        self.last.insert(queue.name.clone(), queue);
    }

    /// There are no queues at all.
    pub(crate) fn forget(&mut self) {
        self.last.clear();
    }

    /// A job that runs counts for a queue. `is_told`: the engine knows that.
    pub(crate) fn begins(&mut self, queue: &str, is_reported: bool) {
        *self.jobs.entry(queue.to_owned()).or_default() += 1;
        self.is_dirty |= !is_reported;
    }

    /// It does not count for it any more.
    pub(crate) fn ends(&mut self, queue: &str) {
        let Some(jobs) = self.jobs.get_mut(queue) else { return };
        *jobs -= 1;
        if *jobs == 0 {
            self.jobs.remove(queue);
            self.is_dirty |= !self.found.is_empty();
        }
    }

    /// Those that are missing and in use.
    pub(crate) fn found(&self) -> &BTreeMap<QueueName, Queue> {
        &self.found
    }

    /// Whether a queue was seen before it was deleted.
    pub(crate) fn was_seen(&self, name: &str) -> bool {
        self.last.contains_key(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.found.contains_key(name)
    }

    /// Whether what is missing may have changed, since the last call.
    pub(crate) fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.is_dirty)
    }

    /// Finds again which are missing beside those that are there. What is not used any more is
    /// forgotten.
    pub(crate) fn find(
        &mut self,
        there: &BTreeMap<QueueName, Queue>,
    ) -> &BTreeMap<QueueName, Queue> {
        let mut found = BTreeMap::new();
        for held in self.jobs.keys().filter(|name| **name != NO_QUEUE) {
            let mut way: Vec<&str> = Vec::new();
            let mut next = Some(held.as_str());
            while let Some(name) = next.filter(|name| !way.contains(name)) {
                way.push(name);
                let known = there.get(name).or_else(|| self.last.get(name));
                let missing = match known {
                    Some(queue) => Some(queue.clone()).filter(|_| !there.contains_key(name)),
                    // Of what is above it nothing is known.
                    None => Some(Queue::named(name)),
                };
                found.extend(missing.map(|queue| (queue.name.clone(), queue)));
                next = known.and_then(|queue| queue.parent.as_deref());
            }
        }
        self.last.retain(|name, _| found.contains_key(name));
        self.found = found;
        &self.found
    }
}
