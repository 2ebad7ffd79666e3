//! Questions about pending jobs and queues. None changes a decision.

use std::collections::BTreeMap;

use dovetail_cluster::queues::{self, QueueProblem, engine_name};
use dovetail_cluster::reservations::{self, Unusable};
use dovetail_cluster::world::PodKey;
use dovetail_model::{Booked, JobId, Owner, PendingReason, QueueUsage, Snapshot};
use dovetail_objects::{Pod, Queue, Reservation};
use dovetail_order::turn_terms::TurnTerms;
use dovetail_plan::explain::Relaxation;
use dovetail_plan::{QueueUse, View};
use serde_json::Value;

use super::exemptions::Exemptions;
use super::known::Known;
use super::no_room::Promises;
use crate::announce::PodCondition;
use crate::status;

/// What was promised before, and what answers depend on besides the world and the engine.
#[derive(Debug, Default)]
pub(super) struct Explained {
    /// Jobs that start when terminating pods have gone.
    pub(super) promises: Promises,
    /// What queues held before anything was decided, if that was noted.
    pub(super) held_before: BTreeMap<String, QueueUse>,
    /// Whether this is a question, and nothing is written or carried out.
    pub(super) only_asks: bool,
}

/// Questions about the cluster as it is known now.
pub struct Questions<'s> {
    pub(super) known: &'s mut Known,
    pub(super) explained: &'s mut Explained,
    pub(super) exemptions: &'s Exemptions,
}

impl Questions<'_> {
    /// What a pending job says; `None` if it is not pending.
    pub fn waiting(&mut self, job: JobId) -> Option<status::WaitingReason> {
        self.waiting_for(job, self.known.pending.reason(job)?)
    }

    /// What the pods of a pending job say: also which disruption budgets hold it up, and when it is
    /// expected to start, once there is a forecast.
    pub fn announced(&mut self, job: JobId) -> Option<status::WaitingReason> {
        let forecast = self.known.forecasts.of(job);
        let waiting = self.waiting(job)?;
        let message = self.with_budgets(job, (waiting.word(), waiting.message.as_str()));
        let waiting = status::WaitingReason { message, ..waiting };
        Some(match forecast {
            Some(forecast) => waiting.starting(forecast),
            None => waiting,
        })
    }

    /// What a pending job says, or would say, for this reason; `None` if it is not pending.
    pub fn waiting_for(
        &mut self,
        job: JobId,
        reason: PendingReason,
    ) -> Option<status::WaitingReason> {
        let may_wait_for_checkpoint = reason == PendingReason::WaitingForTurn;
        let engine = self.known.engine().filter(|_| may_wait_for_checkpoint);
        if let Some(at_ms) = engine.and_then(|engine| engine.list().waits_for_checkpoint_ms(job)) {
            return Some(status::WaitingReason::for_checkpoint(at_ms));
        }
        if reason == PendingReason::Unschedulable {
            return self.no_room(job);
        }
        // A question evicts no pod, and there may be no scheduler that does.
        let only_asks = self.explained.only_asks;
        let (world, engine) = self.known.both();
        let stops = |pod: &Pod| pod.meta.is_deleting() || pod.preemption.is_target;
        let is_stopping = |owner: &Owner| match owner {
            Owner::Pod(pod) => !only_asks || world.pods().pod_of(*pod).is_some_and(stops),
            Owner::Foreign(_) | Owner::Reservation => true,
        };
        status::waiting(engine?, job, reason, &[], world.rules(), is_stopping)
    }

    /// What keeps the pods of a waiting job off the nodes, for each of its pod sets; nothing if it
    /// does not wait.
    pub fn obstacles(&mut self, job: JobId) -> Vec<Vec<status::Obstacle>> {
        let nodes = self.known.world.nodes().names();
        let (world, Some(engine)) = self.known.both() else { return Vec::new() };
        let waiting = engine.job(job).filter(|job| job.start_ms.is_none()).cloned();
        waiting.map_or_else(Vec::new, |job| status::obstacles(engine, &job, &nodes, world.rules()))
    }

    /// Why a job waits, with the smallest changes that would start it now; `None` if it does not
    /// wait.
    pub fn why(&mut self, job: JobId) -> Option<dovetail_plan::explain::WaitingJob> {
        let engine = self.known.engine_mut()?;
        let mut waiting = engine.ask().why(job)?;
        let Some(anywhere) = engine.job(job).and_then(status::away_from_its_gang) else {
            return Some(waiting);
        };
        // What keeps it near others of its gang is the level that it requires, and no selector of
        // its owner's.
        for given_up in &mut waiting.relaxations {
            let is_selector = |one: &Relaxation| *one == Relaxation::Selector;
            let others: Vec<Relaxation> =
                given_up.iter().copied().filter(|one| !is_selector(one)).collect();
            if others.len() < given_up.len() && engine.ask().fits_without(&anywhere, &others) {
                *given_up = [vec![Relaxation::Level], others].concat();
                given_up.sort();
            }
        }
        Some(waiting)
    }

    /// What decides at this time how soon it is the turn of a waiting job; `None` if it does not
    /// wait.
    pub fn turn(&mut self, job: JobId, now_ms: u64) -> Option<TurnTerms> {
        self.known.engine_mut()?.ask().turn(job, now_ms)
    }

    /// How many pods of a waiting job would find room now, one after the other, its queue aside;
    /// `None` if it does not wait.
    pub fn fitting(&mut self, job: JobId) -> Option<usize> {
        let engine = self.known.engine_mut()?;
        let mut job = engine.job(job).filter(|job| job.start_ms.is_none())?.clone();
        job.pod_sets.iter_mut().for_each(|set| set.min = 0);
        // Levels that are known to the job are known to the engine.
        Some(engine.ask().what_if_job(&job, &View::Now).ok()?.map_or(0, |pods| pods.len()))
    }

    /// Whether a pending job could start if nothing was allocated, its queue aside: where not,
    /// waiting will not help; `None` if it is not pending.
    pub fn fits_when_all_is_free(&mut self, job: JobId) -> Option<bool> {
        let engine = self.known.engine_mut()?;
        let job = engine.job(job).filter(|job| job.start_ms.is_none())?.clone();
        let held = engine.snapshot().holdings.iter().map(|holding| holding.id).collect();
        // Levels that are known to the job are known to the engine.
        Some(engine.ask().what_if_job(&job, &View::Without(held)).ok()?.is_some())
    }

    /// What a queue and everything below it hold.
    pub fn queue_use(&mut self, queue: &str) -> Option<QueueUse> {
        if let Some(before) = self.explained.held_before.get(queue) {
            return Some(before.clone());
        }
        Some(self.known.engine_mut()?.queue_use(&engine_name(queue)))
    }

    /// What each queue is to say of itself.
    pub fn queue_statuses(&mut self) -> Vec<(String, Value)> {
        let now_ms = self.known.now_ms;
        let (world, Some(engine)) = self.known.both() else { return Vec::new() };
        let mut waiting = engine.list().waiting_below();
        let mut used: BTreeMap<String, Vec<QueueUsage>> = BTreeMap::new();
        for usage in engine.ask().usage_at(now_ms).into_iter().flatten() {
            used.entry(usage.queue.clone()).or_default().push(usage);
        }
        let rules = world.rules();
        let says = |(queue, problem): (&Queue, Option<&QueueProblem>)| {
            let engine_name = engine_name(&queue.meta.name);
            let (usage, below) = (engine.queue_use(&engine_name), waiting.remove(&engine_name));
            let used = used.remove(&engine_name).unwrap_or_default();
            let pending = below.unwrap_or_default();
            let known = queues::KnownUsage { usage: &usage, used: &used, pending };
            (queue.meta.name.to_string(), queues::status(queue, problem, known, rules))
        };
        world.queues().all().map(says).collect()
    }

    /// What each reservation is to say of itself, where something was decided about it.
    pub fn reservation_statuses(&mut self) -> Vec<(String, Value)> {
        let (world, Some(engine)) = self.known.both() else { return Vec::new() };
        let booked: BTreeMap<&str, &Booked> =
            engine.list().bookings().map(|booked| (booked.booking.name.as_str(), booked)).collect();
        let says = |(object, problem): (&Reservation, Option<&Unusable>)| {
            let name = object.meta.name.to_string();
            let decided = match problem {
                Some(problem) => Err(problem),
                None => Ok(*booked.get(name.as_str())?),
            };
            let queue = &*object.queue;
            let has_queue = queue.is_empty() || world.queues().get(queue).is_some();
            Some((name, reservations::status(object, decided, has_queue)?))
        };
        world.queues().reservations().all().filter_map(says).collect()
    }

    /// What queues have used by now; `None` where the order does not count it.
    pub fn queue_usage(&mut self) -> Option<Vec<QueueUsage>> {
        let now_ms = self.known.now_ms;
        let engine = self.known.engine_mut()?;
        engine.ask().usage_at(now_ms)
    }

    /// Pending jobs of which it is known why they are.
    pub fn pending(&self) -> Vec<JobId> {
        self.known.pending.with_reason().collect()
    }

    /// The world as plain data.
    pub fn snapshot(&mut self, now_ms: u64) -> Snapshot {
        self.known.world.snapshot(now_ms)
    }

    /// What the pods of a job say while its victims leave: in the same write in which each names
    /// its node, so that the two never differ.
    pub(super) fn conditions_while_waiting(&mut self, job: JobId) -> Vec<PodCondition> {
        if !self.known.has_room(job) {
            return Vec::new();
        }
        let Some(waiting) = self.waiting_for(job, PendingReason::WaitingForReservation) else {
            return Vec::new();
        };
        let now_ms = self.known.now_ms;
        let says = |pod: &Pod| PodCondition {
            pod: PodKey::of(pod),
            resource_version: pod.meta.resource_version.to_string(),
            waiting: waiting.clone(),
            since_ms: pod.unscheduled.is_none().then_some(now_ms),
        };
        self.known.world.pods().pending_pods(job).into_iter().map(says).collect()
    }
}
