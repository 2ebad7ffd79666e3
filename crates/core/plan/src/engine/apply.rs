//! What an event changes, before anything is decided.

use std::sync::Arc;

use dovetail_model::{Action, Event, HoldingPhase, JobId, Node, NodeName, Owner, Plan};

use super::Engine;
use super::error::EngineError;
use super::events::note_checkpoint;
use super::placement::NodeSearch;
use crate::reserve::Calendar;
use dovetail_policy::named::{self, PolicySpec};
use dovetail_state::cause::Help;

impl Engine {
    /// Takes an event into the state, or refuses it and changes nothing.
    pub(super) fn apply(
        &mut self,
        event: Event,
        now_ms: u64,
        plan: &mut Plan,
    ) -> Result<(), EngineError> {
        let last_ms = self.now_ms();
        if now_ms < last_ms {
            return Err(EngineError::TimeWentBack { now_ms, last_ms });
        }
        let used = self.books.usage.clone();
        self.books.charge_until(now_ms);
        self.books.placement.now_ms = now_ms;
        if let Err(refused) = self.take(event, plan) {
            self.books.placement.now_ms = last_ms;
            self.books.usage = used;
            return Err(refused);
        }
        self.drains.advance(&mut self.books.placement.state, now_ms);
        Ok(())
    }

    fn take(&mut self, event: Event, plan: &mut Plan) -> Result<(), EngineError> {
        let books = &mut self.books;
        let state = &mut books.placement.state;
        match event {
            Event::NodeChanged(node) => self.change_node(*node),
            Event::NodeCondition { node, condition } => {
                let condition = self.drains.tell(&node, condition, books.placement.now_ms);
                if !state.set_condition(&node, condition) {
                    return Err(EngineError::UnknownNode { node });
                }
            }
            Event::NodeRemoved { node } => self.lose_node(node, plan)?,
            Event::QueueChanged(queue) => {
                books.quota.set(*queue);
                books.recount();
                books.placement.state.helped |= Help::ALL;
            }
            Event::QueueRemoved { name } => {
                books.quota.remove(&name);
                books.recount();
                books.placement.state.helped |= Help::ALL;
            }
            Event::Submitted(job) => books.submit(*job, plan)?,
            Event::JobChanged(job) => books.change_job(*job, plan)?,
            Event::Adopted { job, holdings } => books.adopt_running(*job, &holdings)?,
            Event::Confirmed { pod } => books.jobs.confirm(state, pod)?,
            Event::BindFailed { pod } => books.fail_bind(pod, plan)?,
            Event::PodEnded { pod, how } => books.end_pod(pod, how, plan)?,
            Event::HeldChanged(holding) => books.change_held(&holding)?,
            Event::Ended { job, how } => books.end_as(job, how, plan)?,
            Event::Ending { job, expected_end_ms } => {
                let record = books.jobs.records.get(&job);
                for id in &record.ok_or(EngineError::UnknownJob { job })?.holdings {
                    state.holdings.set_phase(*id, HoldingPhase::Releasing { expected_end_ms });
                }
            }
            Event::Checkpointed { job, at_ms } => note_checkpoint(job, at_ms, books)?,
            Event::ForeignHeld(holding) => {
                if matches!(holding.owner, Owner::Foreign(_)) {
                    books.placement.note_late(holding.phase);
                }
                books.kept.foreign.hold(&mut books.placement.state, *holding);
            }
            Event::ForeignReleased { name } => {
                let held = books.kept.foreign.forget(&name);
                held.into_iter().for_each(|id| drop(state.remove_holding(id)));
            }
            Event::CountsChanged { owner, counts_into } => {
                books.change_counts(owner, &counts_into)?;
            }
            Event::ReservationEnded { reservation } => {
                for id in state.holdings.kept_by(reservation) {
                    state.remove_holding(id);
                }
            }
            Event::BookingSet(booking) => Calendar::of(books).book(*booking)?,
            Event::BookingRemoved { name } => Calendar::of(books).cancel(&name),
            Event::BudgetChanged(budget) => {
                self.preemption.budgets.insert(budget.name, budget.disruptions_allowed);
                state.helped |= Help::ALL;
            }
            Event::BudgetRemoved { name } => {
                self.preemption.budgets.remove(&name);
                state.helped |= Help::ALL;
            }
            Event::PolicyChanged { name } => self.change_policy(name)?,
            Event::Tick => {}
        }
        Ok(())
    }

    /// Chooses nodes by another policy. What one that learns has learnt is kept for the next one
    /// that learns.
    fn change_policy(&mut self, name: String) -> Result<(), EngineError> {
        let spec = PolicySpec { name, learnt: self.learnt(), ..self.config.policy.clone() };
        let placement = &mut self.books.placement;
        let draws = placement.draws();
        placement.policy = named::build(&spec, &mut placement.state, !self.config.naive)?;
        placement.finder = NodeSearch::of(&self.config);
        placement.set_draws(draws);
        // A search that does not try everything may choose otherwise and succeed.
        placement.state.helped |= Help::HELD;
        self.config.policy = spec;
        Ok(())
    }

    fn change_node(&mut self, mut node: Node) {
        let placement = &mut self.books.placement;
        node.condition = self.drains.note(&node, placement.now_ms);
        let name = node.name.clone();
        placement.state.upsert_node(Arc::new(node));
        for holding in self.books.kept.foreign.take_on(&name) {
            placement.note_late(holding.phase);
            self.books.kept.foreign.hold(&mut placement.state, holding);
        }
    }

    fn lose_node(&mut self, node: NodeName, plan: &mut Plan) -> Result<(), EngineError> {
        let books = &mut self.books;
        let Some(lost) = books.placement.state.remove_node(&node) else {
            return Err(EngineError::UnknownNode { node });
        };
        self.drains.forget(&node);
        let mut jobs: Vec<JobId> = lost.into_iter().map(|pod| pod.job).collect();
        jobs.dedup();
        books.kept.foreign.forget_lost(&books.placement.state);
        for job in jobs {
            let Some(record) = books.jobs.records.get_mut(&job) else { continue };
            record.holdings.retain(|id| books.placement.state.holdings.contains(*id));
            plan.actions.push(Action::Lost { job });
            books.end(job, plan)?;
        }
        Ok(())
    }
}
