//! Queues that are not there, and in which pods run: one that was deleted counts as it was until
//! nothing is held in it or below it, so that the queues above it stay within what they may hold.
//! Of one that was never seen only the name is known: what runs counts under that.

use std::collections::BTreeMap;
use std::fmt;

use dovetail_model::{Queue, QueueName};

use super::World;
use super::queues::NO_QUEUE;
use super::standing::Told;
use crate::queues::{QUEUE_LABEL, shown_name};

/// A queue that is not there, with the pods that run in it or below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingQueue {
    /// Its name.
    pub name: String,
    /// Whether it was seen before it was deleted.
    pub is_known: bool,
    /// The queue that was above it, as far as is known.
    pub parent: Option<String>,
    /// Pods that run in it or below it.
    pub pods: usize,
    /// Units of the resource of whole GPUs that these hold.
    pub gpus: i64,
    /// The name of that resource.
    pub gpu_resource: String,
}

impl MissingQueue {
    /// What is told to who asks about a cluster, and has not seen what the queue was. A scheduler
    /// may have.
    pub fn to_who_asks(&self) -> String {
        match self.is_known {
            true => self.to_string(),
            false => self.text(
                "what it was given, and which queue was above it, is not known here; a scheduler that saw it counts \
                 them as before",
            ),
        }
    }

    fn text(&self, how: &str) -> String {
        let Self { name, pods, gpus, gpu_resource, .. } = self;
        let run = match pods {
            1 => "1 pod runs".to_owned(),
            _ => format!("{pods} pods run"),
        };
        let with = match gpus {
            0 => String::new(),
            _ => format!(", with {gpus} {gpu_resource}"),
        };
        format!(
            "queue {name} does not exist, and {run} in it or below it{with}: {how}; create it again, or name another \
             queue in label {QUEUE_LABEL}"
        )
    }
}

impl fmt::Display for MissingQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (they_count, end) = match self.pods {
            1 => ("it counts", "it ends"),
            _ => ("they count", "they end"),
        };
        let how = match (&self.parent, self.is_known) {
            (Some(parent), _) => {
                format!("{they_count} for it and for queue {parent} above it until {end}")
            }
            (None, true) => format!("{they_count} for it until {end}"),
            (None, false) => format!("{they_count} under its name, and for no queue above it"),
        };
        formatter.write_str(&self.text(&how))
    }
}

/// What is known of queues that are not there.
#[derive(Debug, Default)]
pub(super) struct Missing {
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
    /// A queue is deleted.
    pub(super) fn deleted(&mut self, queue: Queue) {
        self.last.insert(queue.name.clone(), queue);
    }

    /// A queue is there.
    pub(super) fn created(&mut self, name: &str) {
        self.last.remove(name);
    }

    /// There are no queues at all.
    pub(super) fn forget(&mut self) {
        self.last.clear();
    }

    /// A job that runs counts for a queue. `is_told`: the engine knows that.
    pub(super) fn begins(&mut self, queue: &str, is_told: bool) {
        *self.jobs.entry(queue.to_owned()).or_default() += 1;
        self.is_dirty |= !is_told;
    }

    /// It does not count for it any more.
    pub(super) fn ends(&mut self, queue: &str) {
        let Some(jobs) = self.jobs.get_mut(queue) else { return };
        *jobs -= 1;
        if *jobs == 0 {
            self.jobs.remove(queue);
            self.is_dirty |= !self.found.is_empty();
        }
    }

    /// Whether a queue is missing.
    pub(super) fn has(&self, name: &str) -> bool {
        self.found.contains_key(name)
    }

    /// Whether what is missing may have changed, since the last call.
    pub(super) fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.is_dirty)
    }

    /// Looks anew which are missing beside those that are there. What nobody uses any more is
    /// forgotten.
    pub(super) fn find(
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

impl World {
    /// Queues that are not there and in which pods run, by name.
    pub fn missing_queues(&self) -> Vec<MissingQueue> {
        let Missing { found, last, .. } = &self.queues.missing;
        if found.is_empty() {
            return Vec::new();
        }
        let gpu_resource = &self.settings.rules.device_resource;
        let held = self.pods_by_queue();
        let missing = |(name, queue): (&QueueName, &Queue)| {
            let is_below = |below: &str| self.queues.way_up(below).contains(&name.as_str());
            let below = held.iter().filter(|(below, _)| is_below(below)).map(|(_, sum)| sum);
            let sum =
                below.fold((0, 0_i64), |sum, one| (sum.0 + one.0, sum.1.saturating_add(one.1)));
            MissingQueue {
                name: name.clone(),
                is_known: last.contains_key(name),
                parent: queue.parent.as_deref().map(|parent| shown_name(parent).to_owned()),
                pods: sum.0,
                gpus: sum.1,
                gpu_resource: gpu_resource.clone(),
            }
        };
        found.iter().map(missing).collect()
    }

    /// How many pods run in each queue, and how many units of the resource of whole GPUs they hold.
    fn pods_by_queue(&self) -> BTreeMap<QueueName, (usize, i64)> {
        let mut sums: BTreeMap<QueueName, (usize, i64)> = BTreeMap::new();
        for slot in self.pods.in_order() {
            let entry = self.pods.get(slot);
            if !matches!(entry.told, Told::Assumed { .. } | Told::Running { .. }) {
                continue;
            }
            let gpus = entry.pod.holds().extended.get(&self.settings.rules.device_resource);
            let sum = sums.entry(self.queue_of(slot)).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(gpus.copied().unwrap_or(0)));
        }
        sums
    }
}
