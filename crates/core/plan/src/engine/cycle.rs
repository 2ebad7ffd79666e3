//! The decision cycle: every class that is awake is tried, best place first, until nothing more starts.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{Action, Bounds, JobId, NodeId, PendingReason, Phase, Plan};

use super::Engine;
use crate::cause::{Cause, Help};
use crate::explain::DecisionRecord;
use crate::finder::Scope;
use crate::gang::{Gang, PlacedPod, Placer};
use crate::queue::quota::Beside;
use crate::queue::{OrderKey, Sleep};
use crate::repair::Repair;
use crate::view::View;

/// Why a job that was tried has not started.
enum Tried {
    /// For this reason, until something of that becomes better.
    Waits(PendingReason, Help),
    /// Others are being stopped for it.
    Claimed,
    /// Something else stands differently: it is to be tried again.
    Anew,
}

impl Engine {
    /// Builds the indices that the next decisions rest on, off the decision path; changes no decision.
    pub fn prepare(&mut self) {
        let Some((job, _)) = self.next_job(None) else { return };
        let gang = Arc::clone(&self.jobs[&job].gang);
        let finder = self.finder.finder();
        for set in &gang.sets {
            finder.prepare(&mut self.state, &mut *self.policy, set.shape);
        }
    }

    /// Starts whatever can start now; the decisions go to the plan.
    pub fn cycle(&mut self, plan: &mut Plan) {
        self.settle_claims(plan);
        self.search_operations_left = self.config.preemption.max_operations;
        self.is_search_postponed = false;
        self.search_first = match self.state.helped.meets(Help::SEARCH) {
            true => self.pending.asleep_wanting(Help::SEARCH).into_iter().collect(),
            false => BTreeSet::new(),
        };
        self.survey.clear();
        self.wake();
        let mut after: Option<OrderKey> = None;
        while let Some((job, class)) = self.next_job(after) {
            let place = self.jobs[&job].place.expect("a pending job has a place").0;
            match self.try_start(job, plan) {
                Ok(()) => {
                    self.wake();
                    after = None;
                }
                Err(Tried::Anew) => {
                    self.wake();
                    after = None;
                }
                Err(Tried::Claimed) => after = Some(place),
                Err(Tried::Waits(reason, wants)) => {
                    self.pending.sleep(class, Sleep { wants, reason });
                    self.say(job, reason, plan);
                    after = Some(place);
                }
            }
        }
        if self.is_search_postponed {
            self.state.helped |= Help::SEARCH;
        }
    }

    /// The job to try next, among those behind `after` where the order is a fixed one. Whoever was tried in
    /// vain sleeps.
    fn next_job(&mut self, after: Option<OrderKey>) -> Option<(JobId, usize)> {
        if !self.pending.looks_at_queues() {
            return self.pending.next(after);
        }
        self.capacity.refresh(&self.state);
        let (quota, capacity) = (&self.quota, self.capacity.total());
        self.pending.next_by(|queue| quota.rank(queue, capacity))
    }

    /// Wakes the classes that could start after what became better since the last time.
    fn wake(&mut self) {
        let helped = std::mem::take(&mut self.state.helped);
        let nodes = std::mem::take(&mut self.state.helped_nodes);
        for class in self.pending.asleep_wanting(helped) {
            if self.may_start(class, helped, &nodes) {
                self.pending.wake(class);
            }
        }
    }

    /// Whether a sleeping class could start at all; cheap, and never wrong when it says no. Only what was
    /// freed on `nodes` became better, unless nodes themselves changed.
    fn may_start(&mut self, class: usize, helped: Help, nodes: &[NodeId]) -> bool {
        let (key, wants) = self.pending.asks(class);
        if key.claim.is_some() || !key.kept_room.is_empty() {
            return true;
        }
        let first = self.pending.first_of(class).and_then(|job| self.jobs.get(&job));
        let might_preempt = first.is_some_and(|record| self.might_preempt(record));
        if wants == Help::QUOTA && !might_preempt {
            let asked = key.gang.smallest(&self.state);
            return self.quota.blocked_by(&key.queue, &asked, &Beside::default()).is_none();
        }
        if helped.meets(Help::NODES) || wants.meets(Help::SEARCH) {
            return true;
        }
        let gang = Arc::clone(&key.gang);
        if let Some(record) = first.filter(|_| might_preempt) {
            let is_plain = |shape| self.state.shapes.get(shape).demand.is_plain();
            let only =
                gang.only_pod().filter(|set| is_plain(set.shape) && !wants.meets(Help::QUOTA));
            return only.is_none_or(|set| {
                nodes.iter().any(|node| self.might_clear(record, set.shape, *node))
            });
        }
        if let Some(set) = gang.only_pod() {
            let demand = &self.state.shapes.get(set.shape).demand;
            if !demand.is_plain() {
                return true;
            }
            let demand = demand.clone();
            let fits = |node: &NodeId| self.state.obstacle(&demand, *node) == Cause::None;
            return nodes.iter().any(fits);
        }
        let finder = self.finder.finder();
        gang.sets.iter().filter(|set| set.min > 0).all(|set| {
            finder.room(&mut self.state, set.shape, Scope::Everywhere) >= u64::from(set.min)
        })
    }

    /// Starts a job, or says why not and what would help.
    fn try_start(&mut self, job: JobId, plan: &mut Plan) -> Result<(), Tried> {
        let gang = Arc::clone(&self.jobs[&job].gang);
        let Some(growth_limit) = self.growth_limit(job, &gang) else {
            return self.make_room(job, &gang, PendingReason::WaitingForQuota, plan);
        };
        let before = self
            .config
            .record_decisions
            .then(|| self.as_seen_by(job, |engine| engine.record_alternatives(&gang)));
        let Some(placed) = self.place_in_kept(job, &gang, growth_limit) else {
            return self.make_room(job, &gang, PendingReason::Unschedulable, plan);
        };
        if let Some(alternatives) = before {
            let record = DecisionRecord::of(self, job, &placed, alternatives);
            self.decisions.push(record);
        }
        self.commit(job, placed, plan);
        Ok(())
    }

    /// What follows for a job that does not fit, or (that is the reason then) may not start: it starts in room that was
    /// kept for others, or this is why not.
    fn make_room(
        &mut self,
        job: JobId,
        gang: &Gang,
        reason: PendingReason,
        plan: &mut Plan,
    ) -> Result<(), Tried> {
        match self.claims.get(job) {
            Some(claim) if claim.awaited.is_empty() => {
                self.give_back(job, plan);
                return Err(Tried::Anew);
            }
            Some(_) => return Err(Tried::Waits(PendingReason::WaitingForReservation, Help::FREED)),
            None => {}
        }
        let had_room = !self.room_held_for(job).is_empty();
        Err(match self.repair(job, plan) {
            // That room is for others now.
            Repair::Claimed if had_room => Tried::Anew,
            Repair::Claimed => Tried::Claimed,
            Repair::Freed => Tried::Anew,
            Repair::RoomFreed(rooms) => {
                self.try_start(job, plan)?;
                self.hold_needless(rooms, plan);
                return Ok(());
            }
            Repair::Postponed => {
                let mut wants = Help::ALL;
                wants |= Help::SEARCH;
                Tried::Waits(reason, wants)
            }
            Repair::Nothing if reason == PendingReason::WaitingForQuota => {
                let mut wants = Help::QUOTA;
                if self.might_preempt(&self.jobs[&job]) {
                    wants |= self.wanted_by(job, gang);
                }
                Tried::Waits(reason, wants)
            }
            Repair::Nothing => Tried::Waits(reason, self.wanted_by(job, gang)),
        })
    }

    pub(crate) fn place(
        &mut self,
        job: JobId,
        gang: &Gang,
        growth_limit: Bounds,
    ) -> Option<Vec<PlacedPod>> {
        let finder = self.finder.finder();
        let mut placer = Placer::new(&mut self.state, &mut *self.policy, finder, job);
        placer.growth_limit = growth_limit;
        placer.place(gang)
    }

    /// Whether a gang could be placed under a view; nothing changes.
    pub(crate) fn would_fit(&mut self, gang: &Gang, view: &View) -> bool {
        self.what_if(gang, view).is_some()
    }

    /// Where a gang would be placed under a view; nothing changes.
    pub(crate) fn what_if(&mut self, gang: &Gang, view: &View) -> Option<Vec<PlacedPod>> {
        self.what_if_within(gang, view, Bounds::default())
    }

    /// The same with at most so much beyond its smallest size.
    pub(crate) fn what_if_within(
        &mut self,
        gang: &Gang,
        view: &View,
        growth_limit: Bounds,
    ) -> Option<Vec<PlacedPod>> {
        let helped = self.state.helped;
        let draws = (self.finder.finder().draws(), self.policy.draws());
        let mark = self.state.open_view(view, self.now_ms);
        if *view == View::AfterReleasing {
            // What those leave for whom room is kept is not for others.
            self.fill_all();
        }
        let placed = self.place(JobId(u64::MAX), gang, growth_limit);
        self.state.rollback(mark);
        self.state.helped = helped;
        self.finder.finder().set_draws(draws.0);
        self.policy.set_draws(draws.1);
        placed
    }

    fn commit(&mut self, job: JobId, placed: Vec<PlacedPod>, plan: &mut Plan) {
        let now_ms = self.now_ms;
        let record = self.jobs.get_mut(&job).expect("a pending job is known");
        let (place, class) = record.place.take().expect("a pending job has a place");
        self.pending.remove(place, class);
        record.job.start_ms = Some(now_ms);
        record.reason = None;
        let end_ms = record.job.estimate.map(|estimate| now_ms + estimate.p50_ms);
        for pod in placed {
            self.survey.forget(pod.node);
            let shape = record.gang.sets[usize::from(pod.pod.pod_set)].shape;
            record.counted.add_times(&self.state.shapes.get(shape).charge, 1);
            record.job.pod_sets[usize::from(pod.pod.pod_set)].present += 1;
            record.holdings.push(pod.holding);
            if end_ms.is_some() {
                self.state.set_phase(pod.holding, Phase::Held { expected_end_ms: end_ms });
            }
            let node = self.state.nodes.cold(pod.node).node.name.clone();
            plan.actions.push(Action::Bind { pod: pod.pod, node, devices: pod.devices });
        }
        self.quota.add(&record.job.queue, &record.counted, 1);
        self.note_running(job);
    }

    /// What could help a gang that does not fit: for one pod the causes of refusal, else anything that
    /// frees something. Where the search is not exhaustive (several sets, or rules) and there is room for
    /// each set by itself, also anything that makes it choose otherwise.
    fn wanted_by(&mut self, job: JobId, gang: &Gang) -> Help {
        self.as_seen_by(job, |engine| engine.wanted_now(gang))
    }

    fn wanted_now(&mut self, gang: &Gang) -> Help {
        let finder = self.finder.finder();
        if let Some(set) = gang.only_pod() {
            let counts = finder.obstacles(&mut self.state, &mut *self.policy, set.shape);
            return Help::wanted(&counts);
        }
        let sets = || gang.sets.iter().filter(|set| set.min > 0);
        let has_rules = |shape| !self.state.shapes.get(shape).demand.rules.is_empty();
        if sets().count() == 1 && !sets().any(|set| has_rules(set.shape)) {
            return Help::FREED;
        }
        let hopeless = sets().any(|set| {
            let room = finder.room(&mut self.state, set.shape, Scope::Everywhere);
            room < u64::from(set.min)
        });
        if hopeless { Help::FREED } else { Help::ALL }
    }

    pub(crate) fn say(&mut self, job: JobId, reason: PendingReason, plan: &mut Plan) {
        let record = self.jobs.get_mut(&job).expect("a pending job is known");
        if record.reason != Some(reason) {
            record.reason = Some(reason);
            plan.actions.push(Action::Wait { job, reason });
        }
    }
}
