//! Queues, as their objects say.
//!
//! A server without the kind has one queue for all pods, whatever their labels say.

use std::collections::BTreeMap;

use dovetail_model::QueueName;
use dovetail_objects::Queue;

use crate::queues::{DEFAULT_QUEUE, QueueProblem, problems, queue};
use dovetail_translate::Rules;

#[derive(Debug, Default)]
pub(crate) struct Queues {
    is_absent: bool,
    objects: BTreeMap<Box<str>, Queue>,
    problems: BTreeMap<Box<str>, QueueProblem>,
    /// The objects in the words of the engine.
    translated: BTreeMap<QueueName, dovetail_model::Queue>,
    /// Queues that were deleted since the last call of `settle`.
    deleted: BTreeMap<Box<str>, Queue>,
    is_dirty: bool,
}

impl Queues {
    pub(crate) fn get(&self, name: &str) -> Option<&Queue> {
        self.objects.get(name)
    }

    /// Whether the server does not have the kind.
    pub(crate) fn are_absent(&self) -> bool {
        self.is_absent
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.objects.keys().map(|name| &**name)
    }

    /// All queues by name.
    pub(crate) fn objects(&self) -> &BTreeMap<Box<str>, Queue> {
        &self.objects
    }

    /// What is wrong with queues, by their names.
    pub(crate) fn problems(&self) -> &BTreeMap<Box<str>, QueueProblem> {
        &self.problems
    }

    /// The queues in the words of the engine.
    pub(crate) fn translated(&self) -> &BTreeMap<QueueName, dovetail_model::Queue> {
        &self.translated
    }

    pub(crate) fn put(&mut self, queue: Queue) {
        let before = self.objects.get(&queue.meta.name);
        // Its own status says nothing about what it is given.
        let is_new = before.is_none_or(|before| {
            let status = before.status.clone();
            let meta = before.meta.clone();
            Queue { status, meta, ..queue.clone() } != *before
        });
        self.is_dirty |= is_new;
        self.deleted.remove(&queue.meta.name);
        self.objects.insert(queue.meta.name.clone(), queue);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        let Some(object) = self.objects.remove(name) else { return };
        self.is_dirty = true;
        // The default queue is there without an object, too: bounded by nothing, and below none.
        if name != DEFAULT_QUEUE {
            self.deleted.insert(name.into(), object);
        }
    }

    /// Whether the server has the kind; whether that is new.
    pub(crate) fn set_absent(&mut self, is_absent: bool) -> bool {
        let is_new = std::mem::replace(&mut self.is_absent, is_absent) != is_absent;
        if is_new && is_absent {
            self.deleted.clear();
        }
        is_new
    }

    /// All queues are to be looked at again.
    pub(crate) fn mark(&mut self) {
        self.is_dirty = true;
    }

    /// Translates the queues again if any may be different; then, those that were deleted.
    pub(crate) fn settle(&mut self, rules: &Rules) -> Option<Vec<dovetail_model::Queue>> {
        if !std::mem::take(&mut self.is_dirty) {
            return None;
        }
        self.problems = problems(&self.objects, rules);
        let all = self.objects.values().map(|object| queue(object, rules));
        self.translated = all.map(|queue| (queue.name.clone(), queue)).collect();
        let deleted = std::mem::take(&mut self.deleted).into_values();
        Some(deleted.map(|object| queue(&object, rules)).collect())
    }
}
