//! The jobs that wait and run, and what each of them holds.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{
    Action, Charge, Holding, HoldingId, HoldingPhase, Job, JobId, Owner, PendingReason, Plan, PodId,
};
use rustc_hash::FxHashMap;

use super::away::Away;
use super::charge::charge_there;
use super::error::EngineError;
use super::foreign::Foreign;
use crate::gang::Gang;
use crate::pending::{OrderKey, Pending};
use dovetail_order::queues::quota::Quota;
use dovetail_state::State;
use dovetail_state::cause::Help;

/// A job the engine knows.
#[derive(Debug)]
pub(crate) struct JobRecord {
    pub(crate) job: Job,
    pub(crate) gang: Arc<Gang>,
    /// Everything it holds; empty while it waits.
    pub(crate) holdings: Vec<HoldingId>,
    /// What is counted for its queue.
    pub(crate) counted: Charge,
    /// Place and class while it waits.
    pub(crate) place: Option<(OrderKey, usize)>,
    pub(crate) reason: Option<PendingReason>,
}

impl JobRecord {
    /// A job that holds nothing and has no place yet.
    pub(crate) fn new(job: Job, gang: Arc<Gang>) -> Self {
        let (holdings, counted) = (Vec::new(), Charge::default());
        Self { job, gang, holdings, counted, place: None, reason: None }
    }
}

/// All jobs, those that wait in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) records: FxHashMap<JobId, JobRecord>,
    pub(crate) pending: Pending,
    /// Jobs that run and may be preempted, by priority.
    pub(crate) running: BTreeSet<(i32, JobId)>,
    /// Histories of those that are to run again.
    pub(crate) away: Away,
}

impl Jobs {
    pub(crate) fn waiting(&self, job: JobId) -> Option<&JobRecord> {
        self.records.get(&job).filter(|record| record.place.is_some())
    }

    /// Gives the reason why a job waits, where it is another than before.
    pub(crate) fn say(&mut self, job: JobId, reason: PendingReason, plan: &mut Plan) {
        let record = self.records.get_mut(&job).expect("a pending job is known");
        if record.reason != Some(reason) {
            record.reason = Some(reason);
            plan.actions.push(Action::Wait { job, reason });
        }
    }

    /// A job leaves a class; if it sleeps, whoever is first now waits for what the class waits for.
    pub(crate) fn leave(&mut self, place: OrderKey, class: usize, plan: &mut Plan) {
        self.pending.remove(place, class);
        if let (Some(next), Some(sleep)) =
            (self.pending.first_of(class), self.pending.asleep(class))
        {
            self.say(next, sleep.told(), plan);
        }
    }

    /// Notes that a job runs, or runs no more: those of lower priority may be preempted.
    pub(crate) fn note_running(&mut self, job: JobId) {
        let Some(record) = self.records.get(&job) else { return };
        let entry = (record.job.priority, job);
        match record.place.is_none() && !record.job.preemption.is_protected {
            true => self.running.insert(entry),
            false => self.running.remove(&entry),
        };
    }

    pub(crate) fn held_by(&self, state: &State, pod: PodId) -> Result<HoldingId, EngineError> {
        let unknown = EngineError::UnknownJob { job: pod.job };
        let record = self.records.get(&pod.job).ok_or(unknown)?;
        let owner = Owner::Pod(pod);
        // Within a what-if some may be gone.
        let owned = |id: &&HoldingId| {
            state.holdings.contains(**id) && state.holdings.get(**id).owner == owner
        };
        let held = record.holdings.iter().find(owned).copied();
        held.ok_or(EngineError::NothingHeld { owner })
    }

    pub(crate) fn held_by_owner(
        &self,
        state: &State,
        foreign: &Foreign,
        owner: &Owner,
    ) -> Option<HoldingId> {
        match owner {
            Owner::Pod(pod) => self.held_by(state, *pod).ok(),
            Owner::Foreign(name) => foreign.get(name),
            Owner::Reservation => None,
        }
    }

    /// The job of a pod, and what the pod counts for its queue.
    pub(crate) fn charge_of<'s>(
        &'s self,
        state: &'s State,
        pod: PodId,
    ) -> Option<(&'s JobRecord, &'s Charge)> {
        let record = self.records.get(&pod.job)?;
        let set = record.gang.sets.get(usize::from(pod.pod_set))?;
        Some((record, &state.shapes.get(set.shape).charge))
    }

    /// What a pod was to hold, it holds.
    pub(crate) fn confirm(&self, state: &mut State, pod: PodId) -> Result<(), EngineError> {
        let id = self.held_by(state, pod)?;
        if state.holdings.get(id).phase == HoldingPhase::Assumed {
            let job = &self.records[&pod.job].job;
            let lasts = job.start_ms.zip(job.expected_attempt_ms());
            let expected_end_ms = lasts.map(|(start, lasts_ms)| start.saturating_add(lasts_ms));
            state.holdings.set_phase(id, HoldingPhase::Held { expected_end_ms });
        }
        Ok(())
    }

    /// What a pod holds is another amount, or elsewhere, or ending; its phase from here on.
    pub(crate) fn change_held(
        &mut self,
        state: &mut State,
        holding: &Holding,
    ) -> Result<HoldingPhase, EngineError> {
        let Owner::Pod(pod) = holding.owner else {
            return Err(EngineError::NothingHeld { owner: holding.owner.clone() });
        };
        let old = self.held_by(state, pod)?;
        let mut holding = holding.clone();
        // Until when it may take is said once.
        let told = state.holdings.get(old).phase;
        if holding.phase == (HoldingPhase::Releasing { expected_end_ms: None })
            && matches!(told, HoldingPhase::Releasing { .. })
        {
            holding.phase = told;
        }
        if state.nodes.find(&holding.node).is_none() {
            return Err(EngineError::UnknownNode { node: holding.node.clone() });
        }
        state.remove_holding(old);
        let new = state.add_holding(&holding).expect("the node is there");
        let ends = |phase| matches!(phase, HoldingPhase::Releasing { .. });
        if ends(told) && !ends(holding.phase) {
            // Whoever waited for its end may preempt others instead, on any node.
            state.helped |= Help::ALL;
        }
        let record = self.records.get_mut(&pod.job).expect("one of its pods held something");
        let place = record.holdings.iter_mut().find(|id| **id == old);
        *place.expect("held by this job") = new;
        Ok(holding.phase)
    }

    /// Frees what a pod holds; true if it was the last of its job.
    pub(crate) fn free_pod(
        &mut self,
        state: &mut State,
        quota: &mut Quota,
        pod: PodId,
    ) -> Result<bool, EngineError> {
        let id = self.held_by(state, pod)?;
        let node = state.remove_holding(id).node;
        let record = self.records.get_mut(&pod.job).expect("one of its pods held something");
        record.holdings.retain(|held| *held != id);
        let set = usize::from(pod.pod_set);
        let shape = record.gang.sets[set].shape;
        let mut charge = state.shapes.get(shape).charge.clone();
        charge.add_times(&charge_there(state, shape, node), 1);
        record.counted.add_times(&charge, -1);
        let present = &mut record.job.pod_sets[set].present;
        *present = present.saturating_sub(1);
        quota.add(&record.job.queue, &charge, -1);
        Ok(record.holdings.is_empty())
    }

    /// A job of which nothing is late with ending any more, or nothing in a budget is left, may be
    /// preempted where it could not be before: on all nodes that it holds something on.
    pub(crate) fn note_others_of(&self, state: &mut State, job: JobId) {
        for id in &self.records[&job].holdings {
            let record = state.holdings.get(*id);
            state.helped |= Help::of_release(record);
            state.helped_nodes.push(record.node);
        }
    }

    /// A holding of a snapshot is one of a job.
    pub(crate) fn adopt(&mut self, state: &State, pod: PodId, id: HoldingId) {
        if let Some(record) = self.records.get_mut(&pod.job) {
            record.holdings.push(id);
            let shape = record.gang.sets[usize::from(pod.pod_set)].shape;
            record.counted.add_times(&state.shapes.get(shape).charge, 1);
            let node = state.holdings.get(id).node;
            record.counted.add_times(&charge_there(state, shape, node), 1);
        }
    }

    /// The tree of queues is another, or all jobs are new: what they hold is counted again.
    pub(crate) fn recount(&self, quota: &mut Quota) {
        // order-free: sums.
        let holds = self.records.values().map(|record| (&*record.job.queue, &record.counted));
        quota.recount(holds);
    }
}
