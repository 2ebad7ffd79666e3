//! What the bounds of its queues have to do with a job that stops others: what they must get back
//! before it may start, and what is kept of them until it does.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{
    Axis, Bounds, Charge, HoldingId, Job, JobId, Owner, PodId, PreemptionReservation, QueueName,
};
use smallvec::SmallVec;

use super::Claims;
use super::guarantees::has_quota_left;
use super::units::{Repays, Unit};
use crate::engine::charge::charge_there;
use crate::engine::{JobRecord, Jobs};
use crate::gang::Gang;
use dovetail_order::queues::quota::{Beside, Quota, QuotaBlock};
use dovetail_state::State;
use rustc_hash::FxHashMap;

/// By how much a job would bring each of its queues beyond a bound.
#[derive(Clone, Debug, Default)]
pub(super) struct Shortage(Vec<(QueueName, Axis, i64)>);

impl Shortage {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether GPUs of a model are short.
    pub(super) fn names_models(&self) -> bool {
        self.0.iter().any(|(_, axis, _)| matches!(axis, Axis::GpuModel(_)))
    }

    /// Whether jobs of a queue can give back anything of it.
    pub(super) fn is_of(&self, quota: &Quota, queue: &str) -> bool {
        quota.way_up(queue).any(|up| self.0.iter().any(|(short, ..)| *short == up.name))
    }

    /// What is given back by pods of a queue that count so much.
    pub(super) fn repaid_by<'c>(
        &self,
        quota: &Quota,
        queue: &str,
        charges: impl Iterator<Item = &'c Charge> + Clone,
    ) -> Repays {
        let repaid = |(short, axis, _): &(QueueName, Axis, i64)| {
            let is_counted = quota.way_up(queue).any(|up| up.name == *short);
            let amounts = charges.clone().map(|charge| charge.get(axis));
            if is_counted { amounts.fold(0, i64::saturating_add) } else { 0 }
        };
        self.0.iter().map(repaid).collect()
    }

    /// What is still short when some have gone; nothing or less is enough.
    pub(super) fn left(&self, gone: &[Unit]) -> Repays {
        let mut left: Repays = self.0.iter().map(|(.., amount)| *amount).collect();
        for unit in gone {
            for (left, repaid) in left.iter_mut().zip(&unit.repays) {
                *left = left.saturating_sub(*repaid);
            }
        }
        left
    }

    /// Whether nothing is short any more when these have gone.
    pub(super) fn is_repaid(&self, gone: &[Unit]) -> bool {
        self.left(gone).iter().all(|left| *left <= 0)
    }
}

/// Queues, each below the next.
type Path<'q> = SmallVec<[&'q QueueName; 4]>;

/// What bounds of queues are held against: what they hold, what is kept of them, and for whom.
/// Nothing changes by asking.
#[derive(Clone, Copy)]
pub(crate) struct Bounded<'b> {
    pub(crate) state: &'b State,
    pub(crate) jobs: &'b Jobs,
    pub(crate) claims: &'b Claims,
    pub(crate) quota: &'b Quota,
}

impl Bounded<'_> {
    /// How much a job may have beyond its smallest size; `None` if its queues may not even hold
    /// that.
    pub(crate) fn growth_limit(&self, job: JobId, gang: &Gang) -> Option<Bounds> {
        let queue = &self.jobs.records[&job].job.queue;
        if !self.quota.limits(queue) {
            return Some(Bounds::default());
        }
        let (asked, kept) = (gang.smallest(self.state), self.quota_kept(job));
        if self.quota.blocked_by(queue, &asked, &kept).is_some() {
            return None;
        }
        let headroom = self.quota.headroom(queue, &kept);
        let mut limit = Bounds::default();
        for (axis, left) in headroom.iter() {
            limit.set(&axis, left.saturating_sub(asked.get(&axis)));
        }
        Some(limit)
    }

    /// What is kept of a job's queues for jobs that room is kept for, as important as this one or
    /// more, beyond what those still hold who are to leave.
    pub(crate) fn quota_kept(&self, job: JobId) -> Beside {
        let record = self.jobs.records.get(&job);
        let ours = record.map(|record| self.path(record)).unwrap_or_default();
        self.kept_for(self.before(job), |other| self.shared(&ours, other))
    }

    /// The same of all queues, for jobs of a priority for which no room is kept.
    fn kept_of_all(&self, priority: i32) -> Beside {
        self.kept_for(self.at_least(priority), |other| self.path(other))
    }

    /// What is kept of some of the queues of each job for these that room is kept for.
    fn kept_for<'c, 'q>(
        &self,
        claims: impl Iterator<Item = (&'c JobRecord, &'c PreemptionReservation)>,
        queues_of: impl Fn(&JobRecord) -> Path<'q>,
    ) -> Beside {
        let mut kept = Beside::default();
        let mut awaited: BTreeSet<PodId> = BTreeSet::new();
        for (record, claim) in claims {
            let shared = queues_of(record);
            if !shared.is_empty() {
                add(&mut kept, &shared, &self.claimed(record, claim), 1);
            }
            awaited.extend(claim.awaited.iter().filter_map(pod_of));
        }
        if kept.is_empty() {
            return kept;
        }
        for pod in awaited {
            let Some((record, charge)) = self.jobs.charge_of(self.state, pod) else { continue };
            let mut shared = queues_of(record);
            shared.retain(|name| kept.contains_key(*name));
            if shared.is_empty() || self.jobs.held_by(self.state, pod).is_err() {
                continue;
            }
            add(&mut kept, &shared, charge, -1);
            add(&mut kept, &shared, &self.counted_there(pod), -1);
        }
        kept.values_mut().for_each(drop_negative);
        kept
    }

    /// The queues that a job counts for, from its own up.
    fn path(&self, record: &JobRecord) -> Path<'_> {
        self.quota.way_up(&record.job.queue).map(|queue| &queue.name).collect()
    }

    /// Those of some queues that another job counts for, too.
    fn shared<'q>(&self, ours: &[&'q QueueName], other: &JobRecord) -> Path<'q> {
        let theirs = self.path(other);
        ours.iter().copied().filter(|name| theirs.contains(name)).collect()
    }

    /// By how much a job would bring its queues beyond their bounds, as a gang that may have fewer
    /// GPU models perhaps, once `leaving` have left and those have started that room is kept for,
    /// as important as it or more.
    pub(super) fn shortage(&self, job: JobId, gang: &Gang, leaving: &[HoldingId]) -> Shortage {
        let record = &self.jobs.records[&job];
        if !self.quota.limits(&record.job.queue) {
            return Shortage::default();
        }
        let mut beside = Beside::default();
        for (other, claim) in self.before(job) {
            self.count(&mut beside, other, &self.claimed(other, claim), 1);
        }
        let leaving = leaving.iter().map(|id| &self.state.holdings.get(*id).owner);
        for pod in leaving.filter_map(pod_of) {
            let Some((other, charge)) = self.jobs.charge_of(self.state, pod) else { continue };
            self.count(&mut beside, other, charge, -1);
            self.count(&mut beside, other, &self.counted_there(pod), -1);
        }
        let asked = gang.smallest(self.state);
        let blocks = self.quota.blocks(&record.job.queue, &asked, &beside);
        let missing = blocks.map(|block| {
            let after = block.used.saturating_add(block.kept).saturating_add(block.asked);
            (block.queue, block.axis, after.saturating_sub(block.most))
        });
        Shortage(missing.collect())
    }

    /// Whether what somebody holds counts for a bound that a job is held to, too.
    pub(super) fn shares_bounds(&self, job: JobId, owner: &Owner) -> bool {
        let other = pod_of(owner).and_then(|pod| self.jobs.records.get(&pod.job));
        let Some(other) = other else { return false };
        let is_bounded = |name: &str| {
            let mut ours = self.quota.way_up(&self.jobs.records[&job].job.queue);
            ours.any(|up| up.name == name && up.bounded().next().is_some())
        };
        self.quota.way_up(&other.job.queue).any(|up| is_bounded(&up.name))
    }

    /// The bound of a queue that keeps a waiting job from starting, if one does.
    pub(crate) fn block(&self, job: JobId) -> Option<QuotaBlock> {
        let record = self.jobs.waiting(job)?;
        let asked = record.gang.smallest(self.state);
        self.quota.blocked_by(&record.job.queue, &asked, &self.quota_kept(job))
    }

    /// What a job that room is kept for counts at its smallest size: pods that may have several GPU
    /// models count for those of their places.
    fn claimed(&self, record: &JobRecord, claim: &PreemptionReservation) -> Charge {
        let mut charge = record.gang.smallest(self.state);
        for place in &claim.places {
            let set = record.gang.sets.get(usize::from(place.pod.pod_set));
            if let Some((set, node)) = set.zip(self.state.nodes.find(&place.node)) {
                charge.add_times(&charge_there(self.state, set.shape, node), 1);
            }
        }
        charge
    }

    /// What a pod counts where it is beyond what it counts anywhere; nothing if it holds nothing.
    fn counted_there(&self, pod: PodId) -> Charge {
        let record = self.jobs.records.get(&pod.job);
        let set = record.and_then(|record| record.gang.sets.get(usize::from(pod.pod_set)));
        match set.zip(self.jobs.held_by(self.state, pod).ok()) {
            Some((set, id)) => {
                charge_there(self.state, set.shape, self.state.holdings.get(id).node)
            }
            None => Charge::default(),
        }
    }

    /// Jobs that room is kept for and that go before this one, each with its claim.
    fn before(&self, job: JobId) -> impl Iterator<Item = (&JobRecord, &PreemptionReservation)> {
        let priority = self.jobs.records.get(&job).map_or(i32::MIN, |record| record.job.priority);
        self.at_least(priority).filter(move |(_, claim)| claim.job != job)
    }

    /// Jobs that room is kept for and that go before others of a priority, each with its claim.
    fn at_least(
        &self,
        priority: i32,
    ) -> impl Iterator<Item = (&JobRecord, &PreemptionReservation)> {
        self.claims.iter().filter_map(move |claim| {
            let record = self.jobs.records.get(&claim.job)?;
            let goes_first = claim.is_reclaimed || record.job.priority >= priority;
            goes_first.then_some((record, claim))
        })
    }

    fn count(&self, beside: &mut Beside, record: &JobRecord, charge: &Charge, times: i64) {
        add(beside, &self.path(record), charge, times);
    }
}

/// Counts a charge for each of some queues.
fn add(beside: &mut Beside, queues: &[&QueueName], charge: &Charge, times: i64) {
    for name in queues {
        match beside.get_mut(*name) {
            Some(counted) => counted.add_times(charge, times),
            None => beside.entry((*name).clone()).or_default().add_times(charge, times),
        }
    }
}

/// What is known of queues and claims while neither changes, nor what jobs hold: many jobs ask.
#[derive(Debug, Default)]
pub(crate) struct KeptQuota {
    /// Versions of the queues and the claims.
    as_of: (u64, u64),
    /// What is kept of all queues for jobs that room is kept for, by the priority of those that
    /// ask.
    kept: BTreeMap<i32, Beside>,
    /// Queues of which jobs might get anything back, and those of which none do.
    has_left: FxHashMap<QueueName, bool>,
    /// The lowest priority of a job whose claim others may take from.
    lowest_claim: Option<Option<i32>>,
}

impl KeptQuota {
    /// Takes what is known of these versions of the queues and the claims, for questions about many
    /// jobs. Whoever puts it back keeps what was found out for the next questions.
    pub(crate) fn take(&mut self, quota: &Quota, claims: &Claims) -> Self {
        let as_of = (quota.version(), claims.version());
        let known = std::mem::take(self);
        if known.as_of == as_of { known } else { Self { as_of, ..Self::default() } }
    }

    /// Something happened.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// What is kept for others of a job's queues, and maybe of more.
    pub(crate) fn of(&mut self, record: &JobRecord, bounded: &Bounded<'_>) -> Cow<'_, Beside> {
        let Job { id, priority, .. } = &record.job;
        // What is kept for itself is not kept for others.
        if bounded.claims.get(*id).is_some() {
            return Cow::Owned(bounded.quota_kept(*id));
        }
        let known = self.kept.entry(*priority);
        let known = known.or_insert_with(|| bounded.kept_of_all(*priority));
        debug_assert_eq!(*known, bounded.kept_of_all(*priority), "what is kept has changed");
        Cow::Borrowed(known)
    }

    /// Whether a queue might get anything back; never wrong when it says no.
    pub(crate) fn has_left(&mut self, quota: &Quota, queue: &str) -> bool {
        if let Some(known) = self.has_left.get(queue) {
            debug_assert_eq!(*known, has_quota_left(quota, queue), "queue {queue} has changed");
            return *known;
        }
        let has_left = has_quota_left(quota, queue);
        self.has_left.insert(queue.to_owned(), has_left);
        has_left
    }

    /// Whether a job of a priority may take from the claim of any other.
    pub(crate) fn may_take_claim(&mut self, claims: &Claims, jobs: &Jobs, priority: i32) -> bool {
        let lowest = *self.lowest_claim.get_or_insert_with(|| claims.lowest(jobs));
        debug_assert_eq!(lowest, claims.lowest(jobs), "the claims have changed");
        lowest.is_some_and(|lowest| lowest < priority)
    }
}

fn pod_of(owner: &Owner) -> Option<PodId> {
    match owner {
        Owner::Pod(pod) => Some(*pod),
        Owner::Foreign(_) | Owner::Reservation => None,
    }
}

/// Who gives back more than is needed makes no room for others.
fn drop_negative(charge: &mut Charge) {
    charge.gpu_milli = charge.gpu_milli.max(0);
    charge.cpu_milli = charge.cpu_milli.max(0);
    charge.memory_bytes = charge.memory_bytes.max(0);
    charge.extended.retain(|_, amount| *amount > 0);
    charge.by_model.retain(|_, amount| *amount > 0);
}
