//! Queue limits: a hard ceiling on the milli-GPU that a queue and everything below it holds.

use std::collections::BTreeMap;

use dovetail_model::{Queue, QueueName};
use smallvec::SmallVec;

/// Limits and usage per queue. A queue nobody described has no limit and no parent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quota {
    queues: BTreeMap<QueueName, Queue>,
    used_milli: BTreeMap<QueueName, i64>,
}

impl Quota {
    pub(crate) fn set(&mut self, queue: Queue) {
        self.queues.insert(queue.name.clone(), queue);
    }

    pub(crate) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.queues.values()
    }

    /// The queue at its limit, itself or one above, that keeps `gpu_milli` more from starting.
    pub(crate) fn blocked_by(&self, queue: &str, gpu_milli: i64) -> Option<&Queue> {
        self.chain(queue).find(|queue| {
            let used = self.used_milli.get(&queue.name).copied().unwrap_or(0);
            queue.limit_gpu_milli.is_some_and(|limit| used + gpu_milli > limit)
        })
    }

    /// Milli-GPU more that the queue may hold; `None` is no limit.
    pub(crate) fn headroom(&self, queue: &str) -> Option<i64> {
        self.chain(queue)
            .filter_map(|queue| {
                let used = self.used_milli.get(&queue.name).copied().unwrap_or(0);
                queue.limit_gpu_milli.map(|limit| limit - used)
            })
            .min()
    }

    /// Counts `gpu_milli` (negative: takes back) for the queue and all above it.
    pub(crate) fn add(&mut self, queue: &str, gpu_milli: i64) {
        let names: Vec<QueueName> = self.chain(queue).map(|queue| queue.name.clone()).collect();
        for name in names {
            *self.used_milli.entry(name).or_default() += gpu_milli;
        }
    }

    /// Recounts usage after the tree changed.
    pub(crate) fn recount<'a>(&mut self, holds: impl Iterator<Item = (&'a str, i64)>) {
        self.used_milli.clear();
        for (queue, gpu_milli) in holds {
            self.add(queue, gpu_milli);
        }
    }

    /// The queue and its parents; a cycle ends where it closes.
    fn chain<'s>(&'s self, queue: &str) -> impl Iterator<Item = &'s Queue> + use<'s> {
        let mut next = self.queues.get(queue);
        let mut seen: SmallVec<[&'s str; 8]> = SmallVec::new();
        std::iter::from_fn(move || {
            let current = next.filter(|queue| !seen.contains(&queue.name.as_str()))?;
            seen.push(&current.name);
            next = current.parent.as_ref().and_then(|parent| self.queues.get(parent));
            Some(current)
        })
    }
}
