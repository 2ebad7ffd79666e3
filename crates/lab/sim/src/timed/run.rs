//! The event loop.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Action, Event, HowEnded, JobId, NodeAvailability, NodeName, Plan, Snapshot};
use dovetail_plan::{Batch, Engine, TargetPod};
use dovetail_trace::{RecordedOutcome, TraceJob};

use crate::timed::autoscale::PoolDue;
use crate::timed::cluster_events::{ClusterEvent, NodeAction};
use crate::timed::faults::FaultDraws;
use crate::timed::metrics::{JobOutcome, TimedMetrics};
use crate::timed::progress::{Due, JobProgress, SimulationProgress};
use crate::timed::{Calibration, Estimates, LAST_MS, TimedConfig, TimedError, TimedWorld};
use crate::world::{self, JobFactory};

/// Sees a simulation go by.
pub trait Observer {
    /// Nothing changed from one time to another.
    fn advanced(&mut self, _engine: &mut Engine, _from_ms: u64, _to_ms: u64) {}

    /// Events were taken in and a plan was made.
    fn stepped(&mut self, _engine: &mut Engine, _now_ms: u64, _events: &[Event], _plan: &Plan) {}
}

/// An observer that does not look.
impl Observer for () {}

/// One job and what happened to it.
#[derive(Clone, Copy, Debug)]
pub struct JobView<'s> {
    pub job: &'s TraceJob,
    pub outcome: &'s JobOutcome,
    /// Since when it runs; `None` if it does not.
    pub running_since_ms: Option<u64>,
}

/// A simulation that can be run, paused and looked at.
pub struct Simulation {
    /// The engine under test.
    pub engine: Engine,
    progress: SimulationProgress,
    world: TimedWorld,
    config: TimedConfig,
    factory: JobFactory,
    /// Jobs in order of submission, as indices into the world.
    order: Vec<u32>,
}

impl Simulation {
    /// A simulation at its beginning.
    pub fn new(world: TimedWorld, config: TimedConfig) -> Result<Self, TimedError> {
        let mut absent = absent_at_first(&world)?;
        absent.extend(world.autoscaler.iter().flat_map(|pool| pool.nodes.iter().cloned()));
        let present = world.nodes.iter().filter(|node| !absent.contains(&node.name));
        let (queues, usage) = (world.queues.clone(), world.usage.clone());
        let snapshot = Snapshot { queues, usage, ..world::snapshot(present) };
        let engine = Engine::new(config.engine.clone(), &snapshot)?;
        let order = check_and_sort(&world)?;
        let jobs = order.iter().map(|row| fresh(&world.jobs[*row as usize])).collect();
        let mut progress = SimulationProgress {
            unfinished: order.len(),
            faults: config.faults.map(FaultDraws::new),
            jobs,
            ..SimulationProgress::default()
        };
        if let Some(draws) = &mut progress.faults {
            for node in 0..world.nodes.len() as u32 {
                let at_ms = draws.until_failure_ms();
                progress.due.push(Reverse((at_ms, Due::Failure(node))));
            }
        }
        let factory = factory(&world, &config);
        Ok(Self { engine, progress, world, config, factory, order })
    }

    /// A simulation that was paused: the same world and configuration, the engine's snapshot (with
    /// what its policy had learnt in the configuration) and where it stood.
    pub fn resume(
        world: TimedWorld,
        config: TimedConfig,
        snapshot: &Snapshot,
        progress: SimulationProgress,
    ) -> Result<Self, TimedError> {
        let order = check_and_sort(&world)?;
        let engine = Engine::new(config.engine.clone(), snapshot)?;
        let factory = factory(&world, &config);
        Ok(Self { engine, progress, world, config, factory, order })
    }

    /// Where it stands.
    pub fn progress(&self) -> &SimulationProgress {
        &self.progress
    }

    /// Hash of everything that happened so far.
    pub fn event_log_hash(&self) -> String {
        self.progress.log.hash()
    }

    /// Runs until all jobs have ended or nothing more can happen, or up to `until_ms`; true if it
    /// is over.
    pub fn run(
        &mut self,
        until_ms: Option<u64>,
        observer: &mut dyn Observer,
    ) -> Result<bool, TimedError> {
        while self.progress.unfinished > 0 {
            let Some(now_ms) = self.next_ms() else { return Ok(true) };
            if until_ms.is_some_and(|until_ms| now_ms > until_ms) {
                return Ok(false);
            }
            if now_ms > self.progress.now_ms {
                observer.advanced(&mut self.engine, self.progress.now_ms, now_ms);
            }
            self.progress.now_ms = now_ms;
            self.instant(now_ms, observer)?;
        }
        Ok(true)
    }

    /// Every job with what happened to it, in order of submission.
    pub fn outcomes(&self) -> impl Iterator<Item = JobView<'_>> {
        self.order.iter().zip(&self.progress.jobs).map(|(row, progress)| JobView {
            job: &self.world.jobs[*row as usize],
            outcome: &progress.outcome,
            running_since_ms: progress.running_since_ms,
        })
    }

    /// Figures over the jobs.
    pub fn metrics(&self) -> TimedMetrics {
        let outcomes: Vec<_> = self.progress.jobs.iter().map(|job| job.outcome).collect();
        let ended = self.order.iter().zip(&outcomes).filter(|(_, o)| o.end_ms.is_some());
        let work: u128 =
            ended.filter_map(|(row, _)| self.world.jobs[*row as usize].gpu_milli_ms()).sum();
        let gpus: u128 = self.world.nodes.iter().map(|node| u128::from(node.gpu_count)).sum();
        TimedMetrics::of(&outcomes, work, gpus * 1000)
    }

    /// How good the estimates were that jobs started with, by source.
    pub fn calibrations(&self) -> BTreeMap<&'static str, Calibration> {
        self.progress.calibrations.figures()
    }

    /// The common pods of the trace, for the policy `fgd`, which is told the future.
    pub fn target_mix(jobs: &[TraceJob]) -> Vec<TargetPod> {
        let pods = dovetail_trace::fgd::typical_pods(jobs).into_iter();
        pods.map(|pod| TargetPod {
            cpu_milli: pod.cpu_milli,
            // More than any machine has, in either case.
            gpu_count: pod.gpu_count.try_into().unwrap_or(u16::MAX),
            gpu_milli: pod.gpu_milli,
            gpu_models: pod.gpu_models.into_iter().collect(),
            weight: pod.weight,
        })
        .collect()
    }

    fn next_ms(&self) -> Option<u64> {
        let arrival = self.progress.jobs.get(self.progress.submitted);
        let change = self.world.cluster_events.get(self.progress.cluster_events);
        let due = self.progress.due.peek().map(|Reverse((at_ms, _))| *at_ms);
        let booking = self.world.bookings.get(self.progress.booked).map(|(at_ms, _)| *at_ms);
        let arrival = arrival.map(|job| job.outcome.submit_ms);
        let next = known_min([arrival, known_min([change.map(|c| c.at_ms), booking])]);
        let is_booked = || self.engine.list().bookings().any(|of| of.verdict.is_in_force());
        if next.is_none() && self.is_stuck() && !is_booked() {
            return None;
        }
        // A timer that is due was honored in the last instant, as far as that helped.
        let timer = self.engine.due_ms().filter(|due_ms| *due_ms > self.progress.now_ms);
        known_min([known_min([next, due]), timer])
    }

    /// Nothing runs, nothing is to be repaired: only random failures are left, which help nobody.
    fn is_stuck(&self) -> bool {
        let mut left = self.progress.due.iter();
        !left.any(|Reverse((_, due))| match due {
            Due::End { job, attempt } => self.progress.jobs[job.index()].attempt == *attempt,
            Due::Repair(_) | Due::Pool(PoolDue::Ready(_)) => true,
            Due::Failure(_) | Due::Pool(PoolDue::Idle(..)) => false,
        })
    }

    /// Takes in everything of one instant and lets the engine decide.
    fn instant(&mut self, now_ms: u64, observer: &mut dyn Observer) -> Result<(), TimedError> {
        let mut events = Vec::new();
        self.take_due(now_ms, &mut events);
        self.take_cluster_events(now_ms, &mut events)?;
        while let Some((at_ms, booking)) = self.world.bookings.get(self.progress.booked)
            && *at_ms == now_ms
        {
            self.progress.booked += 1;
            events.push(Event::BookingSet(Box::new(booking.clone())));
        }
        self.take_arrivals(now_ms, &mut events);
        if events.is_empty() && self.engine.due_ms().is_some_and(|due_ms| due_ms <= now_ms) {
            events.push(Event::Tick);
        }
        loop {
            let plan = self.decide(&events, now_ms, observer)?;
            events = self.stop_victims(&plan, now_ms);
            if events.is_empty() {
                self.scale(now_ms);
                return Ok(());
            }
        }
    }

    /// Lets the autoscaler follow.
    fn scale(&mut self, now_ms: u64) {
        let Some(pool) = &self.world.autoscaler else { return };
        let running_on = &self.progress.running_on;
        let is_empty = |node: &str| running_on.get(node).is_none_or(Vec::is_empty);
        let waiting_milli = self.progress.waiting_milli;
        let dues =
            self.progress.pool.follow(pool, &self.world.nodes, now_ms, waiting_milli, is_empty);
        let dues = dues.into_iter().map(|(at_ms, due)| Reverse((at_ms, Due::Pool(due))));
        self.progress.due.extend(dues);
    }

    /// Machine-hours of the autoscaled pool so far; `None` without one.
    pub fn pool_node_hours(&self) -> Option<f64> {
        let node_ms = self.progress.pool.node_ms(self.progress.now_ms);
        self.world.autoscaler.as_ref().map(|_| node_ms as f64 / 3.6e6)
    }

    fn pool_due(&mut self, due: PoolDue, now_ms: u64, events: &mut Vec<Event>) {
        match due {
            PoolDue::Ready(row) => {
                self.progress.pool.ready(row, now_ms);
                let node = world::node(&self.world.nodes[row as usize]);
                events.push(Event::NodeChanged(Box::new(node)));
            }
            PoolDue::Idle(row, since_ms) => {
                if self.progress.pool.leaves(row, since_ms, now_ms) {
                    let node = self.world.nodes[row as usize].name.as_str().into();
                    events.push(Event::NodeRemoved { node });
                }
            }
        }
    }

    /// Lets the engine decide about what happened.
    fn decide(
        &mut self,
        events: &[Event],
        now_ms: u64,
        observer: &mut dyn Observer,
    ) -> Result<Plan, TimedError> {
        events.iter().for_each(|event| self.progress.log.happened(now_ms, event));
        let plan = self.engine.step(Batch::of(events.iter().cloned()), now_ms)?;
        for action in &plan.actions {
            self.progress.log.decided(action);
        }
        self.start(&plan, now_ms)?;
        self.progress.steps += 1;
        observer.stepped(&mut self.engine, now_ms, events, &plan);
        Ok(plan)
    }

    /// Jobs that are to be stopped leave at once and wait again.
    fn stop_victims(&mut self, plan: &Plan, now_ms: u64) -> Vec<Event> {
        let mut events = Vec::new();
        for action in &plan.actions {
            let Action::Preempt { victims, .. } = action else { continue };
            // Jobs of traces have one size: they go as a whole.
            let jobs: BTreeSet<JobId> = victims.iter().map(|pod| pod.job).collect();
            jobs.into_iter().for_each(|job| {
                self.start_anew(job, HowEnded::Preempted, now_ms, &mut events);
            });
        }
        events
    }

    fn take_due(&mut self, now_ms: u64, events: &mut Vec<Event>) {
        while let Some(Reverse((at_ms, due))) = self.progress.due.peek().copied()
            && at_ms == now_ms
        {
            self.progress.due.pop();
            match due {
                Due::End { job, attempt } => {
                    if self.progress.jobs[job.index()].attempt == attempt {
                        events.push(self.end(job, now_ms));
                    }
                }
                Due::Failure(node) => {
                    let name = self.world.nodes[node as usize].name.clone();
                    self.lose_jobs(&name, now_ms, events);
                    self.condition(&name, NodeAvailability::NotReady, events);
                    if let Some(draws) = &mut self.progress.faults {
                        let repaired_ms = now_ms + draws.until_repair_ms();
                        self.progress.due.push(Reverse((repaired_ms, Due::Repair(node))));
                    }
                }
                Due::Pool(due) => self.pool_due(due, now_ms, events),
                Due::Repair(node) => {
                    let name = self.world.nodes[node as usize].name.clone();
                    self.condition(&name, NodeAvailability::Ready, events);
                    if let Some(draws) = &mut self.progress.faults {
                        let failed_ms = now_ms + draws.until_failure_ms();
                        self.progress.due.push(Reverse((failed_ms, Due::Failure(node))));
                    }
                }
            }
        }
    }

    fn take_cluster_events(
        &mut self,
        now_ms: u64,
        events: &mut Vec<Event>,
    ) -> Result<(), TimedError> {
        while let Some(change) = self.world.cluster_events.get(self.progress.cluster_events)
            && change.at_ms == now_ms
        {
            self.progress.cluster_events += 1;
            let change = change.clone();
            match change.action {
                NodeAction::Cordon => {
                    self.condition(&change.node, NodeAvailability::Cordoned, events)
                }
                NodeAction::Uncordon | NodeAction::Repair => {
                    self.condition(&change.node, NodeAvailability::Ready, events);
                }
                NodeAction::Fail => {
                    self.lose_jobs(&change.node, now_ms, events);
                    self.condition(&change.node, NodeAvailability::NotReady, events);
                }
                NodeAction::Remove => {
                    self.lose_jobs(&change.node, now_ms, events);
                    if self.engine.supply().has_node(&change.node) {
                        events.push(Event::NodeRemoved { node: change.node.as_str().into() });
                    }
                }
                NodeAction::Add => {
                    let node = self.world.nodes.iter().find(|node| node.name == change.node);
                    let node = node.ok_or_else(|| unknown_node(&change))?;
                    events.push(Event::NodeChanged(Box::new(world::node(node))));
                }
            }
        }
        Ok(())
    }

    fn take_arrivals(&mut self, now_ms: u64, events: &mut Vec<Event>) {
        while let Some(job) = self.progress.jobs.get(self.progress.submitted)
            && job.outcome.submit_ms == now_ms
        {
            let id = JobId(self.progress.submitted as u64);
            self.progress.submitted += 1;
            self.submit(id, events);
        }
    }

    fn submit(&mut self, id: JobId, events: &mut Vec<Event>) {
        let row = self.order[id.index()] as usize;
        self.progress.waiting_milli += self.world.jobs[row].total_gpu_milli();
        let mut job = self.factory.job(id, &self.world.jobs[row]);
        match self.config.estimates {
            Estimates::Trace => {}
            Estimates::None | Estimates::Learned => job.estimate = None,
            Estimates::Truth => {
                let run_time_ms = self.world.jobs[row].duration_ms.unwrap_or(0);
                job.estimate = Some(world::exact_estimate(run_time_ms));
            }
        }
        events.push(Event::Submitted(Box::new(job)));
    }

    fn condition(&self, node: &str, condition: NodeAvailability, events: &mut Vec<Event>) {
        if self.engine.supply().has_node(node) {
            events.push(Event::NodeCondition { node: node.into(), condition });
        }
    }

    fn start(&mut self, plan: &Plan, now_ms: u64) -> Result<(), TimedError> {
        for action in &plan.actions {
            let Action::Bind { pod, node, .. } = action else { continue };
            let on_node = self.progress.running_on.entry(node.clone()).or_default();
            if on_node.last() != Some(&pod.job) {
                on_node.push(pod.job);
            }
            let row = self.order[pod.job.index()] as usize;
            let stop_costs = self.factory.interruption(&self.world.jobs[row]);
            let job = &mut self.progress.jobs[pod.job.index()];
            if job.running_since_ms.is_none() {
                self.progress.waiting_milli -= self.world.jobs[row].total_gpu_milli();
                job.running_since_ms = Some(now_ms);
                let is_first = job.outcome.start_ms.is_none();
                job.outcome.start_ms.get_or_insert(now_ms);
                let run_ms = job.remaining_ms;
                let due = Due::End { job: pod.job, attempt: job.attempt };
                let end_ms = now_ms.saturating_add(job.attempt_ms(&stop_costs));
                if end_ms > LAST_MS {
                    let job = self.world.jobs[row].id.clone();
                    return Err(TimedError::TooLate { row, job });
                }
                self.progress.due.push(Reverse((end_ms, due)));
                let estimate = self.engine.job(pod.job).and_then(|job| job.estimate);
                if let Some(estimate) = estimate.filter(|_| is_first) {
                    let queue = self.world.jobs[row].queue.as_deref().unwrap_or_default();
                    self.progress.calibrations.started(queue, estimate, run_ms);
                }
            }
        }
        Ok(())
    }

    /// A job has done all its work.
    fn end(&mut self, id: JobId, now_ms: u64) -> Event {
        self.stop(id);
        let trace = &self.world.jobs[self.order[id.index()] as usize];
        let queue = trace.queue.as_deref().unwrap_or_default();
        self.progress.calibrations.ended(queue, trace.duration_ms.unwrap_or(0));
        let stop_costs = self.factory.interruption(trace);
        let job = &mut self.progress.jobs[id.index()];
        job.finish(&stop_costs, trace.total_gpu_milli(), now_ms);
        self.progress.unfinished -= 1;
        let how = match trace.outcome {
            RecordedOutcome::Failed | RecordedOutcome::Killed => HowEnded::Failed,
            RecordedOutcome::Completed | RecordedOutcome::Unknown => HowEnded::Completed,
        };
        Event::Ended { job: id, how }
    }

    /// Takes a job off its machines.
    fn stop(&mut self, id: JobId) {
        let mut nodes: Vec<NodeName> = self.engine.list().nodes_of(id);
        nodes.dedup();
        for node in nodes {
            if let Some(jobs) = self.progress.running_on.get_mut(&node) {
                jobs.retain(|job| *job != id);
            }
        }
        let job = &mut self.progress.jobs[id.index()];
        job.running_since_ms = None;
        job.attempt += 1;
    }

    /// Everything that runs on a machine is lost and waits again, with the work since its last
    /// checkpoint to be done again.
    fn lose_jobs(&mut self, node: &str, now_ms: u64, events: &mut Vec<Event>) {
        let lost = self.progress.running_on.get(node).cloned().unwrap_or_default();
        for id in lost {
            self.start_anew(id, HowEnded::Lost, now_ms, events);
        }
    }

    /// A job that runs waits again.
    fn start_anew(&mut self, id: JobId, how: HowEnded, now_ms: u64, events: &mut Vec<Event>) {
        let since_ms = self.progress.jobs[id.index()].running_since_ms.unwrap_or(now_ms);
        self.stop(id);
        let trace = &self.world.jobs[self.order[id.index()] as usize];
        let (stop_costs, milli) = (self.factory.interruption(trace), trace.total_gpu_milli());
        let job = &mut self.progress.jobs[id.index()];
        job.interrupt(&stop_costs, milli, how, now_ms - since_ms);
        events.push(Event::Ended { job: id, how });
        self.submit(id, events);
    }
}

fn factory(world: &TimedWorld, config: &TimedConfig) -> JobFactory {
    JobFactory::for_nodes(&world.nodes)
        .with_gang_level(world.gang_level.clone())
        .with_stop_costs(config.stop_costs)
}

fn known_min(times: [Option<u64>; 2]) -> Option<u64> {
    times.into_iter().flatten().min()
}

fn fresh(job: &TraceJob) -> JobProgress {
    let mut progress =
        JobProgress { remaining_ms: job.duration_ms.unwrap_or(0), ..JobProgress::default() };
    progress.outcome.submit_ms = job.submit_ms;
    progress
}

/// Checks that every job has a run time, and sorts them by submission.
fn check_and_sort(world: &TimedWorld) -> Result<Vec<u32>, TimedError> {
    if world.jobs.is_empty() {
        return Err(TimedError::NoJobs);
    }
    if let Some(job) = world.jobs.iter().find(|job| job.duration_ms.is_none()) {
        return Err(TimedError::NoDuration { job: job.id.clone() });
    }
    let mut order: Vec<u32> = (0..world.jobs.len() as u32).collect();
    order.sort_by_key(|row| world.jobs[*row as usize].submit_ms);
    Ok(order)
}

/// Machines that are not there at the beginning: their first event adds them.
fn absent_at_first(world: &TimedWorld) -> Result<BTreeSet<String>, TimedError> {
    let mut seen = BTreeSet::new();
    let mut absent = BTreeSet::new();
    for event in &world.cluster_events {
        if !world.nodes.iter().any(|node| node.name == event.node) {
            return Err(unknown_node(event));
        }
        if seen.insert(event.node.clone()) && event.action == NodeAction::Add {
            absent.insert(event.node.clone());
        }
    }
    Ok(absent)
}

fn unknown_node(event: &ClusterEvent) -> TimedError {
    TimedError::UnknownNode {
        node: event.node.clone(),
        action: event.action.name(),
        at_ms: event.at_ms,
    }
}
