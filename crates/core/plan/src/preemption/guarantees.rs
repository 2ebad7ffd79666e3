//! Quotas of queues as what nobody else may take, and what their owners get back.
//!
//! Between two queues it counts what stands right below the lowest queue that is above both: a
//! queue that would hold no more than its quota even with a job may get back for it what another
//! holds beyond its own. A queue without a quota holds everything beyond it.

use std::collections::BTreeMap;
use std::rc::Rc;

use dovetail_model::{Axis, Charge, Queue, QueueName};
use smallvec::SmallVec;

use crate::queue::quota::{Beside, Level, Quota};

/// Two queues, seen from the lowest queue above both.
pub(super) struct Between<'e> {
    quota: &'e Quota,
    /// On the preemptor's side: how many queues up it stands from that of the job; `None` if its
    /// queue is above the victim's, or the same.
    ours: Option<usize>,
    /// On the victim's side: `None` if its queue is above the preemptor's, or the same.
    theirs: Option<&'e Queue>,
}

impl<'e> Between<'e> {
    pub(super) fn of(quota: &'e Quota, ours: &str, theirs: &str) -> Self {
        let path = |queue| quota.way_up(queue).collect::<SmallVec<[&Queue; 4]>>();
        let (ours, theirs) = (path(ours), path(theirs));
        let shared = ours.iter().rev().zip(theirs.iter().rev());
        let shared = shared.take_while(|(one, other)| one.name == other.name).count();
        let below = |path: &SmallVec<[&'e Queue; 4]>| path.len().checked_sub(shared + 1);
        Self { quota, ours: below(&ours), theirs: below(&theirs).map(|at| theirs[at]) }
    }

    /// Whether the preemptor's side is one of the queues that reclaim.
    pub(super) fn reclaims(&self, reclaims: u32) -> bool {
        self.ours.is_some_and(|up| up < 32 && reclaims >> up & 1 == 1)
    }

    /// Whether the victim's side holds anything beyond its quota.
    pub(super) fn lends(&self) -> bool {
        let Some(theirs) = self.theirs else { return true };
        let held = self.quota.held(theirs, Level::All);
        let mut quotas = theirs.guaranteed.iter().peekable();
        quotas.peek().is_none() || quotas.any(|(axis, quota)| held.get(&axis) > quota)
    }
}

/// Which queues on the way up would hold no more than their quota with a job that asks for so much
/// and what is kept beside, bit by bit.
pub(crate) fn reclaims(quota: &Quota, queue: &str, asked: &Charge, beside: &Beside) -> u32 {
    let is_within = |queue: &Queue| {
        let (held, kept) = (quota.held(queue, Level::All), beside.get(&queue.name));
        let mut asks = queue.guaranteed.iter().filter(|(axis, _)| asked.get(axis) > 0).peekable();
        asks.peek().is_some()
            && asks.all(|(axis, quota)| {
                let kept = kept.map_or(0, |kept| kept.get(&axis));
                held.get(&axis).saturating_add(kept).saturating_add(asked.get(&axis)) <= quota
            })
    };
    let path = quota.way_up(queue).take(32).enumerate();
    path.filter(|(_, queue)| is_within(queue)).fold(0, |bits, (up, _)| bits | 1 << up)
}

/// What each queue that a preemptor is not below may lose: what it holds beyond its quota.
#[derive(Clone, Debug, Default)]
pub(super) struct Lendable {
    of: BTreeMap<QueueName, SmallVec<[(u16, Axis); 1]>>,
    amounts: Rc<Vec<i64>>,
}

/// What a unit takes of parts of it.
pub(super) type Takes = SmallVec<[(u16, i64); 1]>;

impl Lendable {
    /// `leaving` counts what has been told to leave, by queue with all above it.
    pub(super) fn of(quota: &Quota, preemptor: &str, leaving: &Beside) -> Self {
        let mut all = Self::default();
        let mut amounts = Vec::new();
        for queue in quota.all() {
            if quota.way_up(preemptor).any(|up| up.name == queue.name) {
                continue;
            }
            for (axis, guaranteed) in queue.guaranteed.iter() {
                let gone = leaving.get(&queue.name).map_or(0, |gone| gone.get(&axis));
                let held = quota.held(queue, Level::All).get(&axis);
                let number = u16::try_from(amounts.len()).unwrap_or(u16::MAX);
                amounts.push(held.saturating_sub(gone).saturating_sub(guaranteed).max(0));
                all.of.entry(queue.name.clone()).or_default().push((number, axis));
            }
        }
        all.amounts = Rc::new(amounts);
        all
    }

    pub(super) fn amounts(&self) -> Rc<Vec<i64>> {
        Rc::clone(&self.amounts)
    }

    /// What pods of a queue take that count so much.
    pub(super) fn taken_by<'c>(
        &self,
        quota: &Quota,
        queue: &str,
        charges: impl Iterator<Item = &'c Charge> + Clone,
    ) -> Takes {
        if self.of.is_empty() {
            return Takes::new();
        }
        let parts = quota.way_up(queue).filter_map(|queue| self.of.get(&queue.name)).flatten();
        parts
            .map(|(number, axis)| {
                let amounts = charges.clone().map(|charge| charge.get(axis));
                (*number, amounts.fold(0, i64::saturating_add))
            })
            .filter(|(_, amount)| *amount > 0)
            .collect()
    }
}
