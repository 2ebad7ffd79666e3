//! First jobs of classes, in the order of their places.

use std::collections::BTreeMap;

use dovetail_model::QueueName;

use super::OrderKey;

/// First jobs of classes, with the numbers of the classes.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    pub(super) all: BTreeMap<OrderKey, usize>,
    /// The same of each queue, where that is asked for.
    pub(super) by_queue: BTreeMap<QueueName, BTreeMap<OrderKey, usize>>,
    version: u64,
}

impl Heads {
    /// Classes, best place first.
    pub(crate) fn classes(&self) -> impl ExactSizeIterator<Item = usize> {
        self.all.values().copied()
    }

    /// The first job of each queue, with its class, for orders that look at queues.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = (&str, OrderKey, usize)> {
        self.by_queue.iter().filter_map(|(queue, of)| {
            let (place, class) = of.first_key_value()?;
            Some((queue.as_str(), *place, *class))
        })
    }

    /// Another one whenever another job may be the first of a class, or the first of a class may
    /// wait for its quota, or no longer.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The first job of a class waits for its quota, or no longer.
    pub(super) fn note_bound(&mut self) {
        self.version += 1;
    }

    /// A class has another first job, in this queue if that is asked for.
    pub(super) fn change(
        &mut self,
        class: usize,
        queue: Option<&QueueName>,
        (before, after): (Option<OrderKey>, Option<OrderKey>),
    ) {
        if before == after {
            return;
        }
        self.version += 1;
        before.map(|head| self.all.remove(&head));
        after.map(|head| self.all.insert(head, class));
        let Some(queue) = queue else { return };
        if let (Some(head), Some(of_queue)) = (before, self.by_queue.get_mut(queue)) {
            of_queue.remove(&head);
            if of_queue.is_empty() && after.is_none() {
                self.by_queue.remove(queue);
            }
        }
        let Some(head) = after else { return };
        match self.by_queue.get_mut(queue) {
            Some(of_queue) => {
                of_queue.insert(head, class);
            }
            None => {
                self.by_queue.insert(queue.clone(), BTreeMap::from([(head, class)]));
            }
        }
    }
}
