//! One play: a copy of the engine, and the ends of jobs as their run times say.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{
    Action, Event, Holding, HoldingPhase, HowEnded, Job, JobId, NodeName, Owner, Plan, PodId,
    Snapshot,
};

use super::MOST_NAMED;
use crate::engine::{Batch, Engine};

/// Pods that are terminating and do not say for how long are gone then.
const LEAVING_MS: u64 = 30_000;

/// The first start of a job in a play.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) at_ms: u64,
    pub(super) nodes: Vec<NodeName>,
    pub(super) after: Vec<JobId>,
}

/// What came of a play.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) starts: BTreeMap<JobId, Start>,
}

/// What happens at a time; jobs end first, by number, as in a simulation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    End { job: JobId, attempt: u32 },
    Pod(PodId),
    Foreign(String),
}

/// A copy of an engine that is played forward.
pub(super) struct Play<'p> {
    engine: Engine,
    run_ms: &'p dyn Fn(JobId) -> Option<u64>,
    due: BTreeSet<(u64, Due)>,
    now_ms: u64,
    steps_left: u64,
    /// Attempts of jobs that were preempted.
    attempts: BTreeMap<JobId, u32>,
    /// The newest that left each node, the last at the end.
    left: BTreeMap<NodeName, Vec<(u64, JobId)>>,
    played: Played,
}

impl<'p> Play<'p> {
    pub(super) fn new(
        engine: Engine,
        world: &Snapshot,
        run_ms: &'p dyn Fn(JobId) -> Option<u64>,
        steps: u64,
    ) -> Self {
        let mut play = Self {
            engine,
            run_ms,
            due: BTreeSet::new(),
            now_ms: world.now_ms,
            steps_left: steps,
            attempts: BTreeMap::new(),
            left: BTreeMap::new(),
            played: Played::default(),
        };
        for job in world.jobs.iter().filter(|job| job.start_ms.is_some()) {
            play.expect_end(job);
        }
        world.holdings.iter().for_each(|holding| play.expect_release(holding));
        play
    }

    /// A running job ends when its run time says.
    fn expect_end(&mut self, job: &Job) {
        let (Some(run_ms), Some(start_ms)) = ((self.run_ms)(job.id), job.start_ms) else { return };
        let work_ms = run_ms.saturating_sub(job.history.saved_ms);
        let lasts_ms = job.interruption.attempt_ms(work_ms, job.history.is_empty());
        let end_ms = start_ms.saturating_add(lasts_ms);
        // What was to end by now ends next.
        let end_ms = if start_ms < self.now_ms { end_ms.max(self.now_ms + 1) } else { end_ms };
        let attempt = self.attempts.get(&job.id).copied().unwrap_or(0);
        self.due.insert((end_ms, Due::End { job: job.id, attempt }));
    }

    /// What is terminating is free when it says; what is not a job's, when it is expected to be.
    fn expect_release(&mut self, holding: &Holding) {
        let end_ms = match holding.phase {
            HoldingPhase::Releasing { expected_end_ms } => {
                let end_ms = expected_end_ms.unwrap_or(self.now_ms + LEAVING_MS);
                Some(end_ms).filter(|end_ms| *end_ms > self.now_ms)
            }
            phase => phase.expected_end_ms().filter(|end_ms| *end_ms > self.now_ms),
        };
        let due = match (&holding.owner, holding.phase) {
            (Owner::Pod(pod), HoldingPhase::Releasing { .. }) => Due::Pod(*pod),
            (Owner::Foreign(name), _) => Due::Foreign(name.clone()),
            _ => return,
        };
        self.due.extend(end_ms.map(|end_ms| (end_ms, due)));
    }

    /// Plays until nobody waits, nothing more happens, or the steps are used up.
    pub(super) fn run(mut self) -> Played {
        while self.steps_left > 0 && self.engine.list().waiting_jobs() > 0 {
            let next_ms = self.due.first().map(|(at_ms, _)| *at_ms);
            // A timer that is due was honored in the last instant, as far as that helped.
            let timer_ms = self.engine.due_ms().filter(|due_ms| *due_ms > self.now_ms);
            let Some(now_ms) = next_ms.into_iter().chain(timer_ms).min() else { break };
            self.now_ms = now_ms;
            if !self.instant() {
                break;
            }
        }
        self.played
    }

    /// Everything of one time; false if the copy takes no more events.
    fn instant(&mut self) -> bool {
        let mut events = Vec::new();
        while let Some((at_ms, _)) = self.due.first()
            && *at_ms <= self.now_ms
        {
            let Some((_, due)) = self.due.pop_first() else { break };
            events.extend(self.event(due));
        }
        if events.is_empty() {
            events.push(Event::Tick);
        }
        while !events.is_empty() {
            self.steps_left = self.steps_left.saturating_sub(events.len() as u64);
            let Ok(plan) = self.engine.step(Batch::of(events), self.now_ms) else { return false };
            self.steps_left = self.steps_left.saturating_sub(plan.actions.len() as u64);
            self.note_starts(&plan);
            events = self.victims_leave(&plan);
        }
        true
    }

    fn event(&mut self, due: Due) -> Option<Event> {
        match due {
            Due::End { job, attempt } => {
                let is_current = self.attempts.get(&job).copied().unwrap_or(0) == attempt;
                let runs = self.engine.job(job).is_some_and(|job| job.start_ms.is_some());
                (is_current && runs).then(|| {
                    self.note_leaving(job);
                    Event::ended(job)
                })
            }
            Due::Pod(pod) => {
                let is_held = self.engine.list().pods_of(pod.job).contains(&pod);
                is_held.then(|| {
                    self.note_leaving(pod.job);
                    Event::pod_ended(pod)
                })
            }
            Due::Foreign(name) => Some(Event::ForeignReleased { name }),
        }
    }

    fn note_leaving(&mut self, job: JobId) {
        let nodes: BTreeSet<NodeName> = self.engine.list().nodes_of(job).into_iter().collect();
        for node in nodes {
            let left = self.left.entry(node).or_default();
            if left.len() == MOST_NAMED {
                left.remove(0);
            }
            left.push((self.now_ms, job));
        }
    }

    fn note_starts(&mut self, plan: &Plan) {
        let mut started: BTreeMap<JobId, Vec<NodeName>> = BTreeMap::new();
        for action in &plan.actions {
            if let Action::Bind { pod, node, .. } = action {
                started.entry(pod.job).or_default().push(node.clone());
            }
        }
        for (job, mut nodes) in started {
            nodes.sort_unstable();
            nodes.dedup();
            if let Some(job) = self.engine.job(job).filter(|job| job.start_ms == Some(self.now_ms))
            {
                let job = job.clone();
                self.expect_end(&job);
            }
            let left = nodes.iter().filter_map(|node| self.left.get(node)).flatten().copied();
            let mut left: Vec<(u64, JobId)> = left.filter(|(_, other)| *other != job).collect();
            left.sort_unstable_by_key(|(at_ms, job)| (std::cmp::Reverse(*at_ms), *job));
            let mut after: Vec<JobId> = Vec::new();
            for (_, job) in left {
                if after.len() < MOST_NAMED && !after.contains(&job) {
                    after.push(job);
                }
            }
            let start = Start { at_ms: self.now_ms, nodes, after };
            self.played.starts.entry(job).or_insert(start);
        }
    }

    /// Pods that are preempted leave at once; whole jobs wait again.
    fn victims_leave(&mut self, plan: &Plan) -> Vec<Event> {
        let mut victims: BTreeMap<JobId, Vec<PodId>> = BTreeMap::new();
        for action in &plan.actions {
            if let Action::Preempt { victims: pods, .. } = action {
                pods.iter().for_each(|pod| victims.entry(pod.job).or_default().push(*pod));
            }
        }
        let mut events = Vec::new();
        for (id, pods) in victims {
            self.note_leaving(id);
            if pods.len() < self.engine.list().pods_of(id).len() {
                events.extend(pods.into_iter().map(Event::pod_ended));
                continue;
            }
            let Some(job) = self.engine.job(id) else { continue };
            let mut again = job.clone();
            again.start_ms = None;
            again.history = Default::default();
            again.pod_sets.iter_mut().for_each(|set| set.present = 0);
            *self.attempts.entry(id).or_default() += 1;
            events.push(Event::Ended { job: id, how: HowEnded::Preempted });
            events.push(Event::Submitted(Box::new(again)));
        }
        events
    }
}
