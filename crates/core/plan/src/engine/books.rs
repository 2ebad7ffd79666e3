//! What is known: what stands where, which jobs wait and run, and what is kept for whom. The parts
//! own their fields; what changes several of them together stands here and in the files beside.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{
    Action, Bounds, Charge, HoldingId, HoldingPhase, Job, JobId, NodeId, Owner, PendingReason,
    Place, Plan, PreemptReason, PreemptionReservation,
};

use super::charge::charge_there;
use super::jobs::{JobRecord, Jobs};
use super::placement::Placement;
use super::queues::Capacity;
use super::relations;
use crate::gang::{Gang, PlacedPod};
use crate::pending::{ClassKey, OrderKey};
use crate::preemption::{Bounded, KeptQuota, OutlookSurvey, Relation, ReservedCapacity};
use crate::reserve::end_reservation;
use dovetail_order::book::TurnBook;
use dovetail_order::estimate::{Bursts, RunTimes, bucket_ms};
use dovetail_order::queues::quota::{Quota, Rank};
use dovetail_order::queues::usage::Usage;
use dovetail_state::cause::Help;
use dovetail_state::view::View;

/// All that decisions rest on.
pub(crate) struct Books {
    pub(crate) placement: Placement,
    pub(crate) jobs: Jobs,
    pub(crate) kept: ReservedCapacity,
    pub(crate) quota: Quota,
    pub(crate) capacity: Capacity,
    pub(crate) survey: OutlookSurvey,
    pub(crate) run_times: RunTimes,
    /// Jobs that came together, of those whose run times are expected.
    pub(crate) bursts: Bursts,
    /// Whether any job may preempt others.
    pub(crate) preempts: bool,
    /// Whether a higher priority is a reason to.
    pub(crate) by_priority: bool,
    /// Standings, with order `dovetail`.
    pub(crate) turns: Option<TurnBook>,
    /// What queues have used, where the order counts it.
    pub(crate) usage: Option<Usage>,
    /// What is known of queues and claims while nothing happens: taken for questions about many
    /// jobs, and put back.
    pub(crate) known: KeptQuota,
}

/// Where a waiting job stands: by priority, queue, and place among those of its queue.
pub(crate) type Turn = (Reverse<i32>, Rank, OrderKey);

impl Books {
    /// What the bounds of queues are held against.
    pub(crate) fn bounded(&self) -> Bounded<'_> {
        Bounded {
            state: &self.placement.state,
            jobs: &self.jobs,
            claims: &self.kept.claims,
            quota: &self.quota,
        }
    }

    /// The job to try next, among those behind `after` where the order is a fixed one. Whoever was
    /// tried in vain sleeps.
    pub(crate) fn next_job(&mut self, after: Option<OrderKey>) -> Option<(JobId, usize)> {
        if !self.jobs.pending.looks_at_queues() {
            return self.jobs.pending.next(after);
        }
        self.capacity.refresh(&self.placement.state);
        let Self { jobs, quota, capacity, usage, .. } = self;
        let state = &self.placement.state;
        let Jobs { pending, records, .. } = jobs;
        if let Some(shares) = &quota.shares {
            let firsts = pending.awake.firsts().map(|(queue, place, class)| {
                (queue, records[&place.2].gang.smallest(state), (place, class))
            });
            return shares.first(quota, firsts).map(|(place, class)| (place.2, class));
        }
        let changed = usage.as_mut().map(Usage::take_changed_ranks);
        pending.next_by(changed, |queue, job| {
            let asked = || records[&job].gang.smallest(state);
            rank(queue, quota, capacity.total(), usage, asked)
        })
    }

    /// Where a waiting job stands among all others: the smallest goes first.
    pub(crate) fn turn_of(&mut self, job: JobId) -> Option<Turn> {
        self.capacity.refresh(&self.placement.state);
        let Self { jobs, quota, capacity, usage, .. } = self;
        let record = jobs.waiting(job)?;
        let (place, _) = record.place?;
        let rank = match jobs.pending.looks_at_queues() {
            true => {
                let asked = || record.gang.smallest(&self.placement.state);
                rank(&record.job.queue, quota, capacity.total(), usage, asked)
            }
            false => Rank::new(),
        };
        let (_, by_queues) = jobs.pending.order();
        Some((by_queues.priority_of(place), rank, place))
    }

    /// Time goes on: until now queues held what they hold.
    pub(crate) fn charge_until(&mut self, now_ms: u64) {
        let Some(usage) = self.usage.as_mut().filter(|usage| usage.now_ms() < now_ms) else {
            return;
        };
        self.capacity.refresh(&self.placement.state);
        let waiting = self.jobs.pending.waiting_queues();
        usage.advance(now_ms, (&self.quota, self.capacity.total()), &waiting);
    }

    /// The tree of queues is another: what they hold is counted again.
    pub(crate) fn recount(&mut self) {
        if counts_all_queues(&self.quota, self.usage.as_ref()) {
            // order-free: a set.
            let queues = self.jobs.records.values().map(|record| &record.job.queue);
            queues.for_each(|queue| self.quota.meet(queue));
        }
        if let Some(usage) = &mut self.usage {
            usage.forget_gone(&self.quota);
        }
        self.jobs.recount(&mut self.quota);
    }

    /// The class of a waiting job.
    pub(crate) fn class_key(&self, job: &Job, gang: &Arc<Gang>) -> ClassKey {
        let claim = self.kept.claims.get(job.id).or_else(|| self.kept.reserved.get(job.id));
        let claim = claim.map(|claim| claim.reservation);
        let claim = claim.or_else(|| self.kept.bookings.for_name(job));
        let p90_ms = job.estimate.map(|estimate| bucket_ms(estimate.p90_ms));
        let has_lenders = self.jobs.pending.backfills() || !self.kept.bookings.is_empty();
        let p90_ms = p90_ms.filter(|_| has_lenders);
        ClassKey { claim, p90_ms, ..self.placement.class_key(job, gang) }
    }

    /// A job without a place waits, in the class that it belongs to.
    pub(crate) fn join(&mut self, job: JobId, plan: &mut Plan) {
        let record = &self.jobs.records[&job];
        let key = self.class_key(&record.job, &record.gang);
        let value = self.order_value(&record.job);
        let (place, class) = self.jobs.pending.push(&record.job, value, key);
        let record = self.jobs.records.get_mut(&job).expect("looked up above");
        record.place = Some((place, class));
        self.say_if_asleep(job, class, plan);
    }

    /// A job that joined a class that sleeps will not be tried now: it is told why it waits. One
    /// that goes before all others there may stop more than they may, and is tried.
    fn say_if_asleep(&mut self, job: JobId, class: usize, plan: &mut Plan) {
        if let Some(sleep) = self.jobs.pending.asleep(class) {
            let first = self.jobs.pending.first_of(class) == Some(job);
            if first && self.might_preempt(&self.jobs.records[&job]) {
                return self.jobs.pending.wake(class);
            }
            let reason = if first { sleep.told() } else { PendingReason::WaitingForTurn };
            self.jobs.say(job, reason, plan);
        }
    }

    /// Puts a waiting job into the class that it belongs to now.
    pub(crate) fn change_class(&mut self, job: JobId, plan: &mut Plan) {
        let Some(record) = self.jobs.records.get(&job) else { return };
        let Some((place, class)) = record.place else { return };
        self.jobs.leave(place, class, plan);
        self.join(job, plan);
    }

    /// Whether a job might make room for itself; cheap, and never wrong when it says no.
    pub(crate) fn might_preempt(&self, record: &JobRecord) -> bool {
        relations::might_preempt(self, record, &mut KeptQuota::default())
    }

    /// A waiting job, to be held against those that might make place for it, for a quick look: who
    /// waits behind it is not known.
    pub(crate) fn relation<'b>(&'b self, record: &'b JobRecord) -> Relation<'b> {
        relations::beside(self, record, &mut KeptQuota::default())
    }

    /// What a waiting job's place rests on beside its priority: the smallest goes first.
    pub(crate) fn order_value(&self, job: &Job) -> u64 {
        match &self.turns {
            Some(turns) => turns.standing(job),
            None => self.jobs.pending.value(job),
        }
    }

    /// Where a gang would be placed as if these holdings were gone, under a view; nothing changes.
    pub(crate) fn what_if(
        &mut self,
        free: impl IntoIterator<Item = HoldingId>,
        gang: &Gang,
        view: &View,
        growth_limit: Bounds,
    ) -> Option<Vec<PlacedPod>> {
        let Self { placement, kept, jobs, .. } = self;
        // What those leave for whom room is kept is not for others.
        placement.as_if_free(free, |placement| {
            placement.what_if(gang, view, growth_limit, |state| kept.fill_all(state, jobs))
        })
    }

    /// Whether a waiting job would fit as this gang and be within its bounds under a view, in what
    /// is kept for it and what is reserved for these `lenders`, too.
    pub(crate) fn starts(
        &mut self,
        (job, lenders): (JobId, &[JobId]),
        gang: &Gang,
        view: &View,
    ) -> bool {
        let Some(record) = self.jobs.waiting(job) else { return false };
        let own = self.kept.own_or_yielded(&self.placement.state, record, lenders);
        self.bounded().growth_limit(job, gang).is_some()
            && self.what_if(own, gang, view, Bounds::default()).is_some()
    }

    /// Keeps places for a waiting job until the others have left it: a claim, in the stead of the
    /// room under names that it states.
    pub(crate) fn keep_places(
        &mut self,
        job: JobId,
        (places, awaited): (Vec<Place>, Vec<Owner>),
        until_ms: u64,
        reason: PreemptReason,
        plan: &mut Plan,
    ) {
        if let Some(record) = self.jobs.records.get(&job) {
            self.kept.end_room_for(&mut self.placement.state, &mut self.survey, record);
        }
        end_reservation(job, self);
        let Self { placement: Placement { state, .. }, kept, jobs, .. } = self;
        let reservation = kept.claims.unused();
        let is_reclaimed = reason == PreemptReason::Reclaim;
        let claim =
            PreemptionReservation { job, reservation, places, awaited, until_ms, is_reclaimed };
        kept.claims.insert(claim);
        kept.keep_claim(job, state, jobs);
        self.change_class(job, plan);
    }

    /// What is held under the names that a waiting job states.
    pub(crate) fn room_held_for(&self, job: JobId) -> Vec<HoldingId> {
        let record = self.jobs.waiting(job);
        record.map(|record| self.kept.foreign.room_of(&record.job)).unwrap_or_default()
    }

    /// Gives back what was kept in vain, and keeps what has been freed since.
    pub(crate) fn settle_claims(&mut self, plan: &mut Plan) {
        for job in self.kept.claims.late(self.placement.now_ms) {
            self.give_back(job, plan);
        }
        if self.placement.state.helped != Help::NONE {
            self.kept.keep_claims(&mut self.placement.state, &self.jobs);
        }
    }

    /// What is kept for a job is free again, and the job is one among others.
    pub(crate) fn give_back(&mut self, job: JobId, plan: &mut Plan) {
        end_reservation(job, self);
        let Some(claim) = self.kept.claims.remove(job) else { return };
        self.survey.clear();
        for id in self.placement.state.holdings.kept_by(claim.reservation) {
            self.placement.state.remove_holding(id);
        }
        plan.actions.push(Action::GivenBack { job });
        self.change_class(job, plan);
    }

    /// A job that was placed runs.
    pub(crate) fn start(&mut self, job: JobId, placed: Vec<PlacedPod>, plan: &mut Plan) {
        let Placement { state, now_ms, .. } = &mut self.placement;
        let record = self.jobs.records.get_mut(&job).expect("a pending job is known");
        let (place, class) = record.place.take().expect("a pending job has a place");
        self.jobs.pending.remove(place, class);
        record.job.start_ms = Some(*now_ms);
        record.reason = None;
        self.run_times.note_job(&record.job);
        let lasts_ms = record.job.expected_attempt_ms();
        let end_ms = lasts_ms.map(|lasts_ms| now_ms.saturating_add(lasts_ms));
        for pod in placed {
            self.survey.forget(pod.node);
            let shape = record.gang.sets[usize::from(pod.pod.pod_set)].shape;
            record.counted.add_times(&state.shapes.get(shape).charge, 1);
            record.counted.add_times(&charge_there(state, shape, pod.node), 1);
            record.job.pod_sets[usize::from(pod.pod.pod_set)].present += 1;
            record.holdings.push(pod.holding);
            if end_ms.is_some() {
                state
                    .holdings
                    .set_phase(pod.holding, HoldingPhase::Held { expected_end_ms: end_ms });
            }
            let node = state.nodes.cold(pod.node).node.name.clone();
            plan.actions.push(Action::Bind { pod: pod.pod, node, devices: pod.devices });
        }
        self.quota.add(&record.job.queue, &record.counted, 1);
        if let Some(usage) = &mut self.usage {
            usage.note(&record.job.queue, &self.quota);
        }
        if let Some(turns) = &mut self.turns {
            turns.run(&record.job, *now_ms);
        }
        self.jobs.note_running(job);
    }

    /// Takes over what a decision keeps, gives back or gives up that somebody else made about the
    /// same world.
    pub(crate) fn follow(&mut self, action: &Action) {
        let mut plan = Plan::default();
        match action {
            Action::Bind { pod, .. } => {
                if let Some(record) = self.jobs.records.get(&pod.job) {
                    let state = &mut self.placement.state;
                    self.kept.end_room_for(state, &mut self.survey, record);
                }
            }
            Action::GivenBack { job } => self.give_back(*job, &mut plan),
            Action::RoomGivenUp { job, name } => {
                let beside = (&mut self.placement.state, &mut self.survey);
                drop(self.kept.give_up_room(beside, *job, name.clone(), &mut plan));
            }
            Action::Preempt { job, victims, places, until_ms, reason, .. } => {
                let state = &mut self.placement.state;
                let used: BTreeSet<NodeId> =
                    places.iter().filter_map(|place| state.nodes.find(&place.node)).collect();
                let leaving = state.holdings.leaving(self.placement.now_ms);
                let leaving = leaving.map(|id| state.holdings.get(id));
                let anyway = leaving.filter(|record| used.contains(&record.node));
                let victims = victims.iter().copied().map(Owner::Pod);
                let awaited: Vec<Owner> =
                    victims.clone().chain(anyway.map(|record| record.owner.clone())).collect();
                for owner in victims {
                    if let Some(id) = self.jobs.held_by_owner(state, &self.kept.foreign, &owner) {
                        let expected_end_ms = Some(*until_ms);
                        state.holdings.set_phase(id, HoldingPhase::Releasing { expected_end_ms });
                    }
                }
                self.survey.clear();
                self.keep_places(*job, (places.clone(), awaited), *until_ms, *reason, &mut plan);
            }
            Action::Lost { .. } | Action::Publish { .. } | Action::Wait { .. } => {}
        }
    }
}

/// Whether queues that nobody described are ranked as well.
pub(super) fn counts_all_queues(quota: &Quota, usage: Option<&Usage>) -> bool {
    usage.is_some() || quota.shares.is_some()
}

/// Where the jobs of a queue stand: by what it should have, of which one asks for so much, or by
/// what it has used, whichever the order counts, else by what it holds.
fn rank(
    queue: &str,
    quota: &Quota,
    capacity: &Charge,
    usage: &mut Option<Usage>,
    asked: impl FnOnce() -> Charge,
) -> Rank {
    match (usage, &quota.shares) {
        (Some(usage), _) => usage.rank(queue, quota, capacity),
        (None, Some(shares)) => shares.rank(quota, queue, &asked()),
        (None, None) => quota.rank(queue, capacity),
    }
}
