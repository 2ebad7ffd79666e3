//! The index and the engine, kept in step: what happens to the one is reported to the other.
//!
//! What follows from that for the other parts is not done here but noted, in order: see
//! [`Known::next`].

use std::collections::VecDeque;

use dovetail_cluster::world::{Exempt, PodKey, World};
use dovetail_model::{
    Action, Event, HoldingPhase, JobId, Owner, PendingReason, Plan, PodId, Snapshot,
};
use dovetail_plan::engine::{EngineConfig, EngineError};
use dovetail_plan::{Batch, Engine, Learned};

use super::drift::{Comparisons, differences};
use super::forecasts::Forecasts;
use super::news::News;
use super::pending::PendingJobs;
use super::receipts;
use super::restarts::Restarts;
use crate::order::PodOrder;
use crate::record::EngineEntry;

/// Names and requirements that the engine may know before it forgets those of what is gone: fewer
/// take a few megabytes.
const MANY_NAMES: usize = 1 << 16;

/// What the objects say, what the engine makes of it, and what is to be reported and ordered.
pub(super) struct Known {
    pub(super) world: World,
    /// None until all lists are complete, and after an error until the next decision.
    engine: Option<Engine>,
    pub(super) config: EngineConfig,
    /// What engines before this one have learned.
    pub(super) learned: Learned,
    /// What is applied to engines and what they answer, if that is kept.
    pub(super) engines: Option<Vec<EngineEntry>>,
    pub(super) now_ms: u64,
    pub(super) pending: PendingJobs,
    pub(super) news: Vec<News>,
    pub(super) orders: VecDeque<PodOrder>,
    follows: VecDeque<Follows>,
    /// Whether anything changed since the last decision.
    is_changed: bool,
    /// Whether pods began to terminate since the last call, or reservations changed: pending jobs
    /// are to be checked again.
    pub(super) recheck: bool,
    /// Names that the engine knew when it last forgot some.
    names_in_use: usize,
    /// When an engine may be started again.
    restarts: Restarts,
    /// When engine and world are compared.
    comparisons: Comparisons,
    /// When pending jobs were expected to start.
    pub(super) forecasts: Forecasts,
}

/// What the other parts have to act upon.
pub(super) enum Follows {
    /// A bind had no effect: its job waits again.
    PendingAgain(JobId),
    /// The last of a job has ended; whether room was reserved for it.
    Ended(JobId, bool),
    /// Something that held room has gone.
    Gone,
    Runs(PodId),
    /// The engine has decided.
    Plan(Plan),
}

impl Known {
    pub(super) fn new(world: World, config: EngineConfig) -> Self {
        Self {
            world,
            engine: None,
            config: EngineConfig { ends_at_claims: true, ..config },
            learned: Learned::default(),
            engines: None,
            now_ms: 0,
            pending: PendingJobs::default(),
            news: Vec::new(),
            orders: VecDeque::new(),
            follows: VecDeque::new(),
            is_changed: false,
            recheck: false,
            names_in_use: 0,
            restarts: Restarts::default(),
            comparisons: Comparisons::default(),
            forecasts: Forecasts::default(),
        }
    }

    pub(super) fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    pub(super) fn engine_mut(&mut self) -> Option<&mut Engine> {
        self.engine.as_mut()
    }

    /// The index and the engine, to ask the one about the other.
    pub(super) fn both(&mut self) -> (&World, Option<&mut Engine>) {
        (&self.world, self.engine.as_mut())
    }

    /// As [`Known::both`], to change the one by what the other knows.
    pub(super) fn both_mut(&mut self) -> (&mut World, Option<&Engine>) {
        (&mut self.world, self.engine.as_ref())
    }

    /// Whether pods are preempted for others.
    pub(super) fn preempts(&self) -> bool {
        self.config.preemption.enabled
    }

    /// Whether room is reserved for a job while its victims leave.
    pub(super) fn has_room(&self, job: JobId) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.list().claim_of(job).is_some())
    }

    /// Clocks of machines are set back at times; the engine's time never goes back.
    pub(super) fn pass(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        let mut events = self.world.pass(self.now_ms);
        let due_ms = self.engine.as_ref().and_then(Engine::due_ms);
        events.extend(due_ms.filter(|due_ms| *due_ms <= self.now_ms).map(|_| Event::Tick));
        self.apply(events);
        self.take_reports();
    }

    /// Takes what the world has to say to people.
    pub(super) fn take_reports(&mut self) {
        self.news.extend(self.world.notices().reports().into_iter().map(News::Object));
    }

    /// Applies to the engine what has happened, and notes what follows.
    pub(super) fn apply(&mut self, events: Vec<Event>) {
        for event in events {
            self.note(&event);
            // Without one, the next engine starts from what the world says.
            let Some(engine) = &mut self.engine else { continue };
            self.is_changed = true;
            let to_record = self.engines.as_ref().map(|_| event.clone());
            match engine.step(Batch::pending(event), self.now_ms) {
                Ok(plan) => {
                    if let Some(engines) = &mut self.engines {
                        engines.push(step_of(self.now_ms, to_record, &plan, false));
                    }
                    self.follow(plan);
                }
                Err(error) => self.restart_engine(error),
            }
        }
    }

    /// Something takes no part in preemption, or does again.
    pub(super) fn set_exempt(&mut self, what: &Exempt, is_exempt: bool) {
        let events = self.world.set_exempt(what, is_exempt);
        self.apply(events);
    }

    /// Decisions of which nothing was sent are void: the pods for which they hold are pending
    /// again.
    pub(super) fn take_back(&mut self, numbers: &[u64]) {
        let decisions = self.world.decisions_mut();
        let settled = numbers.iter().filter_map(|number| {
            let is_current = decisions.is_current(*number);
            decisions.settle(*number).filter(|_| is_current)
        });
        let pods: Vec<PodId> = settled.map(|decision| decision.pod).collect();
        let events = self.world.bind_failed(&pods);
        self.apply(events);
    }

    /// The next that the other parts have to act upon, in the order in which it came about.
    pub(super) fn next(&mut self) -> Option<Follows> {
        self.follows.pop_front()
    }

    /// Lets the engine decide, if anything changed since it last did, or if it may name more
    /// victims than it did; whether it has. It names at most so many, if that is said.
    pub(super) fn decide(&mut self, most_victims: Option<u64>) -> bool {
        let Some(engine) = &mut self.engine else { return false };
        let may_name_more = engine.is_held_back && most_victims != Some(0);
        if !self.is_changed && !may_name_more {
            return false;
        }
        self.is_changed = false;
        let batch = match most_victims {
            Some(most) => Batch::decision().with_victims(most),
            None => Batch::decision(),
        };
        let plan = match engine.step(batch, self.now_ms) {
            Ok(plan) => plan,
            Err(error) => {
                self.restart_engine(error);
                return false;
            }
        };
        self.is_changed = engine.has_more;
        if let Some(engines) = &mut self.engines {
            engines.push(step_of(self.now_ms, None, &plan, true));
        }
        self.follow(plan);
        true
    }

    /// World and engine disagree, which is a bug. The world is right: an engine built from it is,
    /// too.
    pub(super) fn restart_engine(&mut self, error: EngineError) {
        self.news.push(News::Inconsistent(error));
        self.restarts.failed(self.now_ms);
        self.end();
    }

    /// Whether an engine is to be started now.
    pub(super) fn is_to_open(&self) -> bool {
        self.engine.is_none() && self.now_ms >= self.restarts.until_ms()
    }

    /// Compares engine and world now and then, when nothing is on its way from one to the other,
    /// and makes forecasts. Which pods leave the engine knows before the objects say it.
    pub(super) fn compare(&mut self, leaves: impl Fn(&World, &PodKey) -> bool) {
        if !self.is_changed && self.comparisons.is_due(self.now_ms) {
            let differences = self.differences(leaves);
            if !differences.is_empty() {
                self.news.push(News::Differs(differences));
            }
            self.forecasts.begin(self.pending.with_reason(), self.now_ms);
        } else if let Some(engine) = self.engine.as_ref().filter(|_| !self.is_changed) {
            let known = self.forecasts.play(engine, self.now_ms);
            self.news.extend(known.into_iter().map(News::ForecastMade));
        }
    }

    /// Where the engine knows something else than the world says, in words.
    fn differences(&mut self, leaves: impl Fn(&World, &PodKey) -> bool) -> Vec<String> {
        let Some(engine) = &self.engine else { return Vec::new() };
        let said = self.world.snapshot(self.now_ms);
        let goes = |pod: PodId| {
            let pod = self.world.pods().pod_of(pod).map(PodKey::of);
            pod.is_some_and(|pod| leaves(&self.world, &pod))
        };
        differences(engine, &said, goes)
    }

    /// Decides no more, until an engine is opened again, which goes on with what was learned.
    pub(super) fn end(&mut self) {
        if let Some(engine) = self.engine.take() {
            self.learned = Learned::of(&engine);
        }
    }

    /// An engine over what the world says, with that as plain data; `None` if it does not take it.
    pub(super) fn open(&mut self) -> Option<Snapshot> {
        let (mut snapshot, mut config) = (self.world.snapshot(self.now_ms), self.config.clone());
        self.learned.go_on(&mut config, &mut snapshot);
        let world = &self.world;
        self.pending.restart(|job| world.pods().pods_of(job).next().is_some());
        for job in snapshot.jobs.iter().filter(|job| job.start_ms.is_none()) {
            self.pending.begin(job, self.now_ms);
            receipts::inherit(job.id, self);
        }
        match Engine::new(config, &snapshot) {
            Ok(engine) => {
                if let Some(engines) = &mut self.engines {
                    engines.push(EngineEntry::begins(&self.config, &engine));
                }
                self.engine = Some(engine);
                self.is_changed = true;
                Some(snapshot)
            }
            Err(error) => {
                self.restart_engine(error);
                None
            }
        }
    }

    /// A job waits for this reason.
    pub(super) fn report_pending(&mut self, job: JobId, reason: PendingReason) {
        self.pending.set_reason(job, reason);
        let pods = self.world.pods().pods_of(job);
        self.news.extend(pods.map(|pod| News::Pending { pod: PodKey::of(pod), job, reason }));
    }

    /// The engine speaks of the first of those that ask for the same. The others come after it.
    pub(super) fn report_the_rest(&mut self) {
        if self.engine.is_some() && !self.is_changed {
            for job in self.pending.unreported() {
                self.report_pending(job, PendingReason::WaitingForTurn);
            }
        }
    }

    /// Keeps the engine from growing for ever, once it knows more names than [`MANY_NAMES`] and
    /// than twice those in use.
    pub(super) fn forget_what_is_gone(&mut self) {
        let Some(engine) = self.engine.as_mut() else { return };
        if engine.known_names() > 2 * self.names_in_use.max(MANY_NAMES / 2) {
            engine.forget_what_is_gone();
            self.names_in_use = engine.known_names();
        }
    }

    /// When to decide again even if nothing happens.
    pub(super) fn due_ms(&self) -> Option<u64> {
        // What was taken back is decided again.
        let told_ms = (self.is_changed && self.engine.is_some()).then_some(self.now_ms);
        let engine_ms = self.engine.as_ref().and_then(Engine::due_ms);
        let anew_ms = self.engine.is_none().then(|| self.restarts.until_ms());
        let checks_ms = [self.comparisons.due_ms(), self.forecasts.due_ms()];
        let own = [told_ms, engine_ms, anew_ms, self.world.due_ms()].into_iter().chain(checks_ms);
        own.flatten().min()
    }

    fn follow(&mut self, plan: Plan) {
        // Of most events nothing follows.
        if !plan.actions.is_empty() {
            // All of it before anything else is applied: that may be about jobs of which this plan
            // has more.
            let binds = plan.actions.iter().filter_map(|action| match action {
                Action::Bind { pod, node, .. } => Some((*pod, node.clone())),
                _ => None,
            });
            let binds: Vec<_> = binds.collect();
            self.follows.push_back(Follows::Plan(plan));
            if !binds.is_empty() {
                let started = |(pod, _): &(PodId, _)| self.forecasts.started(pod.job, self.now_ms);
                self.news.extend(binds.iter().filter_map(started).map(News::ForecastEnded));
                let Self { world, pending, now_ms, .. } = self;
                let since_ms = |job| pending.since_ms(job).unwrap_or(*now_ms);
                let events = world.assumed(&binds, since_ms);
                self.apply(events);
            }
        }
    }

    /// Keeps the book of pending jobs.
    fn note(&mut self, event: &Event) {
        match event {
            Event::HeldChanged(holding) | Event::ForeignHeld(holding) => {
                self.recheck |= matches!(holding.phase, HoldingPhase::Releasing { .. });
            }
            Event::Ending { .. } => self.recheck = true,
            Event::Submitted(job) => {
                self.pending.begin(job, self.now_ms);
                receipts::inherit(job.id, self);
            }
            Event::JobChanged(job) => self.pending.describe(job),
            Event::BindFailed { pod } => {
                self.pending.add_pod(pod.job);
                self.follows.push_back(Follows::PendingAgain(pod.job));
            }
            Event::Ended { job, .. } | Event::PodEnded { pod: PodId { job, .. }, .. } => {
                self.pending.pause(*job);
                let had_room = self.has_room(*job);
                self.follows.push_back(Follows::Gone);
                // A pod that pauses is still there.
                if self.world.pods().pods_of(*job).next().is_none() {
                    self.pending.forget(*job);
                    self.forecasts.forget(*job, self.now_ms);
                    self.follows.push_back(Follows::Ended(*job, had_room));
                }
            }
            Event::ForeignReleased { .. } => self.follows.push_back(Follows::Gone),
            Event::Confirmed { pod } => self.runs(*pod),
            Event::Adopted { holdings, .. } => {
                let owners = holdings.iter().map(|holding| &holding.owner);
                let pods = owners.filter_map(|owner| match owner {
                    Owner::Pod(pod) => Some(*pod),
                    _ => None,
                });
                pods.for_each(|pod| self.runs(pod));
            }
            _ => {}
        }
    }

    fn runs(&mut self, pod: PodId) {
        self.pending.forget(pod.job);
        self.follows.push_back(Follows::Runs(pod));
    }

    /// Reserves room for what running gangs lost before this leader began. What is lost from then
    /// on is seen, and its very place is reserved.
    pub(super) fn reserve_for_the_lost(&mut self) {
        for lost in self.world.lost_members() {
            let Some(engine) = self.engine.as_mut() else { return };
            // Levels that are known to the gang are known to the engine.
            let places = engine.ask().what_fits(&lost.job).unwrap_or_default();
            let places: Vec<_> =
                places.into_iter().map(|place| (place.pod.pod_set, place.node)).collect();
            let events = self.world.reserve_for_lost(&lost, &places);
            self.apply(events);
        }
    }
}

/// What an engine was told in one step, and what it answered.
fn step_of(now_ms: u64, event: Option<Event>, plan: &Plan, decides: bool) -> EngineEntry {
    let events = event.into_iter().collect();
    EngineEntry::Steps { now_ms, events, actions: plan.actions.clone(), decides }
}
