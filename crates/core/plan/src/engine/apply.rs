//! What an event changes, before anything is decided.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::node::DrainWindow;
use dovetail_model::{
    Action, Charge, Condition, Event, Holding, HoldingId, Job, JobId, Node, NodeName, Owner,
    PendingReason, Phase, Plan,
};

use super::{Engine, EngineError, JobRecord};
use crate::cause::Help;
use crate::gang::Gang;
use crate::queue::{ClassKey, OrderKey};

impl Engine {
    /// Takes an event into the state; [`Engine::cycle`] then decides.
    pub fn apply(&mut self, event: Event, now_ms: u64) -> Result<Plan, EngineError> {
        if now_ms < self.now_ms {
            return Err(EngineError::TimeWentBack { now_ms, last_ms: self.now_ms });
        }
        let last_ms = std::mem::replace(&mut self.now_ms, now_ms);
        let mut plan = Plan::default();
        if let Err(refused) = self.take(event, &mut plan) {
            self.now_ms = last_ms;
            return Err(refused);
        }
        self.advance_drains();
        Ok(plan)
    }

    /// Takes an event into the state, or refuses it and changes nothing.
    fn take(&mut self, event: Event, plan: &mut Plan) -> Result<(), EngineError> {
        match event {
            Event::NodeChanged(node) => self.change_node(*node),
            Event::NodeCondition { node, condition } => self.change_condition(node, condition)?,
            Event::NodeRemoved { node } => self.lose_node(node, plan)?,
            Event::QueueChanged(queue) => {
                self.quota.set(queue);
                self.recount();
            }
            Event::QueueRemoved { name } => {
                self.quota.remove(&name);
                self.recount();
            }
            Event::Submitted(job) => self.submit(*job, plan)?,
            Event::JobChanged(job) => self.change_job(*job, plan)?,
            Event::Adopted { job, holdings } => self.adopt_running(*job, &holdings)?,
            Event::Confirmed { pod } => self.confirm(pod)?,
            Event::BindFailed { pod } => self.fail_bind(pod, plan)?,
            Event::PodEnded { pod } => self.end_pod(pod, plan)?,
            Event::HeldChanged(holding) => self.change_held(&holding)?,
            Event::Ended { job } => self.end(job, plan)?,
            Event::Ending { job, expected_end_ms } => {
                let record = self.jobs.get(&job).ok_or(EngineError::UnknownJob { job })?;
                for id in &record.holdings {
                    self.state.set_phase(*id, Phase::Releasing { expected_end_ms });
                }
            }
            Event::ForeignHeld(holding) => self.hold_foreign(*holding),
            Event::ForeignReleased { name } => {
                if let Some(id) = self.forget_foreign(&name) {
                    self.state.remove_holding(id);
                }
            }
            Event::CountsChanged { owner, counts_into } => {
                self.change_counts(owner, &counts_into)?;
            }
            Event::ReservationEnded { reservation } => {
                for id in self.state.holdings.kept_by(reservation) {
                    self.state.remove_holding(id);
                }
            }
            Event::BudgetChanged(budget) => {
                self.budgets.insert(budget.name, budget.disruptions_allowed);
                self.state.helped |= Help::ALL;
            }
            Event::BudgetRemoved { name } => {
                self.budgets.remove(&name);
                self.state.helped |= Help::ALL;
            }
            Event::Tick => {}
        }
        Ok(())
    }

    /// The tree of queues is another.
    fn recount(&mut self) {
        // order-free: sums.
        let holds = self.jobs.values().map(|record| (&*record.job.queue, &record.counted));
        self.quota.recount(holds);
        self.state.helped |= Help::ALL;
    }

    fn change_node(&mut self, mut node: Node) {
        let name = node.name.clone();
        match node.drain_window.filter(|window| self.now_ms < window.to_ms) {
            Some(window) => {
                let drain = Drain { window, told: node.condition };
                node.condition = drain.condition(self.now_ms);
                self.drains.insert(name.clone(), drain);
            }
            None => {
                self.drains.remove(&name);
            }
        }
        self.state.upsert_node(Arc::new(node));
        let here = |holding: &Holding| holding.node == name;
        let names: Vec<String> =
            self.unplaced_foreign.iter().filter(|(_, h)| here(h)).map(|(n, _)| n.clone()).collect();
        for foreign in names {
            let holding = self.unplaced_foreign.remove(&foreign).expect("just listed");
            self.hold_foreign(holding);
        }
    }

    fn change_condition(&mut self, node: NodeName, told: Condition) -> Result<(), EngineError> {
        let mut condition = told;
        if let Some(drain) = self.drains.get_mut(&node) {
            drain.told = told;
            condition = drain.condition(self.now_ms);
        }
        match self.state.set_condition(&node, condition) {
            true => Ok(()),
            false => Err(EngineError::UnknownNode { node }),
        }
    }

    /// Opens and closes drain windows whose time has come.
    pub(super) fn advance_drains(&mut self) {
        if self.drains.is_empty() {
            return;
        }
        let now_ms = self.now_ms;
        let due: Vec<(NodeName, Condition)> = self
            .drains
            .iter()
            .filter_map(|(name, drain)| {
                let slot = self.state.nodes.find(name)?;
                let wanted = drain.condition(now_ms);
                let have = self.state.nodes.cold(slot).node.condition;
                (have != wanted).then(|| (name.clone(), wanted))
            })
            .collect();
        for (name, condition) in due {
            self.state.set_condition(&name, condition);
        }
        self.drains.retain(|_, drain| now_ms < drain.window.to_ms);
    }

    fn lose_node(&mut self, node: NodeName, plan: &mut Plan) -> Result<(), EngineError> {
        let unknown = || EngineError::UnknownNode { node: node.clone() };
        let lost = self.state.remove_node(&node).ok_or_else(unknown)?;
        self.drains.remove(&node);
        let mut jobs: Vec<JobId> = lost.into_iter().map(|pod| pod.job).collect();
        jobs.dedup();
        self.foreign.retain(|_, id| self.state.holdings.contains(*id));
        for job in jobs {
            let Some(record) = self.jobs.get_mut(&job) else { continue };
            record.holdings.retain(|id| self.state.holdings.contains(*id));
            plan.actions.push(Action::Lost { job });
            self.end(job, plan)?;
        }
        Ok(())
    }

    fn submit(&mut self, job: Job, plan: &mut Plan) -> Result<(), EngineError> {
        if self.jobs.contains_key(&job.id) {
            return Err(EngineError::DuplicateJob { job: job.id, name: job.name });
        }
        if !job.pod_sets.iter().any(|set| set.min > 0) {
            return Err(EngineError::EmptyJob { name: job.name });
        }
        let gang = Arc::new(Gang::of(&mut self.state, &job)?);
        for set in &gang.sets {
            self.policy.observe_arrival(&self.state, set.shape, set.min);
        }
        if self.policy.publish(&mut self.state) {
            let (version, values) = (self.policy.version(), self.policy.published_values());
            plan.actions.push(Action::Publish { version, values });
            // Scores changed: a search that does not try everything may choose otherwise and succeed.
            self.state.helped |= Help::HELD;
        }
        let key = self.class_key(&job, &gang);
        let (place, class) = self.pending.push(&job, key);
        let id = job.id;
        let record = JobRecord {
            job,
            gang,
            holdings: Vec::new(),
            counted: Charge::default(),
            place: Some((place, class)),
            reason: None,
        };
        self.jobs.insert(id, record);
        self.say_if_asleep(id, class, plan);
        Ok(())
    }

    /// The class of a waiting job. Which images it names makes no difference where every place is tried.
    pub(crate) fn class_key(&self, job: &Job, gang: &Arc<Gang>) -> ClassKey {
        let mut gang = Arc::clone(gang);
        if let [set] = gang.sets.as_slice() {
            let shape = self.state.shapes.get(set.shape);
            if shape.images.is_some() && shape.demand.rules.is_empty() {
                let imageless = shape.imageless;
                Arc::make_mut(&mut gang).sets[0].shape = imageless;
            }
        }
        ClassKey {
            queue: job.queue.clone(),
            gang,
            preempts: !job.preemption.never_preempts,
            claim: self.claims.get(job.id).map(|claim| claim.reservation),
            kept_room: job.kept_room.clone(),
        }
    }

    /// A job that joined a class that sleeps will not be tried now: it is told why it waits. One that goes before
    /// all others there may stop more than they may, and is tried.
    pub(crate) fn say_if_asleep(&mut self, job: JobId, class: usize, plan: &mut Plan) {
        if let Some(sleep) = self.pending.asleep(class) {
            let first = self.pending.first_of(class) == Some(job);
            if first && self.might_preempt(&self.jobs[&job]) {
                return self.pending.wake(class);
            }
            let reason = if first { sleep.reason } else { PendingReason::WaitingForTurn };
            self.say(job, reason, plan);
        }
    }

    /// A job leaves a class; if it sleeps, whoever is first now waits for what the class waits for.
    pub(crate) fn leave(&mut self, place: OrderKey, class: usize, plan: &mut Plan) {
        self.pending.remove(place, class);
        if let (Some(next), Some(sleep)) =
            (self.pending.first_of(class), self.pending.asleep(class))
        {
            self.say(next, sleep.reason, plan);
        }
    }

    pub(super) fn end(&mut self, job: JobId, plan: &mut Plan) -> Result<(), EngineError> {
        let record = self.jobs.remove(&job).ok_or(EngineError::UnknownJob { job })?;
        self.running.remove(&(record.job.priority, job));
        self.give_back(job, plan);
        if let Some((place, class)) = record.place {
            self.leave(place, class, plan);
        }
        self.note_ends(&record);
        for id in record.holdings {
            self.state.remove_holding(id);
        }
        self.quota.add(&record.job.queue, &record.counted, -1);
        Ok(())
    }

    /// Tells the policy how long the pods ran that still hold something.
    fn note_ends(&mut self, record: &JobRecord) {
        let Some(start_ms) = record.job.start_ms else { return };
        let ran_ms = self.now_ms.saturating_sub(start_ms);
        for id in &record.holdings {
            let Owner::Pod(pod) = self.state.holdings.get(*id).owner else { continue };
            let shape = record.gang.sets[usize::from(pod.pod_set)].shape;
            self.policy.observe_end(&self.state, shape, ran_ms);
        }
    }

    fn change_counts(
        &mut self,
        owner: Owner,
        counts_into: &BTreeSet<String>,
    ) -> Result<(), EngineError> {
        let held = match &owner {
            Owner::Pod(pod) => {
                let unknown = EngineError::UnknownJob { job: pod.job };
                let record = self.jobs.get(&pod.job).ok_or(unknown)?;
                let owned = |id: &&HoldingId| self.state.holdings.get(**id).owner == owner;
                record.holdings.iter().find(owned).copied()
            }
            Owner::Foreign(name) => {
                if let Some(holding) = self.unplaced_foreign.get_mut(name) {
                    holding.counts_into = counts_into.clone();
                    return Ok(());
                }
                self.foreign.get(name).copied()
            }
            Owner::Reservation => None,
        };
        let id = held.ok_or(EngineError::NothingHeld { owner })?;
        self.state.set_counts(id, counts_into);
        Ok(())
    }

    /// A name is nobody's; what was held under it.
    pub(crate) fn forget_foreign(&mut self, name: &str) -> Option<HoldingId> {
        self.unplaced_foreign.remove(name);
        self.kept_rooms.remove(name);
        self.foreign.remove(name)
    }

    fn hold_foreign(&mut self, holding: Holding) {
        let Owner::Foreign(name) = &holding.owner else { return };
        let name = name.clone();
        self.note_late(holding.phase);
        self.note_room(&name, holding.phase);
        self.unplaced_foreign.remove(&name);
        if let Some(id) = self.foreign.remove(&name) {
            self.state.remove_holding(id);
        }
        match self.state.add_holding(&holding) {
            Some(id) => {
                self.foreign.insert(name, id);
            }
            None => {
                self.unplaced_foreign.insert(name, holding);
            }
        }
    }
}

/// A drain window that is open or still to come, with the condition the node has apart from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    pub(super) window: DrainWindow,
    pub(super) told: Condition,
}

impl Drain {
    fn condition(&self, now_ms: u64) -> Condition {
        let open = (self.window.from_ms..self.window.to_ms).contains(&now_ms);
        match self.told {
            Condition::Ready if open => Condition::Cordoned,
            told => told,
        }
    }
}
