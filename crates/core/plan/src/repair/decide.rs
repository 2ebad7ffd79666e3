//! How the decision cycle stops others for a job that does not fit.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{
    Action, Claim, DeviceAmount, DeviceRequest, HoldingId, JobId, NodeId, Owner, PendingReason,
    Phase, Place, Plan,
};

use super::cost::Tally;
use super::search::{Found, Search};
use super::units::Prey;
use crate::cause::Help;
use crate::engine::{Engine, JobRecord};
use crate::gang::{Gang, PlacedPod};
use crate::queue::Sleep;
use crate::state::holdings::HoldingRecord;
use crate::state::shapes::ShapeId;
use crate::view::View;

/// What looking for pods to stop took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchEffort {
    /// Searches.
    pub searches: u64,
    /// Holds, releases and looks.
    pub operations: u64,
}

/// What came of the attempt to make room for a job.
#[derive(Debug)]
pub(crate) enum Repair {
    /// Nobody is stopped for it.
    Nothing,
    /// Nobody is stopped for it in this cycle, which has searched enough.
    Postponed,
    /// Room is kept for it, and it waits for that.
    Claimed,
    /// What was kept for others is free: it is to be tried again.
    Freed,
    /// These reservations for jobs to come are free, for this job before all others.
    RoomFreed(Vec<HoldingRecord>),
}

impl Engine {
    /// How often it was looked for pods to stop and what that took, since the last call.
    pub fn take_search_effort(&mut self) -> SearchEffort {
        std::mem::take(&mut self.effort)
    }

    /// Whether a job might make room for itself; cheap, and never wrong when it says no.
    pub(crate) fn might_preempt(&self, record: &JobRecord) -> bool {
        let job = &record.job;
        let may = self.config.preemption.enabled && !job.preemption.never_preempts;
        may && (self.running.first().is_some_and(|(lowest, _)| *lowest < job.priority)
            || self.lower_claims(job.priority).next().is_some()
            || self.kept_rooms.values().any(|priority| *priority < job.priority))
    }

    /// Whether a pod might fit on a node without those that its job may stop; cheap, and never wrong when it says
    /// no. Only for what looks at amounts.
    pub(crate) fn might_clear(&self, record: &JobRecord, shape: ShapeId, node: NodeId) -> bool {
        let demand = &self.state.shapes.get(shape).demand;
        if !self.state.nodes.hot(node).is_present() {
            return false;
        }
        let (cold, hot) = (self.state.nodes.cold(node), self.state.nodes.hot(node));
        let (mut cpu_milli, mut memory_bytes) = (hot.cpu_left_milli, hot.memory_left_bytes);
        let mut devices = cold.node.devices.len();
        for holding in cold.holdings.iter().map(|id| self.state.holdings.get(*id)) {
            match self.might_go(record, holding) {
                true => {
                    cpu_milli += holding.amounts.cpu_milli;
                    memory_bytes += holding.amounts.memory_bytes;
                }
                false => {
                    let is_whole =
                        |amount: &DeviceAmount| amount.compute_milli == WHOLE_DEVICE_MILLI;
                    let whole = holding.devices.iter().filter(|(_, amount)| is_whole(amount));
                    devices = devices.saturating_sub(whole.count());
                }
            }
        }
        let wanted = match &self.state.shapes.get(shape).requirement.device {
            DeviceRequest::Whole { count, .. } => usize::from(*count),
            _ => 0,
        };
        let enough = |left: i64, asked: i64| asked <= 0 || asked <= left;
        wanted <= devices
            && enough(cpu_milli, demand.amounts.cpu_milli)
            && enough(memory_bytes, demand.amounts.memory_bytes)
    }

    /// Whether something held may leave for a job, by itself or because it is stopped.
    fn might_go(&self, record: &JobRecord, holding: &HoldingRecord) -> bool {
        match &holding.owner {
            _ if matches!(holding.phase, Phase::Releasing { .. }) => true,
            Owner::Pod(pod) => self.jobs.get(&pod.job).is_none_or(|other| {
                other.job.priority < record.job.priority && !other.job.preemption.is_protected
            }),
            Owner::Foreign(_) => {
                matches!(holding.phase, Phase::Kept { priority } if priority < record.job.priority)
            }
            Owner::Reservation => true,
        }
    }

    /// Notes that a job runs, or runs no more: those of lower priority may be stopped.
    pub(crate) fn note_running(&mut self, job: JobId) {
        let Some(record) = self.jobs.get(&job) else { return };
        let entry = (record.job.priority, job);
        match record.place.is_none() && !record.job.preemption.is_protected {
            true => self.running.insert(entry),
            false => self.running.remove(&entry),
        };
    }

    fn lower_claims(&self, priority: i32) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(move |claim| {
            let record = self.jobs.get(&claim.job);
            record.is_some_and(|record| record.job.priority < priority)
        })
    }

    /// Makes room for a job that does not fit, if stopping others makes it start.
    pub(crate) fn repair(&mut self, job: JobId, plan: &mut Plan) -> Repair {
        if !self.might_preempt(&self.jobs[&job]) {
            return Repair::Nothing;
        }
        let had_left = self.search_operations_left;
        let (_, class) = self.jobs[&job].place.expect("it waits");
        let goes_first = self.search_first.is_empty() || self.search_first.contains(&class);
        if had_left == 0 || !goes_first {
            return self.postpone();
        }
        let priority = self.jobs[&job].job.priority;
        let leaving = self.leaving();
        let rooms = self.lower_rooms(priority);
        if !rooms.is_empty() && self.starts_when_others_have_left(job) {
            return Repair::Nothing;
        }
        let Some(found) = self.search(job, &leaving, &rooms) else {
            let is_cut_off = self.search_operations_left == 0
                && had_left < self.config.preemption.max_operations;
            return if is_cut_off { self.postpone() } else { Repair::Nothing };
        };
        let lacks_quota = self.growth_limit(job, &self.jobs[&job].gang).is_none();
        if found.units.is_empty() && found.claims.is_empty() && found.rooms.is_empty() {
            // It starts when others have left who leave anyway.
            return Repair::Nothing;
        }
        let counted = |owner: &Owner| lacks_quota && self.shares_bounds(job, owner);
        let awaited = self.awaited(&found, &leaving, counted);
        for lower in &found.claims {
            self.give_back(*lower, plan);
        }
        let names = found.rooms.iter().cloned();
        let rooms: Vec<HoldingRecord> =
            names.filter_map(|name| self.give_up_room(job, name, plan)).collect();
        if awaited.is_empty() {
            return if !rooms.is_empty() { Repair::RoomFreed(rooms) } else { Repair::Freed };
        }
        self.claim(job, &found, awaited, plan);
        Repair::Claimed
    }

    fn postpone(&mut self) -> Repair {
        self.is_search_postponed = true;
        Repair::Postponed
    }

    /// How many pods may be stopped, by number of their selector. Those are taken off who were told to stop
    /// and are still there: who keeps the budgets may not have seen that yet.
    fn disruptions_allowed(&mut self) -> BTreeMap<u32, i64> {
        let budgets = self.budgets.iter();
        let mut allowed: BTreeMap<u32, i64> =
            budgets.map(|(name, allowed)| (self.state.counters.selector(name), *allowed)).collect();
        if allowed.is_empty() {
            return allowed;
        }
        let awaited = self.claims.iter().flat_map(|claim| &claim.awaited);
        let stopped: BTreeSet<HoldingId> =
            awaited.filter_map(|owner| self.held_by_owner(owner)).collect();
        let stopped = stopped.into_iter().map(|id| self.state.holdings.get(id));
        let is_told = |phase: Phase| matches!(phase, Phase::Releasing { expected_end_ms: Some(_) });
        for record in stopped.filter(|record| is_told(record.phase)) {
            for selector in &record.counts_into {
                if let Some(allowed) = allowed.get_mut(selector) {
                    *allowed -= 1;
                }
            }
        }
        allowed
    }

    /// What is ending and not late with it.
    fn leaving(&self) -> Vec<HoldingId> {
        self.state.holdings.leaving(self.now_ms).collect()
    }

    /// Whether a job would fit and be within its bounds once everybody has left who leaves anyway.
    fn starts_when_others_have_left(&mut self, job: JobId) -> bool {
        let mut gang = Gang::clone(&self.jobs[&job].gang);
        gang.sets.iter_mut().for_each(|set| set.max = set.min);
        self.growth_limit(job, &gang).is_some()
            && self.as_seen_by(job, |engine| engine.would_fit(&gang, &View::AfterReleasing))
    }

    /// The cheapest victims when `leaving` has left, of what is kept for jobs of lower priority nothing is, and of what is
    /// kept for others everything; and what of that lower priority, claims and `rooms`, is needed beside them. Asking
    /// changes nothing.
    fn search(&mut self, job: JobId, leaving: &[HoldingId], rooms: &[HoldingId]) -> Option<Found> {
        let priority = self.jobs[&job].job.priority;
        let kept = self.claims.iter().flat_map(|c| self.state.holdings.kept_by(c.reservation));
        let own = self.room_held_for(job);
        // What is known of nodes is of those to whom that room is not free.
        let sees_more = !own.is_empty();
        if sees_more {
            self.survey.clear();
        }
        let gone = leaving.iter().copied().chain(kept).chain(own).chain(rooms.iter().copied());
        let gone: Vec<HoldingId> = gone.collect();
        let rooms = rooms.iter().map(|id| self.state.holdings.get(*id).clone()).collect();
        let lower: Vec<Claim> = self.lower_claims(priority).cloned().collect();
        let all = self.claims.iter().map(|claim| claim.job);
        let beside: Vec<JobId> =
            all.filter(|job| lower.iter().all(|claim| claim.job != *job)).collect();
        let mut gang = Gang::clone(&self.jobs[&job].gang);
        gang.sets.iter_mut().for_each(|set| set.max = set.min);
        let tally = Tally::new(self.disruptions_allowed());
        let shortage = self.shortage(job, leaving);
        let helped = self.state.helped;
        let draws = (self.finder.finder().draws(), self.policy.draws());
        let mark = self.state.open_view(&View::Without(gone), self.now_ms);
        beside.into_iter().for_each(|other| self.fill(other));
        let config = self.config.preemption;
        let mut search = Search {
            state: &mut self.state,
            policy: &mut *self.policy,
            finder: self.finder.finder(),
            prey: Prey {
                jobs: &self.jobs,
                priority,
                now_ms: self.now_ms,
                running: &self.running,
                quota: &self.quota,
                shortage: &shortage,
            },
            job,
            gang: &gang,
            respect_budgets: config.respect_budgets,
            survey: &mut self.survey,
            operations_left: self.search_operations_left,
        };
        let at_once = search.suffices(&[]);
        let found = match at_once {
            Some(places) => Some(Found::at(places)),
            None => search.run(&tally),
        };
        let found = found.and_then(|found| search.keep_claims(found, lower));
        let found = found.and_then(|found| search.keep_rooms(found, rooms));
        let operations_left = search.operations_left;
        self.effort.searches += 1;
        self.effort.operations += self.search_operations_left - operations_left;
        self.search_operations_left = operations_left;
        self.state.rollback(mark);
        self.state.helped = helped;
        self.finder.finder().set_draws(draws.0);
        self.policy.set_draws(draws.1);
        if sees_more {
            self.survey.clear();
        }
        found
    }

    /// Who must leave before the places are free: the victims, and who leaves anyway, there or counted for the
    /// same bounds.
    fn awaited(
        &self,
        found: &Found,
        leaving: &[HoldingId],
        counted: impl Fn(&Owner) -> bool,
    ) -> Vec<Owner> {
        let used: BTreeSet<NodeId> = found.places.iter().map(|place| place.node).collect();
        let anyway = leaving.iter().map(|id| self.state.holdings.get(*id));
        let anyway = anyway.filter(|record| used.contains(&record.node) || counted(&record.owner));
        let victims = found.units.iter().flat_map(|unit| &unit.pods).copied().map(Owner::Pod);
        victims.chain(anyway.map(|record| record.owner.clone())).collect()
    }

    /// Orders the victims to be stopped, and keeps what they free.
    fn claim(&mut self, job: JobId, found: &Found, awaited: Vec<Owner>, plan: &mut Plan) {
        let config = self.config.preemption;
        let grace_ms = found.units.iter().map(|unit| {
            let rules = self.jobs.get(&unit.job).map(|record| record.job.preemption);
            rules.and_then(|rules| rules.grace_ms).unwrap_or(config.default_grace_ms)
        });
        let grace_ms = grace_ms.max().unwrap_or(config.default_grace_ms);
        let until_ms = self.now_ms.saturating_add(grace_ms).saturating_add(config.slack_ms);
        for id in found.units.iter().flat_map(|unit| &unit.holdings) {
            self.state.set_phase(*id, Phase::Releasing { expected_end_ms: Some(until_ms) });
        }
        self.note_victims(found);
        let places: Vec<Place> = found.places.iter().map(|place| self.place_of(place)).collect();
        let mut victims: Vec<_> = found.units.iter().flat_map(|u| u.pods.clone()).collect();
        victims.sort_unstable();
        let (cost, of_claim) = (found.cost, places.clone());
        plan.actions.push(Action::Preempt { job, victims, places, cost, until_ms });
        self.keep_places(job, (of_claim, awaited), until_ms, plan);
        let (_, class) = self.jobs[&job].place.expect("it still waits");
        let reason = PendingReason::WaitingForReservation;
        self.pending.sleep(class, Sleep { wants: Help::FREED, reason });
        self.say(job, reason, plan);
    }

    /// What was known of nodes with victims, and of those that are to be used, is out of date; with the budgets,
    /// everything.
    fn note_victims(&mut self, found: &Found) {
        let places = found.places.iter().map(|place| place.node);
        let of_victims = found.units.iter().flat_map(|unit| self.holdings_of(unit.job));
        let nodes: Vec<NodeId> = places.chain(of_victims.map(|(node, _)| node)).collect();
        nodes.into_iter().for_each(|node| self.survey.forget(node));
        if found.units.iter().any(|unit| !unit.budgets.is_empty()) {
            self.survey.clear();
        }
    }

    fn place_of(&self, placed: &PlacedPod) -> Place {
        let devices = placed.devices.clone();
        let node = self.state.nodes.cold(placed.node).node.name.clone();
        Place { pod: placed.pod, node, devices }
    }
}
