//! Where capacity is: unavailable, allocated, or free by cause; of GPUs, GPU-time or money alike.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use dovetail_model::QueueName;
use serde::Serialize;
use thiserror::Error;

use dovetail_model::FreeCause;

/// A quantity split by state. The unit stands with whatever holds this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct States<N> {
    /// All devices there are.
    pub installed: N,
    /// Lost devices, and what is not held on nodes that are not ready.
    pub unavailable: N,
    /// Held by pods.
    pub allocated: N,
    /// Held by pods of jobs, by queue; the default queue has the empty name.
    pub allocated_by_queue: BTreeMap<QueueName, N>,
    /// Held by pods that belong to no job of the engine: static pods, daemons, other schedulers.
    pub allocated_by_others: N,
    pub free: N,
    /// The same by cause; every cause is listed.
    pub free_by_cause: BTreeMap<FreeCause, N>,
}

/// The parts are not the whole: a bug of this crate or of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{part} is {have} but its parts add up to {sum}; this is a bug: report it")]
pub struct Imbalance {
    /// What does not add up.
    pub part: &'static str,
    /// Its amount.
    pub have: i128,
    /// The sum of its parts.
    pub sum: i128,
}

impl<N: Copy + Default + AddAssign> States<N> {
    /// Nothing, with every cause listed.
    pub fn zero() -> Self {
        Self {
            free_by_cause: FreeCause::ALL.iter().map(|cause| (*cause, N::default())).collect(),
            ..Self::default()
        }
    }

    /// Adds to one cause, and to what is free.
    pub fn add_free(&mut self, cause: FreeCause, amount: N) {
        self.free += amount;
        *self.free_by_cause.entry(cause).or_default() += amount;
    }

    /// Adds to a queue (`None`: others), and to what is allocated.
    pub fn add_allocated(&mut self, queue: Option<&str>, amount: N) {
        self.allocated += amount;
        match queue {
            None => self.allocated_by_others += amount,
            Some(queue) => match self.allocated_by_queue.get_mut(queue) {
                Some(have) => *have += amount,
                None => {
                    self.allocated_by_queue.insert(queue.to_owned(), amount);
                }
            },
        }
    }

    /// Adds all of another split.
    pub fn add(&mut self, other: &Self) {
        self.installed += other.installed;
        self.unavailable += other.unavailable;
        for (queue, amount) in &other.allocated_by_queue {
            self.add_allocated(Some(queue), *amount);
        }
        self.add_allocated(None, other.allocated_by_others);
        for (cause, amount) in &other.free_by_cause {
            self.add_free(*cause, *amount);
        }
    }
}

impl<N: Copy> States<N> {
    /// Free by one cause.
    pub fn free_by(&self, cause: FreeCause) -> N {
        self.free_by_cause[&cause]
    }

    /// Checks installed = unavailable + allocated + free, allocated by holder and free by cause,
    /// exactly, in the number that `of` reads off a quantity.
    pub fn check(&self, of: impl Fn(N) -> i128) -> Result<(), Imbalance> {
        let holders: i128 = self.allocated_by_queue.values().map(|amount| of(*amount)).sum();
        let causes: i128 = self.free_by_cause.values().map(|amount| of(*amount)).sum();
        let rows = [
            ("free", of(self.free), causes),
            ("allocated", of(self.allocated), holders + of(self.allocated_by_others)),
            (
                "installed",
                of(self.installed),
                of(self.unavailable) + of(self.allocated) + of(self.free),
            ),
        ];
        match rows.into_iter().find(|(_, have, sum)| have != sum) {
            Some((part, have, sum)) => Err(Imbalance { part, have, sum }),
            None => Ok(()),
        }
    }
}
