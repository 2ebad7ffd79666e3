//! The decision cycle: every class that is awake is tried, best place first, until nothing more starts.

use std::sync::Arc;

use dovetail_model::{Action, Bounds, JobId, NodeId, PendingReason, Phase, Plan};

use super::Engine;
use crate::cause::{Cause, Help};
use crate::explain::DecisionRecord;
use crate::finder::Scope;
use crate::gang::{Gang, PlacedPod, Placer};
use crate::queue::{OrderKey, Sleep};
use crate::view::View;

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
        self.wake();
        let mut after: Option<OrderKey> = None;
        while let Some((job, class)) = self.next_job(after) {
            let place = self.jobs[&job].place.expect("a pending job has a place").0;
            match self.try_start(job, plan) {
                Ok(()) => {
                    self.wake();
                    after = None;
                }
                Err((reason, wants)) => {
                    self.pending.sleep(class, Sleep { wants, reason });
                    self.say(job, reason, plan);
                    after = Some(place);
                }
            }
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
        if wants == Help::QUOTA {
            let asked = key.gang.smallest(&self.state);
            return self.quota.blocked_by(&key.queue, &asked).is_none();
        }
        if helped.meets(Help::NODES) {
            return true;
        }
        let gang = Arc::clone(&key.gang);
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
    fn try_start(&mut self, job: JobId, plan: &mut Plan) -> Result<(), (PendingReason, Help)> {
        let record = &self.jobs[&job];
        let gang = Arc::clone(&record.gang);
        let mut growth_limit = Bounds::default();
        if self.quota.bounds(&record.job.queue) {
            let asked = gang.smallest(&self.state);
            if self.quota.blocked_by(&record.job.queue, &asked).is_some() {
                return Err((PendingReason::WaitingForQuota, Help::QUOTA));
            }
            growth_limit = self.quota.headroom(&record.job.queue);
            for (axis, left) in growth_limit.clone().iter() {
                growth_limit.set(&axis, left.saturating_sub(asked.get(&axis)));
            }
        }
        let before = self.config.record_decisions.then(|| self.record_alternatives(&gang));
        let Some(placed) = self.place(job, &gang, growth_limit) else {
            return Err((PendingReason::Unschedulable, self.wanted_by(&gang)));
        };
        if let Some(alternatives) = before {
            let record = DecisionRecord::of(self, job, &placed, alternatives);
            self.decisions.push(record);
        }
        self.commit(job, placed, plan);
        Ok(())
    }

    fn place(&mut self, job: JobId, gang: &Gang, growth_limit: Bounds) -> Option<Vec<PlacedPod>> {
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
        let helped = self.state.helped;
        let draws = (self.finder.finder().draws(), self.policy.draws());
        let mark = self.state.open_view(view);
        let placed = self.place(JobId(u64::MAX), gang, Bounds::default());
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
    }

    /// What could help a gang that does not fit: for one pod the causes of refusal, else anything that
    /// frees something. Where the search is not exhaustive (several sets, or rules) and there is room for
    /// each set by itself, also anything that makes it choose otherwise.
    fn wanted_by(&mut self, gang: &Gang) -> Help {
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

    pub(super) fn say(&mut self, job: JobId, reason: PendingReason, plan: &mut Plan) {
        let record = self.jobs.get_mut(&job).expect("a pending job is known");
        if record.reason != Some(reason) {
            record.reason = Some(reason);
            plan.actions.push(Action::Wait { job, reason });
        }
    }
}
