//! Who may preempt whom, and for which reason.

use std::cell::RefCell;
use std::collections::BTreeSet;

use dovetail_model::{Charge, JobId, PreemptReason, QueueName};
use rustc_hash::FxHashMap;

use super::guarantees;
use crate::engine::JobRecord;
use dovetail_order::book::TurnBook;
use dovetail_order::queues::quota::Quota;
use dovetail_order::rates::{Claimant, Given};

/// A waiting job that asks who would make place for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preemptor {
    pub(crate) priority: i32,
    /// Its standing, which other orders than `dovetail` do not know, and who waits behind it.
    claimant: Claimant,
    /// Which of its queues hold less than their quota even with it, from its own up, bit by bit.
    pub(super) reclaims: u32,
    /// The same by their quotas alone, where the order divides the whole cluster.
    pub(super) within: u32,
    /// Whether it takes nothing from others of its queue: it exceeds the quota of that alone.
    exceeds: bool,
}

impl Preemptor {
    /// A job before others of each of which no less GPU time is expected than `least` says of its
    /// standing, with the queues for which it may reclaim, and those within their quotas;
    /// `exceeds` if it takes nothing from others of its queue.
    pub(crate) fn of(
        record: &JobRecord,
        least: impl FnOnce(u64) -> u64,
        [reclaims, within]: [u32; 2],
        exceeds: bool,
    ) -> Self {
        let standing = standing(record);
        let gpu_milli = record.job.min_gpu_milli().unsigned_abs();
        let place = (standing, record.job.submit_ms);
        let claimant = Claimant::before_any(place, gpu_milli, least(standing));
        Self { priority: record.job.priority, claimant, reclaims, within, exceeds }
    }

    /// The same before these others, of so many milli-GPU and so much expected GPU time.
    pub(crate) fn before(
        self,
        record: &JobRecord,
        others: impl Iterator<Item = (u64, u64)>,
    ) -> Self {
        let gpu_milli = record.job.min_gpu_milli().unsigned_abs();
        let place = (standing(record), record.job.submit_ms);
        Self { claimant: Claimant::new(place, gpu_milli, others), ..self }
    }

    /// Whether others may have to give back to one of its queues.
    pub(crate) fn may_reclaim(&self) -> bool {
        self.reclaims != 0
    }

    /// Whether anybody might make place for its standing; never wrong when it says no.
    pub(crate) fn might_take_by_order(&self, turns: &TurnBook) -> bool {
        turns.might_take(&self.claimant)
    }
}

/// The place of a waiting job in the order `dovetail`, whatever its priority.
fn standing(record: &JobRecord) -> u64 {
    record.place.map_or(u64::MAX, |((_, standing, _), _)| standing)
}

/// A preemptor among all others. Where it does not know who waits behind it, it is never wrong when
/// it says that somebody stays.
#[derive(Clone)]
pub(crate) struct Relation<'e> {
    pub(crate) preemptor: Preemptor,
    /// The queue of the preemptor.
    pub(crate) queue: &'e str,
    /// Standings, with the order that knows them.
    pub(crate) turns: Option<&'e TurnBook>,
    pub(crate) quota: &'e Quota,
    pub(crate) by_priority: bool,
    pub(crate) now_ms: u64,
    /// Jobs that are not preempted because what is reserved for others counts on their places.
    pub(crate) spared: &'e BTreeSet<JobId>,
    /// What is known of queues: jobs are many, queues are few.
    pub(crate) sides: RefCell<FxHashMap<QueueName, Side>>,
}

/// What a preemptor may take of the jobs of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    /// Whether they give back what their queue holds beyond its quota.
    gives_back: bool,
    /// Whether priority and standing count against them.
    is_reached: bool,
}

impl Relation<'_> {
    /// Whether quotas are nobody else's.
    pub(super) fn protects(&self) -> bool {
        self.turns.is_some_and(TurnBook::protects_guarantees)
    }

    /// For which reason a job that runs may be preempted for this one, if for any.
    pub(crate) fn reason(&self, victim: &JobRecord) -> Option<PreemptReason> {
        let is_spared = || self.spared.contains(&victim.job.id);
        if victim.place.is_some() || victim.job.preemption.is_protected || is_spared() {
            return None;
        }
        let Preemptor { priority, ref claimant, reclaims, .. } = self.preemptor;
        if self.protects() || reclaims != 0 {
            let side = self.side(&victim.job.queue);
            let gives_back = |turns: &TurnBook| turns.gives_back(&victim.job, self.now_ms);
            if side.gives_back && self.turns.is_some_and(gives_back) {
                return Some(PreemptReason::Reclaim);
            }
            if !side.is_reached {
                return None;
            }
        }
        if self.is_kept_in_queue(victim) {
            return None;
        }
        if self.by_priority && victim.job.priority < priority {
            return Some(PreemptReason::Priority);
        }
        let is_equal = victim.job.priority == priority;
        let makes_place = is_equal
            && self.turns.is_some_and(|turns| turns.may_take(claimant, &victim.job, self.now_ms));
        makes_place.then_some(PreemptReason::Order)
    }

    /// What so many GPUs of a job count that makes place for the order alone; nothing for others,
    /// which do not ask what is better.
    pub(super) fn given(&self, victim: &JobRecord, gpu_milli: u64) -> Option<Given> {
        let turns = self.turns.filter(|turns| turns.has_open())?;
        (self.reason(victim) == Some(PreemptReason::Order))
            .then(|| turns.given(&self.preemptor.claimant, victim.job.id, gpu_milli))?
    }

    /// Whether a part of the job that asks for so many GPUs is worth what is given for it.
    pub(super) fn is_worth(&self, part_milli: u64, given: Option<Given>) -> bool {
        let claimant = &self.preemptor.claimant;
        given.is_none_or(|given| {
            self.turns.is_none_or(|turns| turns.is_worth(claimant, part_milli, given))
        })
    }

    /// Whether others of a queue would have to give back to this job once that queue holds so much
    /// more.
    pub(crate) fn would_reclaim(&self, queue: &str, more: &Charge) -> bool {
        let Preemptor { reclaims, within, .. } = self.preemptor;
        if reclaims == 0 {
            return false;
        }
        let between = guarantees::Between::of(self.quota, self.queue, queue);
        between.reclaims(reclaims) && between.would_lend(within, more)
    }

    /// Whether a job that runs may be preempted for its lower priority, if for nothing else.
    pub(crate) fn outranks(&self, victim: &JobRecord) -> bool {
        let reaches = || {
            let is_asked = self.protects() || self.preemptor.reclaims != 0;
            !is_asked || self.side(&victim.job.queue).is_reached
        };
        let is_lower = self.by_priority && victim.job.priority < self.preemptor.priority;
        is_lower && !self.is_kept_in_queue(victim) && reaches()
    }

    /// Whether a job is of the preemptor's queue, and holds within the quota of that what the
    /// preemptor would hold beyond it.
    fn is_kept_in_queue(&self, victim: &JobRecord) -> bool {
        self.preemptor.exceeds && victim.job.queue == self.queue
    }

    fn side(&self, queue: &QueueName) -> Side {
        if let Some(known) = self.sides.borrow().get(queue) {
            return *known;
        }
        let between = guarantees::Between::of(self.quota, self.queue, queue);
        let Preemptor { reclaims, within, .. } = self.preemptor;
        let gives_back = between.reclaims(reclaims) && between.lends(within);
        let side = Side { gives_back, is_reached: self.reaches(&between) };
        self.sides.borrow_mut().insert(queue.clone(), side);
        side
    }

    /// Whether priority and standing count between two queues: not against what one holds within
    /// its quota, and where the whole cluster is divided, within a queue alone.
    fn reaches(&self, between: &guarantees::Between<'_>) -> bool {
        let is_kept = self.protects() && !between.lends(0);
        !is_kept && (self.quota.shares.is_none() || between.is_one_queue())
    }
}
