//! How the decision cycle stops others for a job that does not fit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{
    Action, DeviceAmount, DeviceRequest, HoldingId, HoldingPhase, JobId, NodeId, Owner,
    PendingReason, Place, Plan, PodId, PreemptReason, PreemptionCost, PreemptionReservation,
};

use super::PreemptionConfig;
use super::checkpoints::worth_waiting_for;
use super::claims::Claims;
use super::cost::{self, BudgetTally, Weighs};
use super::guarantees::Lendable;
use super::prey::Prey;
use super::relation::Relation;
use super::search::{FoundVictims, Search};
use super::survey::OutlookSurvey;
use super::units::Unit;
use crate::engine::models::{Models, for_search, within_limits};
use crate::engine::{Books, JobRecord, Jobs, Placement, relations};
use crate::gang::{Gang, PlacedPod};
use crate::pending::Sleep;
use crate::reserve::{Lenders, Reservations};
use dovetail_state::State;
use dovetail_state::cause::Help;
use dovetail_state::holdings::HoldingRecord;
use dovetail_state::shapes::ShapeId;
use dovetail_state::view::View;

/// What looking for pods to stop took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchEffort {
    pub searches: u64,
    /// Holds, releases and looks.
    pub operations: u64,
    /// Searches that bounds made needless: the gang does not fit whoever goes.
    pub refuted: u64,
}

/// What came of the attempt to make room for a job.
#[derive(Debug)]
pub(crate) enum PreemptOutcome {
    /// Nobody is stopped for it.
    Nothing,
    /// Nobody is stopped for it in this cycle, which has searched enough, or named enough victims.
    Postponed,
    /// Nobody is stopped for it before that time: less is lost then, or they start just now.
    Later(u64),
    /// Room is kept for it, and it waits for that.
    Claimed,
    /// What was kept for others is free: it is to be tried again.
    Freed,
    /// These reservations for jobs to come are free, for this job before all others.
    RoomFreed(Vec<HoldingRecord>),
}

/// Who is preempted, and what looking for them took.
pub(crate) struct Preemption {
    pub(super) config: PreemptionConfig,
    /// How many of the pods that a selector counts may be preempted.
    pub(crate) budgets: BTreeMap<String, i64>,
    /// What the searches of this cycle may still take.
    operations_left: u64,
    /// Whether that was not enough for all.
    is_cut_off: bool,
    /// Pods that may still be named as victims in this cycle.
    victims_left: u64,
    /// Whether these were not enough for all.
    is_held_back: bool,
    /// Classes that the last cycle did not search for; before them, this one searches for no other.
    first: BTreeSet<usize>,
    effort: SearchEffort,
}

impl Preemption {
    pub(crate) fn new(config: PreemptionConfig) -> Self {
        Self {
            config,
            budgets: BTreeMap::new(),
            operations_left: 0,
            is_cut_off: false,
            victims_left: u64::MAX,
            is_held_back: false,
            first: BTreeSet::new(),
            effort: SearchEffort::default(),
        }
    }

    /// Searches may take as much as ever again. Where those of the last cycle could not, the
    /// classes that it did not search for go `first`.
    pub(crate) fn begin_cycle(&mut self, first: BTreeSet<usize>, most_victims: Option<u64>) {
        self.operations_left = self.config.max_operations;
        self.is_cut_off = false;
        self.victims_left = most_victims.unwrap_or(u64::MAX);
        self.is_held_back = false;
        self.first = first;
    }

    /// Whether this cycle did not search for all because it had searched enough.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Whether this cycle did not search for all because it had named enough victims.
    pub(crate) fn is_held_back(&self) -> bool {
        self.is_held_back
    }

    /// What searches took before counts as taken by this one.
    pub(crate) fn take_over_effort(&mut self, before: Self) {
        self.effort = before.effort;
    }

    /// What searches took since the last call.
    pub(crate) fn take_effort(&mut self) -> SearchEffort {
        std::mem::take(&mut self.effort)
    }

    /// Makes room for a job that does not fit, if stopping others makes it start.
    pub(crate) fn preempt_for(
        &mut self,
        (books, reserve): (&mut Books, &mut Reservations),
        job: JobId,
        plan: &mut Plan,
    ) -> PreemptOutcome {
        let mut known = books.known.take(&books.quota, &books.kept.claims);
        let record = &books.jobs.records[&job];
        let might = relations::might_preempt(books, record, &mut known);
        books.known = known;
        if !might {
            return PreemptOutcome::Nothing;
        }
        let record = &books.jobs.records[&job];
        let had_left = self.operations_left;
        let (_, class) = record.place.expect("it waits");
        let goes_first = self.first.is_empty() || self.first.contains(&class);
        if self.victims_left == 0 {
            self.is_held_back = true;
            return PreemptOutcome::Postponed;
        }
        if had_left == 0 || !goes_first {
            return self.postpone();
        }
        let placement = &books.placement;
        let leaving: Vec<HoldingId> = placement.state.holdings.leaving(placement.now_ms).collect();
        let rooms = books.kept.foreign.rooms_below(&placement.state, record.job.priority);
        if !rooms.is_empty() && starts((job, &[]), books, &View::AfterReleasing) {
            return PreemptOutcome::Nothing;
        }
        let lenders = self.lenders(books, reserve, job);
        let Some(found) = self.search(books, (job, &lenders), &leaving, &rooms) else {
            let is_cut_off = self.operations_left == 0 && had_left < self.config.max_operations;
            return if is_cut_off { self.postpone() } else { PreemptOutcome::Nothing };
        };
        let gang = Arc::clone(&books.jobs.records[&job].gang);
        let lacks_quota = !matches!(within_limits(&gang, job, books), Models::AsAsked)
            || books.bounded().growth_limit(job, &gang).is_none();
        if found.units.is_empty() && found.claims.is_empty() && found.rooms.is_empty() {
            // It starts when others have left who leave anyway.
            return PreemptOutcome::Nothing;
        }
        let later_ms = after_their_start_ms(books, &found.units);
        if let Some(until_ms) = later_ms.or_else(|| worth_waiting_for(books, job, &found.units)) {
            return PreemptOutcome::Later(until_ms);
        }
        let bounded = books.bounded();
        let counted = |owner: &Owner| lacks_quota && bounded.shares_bounds(job, owner);
        let awaited = awaited(&books.placement.state, &found, &leaving, counted);
        for lower in &found.claims {
            books.give_back(*lower, plan);
        }
        reserve.take_back(books, &found.claims);
        let Books { placement, kept, survey, .. } = &mut *books;
        let state = &mut placement.state;
        let rooms = found.rooms.iter().cloned();
        let rooms = rooms.filter_map(|name| kept.give_up_room((state, survey), job, name, plan));
        let rooms: Vec<HoldingRecord> = rooms.collect();
        // What was given back may be room enough, wherever it would go once others have left.
        let needs_nobody = found.units.is_empty() && starts((job, &lenders.all), books, &View::Now);
        if awaited.is_empty() || needs_nobody {
            return if !rooms.is_empty() {
                PreemptOutcome::RoomFreed(rooms)
            } else {
                PreemptOutcome::Freed
            };
        }
        self.claim((books, reserve), (job, &lenders), &found, awaited, plan);
        PreemptOutcome::Claimed
    }

    /// The reason that all victims have; the weaker one where they differ. Beyond budgets it is
    /// priority, whatever else there may be.
    fn reason(
        books: &Books,
        job: JobId,
        victims: &[PodId],
        cost: &PreemptionCost,
    ) -> PreemptReason {
        if cost.budget_violations > 0 {
            return PreemptReason::Priority;
        }
        let relation = relations::known(books, &books.jobs.records[&job]);
        let victims = victims.iter().filter_map(|pod| books.jobs.records.get(&pod.job));
        let reasons: Vec<PreemptReason> =
            victims.filter_map(|victim| relation.reason(victim)).collect();
        let weaker = [PreemptReason::Order, PreemptReason::Reclaim];
        let weaker = weaker.into_iter().find(|reason| reasons.contains(reason));
        weaker.unwrap_or(PreemptReason::Priority)
    }

    fn postpone(&mut self) -> PreemptOutcome {
        self.is_cut_off = true;
        PreemptOutcome::Postponed
    }

    /// How many pods may be stopped, by number of their selector. Those are taken off who were told
    /// to stop and are still there: who keeps the budgets may not have seen that yet.
    pub(super) fn disruptions_allowed(&self, books: &mut Books) -> BTreeMap<u32, i64> {
        let state = &mut books.placement.state;
        let budgets = self.budgets.iter();
        let mut allowed: BTreeMap<u32, i64> =
            budgets.map(|(name, allowed)| (state.counters.selector(name), *allowed)).collect();
        if allowed.is_empty() {
            return allowed;
        }
        let awaited = books.kept.claims.iter().flat_map(|claim| &claim.awaited);
        let held = |owner| books.jobs.held_by_owner(state, &books.kept.foreign, owner);
        let stopped: BTreeSet<HoldingId> = awaited.filter_map(held).collect();
        let stopped = stopped.into_iter().map(|id| state.holdings.get(id));
        let is_told = |phase: HoldingPhase| {
            matches!(phase, HoldingPhase::Releasing { expected_end_ms: Some(_) })
        };
        for record in stopped.filter(|record| is_told(record.phase)) {
            for selector in &record.counts_into {
                if let Some(allowed) = allowed.get_mut(selector) {
                    *allowed -= 1;
                }
            }
        }
        allowed
    }

    /// Jobs in whose reserved room another may start once its victims have left, however long they
    /// may take.
    fn lenders(&self, books: &mut Books, reserve: &Reservations, job: JobId) -> Lenders {
        let PreemptionConfig { default_grace_ms, slack_ms, .. } = self.config;
        let now_ms = books.placement.now_ms;
        let start_ms = |grace_ms: u64| now_ms.saturating_add(grace_ms).saturating_add(slack_ms);
        let soonest = reserve.free_to(books, job, start_ms(default_grace_ms));
        // Running jobs are many: they are asked only where their answer counts.
        if soonest.only_yield() {
            return soonest;
        }
        let grace_ms =
            |(_, job): &(i32, JobId)| books.jobs.records.get(job)?.job.preemption.grace_ms;
        let longest_ms = books.jobs.running.iter().filter_map(grace_ms).max();
        match longest_ms.filter(|longest_ms| *longest_ms > default_grace_ms) {
            Some(longest_ms) => reserve.free_to(books, job, start_ms(longest_ms)),
            None => soonest,
        }
    }

    /// The cheapest victims of all GPU models that a job may have. Asking changes nothing.
    fn search(
        &mut self,
        books: &mut Books,
        (job, lenders): (JobId, &Lenders),
        leaving: &[HoldingId],
        rooms: &[HoldingId],
    ) -> Option<FoundVictims> {
        let mut best: Option<(PreemptionCost, FoundVictims)> = None;
        for gang in for_search(job, books) {
            let (cost, found) = match self.search_for(books, (job, &gang, lenders), leaving, rooms)
            {
                Some((_, found)) if found.units.is_empty() => return Some(found),
                Some(found) => found,
                None => continue,
            };
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, found));
            }
        }
        best.map(|(_, found)| found)
    }

    /// The cheapest victims for a job as this gang, with what they cost as the search weighs it:
    /// when `leaving` has left, of what is kept for jobs of lower priority nothing is, and of what
    /// is kept for others everything but what is free to the job; and what of that lower priority,
    /// claims and `rooms`, is needed beside them. Asking changes nothing.
    fn search_for(
        &mut self,
        books: &mut Books,
        (job, gang, lenders): (JobId, &Gang, &Lenders),
        leaving: &[HoldingId],
        rooms: &[HoldingId],
    ) -> Option<(PreemptionCost, FoundVictims)> {
        let (state, record) = (&books.placement.state, &books.jobs.records[&job]);
        let preemptor = relations::known(books, record).preemptor;
        let lendable = lendable(books, job, leaving);
        let own = books.kept.own_or_yielded(state, record, &lenders.all);
        let promised = books.kept.promised_to_others(job, &lenders.yielding);
        // What is known of nodes is of those to whom that room is not free, and who may preempt
        // others there; what queues may lose and must get back is another for each.
        let of_own = nodes_of_own(books, &own, &promised);
        of_own.iter().for_each(|node| books.survey.forget(*node));
        let shortage = books.bounded().shortage(job, gang, leaving);
        if !lendable.parts().is_empty() || !shortage.is_empty() {
            books.survey.clear();
        }
        let gone = taken_as_gone(books, leaving, &own, rooms);
        let holdings = &books.placement.state.holdings;
        let rooms = rooms.iter().map(|id| holdings.get(*id).clone()).collect();
        let may_take = (preemptor.priority, &lenders.spared);
        let (lower, beside) = lower_and_others(&books.kept.claims, &books.jobs, may_take);
        let allowed = self.disruptions_allowed(books);
        let tally = BudgetTally::new(allowed, weighs(books), lendable.parts());
        let helped = books.placement.state.helped;
        let draws = books.placement.draws();
        let mark = View::Without(gone).open(&mut books.placement.state, books.placement.now_ms);
        beside.into_iter().for_each(|other| {
            books.kept.claims.fill(other, &mut books.placement.state, &books.jobs)
        });
        let Books { placement, jobs, quota, survey, turns, kept, .. } = &mut *books;
        kept.bookings.fill(&mut placement.state, (jobs, &kept.foreign), None, None);
        let mut search = Search {
            state: &mut placement.state,
            policy: &mut *placement.policy,
            finder: placement.finder.finder(),
            prey: Prey {
                jobs: &jobs.records,
                relation: Relation {
                    preemptor,
                    queue: &jobs.records[&job].job.queue,
                    turns: turns.as_ref(),
                    quota,
                    by_priority: self.config.by_priority,
                    now_ms: placement.now_ms,
                    spared: &promised,
                    sides: Default::default(),
                },
                running: &jobs.running,
                shortage: &shortage,
                lendable: &lendable,
            },
            job,
            gang,
            respect_budgets: self.config.respect_budgets,
            survey,
            tolls: Default::default(),
            operations_left: self.operations_left,
        };
        let (found, refuted) = search.find(&tally, lower, rooms);
        self.note_effort(search.operations_left, refuted);
        books.placement.state.rollback(mark);
        books.placement.state.helped = helped;
        books.placement.set_draws(draws);
        of_own.iter().for_each(|node| books.survey.forget(*node));
        found.map(|found| (cost::of(found.units.iter(), &tally, books.placement.now_ms), found))
    }

    fn note_effort(&mut self, operations_left: u64, refuted: bool) {
        self.effort.searches += 1;
        self.effort.refuted += u64::from(refuted);
        self.effort.operations += self.operations_left - operations_left;
        self.operations_left = operations_left;
    }

    /// Who would be preempted for a job if budgets allowed so many, found within so many operations
    /// beside those of the cycle. Asking changes nothing.
    pub(super) fn search_under(
        &mut self,
        (books, reserve): (&mut Books, &Reservations),
        job: JobId,
        budgets: BTreeMap<String, i64>,
        max_operations: u64,
    ) -> Option<FoundVictims> {
        let (operations_left, effort) = (self.operations_left, self.effort);
        self.operations_left = max_operations;
        let budgets = std::mem::replace(&mut self.budgets, budgets);
        let survey = std::mem::take(&mut books.survey);
        let placement = &books.placement;
        let leaving: Vec<HoldingId> = placement.state.holdings.leaving(placement.now_ms).collect();
        let priority = books.jobs.records[&job].job.priority;
        let rooms = books.kept.foreign.rooms_below(&placement.state, priority);
        let lenders = self.lenders(books, reserve, job);
        let found = self.search(books, (job, &lenders), &leaving, &rooms);
        books.survey = survey;
        self.budgets = budgets;
        (self.operations_left, self.effort) = (operations_left, effort);
        found
    }

    /// Orders the victims to be stopped, and keeps what they free.
    fn claim(
        &mut self,
        (books, reserve): (&mut Books, &mut Reservations),
        (job, lenders): (JobId, &Lenders),
        found: &FoundVictims,
        awaited: Vec<Owner>,
        plan: &mut Plan,
    ) {
        let grace_ms = found.units.iter().map(|unit| {
            let rules = books.jobs.records.get(&unit.job).map(|record| record.job.preemption);
            rules.and_then(|rules| rules.grace_ms).unwrap_or(self.config.default_grace_ms)
        });
        let grace_ms = grace_ms.max().unwrap_or(self.config.default_grace_ms);
        let Placement { state, now_ms, .. } = &mut books.placement;
        let until_ms = now_ms.saturating_add(grace_ms).saturating_add(self.config.slack_ms);
        for id in found.units.iter().flat_map(|unit| &unit.holdings) {
            state
                .holdings
                .set_phase(*id, HoldingPhase::Releasing { expected_end_ms: Some(until_ms) });
        }
        let places: Vec<Place> = found.places.iter().map(|place| place_of(state, place)).collect();
        note_victims(found, &books.jobs, state, &mut books.survey);
        let nodes: BTreeSet<NodeId> = found.places.iter().map(|place| place.node).collect();
        let is_lent = lenders.make_way((&mut *books, &mut *reserve), job, &nodes, plan);
        let mut victims: Vec<_> = found.units.iter().flat_map(|u| u.pods.clone()).collect();
        victims.sort_unstable();
        self.victims_left = self.victims_left.saturating_sub(victims.len() as u64);
        let (cost, of_claim) = (found.cost, places.clone());
        let reason = Self::reason(books, job, &victims, &cost);
        plan.actions.push(Action::Preempt { job, victims, places, cost, until_ms, reason });
        books.keep_places(job, (of_claim, awaited), until_ms, reason, plan);
        if is_lent {
            reserve.keep_after_start(books);
        }
        let (_, class) = books.jobs.records[&job].place.expect("it still waits");
        let reason = PendingReason::WaitingForReservation;
        books.jobs.pending.sleep(class, Sleep { wants: Help::FREED, reason, until_ms: None });
        books.jobs.say(job, reason, plan);
    }
}

/// When victims of which some start in this instant may be preempted: where the whole cluster is
/// divided, a job that comes later makes others exceed what they should have, also those that have
/// just started. `None` is at once.
fn after_their_start_ms(books: &Books, units: &[Unit]) -> Option<u64> {
    let now_ms = books.placement.now_ms;
    let starts_now = |unit: &Unit| {
        let record = books.jobs.records.get(&unit.job);
        record.is_some_and(|record| record.job.start_ms == Some(now_ms))
    };
    let is_divided = books.quota.shares.is_some();
    (is_divided && units.iter().any(starts_now)).then(|| now_ms.saturating_add(1))
}

/// What a victim costs beside its priority.
fn weighs(books: &Books) -> Weighs {
    match (&books.turns, &books.quota.shares) {
        (None, _) => Weighs::Pods,
        (Some(_), None) => Weighs::Work,
        (Some(_), Some(_)) => Weighs::Age,
    }
}

/// What other queues may lose for a job once `leaving` have left.
fn lendable(books: &Books, job: JobId, leaving: &[HoldingId]) -> Lendable {
    let relation = books.relation(&books.jobs.records[&job]);
    if !relation.protects() && !relation.preemptor.may_reclaim() {
        return Lendable::default();
    }
    let (state, jobs) = (&books.placement.state, &books.jobs);
    // order-free: a set.
    let held = jobs.records.values().map(|record| (&record.job, &record.counted));
    let leaving = leaving.iter().filter_map(|id| {
        let Owner::Pod(pod) = state.holdings.get(*id).owner else { return None };
        jobs.charge_of(state, pod).map(|(record, charge)| (&record.job, charge))
    });
    let preemptor = (jobs.records[&job].job.queue.as_str(), relation.preemptor.within);
    Lendable::of(&books.quota, preemptor, held, leaving)
}

/// Whether a job would fit and be within its bounds under a view, of the GPU models of which its
/// queues may hold more, in what is reserved for these `lenders`, too.
fn starts((job, lenders): (JobId, &[JobId]), books: &mut Books, view: &View) -> bool {
    let asked = Arc::clone(&books.jobs.records[&job].gang);
    let gang = match within_limits(&asked, job, books) {
        Models::AsAsked => asked.at_smallest(),
        Models::Fewer(fewer) => fewer,
        Models::Nothing => return false,
    };
    books.starts((job, lenders), &gang, view)
}

/// Nodes with something that is free to one job alone (`own`), or with jobs that it alone may not
/// preempt (`promised`).
fn nodes_of_own(books: &Books, own: &[HoldingId], promised: &BTreeSet<JobId>) -> Vec<NodeId> {
    let state = &books.placement.state;
    let promised = promised.difference(&books.kept.bookings.spared);
    let promised = promised.filter_map(|job| books.jobs.records.get(job));
    let held = promised.flat_map(|record| nodes_of(state, &record.holdings));
    nodes_of(state, own).into_iter().chain(held).collect()
}

fn nodes_of(state: &State, held: &[HoldingId]) -> Vec<NodeId> {
    held.iter().map(|id| state.holdings.get(*id).node).collect()
}

/// Who leaves, and all that is kept: by claims, for the job alone (`own`), for others (`rooms`).
fn taken_as_gone(
    books: &Books,
    leaving: &[HoldingId],
    own: &[HoldingId],
    rooms: &[HoldingId],
) -> Vec<HoldingId> {
    let holdings = &books.placement.state.holdings;
    let kept = books.kept.claims.iter().flat_map(|claim| holdings.kept_by(claim.reservation));
    leaving.iter().copied().chain(kept).chain([own, rooms].concat()).collect()
}

/// Claims that a job of this priority may take from, and the jobs of the others, with those that
/// are `spared`.
fn lower_and_others(
    claims: &Claims,
    jobs: &Jobs,
    (priority, spared): (i32, &BTreeSet<JobId>),
) -> (Vec<PreemptionReservation>, Vec<JobId>) {
    let lower = claims.below(jobs, priority).filter(|claim| !spared.contains(&claim.job));
    let lower: Vec<PreemptionReservation> = lower.cloned().collect();
    let is_lower = |job: JobId| lower.iter().any(|claim| claim.job == job);
    let others = claims.iter().map(|claim| claim.job).filter(|job| !is_lower(*job)).collect();
    (lower, others)
}

/// What was known of nodes with victims, and of those that are to be used, is out of date; with the
/// budgets, everything.
fn note_victims(found: &FoundVictims, jobs: &Jobs, state: &State, survey: &mut OutlookSurvey) {
    let places = found.places.iter().map(|place| place.node);
    let of_victims = found.units.iter().filter_map(|unit| jobs.records.get(&unit.job));
    let held = of_victims.flat_map(|record| &record.holdings);
    places.chain(held.map(|id| state.holdings.get(*id).node)).for_each(|node| survey.forget(node));
    if found.units.iter().any(|unit| !unit.budgets.is_empty()) {
        survey.clear();
    }
}

fn place_of(state: &State, placed: &PlacedPod) -> Place {
    let node = state.nodes.cold(placed.node).node.name.clone();
    Place { pod: placed.pod, node, devices: placed.devices.clone() }
}

/// Whether a pod might fit on any of some nodes without those that its job may stop; cheap, and
/// never wrong when it says no. Only for what looks at amounts.
pub(crate) fn might_clear(
    books: &Books,
    (record, relation): (&JobRecord, &Relation<'_>),
    shape: ShapeId,
    nodes: &[NodeId],
) -> bool {
    let any = |relation: &Relation<'_>| {
        nodes.iter().any(|node| might_clear_one(books, relation, shape, *node))
    };
    any(relation) && (!relations::has_open(books) || any(&relations::known(books, record)))
}

fn might_clear_one(books: &Books, relation: &Relation<'_>, shape: ShapeId, node: NodeId) -> bool {
    let state = &books.placement.state;
    let demand = &state.shapes.get(shape).demand;
    if !state.nodes.hot(node).is_present() {
        return false;
    }
    let (cold, hot) = (state.nodes.cold(node), state.nodes.hot(node));
    let (mut cpu_milli, mut memory_bytes) = (hot.cpu_left_milli, hot.memory_left_bytes);
    let mut devices = cold.node.devices.len();
    for holding in cold.holdings.iter().map(|id| state.holdings.get(*id)) {
        match might_go(books, relation, holding) {
            true => {
                cpu_milli += holding.amounts.cpu_milli;
                memory_bytes += holding.amounts.memory_bytes;
            }
            false => {
                let is_whole = |amount: &DeviceAmount| amount.compute_milli == WHOLE_DEVICE_MILLI;
                let whole = holding.devices.iter().filter(|(_, amount)| is_whole(amount));
                devices = devices.saturating_sub(whole.count());
            }
        }
    }
    let wanted = match &state.shapes.get(shape).requirement.device {
        DeviceRequest::Whole { count, .. } => usize::from(*count),
        _ => 0,
    };
    let enough = |left: i64, asked: i64| asked <= 0 || asked <= left;
    wanted <= devices
        && enough(cpu_milli, demand.amounts.cpu_milli)
        && enough(memory_bytes, demand.amounts.memory_bytes)
}

/// Whether something held may leave for a job, by itself or because it is stopped.
fn might_go(books: &Books, relation: &Relation<'_>, holding: &HoldingRecord) -> bool {
    match &holding.owner {
        _ if matches!(holding.phase, HoldingPhase::Releasing { .. }) => true,
        Owner::Pod(pod) => {
            let other = books.jobs.records.get(&pod.job);
            other.is_none_or(|other| relation.reason(other).is_some())
        }
        Owner::Foreign(_) => {
            let ours = relation.preemptor.priority;
            matches!(holding.phase, HoldingPhase::Kept { priority } if priority < ours)
        }
        Owner::Reservation => true,
    }
}

/// Who must leave before the places are free: the victims, and who leaves anyway, there or counted
/// for the same bounds.
fn awaited(
    state: &State,
    found: &FoundVictims,
    leaving: &[HoldingId],
    counted: impl Fn(&Owner) -> bool,
) -> Vec<Owner> {
    let used: BTreeSet<NodeId> = found.places.iter().map(|place| place.node).collect();
    let anyway = leaving.iter().map(|id| state.holdings.get(*id));
    let anyway = anyway.filter(|record| used.contains(&record.node) || counted(&record.owner));
    let victims = found.units.iter().flat_map(|unit| &unit.pods).copied().map(Owner::Pod);
    victims.chain(anyway.map(|record| record.owner.clone())).collect()
}
