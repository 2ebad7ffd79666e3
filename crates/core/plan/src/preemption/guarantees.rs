//! Quotas of queues as what nobody else may take, and what their owners get back.
//!
//! Between two queues it counts what stands right below the lowest queue that is above both: a
//! queue that would hold no more than its quota even with a job may get back for it what another
//! holds beyond its own. A queue without a quota holds everything beyond it, and all that a job
//! holds is borrowed that exceeds the quota of its queue alone.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use dovetail_model::{Axis, Bounds, Charge, Job, JobId, Queue, QueueName};
use smallvec::SmallVec;

use dovetail_order::queues::quota::{Beside, Quota, UsageScope};

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

    /// Whether the victim's side holds anything beyond its quota. Where the whole cluster is
    /// divided, a queue within its quota (`within`, bit by bit) gets back what another holds beyond
    /// its own, even if that is no more than the other should have.
    pub(super) fn lends(&self, within: u32) -> bool {
        self.would_lend(within, &Charge::default())
    }

    /// The same once the victim's side holds so much more.
    pub(super) fn would_lend(&self, within: u32, more: &Charge) -> bool {
        let Some(theirs) = self.theirs else { return true };
        let held = self.quota.held(theirs, UsageScope::All);
        let kept = kept(self.quota, theirs, self.reclaims(within));
        let exceeds =
            |(axis, quota): (Axis, i64)| held.get(&axis).saturating_add(more.get(&axis)) > quota;
        kept.is_empty() || kept.iter().any(exceeds)
    }

    /// Whether both are the same queue.
    pub(super) fn is_one_queue(&self) -> bool {
        self.ours.is_none() && self.theirs.is_none()
    }
}

/// What nobody takes of a queue: its quota alone for who gets back their own.
fn kept<'q>(quota: &Quota, queue: &'q Queue, gets_back: bool) -> Cow<'q, Bounds> {
    match gets_back {
        true => Cow::Borrowed(&queue.guaranteed),
        false => quota.entitled(queue),
    }
}

/// Whether any job of a queue might get back from another one what that holds once it holds so much
/// more; cheap, and never wrong when it says no.
pub(crate) fn might_reclaim(quota: &Quota, ours: &str, theirs: &str, more: &Charge) -> bool {
    let between = Between::of(quota, ours, theirs);
    let Some(queue) = between.ours.and_then(|up| quota.way_up(ours).nth(up)) else {
        return false;
    };
    let held = quota.held(queue, UsageScope::All);
    let has_left = |most: &Bounds| most.iter().any(|(axis, most)| held.get(&axis) < most);
    has_left(&quota.entitled(queue))
        && (between.would_lend(0, more)
            || has_left(&queue.guaranteed) && between.would_lend(u32::MAX, more))
}

/// Whether a queue or one above it holds less of anything than its quota: no other gives back
/// anything to its jobs.
pub(super) fn has_quota_left(quota: &Quota, queue: &str) -> bool {
    quota.way_up(queue).any(|queue| {
        let held = quota.held(queue, UsageScope::All);
        let has_left = |most: &Bounds| most.iter().any(|(axis, most)| held.get(&axis) < most);
        has_left(&quota.entitled(queue)) || quota.shares.is_some() && has_left(&queue.guaranteed)
    })
}

/// Whether a job that asks for so much exceeds the quota of its queue alone, while that holds no
/// more than its quota. If such a job took the place of others of its queue, it would hold beyond
/// the quota what they hold within it: others could take that from it, and they would get it back
/// from those again, without end.
pub(crate) fn exceeds_kept(quota: &Quota, queue: &str, asked: impl FnOnce() -> Charge) -> bool {
    quota.way_up(queue).next().is_some_and(|queue| {
        let (entitled, held) = (quota.entitled(queue), quota.held(queue, UsageScope::All));
        // Most queues hold more.
        entitled.iter().all(|(axis, most)| held.get(&axis) <= most) && {
            let asked = asked();
            entitled.iter().any(|(axis, most)| asked.get(&axis) > most)
        }
    })
}

/// Whether a queue that holds no more than its quota holds more once a job that asks for so much
/// has the place of others of that queue, which count so much: see [`exceeds_kept`].
pub(super) fn exceeds_instead(quota: &Quota, queue: &str, asked: &Charge, gone: &Charge) -> bool {
    quota.way_up(queue).next().is_some_and(|queue| {
        let (entitled, held) = (quota.entitled(queue), quota.held(queue, UsageScope::All));
        let after = |axis: &Axis| held.get(axis).saturating_sub(gone.get(axis)) + asked.get(axis);
        entitled.iter().all(|(axis, most)| held.get(&axis) <= most)
            && entitled.iter().any(|(axis, most)| asked.get(&axis) > 0 && after(&axis) > most)
    })
}

/// Which queues on the way up would hold no more than `most` says with a job that asks for so much
/// and what is kept beside, bit by bit.
pub(crate) fn reclaims<'q>(
    quota: &'q Quota,
    queue: &str,
    (asked, beside): (&Charge, &Beside),
    most: impl Fn(&'q Queue) -> Cow<'q, Bounds>,
) -> u32 {
    let is_within = |queue: &'q Queue| {
        let (held, kept) = (quota.held(queue, UsageScope::All), beside.get(&queue.name));
        let entitled = most(queue);
        let mut asks = entitled.iter().filter(|(axis, _)| asked.get(axis) > 0).peekable();
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
    /// Jobs that exceed the quota of a queue alone.
    larger: BTreeSet<(JobId, QueueName)>,
    parts: Rc<LendableParts>,
}

/// The same by number.
#[derive(Clone, Debug, Default)]
pub(super) struct LendableParts {
    /// How much, and which queue's.
    amounts: Vec<(u16, i64)>,
    /// Where the whole cluster is divided, a queue that holds more of anything than it should loses
    /// a job even if it has less than that afterwards.
    loses_whole_jobs: bool,
}

impl LendableParts {
    pub(super) fn is_empty(&self) -> bool {
        self.amounts.is_empty()
    }

    /// Whether queues have too little left for what is taken of them, after they have lost so much.
    pub(super) fn lack(&self, takes: &Takes, lost: &BTreeMap<u16, i64>) -> bool {
        let queue = |number: u16| self.amounts[usize::from(number)].0;
        let left = |number: u16| {
            let lost = lost.get(&number).copied().unwrap_or(0);
            self.amounts[usize::from(number)].1.saturating_sub(lost)
        };
        takes.iter().any(|(number, amount)| match self.loses_whole_jobs {
            true => {
                let mut all = 0..self.amounts.len() as u16;
                !all.any(|other| queue(other) == queue(*number) && left(other) > 0)
            }
            false => *amount > left(*number),
        })
    }
}

/// What a unit takes of parts of it.
pub(super) type Takes = SmallVec<[(u16, i64); 1]>;

impl Lendable {
    /// What queues may lose for a job of the preemptor's. Jobs come with what they hold; of those
    /// that leave, pod by pod, also with what leaves.
    pub(super) fn of<'j>(
        quota: &Quota,
        (preemptor, within): (&str, u32),
        held: impl Iterator<Item = (&'j Job, &'j Charge)>,
        leaving: impl Iterator<Item = (&'j Job, &'j Charge)>,
    ) -> Self {
        let larger = larger(quota, held);
        let aside = aside(quota, leaving, &larger);
        let larger = larger.into_keys().collect();
        let mut all = Self { larger, ..Self::default() };
        let mut amounts = Vec::new();
        for (queue, of_queue) in quota.all().zip(0..) {
            if quota.way_up(preemptor).any(|up| up.name == queue.name) {
                continue;
            }
            let gets_back =
                within != 0 && Between::of(quota, preemptor, &queue.name).reclaims(within);
            for (axis, guaranteed) in kept(quota, queue, gets_back).iter() {
                let aside = aside.get(&queue.name).map_or(0, |aside| aside.get(&axis));
                let held = quota.held(queue, UsageScope::All).get(&axis);
                let number = u16::try_from(amounts.len()).unwrap_or(u16::MAX);
                let beyond = held.saturating_sub(aside).saturating_sub(guaranteed).max(0);
                amounts.push((of_queue, beyond));
                all.of.entry(queue.name.clone()).or_default().push((number, axis));
            }
        }
        let loses_whole_jobs = quota.shares.is_some();
        all.parts = Rc::new(LendableParts { amounts, loses_whole_jobs });
        all
    }

    pub(super) fn parts(&self) -> Rc<LendableParts> {
        Rc::clone(&self.parts)
    }

    /// What pods of a job take that count so much.
    pub(super) fn taken_by<'c>(
        &self,
        quota: &Quota,
        job: &Job,
        charges: impl Iterator<Item = &'c Charge> + Clone,
    ) -> Takes {
        if self.of.is_empty() {
            return Takes::new();
        }
        let is_larger = |queue: &Queue| {
            !self.larger.is_empty() && self.larger.contains(&(job.id, queue.name.clone()))
        };
        let within = quota.way_up(&job.queue).filter(|queue| !is_larger(queue));
        let parts = within.filter_map(|queue| self.of.get(&queue.name)).flatten();
        parts
            .map(|(number, axis)| {
                let amounts = charges.clone().map(|charge| charge.get(axis));
                (*number, amounts.fold(0, i64::saturating_add))
            })
            .filter(|(_, amount)| *amount > 0)
            .collect()
    }
}

/// Jobs that hold something and exceed the quota of a queue of theirs even at their smallest size,
/// with what they hold. Where the whole cluster is divided, queues lose whole jobs anyway.
fn larger<'j>(
    quota: &Quota,
    held: impl Iterator<Item = (&'j Job, &'j Charge)>,
) -> BTreeMap<(JobId, QueueName), &'j Charge> {
    let mut smallest: BTreeMap<Axis, i64> = BTreeMap::new();
    if quota.shares.is_none() {
        for (axis, amount) in quota.queues().flat_map(|queue| queue.guaranteed.iter()) {
            let least = smallest.entry(axis).or_insert(amount);
            *least = amount.min(*least);
        }
    }
    // Few hold more than the smallest of all quotas.
    let suspects =
        held.filter(|(_, counted)| smallest.iter().any(|(axis, quota)| counted.get(axis) > *quota));
    let mut larger = BTreeMap::new();
    for (job, counted) in suspects {
        let asks = Charge::of_smallest(job);
        let exceeds =
            |queue: &&Queue| queue.guaranteed.iter().any(|(axis, quota)| asks.get(&axis) > quota);
        let queues = quota.way_up(&job.queue).filter(exceeds);
        larger.extend(queues.map(|queue| ((job.id, queue.name.clone()), counted)));
    }
    larger
}

/// What queues hold and cannot lose within their quota: what is about to leave, and what jobs hold
/// that exceed it.
fn aside<'j>(
    quota: &Quota,
    leaving: impl Iterator<Item = (&'j Job, &'j Charge)>,
    larger: &BTreeMap<(JobId, QueueName), &Charge>,
) -> Beside {
    let mut aside = Beside::default();
    for (job, charge) in leaving {
        for up in quota.way_up(&job.queue) {
            if !larger.contains_key(&(job.id, up.name.clone())) {
                aside.entry(up.name.clone()).or_default().add_times(charge, 1);
            }
        }
    }
    for ((_, queue), counted) in larger {
        aside.entry(queue.clone()).or_default().add_times(counted, 1);
    }
    aside
}
