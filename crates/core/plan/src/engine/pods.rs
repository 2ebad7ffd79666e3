//! What happens outside to single pods and to jobs that the engine did not place itself.

use std::sync::Arc;

use dovetail_model::{Charge, Holding, HoldingId, Job, JobId, Owner, Phase, Plan, PodId};

use super::{Engine, EngineError, JobRecord};
use crate::cause::Help;
use crate::gang::Gang;

impl Engine {
    /// A job that waits is described anew; it keeps nothing but its identity.
    pub(super) fn change_job(&mut self, job: Job, plan: &mut Plan) -> Result<(), EngineError> {
        let id = job.id;
        let record = self.jobs.get(&id).ok_or(EngineError::UnknownJob { job: id })?;
        record.place.ok_or(EngineError::NotWaiting { job: id })?;
        if !job.pod_sets.iter().any(|set| set.min > 0) {
            return Err(EngineError::EmptyJob { name: job.name });
        }
        let gang = Arc::new(Gang::of(&mut self.state, &job)?);
        if !self.asks_the_same(&self.jobs[&id], &job, &gang) {
            self.give_back(id, plan);
        }
        let (place, class) = self.jobs[&id].place.expect("looked up above");
        self.leave(place, class, plan);
        let key = self.class_key(&job, &gang);
        let (place, class) = self.pending.push(&job, key);
        let record = self.jobs.get_mut(&id).expect("looked up above");
        (record.job, record.gang, record.place) = (job, gang, Some((place, class)));
        self.say_if_asleep(id, class, plan);
        Ok(())
    }

    /// Whether what is kept for a job is what it still needs: as many pods of the same amounts.
    fn asks_the_same(&self, before: &JobRecord, job: &Job, gang: &Gang) -> bool {
        let asks = |gang: &Gang| -> Vec<_> {
            let of = |shape| &self.state.shapes.get(shape).demand;
            let sets = gang.sets.iter().map(|set| (set.min, of(set.shape)));
            sets.map(|(min, demand)| (min, demand.amounts.clone(), demand.need)).collect()
        };
        let is_alike = before.job.priority == job.priority && before.job.queue == job.queue;
        is_alike && asks(&before.gang) == asks(gang)
    }

    /// Takes over a job that runs.
    pub(super) fn adopt_running(
        &mut self,
        mut job: Job,
        holdings: &[Holding],
    ) -> Result<(), EngineError> {
        if self.jobs.contains_key(&job.id) {
            return Err(EngineError::DuplicateJob { job: job.id, name: job.name });
        }
        for holding in holdings {
            let Owner::Pod(pod) = holding.owner else {
                return Err(EngineError::NothingHeld { owner: holding.owner.clone() });
            };
            if pod.job != job.id || usize::from(pod.pod_set) >= job.pod_sets.len() {
                return Err(EngineError::UnknownPod { pod });
            }
            if self.state.nodes.find(&holding.node).is_none() {
                return Err(EngineError::UnknownNode { node: holding.node.clone() });
            }
        }
        if holdings.is_empty() {
            return Err(EngineError::EmptyJob { name: job.name });
        }
        let mut unplaced = job.clone();
        unplaced.pod_sets.iter_mut().for_each(|set| set.present = 0);
        let gang = Arc::new(Gang::of(&mut self.state, &unplaced)?);
        job.start_ms.get_or_insert(self.now_ms);
        let (id, queue) = (job.id, job.queue.clone());
        let record = JobRecord {
            job,
            gang,
            holdings: Vec::new(),
            counted: Charge::default(),
            place: None,
            reason: None,
        };
        self.jobs.insert(id, record);
        for holding in holdings {
            let id = self.state.add_holding(holding);
            self.note_held(holding, id);
        }
        self.quota.add(&queue, &self.jobs[&id].counted, 1);
        self.note_running(id);
        Ok(())
    }

    /// What a pod was to hold, it holds.
    pub(super) fn confirm(&mut self, pod: PodId) -> Result<(), EngineError> {
        let id = self.held_by(pod)?;
        if self.state.holdings.get(id).phase == Phase::Assumed {
            let job = &self.jobs[&pod.job].job;
            let lasts_ms = job.estimate.map(|estimate| estimate.p50_ms);
            let expected_end_ms = job.start_ms.zip(lasts_ms).map(|(start, lasts)| start + lasts);
            self.state.set_phase(id, Phase::Held { expected_end_ms });
        }
        Ok(())
    }

    /// A pod holds nothing any more; with its last pod a job is over.
    pub(super) fn end_pod(&mut self, pod: PodId, plan: &mut Plan) -> Result<(), EngineError> {
        self.held_by(pod)?;
        let record = &self.jobs[&pod.job];
        if let Some(start_ms) = record.job.start_ms {
            let shape = record.gang.sets[usize::from(pod.pod_set)].shape;
            self.policy.observe_end(&self.state, shape, self.now_ms.saturating_sub(start_ms));
        }
        match self.free_pod(pod)? {
            true => self.end(pod.job, plan),
            false => Ok(()),
        }
    }

    /// A pod does not run after all; a job that has none left waits again.
    pub(super) fn fail_bind(&mut self, pod: PodId, plan: &mut Plan) -> Result<(), EngineError> {
        if !self.free_pod(pod)? {
            return Ok(());
        }
        let job = pod.job;
        let record = self.jobs.get_mut(&job).expect("one of its pods held something");
        record.job.start_ms = None;
        record.reason = None;
        let (waits, gang) = (record.job.clone(), Arc::clone(&record.gang));
        let key = self.class_key(&waits, &gang);
        let (place, class) = self.pending.push(&waits, key);
        self.jobs.get_mut(&job).expect("looked up above").place = Some((place, class));
        self.note_running(job);
        self.say_if_asleep(job, class, plan);
        Ok(())
    }

    /// What a pod holds is another amount, or elsewhere, or ending.
    pub(super) fn change_held(&mut self, holding: &Holding) -> Result<(), EngineError> {
        let Owner::Pod(pod) = holding.owner else {
            return Err(EngineError::NothingHeld { owner: holding.owner.clone() });
        };
        let old = self.held_by(pod)?;
        let mut holding = holding.clone();
        // Until when it may take is said once.
        let told = self.state.holdings.get(old).phase;
        if holding.phase == (Phase::Releasing { expected_end_ms: None })
            && matches!(told, Phase::Releasing { .. })
        {
            holding.phase = told;
        }
        if self.state.nodes.find(&holding.node).is_none() {
            return Err(EngineError::UnknownNode { node: holding.node.clone() });
        }
        self.state.remove_holding(old);
        let new = self.state.add_holding(&holding).expect("the node is there");
        let record = self.jobs.get_mut(&pod.job).expect("one of its pods held something");
        let place = record.holdings.iter_mut().find(|id| **id == old);
        *place.expect("held by this job") = new;
        self.note_others_of(pod.job);
        self.note_late(holding.phase);
        Ok(())
    }

    /// What is late with ending leaves no room that others wait for: they look for room elsewhere.
    pub(super) fn note_late(&mut self, phase: Phase) {
        if matches!(phase, Phase::Releasing { .. }) && !phase.is_leaving(self.now_ms) {
            self.state.helped |= Help::FREED;
        }
    }

    /// Frees what a pod holds; true if it was the last of its job.
    fn free_pod(&mut self, pod: PodId) -> Result<bool, EngineError> {
        let id = self.held_by(pod)?;
        self.state.remove_holding(id);
        let record = self.jobs.get_mut(&pod.job).expect("one of its pods held something");
        record.holdings.retain(|held| *held != id);
        let set = usize::from(pod.pod_set);
        let charge = &self.state.shapes.get(record.gang.sets[set].shape).charge;
        record.counted.add_times(charge, -1);
        let present = &mut record.job.pod_sets[set].present;
        *present = present.saturating_sub(1);
        self.quota.add(&record.job.queue, charge, -1);
        let is_last = record.holdings.is_empty();
        self.note_others_of(pod.job);
        Ok(is_last)
    }

    /// A job of which nothing is late with ending any more, or nothing in a budget is left, may be stopped where it
    /// could not be before: on all nodes that it holds something on.
    fn note_others_of(&mut self, job: JobId) {
        if !self.config.preemption.enabled {
            return;
        }
        for id in &self.jobs[&job].holdings {
            let record = self.state.holdings.get(*id);
            self.state.helped |= Help::of_release(record);
            self.state.helped_nodes.push(record.node);
        }
    }

    fn held_by(&self, pod: PodId) -> Result<HoldingId, EngineError> {
        let record = self.jobs.get(&pod.job).ok_or(EngineError::UnknownJob { job: pod.job })?;
        let owner = Owner::Pod(pod);
        let owned = |id: &&HoldingId| self.state.holdings.get(**id).owner == owner;
        let held = record.holdings.iter().find(owned).copied();
        held.ok_or(EngineError::NothingHeld { owner })
    }
}
