//! What happens to jobs and their pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::{
    Action, Holding, HoldingPhase, HowEnded, Job, JobId, Owner, Plan, PodId, Selectors, Snapshot,
};

use super::books::{Books, counts_all_queues};
use super::error::EngineError;
use super::jobs::{JobRecord, Jobs};
use super::turning;
use crate::gang::Gang;
use dovetail_order::estimate::RunTimes;
use dovetail_state::State;
use dovetail_state::cause::Help;

impl Books {
    pub(super) fn submit(&mut self, mut job: Job, plan: &mut Plan) -> Result<(), EngineError> {
        if self.jobs.records.contains_key(&job.id) {
            return Err(EngineError::DuplicateJob { job: job.id, name: job.name });
        }
        if !job.pod_sets.iter().any(|set| set.min > 0) {
            return Err(EngineError::EmptyJob { name: job.name });
        }
        let (state, policy) = (&mut self.placement.state, &mut self.placement.policy);
        let gang = Arc::new(Gang::of(state, &job)?);
        for set in &gang.sets {
            policy.observe_arrival(state, set.shape, set.min);
        }
        if policy.publish(state) {
            let (version, values) = (policy.version(), policy.published_values());
            plan.actions.push(Action::Publish { version, values });
            // Scores changed: a search that does not try everything may choose otherwise and
            // succeed.
            state.helped |= Help::HELD;
        }
        self.run_times.assess(&mut job, None);
        self.bursts.submit(&self.run_times, &job);
        if counts_all_queues(&self.quota, self.usage.as_ref()) {
            self.quota.meet(&job.queue);
        }
        let id = job.id;
        self.jobs.away.rejoin(&mut job);
        self.turns.iter_mut().for_each(|turns| turns.submit(&job));
        self.run_times.note_job(&job);
        self.jobs.records.insert(id, JobRecord::new(job, gang));
        self.join(id, plan);
        turning::turn(self.turns.as_mut(), &mut self.jobs, &mut self.placement);
        Ok(())
    }

    /// A job that waits is described anew; it keeps nothing but its identity.
    pub(super) fn change_job(&mut self, mut job: Job, plan: &mut Plan) -> Result<(), EngineError> {
        let id = job.id;
        let record = self.jobs.records.get(&id).ok_or(EngineError::UnknownJob { job: id })?;
        self.run_times.assess(&mut job, Some(&record.job));
        record.place.ok_or(EngineError::NotWaiting { job: id })?;
        if !job.pod_sets.iter().any(|set| set.min > 0) {
            return Err(EngineError::EmptyJob { name: job.name });
        }
        let gang = Arc::new(Gang::of(&mut self.placement.state, &job)?);
        if !asks_the_same(&self.placement.state, &self.jobs.records[&id], &job, &gang) {
            self.give_back(id, plan);
        }
        let (place, class) = self.jobs.records[&id].place.expect("looked up above");
        self.jobs.leave(place, class, plan);
        self.bursts.submit(&self.run_times, &job);
        self.run_times.note_job(&job);
        let record = self.jobs.records.get_mut(&id).expect("looked up above");
        (record.job, record.gang) = (job, gang);
        self.join(id, plan);
        Ok(())
    }

    /// Takes over a job that runs.
    pub(super) fn adopt_running(
        &mut self,
        mut job: Job,
        holdings: &[Holding],
    ) -> Result<(), EngineError> {
        if self.jobs.records.contains_key(&job.id) {
            return Err(EngineError::DuplicateJob { job: job.id, name: job.name });
        }
        let state = &mut self.placement.state;
        for holding in holdings {
            let Owner::Pod(pod) = holding.owner else {
                return Err(EngineError::NothingHeld { owner: holding.owner.clone() });
            };
            if pod.job != job.id || usize::from(pod.pod_set) >= job.pod_sets.len() {
                return Err(EngineError::UnknownPod { pod });
            }
            if state.nodes.find(&holding.node).is_none() {
                return Err(EngineError::UnknownNode { node: holding.node.clone() });
            }
        }
        if holdings.is_empty() {
            return Err(EngineError::EmptyJob { name: job.name });
        }
        let mut unplaced = job.clone();
        unplaced.pod_sets.iter_mut().for_each(|set| set.present = 0);
        let gang = Arc::new(Gang::of(state, &unplaced)?);
        job.start_ms.get_or_insert(self.placement.now_ms);
        self.run_times.assess(&mut job, None);
        self.bursts.submit(&self.run_times, &job);
        self.run_times.note_job(&job);
        let (job_id, queue) = (job.id, job.queue.clone());
        if counts_all_queues(&self.quota, self.usage.as_ref()) {
            self.quota.meet(&queue);
        }
        self.jobs.records.insert(job_id, JobRecord::new(job, gang));
        for holding in holdings {
            let mut holding = holding.clone();
            expect_end(&mut holding, &self.jobs.records[&job_id].job, &self.run_times);
            if let (Owner::Pod(pod), Some(id)) = (&holding.owner, state.add_holding(&holding)) {
                self.jobs.adopt(state, *pod, id);
            }
        }
        self.quota.add(&queue, &self.jobs.records[&job_id].counted, 1);
        if let Some(turns) = &mut self.turns {
            let (job, now_ms) = (&self.jobs.records[&job_id].job, self.placement.now_ms);
            turns.submit(job);
            turns.run(job, now_ms);
        }
        self.jobs.note_running(job_id);
        Ok(())
    }

    /// A job is over; of one that is to run again its history is kept.
    pub(super) fn end_as(
        &mut self,
        job: JobId,
        how: HowEnded,
        plan: &mut Plan,
    ) -> Result<(), EngineError> {
        let now_ms = self.placement.now_ms;
        let record = self.jobs.records.get(&job).ok_or(EngineError::UnknownJob { job })?;
        let (did, saved_ms) = (record.job.attempt_at(now_ms), record.job.history.saved_ms);
        let has_run = record.job.start_ms.is_some();
        let ran_ms = saved_ms.saturating_add(did.saved_ms).saturating_add(did.unsaved_ms);
        let forgotten = match how.runs_again() {
            true => self.jobs.away.leave(&record.job, record.counted.gpu_milli, how, now_ms),
            false => Vec::new(),
        };
        if let Some(turns) = &mut self.turns {
            match how.runs_again() {
                true => turns.pause(job),
                false => turns.end(job, has_run.then_some(ran_ms)),
            }
            forgotten.iter().for_each(|job| turns.end(*job, None));
        }
        forgotten.into_iter().for_each(|job| self.bursts.end(job));
        if !how.runs_again() || !has_run {
            self.bursts.end(job);
        }
        self.free(job, how, plan)
    }

    /// A job is over, and nobody knows how.
    pub(super) fn end(&mut self, job: JobId, plan: &mut Plan) -> Result<(), EngineError> {
        self.turns.iter_mut().for_each(|turns| turns.end(job, None));
        self.bursts.end(job);
        self.free(job, HowEnded::Lost, plan)
    }

    /// All that a job holds is free.
    fn free(&mut self, job: JobId, how: HowEnded, plan: &mut Plan) -> Result<(), EngineError> {
        let record = self.jobs.records.remove(&job).ok_or(EngineError::UnknownJob { job })?;
        self.jobs.running.remove(&(record.job.priority, job));
        self.run_times.forget_job(job);
        self.give_back(job, plan);
        self.kept.note_end(&record, &self.placement.state);
        if let Some((place, class)) = record.place {
            self.jobs.leave(place, class, plan);
        }
        self.placement.note_ends(&record);
        let Self { run_times, jobs, placement, .. } = self;
        note_run(run_times, jobs, &record.job, how, placement.now_ms);
        for id in record.holdings {
            self.placement.state.remove_holding(id);
        }
        self.quota.add(&record.job.queue, &record.counted, -1);
        Ok(())
    }

    /// A pod holds nothing any more; with its last pod a job is over.
    pub(super) fn end_pod(
        &mut self,
        pod: PodId,
        how: HowEnded,
        plan: &mut Plan,
    ) -> Result<(), EngineError> {
        let placement = &mut self.placement;
        self.jobs.held_by(&placement.state, pod)?;
        let record = &self.jobs.records[&pod.job];
        if let Some(start_ms) = record.job.start_ms {
            let shape = record.gang.sets[usize::from(pod.pod_set)].shape;
            let ran_ms = placement.now_ms.saturating_sub(start_ms);
            placement.policy.observe_end(&placement.state, shape, ran_ms);
        }
        let is_last = self.jobs.free_pod(&mut self.placement.state, &mut self.quota, pod)?;
        if self.preempts {
            self.jobs.note_others_of(&mut self.placement.state, pod.job);
        }
        match is_last {
            true => self.end_as(pod.job, how, plan),
            false => Ok(()),
        }
    }

    /// A pod does not run after all; a job that has none left waits again.
    pub(super) fn fail_bind(&mut self, pod: PodId, plan: &mut Plan) -> Result<(), EngineError> {
        let is_last = self.jobs.free_pod(&mut self.placement.state, &mut self.quota, pod)?;
        if self.preempts {
            self.jobs.note_others_of(&mut self.placement.state, pod.job);
        }
        if !is_last {
            return Ok(());
        }
        let record = self.jobs.records.get_mut(&pod.job).expect("one of its pods held something");
        record.job.start_ms = None;
        record.reason = None;
        self.run_times.note_job(&record.job);
        self.jobs.running.remove(&(record.job.priority, pod.job));
        self.turns.iter_mut().for_each(|turns| turns.pause(pod.job));
        self.join(pod.job, plan);
        Ok(())
    }

    /// What a pod holds is another amount, or elsewhere, or ending.
    pub(super) fn change_held(&mut self, holding: &Holding) -> Result<(), EngineError> {
        let mut holding = holding.clone();
        if let (true, HoldingPhase::Held { expected_end_ms }, Owner::Pod(pod)) =
            (self.run_times.learns(), &mut holding.phase, &holding.owner)
        {
            // That of the engine counts, which may have been raised.
            let state = &self.placement.state;
            let held = state.holdings.get(self.jobs.held_by(state, *pod)?);
            *expected_end_ms = held.phase.expected_end_ms().or(*expected_end_ms);
        }
        let phase = self.jobs.change_held(&mut self.placement.state, &holding)?;
        if let (Owner::Pod(pod), true) = (&holding.owner, self.preempts) {
            self.jobs.note_others_of(&mut self.placement.state, pod.job);
        }
        self.placement.note_late(phase);
        Ok(())
    }

    /// Other selectors count what somebody holds.
    pub(super) fn change_counts(
        &mut self,
        owner: Owner,
        counts_into: &Selectors,
    ) -> Result<(), EngineError> {
        let state = &mut self.placement.state;
        let id = match &owner {
            Owner::Pod(pod) => self.jobs.held_by(state, *pod)?,
            Owner::Foreign(name) if self.kept.foreign.count_unplaced(name, counts_into) => {
                return Ok(());
            }
            Owner::Foreign(name) => {
                self.kept.foreign.get(name).ok_or(EngineError::NothingHeld { owner })?
            }
            Owner::Reservation => return Err(EngineError::NothingHeld { owner }),
        };
        state.set_counts(id, counts_into);
        Ok(())
    }
}

/// What a job did until its newest checkpoint is not lost any more: others that could not preempt
/// it before may now.
pub(super) fn note_checkpoint(
    job: JobId,
    at_ms: u64,
    books: &mut Books,
) -> Result<(), EngineError> {
    let Books { jobs, turns, placement, .. } = books;
    let record = jobs.records.get_mut(&job).ok_or(EngineError::UnknownJob { job })?;
    let last = &mut record.job.interruption.last_checkpoint_ms;
    *last = (*last).max(Some(at_ms));
    if let Some(turns) = turns.as_mut().filter(|turns| turns.has_running(job))
        && turns.run(&record.job, placement.now_ms)
    {
        jobs.note_others_of(&mut placement.state, job);
    }
    Ok(())
}

/// What a pod of a job holds is expected to be free when its job is expected to have ended.
pub(super) fn expect_end(holding: &mut Holding, job: &Job, run_times: &RunTimes) {
    if let (true, HoldingPhase::Held { expected_end_ms }) = (run_times.learns(), &mut holding.phase)
    {
        let end_ms = job.start_ms.zip(job.expected_attempt_ms());
        let end_ms = end_ms.map(|(start_ms, lasts_ms)| start_ms.saturating_add(lasts_ms));
        *expected_end_ms = end_ms.or(*expected_end_ms);
    }
}

/// Jobs of a world are expected to run for as long as those before them.
pub(super) fn expect_ends(world: &mut Snapshot, run_times: &RunTimes) {
    for job in &mut world.jobs {
        run_times.assess(job, None);
    }
    let jobs: BTreeMap<JobId, &Job> = world.jobs.iter().map(|job| (job.id, job)).collect();
    for holding in &mut world.holdings {
        let Owner::Pod(pod) = &holding.owner else { continue };
        if let Some(job) = jobs.get(&pod.job) {
            expect_end(holding, job, run_times);
        }
    }
}

/// Learns how long a job ran that is over.
fn note_run(run_times: &mut RunTimes, jobs: &Jobs, job: &Job, how: HowEnded, now_ms: u64) {
    let Some(start_ms) = job.start_ms else { return };
    let ran_ms = job.history.saved_ms.saturating_add(now_ms.saturating_sub(start_ms));
    run_times.observe(job, ran_ms, how == HowEnded::Completed);
    if run_times.is_due(now_ms) {
        // order-free: sums.
        run_times.publish(now_ms, jobs.records.values().map(|record| &record.job));
    }
}

/// Whether what is kept for a job is what it still needs: as many pods of the same amounts.
fn asks_the_same(state: &State, before: &JobRecord, job: &Job, gang: &Gang) -> bool {
    let asks = |gang: &Gang| -> Vec<_> {
        let of = |shape| &state.shapes.get(shape).demand;
        let sets = gang.sets.iter().map(|set| (set.min, of(set.shape)));
        sets.map(|(min, demand)| (min, demand.amounts.clone(), demand.need)).collect()
    };
    let is_alike = before.job.priority == job.priority && before.job.queue == job.queue;
    is_alike && asks(&before.gang) == asks(gang)
}
