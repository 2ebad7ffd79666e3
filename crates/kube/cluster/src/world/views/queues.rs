//! Queues, as the scheduler and people ask about them.

use dovetail_objects::Queue;

use crate::queues::{QueueProblem, shown_name};
use crate::world::index::Index;
use crate::world::missing_queue::MissingQueue;
use crate::world::views::ReservationView;

/// Questions about queues.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'w> {
    pub(crate) index: &'w Index,
}

impl<'w> QueueView<'w> {
    /// What is reserved for them, and for jobs.
    pub fn reservations(self) -> ReservationView<'w> {
        ReservationView { objects: &self.index.objects }
    }

    /// The queues by name, each with what is wrong with it.
    pub fn all(self) -> impl Iterator<Item = (&'w Queue, Option<&'w QueueProblem>)> + use<'w> {
        let queues = &self.index.objects.queues;
        let problems = queues.problems();
        queues.objects().iter().map(|(name, queue)| (queue, problems.get(name)))
    }

    /// A queue by its name.
    pub fn get(self, name: &str) -> Option<&'w Queue> {
        self.index.objects.queues.get(name)
    }

    /// Whether the server has the kind of queues.
    pub fn are_served(self) -> bool {
        !self.index.objects.queues.are_absent()
    }

    /// Queues that are not there and in which pods run, by name.
    pub fn missing(self) -> Vec<MissingQueue> {
        self.index.feed.counted.missing_queues(&self.index.objects)
    }

    /// The queue of a pod, by the name that people know.
    pub fn of_pod(self, namespace: &str, name: &str) -> Option<String> {
        let objects = &self.index.objects;
        let queue = objects.queue_of(objects.pods.find(namespace, name)?);
        Some(shown_name(&queue).to_owned())
    }
}
