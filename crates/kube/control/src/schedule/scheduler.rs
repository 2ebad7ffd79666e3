//! The loop without its wires: changes and outcomes in, binds out. No client, no clock.
//!
//! Every decision is assumed at once: what it takes is no longer free. It ends in one of three ways:
//! the watch shows the pod on its node; the watch shows that the pod went elsewhere or is gone; or the
//! bind had no effect, or a volume did not come, and the pod waits again after a pause. What the answer to a bind says about a
//! pod beyond that is not used: the watch says it, too, and in the right order.

use std::collections::{BTreeMap, VecDeque};

use dovetail_cluster::queues::{self, Problem, engine_name};
use dovetail_cluster::translate::NotYet;
use dovetail_cluster::translate::gang::gang_decision;
use dovetail_cluster::world::{Change, PodKey, Unwinding, World};
use dovetail_model::{
    Action, Event, JobId, NodeName, Owner, PendingReason, Phase, Plan, PodId, Snapshot,
};
use dovetail_objects::{Pod, Queue};
use dovetail_plan::engine::{EngineConfig, EngineError};
use dovetail_plan::explain::Relaxation;
use dovetail_plan::{Engine, QueueUse, View};
use serde_json::Value;

use super::news::{News, PodName};
use super::no_room::Promises;
use super::outbox::{Decision, Outbox};
use super::pauses::{Pause, Pauses};
use super::preempt::Room;
use super::provisioning::Provisioning;
use super::record::Recording;
use super::rightless::Rightless;
use super::stops::Stops;
use super::tries::Tries;
use super::waits::Waits;
use crate::bind::{Bind, Cause, Order, Outcome, Report};
use crate::status;

/// A bind that failed for a reason that lies with the server is sent again at most so often; then the
/// pod itself is suspected.
const RESENDS: u32 = 3;
/// Names and requirements that the engine may know before those of what is gone are looked for: fewer take a few
/// megabytes.
const MANY_NAMES: usize = 1 << 16;
/// Decisions change what pods count into, which may let others in: so often in one go that is looked at.
const ROUNDS: u32 = 16;

/// Decides about the pods of one cluster, within one leadership.
pub struct Scheduler {
    pub(super) world: World,
    /// None until all lists are complete, and after an error until the next decision.
    pub(super) engine: Option<Engine>,
    config: EngineConfig,
    epoch: u64,
    pub(super) now_ms: u64,
    pub(super) outbox: Outbox,
    pub(super) provisioning: Provisioning,
    pub(super) pauses: Pauses,
    /// Who is not to be stopped for a while.
    pub(super) spared: Pauses,
    waits: Waits,
    pub(super) news: Vec<News>,
    recording: Option<Recording>,
    pub(super) orders: VecDeque<Order>,
    /// Stops whose end is not known.
    pub(super) stops: Stops,
    /// Where nobody may be stopped.
    pub(super) rightless: Rightless,
    /// For whom stops were in vain.
    pub(super) tries: Tries,
    /// What is under way for jobs that room is made for, until they run.
    pub(super) rooms: BTreeMap<JobId, Room>,
    /// Nothing is written: who would be stopped counts as gone.
    pub(super) is_dry_run: bool,
    /// Whether anything was told since the last decision.
    is_told: bool,
    /// Whether anybody has begun to leave since that was asked.
    somebody_leaves: bool,
    /// What queues held before anything was decided, if that was noted.
    held_before: BTreeMap<String, QueueUse>,
    /// Names that the engine knew when it last forgot some.
    names_in_use: usize,
    /// Whether there was an engine in this leadership.
    pub(super) has_begun: bool,
    /// Who starts when those have gone that have begun to.
    pub(super) promises: Promises,
    /// Whether this is a question, and nothing is written or carried out.
    pub(super) only_asks: bool,
}

/// How many pods are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pods that wait, of which no node can take these.
    pub unschedulable: usize,
    /// Pods that wait for another reason, or for the next decision.
    pub active: usize,
    /// Pods that are left alone for a while because their bind had no effect.
    pub paused: usize,
    /// Decisions that are not sent yet.
    pub to_send: usize,
}

impl Scheduler {
    /// A scheduler that knows nothing yet. `epoch` goes into every bind.
    pub fn new(world: World, config: EngineConfig, epoch: u64) -> Self {
        Self {
            world,
            engine: None,
            config,
            epoch,
            now_ms: 0,
            outbox: Outbox::default(),
            provisioning: Provisioning::default(),
            pauses: Pauses::default(),
            spared: Pauses::default(),
            waits: Waits::default(),
            news: Vec::new(),
            recording: None,
            orders: VecDeque::new(),
            stops: Stops::default(),
            rightless: Rightless::default(),
            tries: Tries::default(),
            rooms: BTreeMap::new(),
            is_dry_run: false,
            is_told: false,
            somebody_leaves: false,
            held_before: BTreeMap::new(),
            names_in_use: 0,
            has_begun: false,
            promises: Promises::default(),
            only_asks: false,
        }
    }

    /// Writes down everything from here on; call it before anything is told.
    pub fn record(&mut self, recording: Recording) {
        self.recording = Some(recording);
    }

    /// Decides no more: what is written down is complete.
    pub fn end(&mut self) {
        if self.engine.take().is_some()
            && let Some(recording) = &self.recording
        {
            recording.get().end();
        }
    }

    /// Takes a change of the objects.
    pub fn change(&mut self, change: Change, now_ms: u64) {
        self.pass(now_ms);
        let events = self.world.apply(change);
        self.tell(events);
        self.spare_no_longer_who_was_let_go();
        self.provisioning.look_again();
        if self.world.notices().are_queues_recounted() {
            self.end();
        }
        self.hear();
    }

    /// Takes the outcome of a bind.
    pub fn outcome(&mut self, report: Report, now_ms: u64) {
        self.pass(now_ms);
        let Some(decision) = self.outbox.settle(report.bind.decision) else { return };
        let pod = decision.pod;
        match &report.outcome {
            Outcome::Bound => {
                self.pauses.server_answers();
                self.forget_pauses(pod);
                let waited_ms = self.now_ms - decision.since_ms;
                self.news.push(News::Bound { report, waited_ms });
                return;
            }
            Outcome::NotBound(cause) => self.not_bound(report.bind.decision, decision, cause),
            // The watch tells what became of the pod.
            Outcome::BoundByOther { .. } | Outcome::Gone | Outcome::Terminating => {
                self.pauses.server_answers();
            }
            Outcome::Gated | Outcome::Unknown => {}
        }
        self.news.push(News::NotBound(report));
    }

    /// Lets pods take part again whose pause is over.
    pub fn wake(&mut self, now_ms: u64) {
        self.pass(now_ms);
        while let Some(pod) = self.pauses.pop_due(self.now_ms) {
            let events = self.world.let_back(&pod);
            self.tell(events);
        }
        let world = &self.world;
        self.pauses.sweep(|pod| world.pods().has(pod));
        self.spare_no_longer();
        self.ask_for_rights();
    }

    /// Gangs that are to be given up, since the last call: their pods are to be deleted.
    pub fn unwinding(&mut self) -> Vec<Unwinding> {
        self.world.notices().unwinding()
    }

    /// Decides, if everything is listed and anything has changed.
    pub fn decide(&mut self, now_ms: u64) {
        self.pass(now_ms);
        if !self.world.is_ready() {
            return;
        }
        if self.engine.is_none() {
            self.open();
        }
        self.rejoin_gangs();
        self.provision();
        for _ in 0..ROUNDS {
            let Some(engine) = self.engine.as_mut().filter(|_| self.is_told) else { break };
            self.is_told = false;
            let mut plan = Plan::default();
            engine.cycle(&mut plan);
            if let Some(recording) = &self.recording {
                recording.get().decided(self.now_ms, &plan);
            }
            self.follow(plan);
        }
        // What was decided meanwhile is written at once.
        self.provision();
        self.tell_the_rest();
        self.forget_what_is_gone(MANY_NAMES);
    }

    /// Keeps the engine from growing for ever, once it knows more names than `many` and than twice those in use.
    /// Not while something is written down: who replays it would have to do the same.
    fn forget_what_is_gone(&mut self, many: usize) {
        let Some(engine) = self.engine.as_mut().filter(|_| self.recording.is_none()) else {
            return;
        };
        if engine.known_names() > 2 * self.names_in_use.max(many / 2) {
            engine.forget_what_is_gone();
            self.names_in_use = engine.known_names();
        }
    }

    /// The engine speaks of the first of those that ask for the same. The others come after it.
    fn tell_the_rest(&mut self) {
        if self.engine.is_some() && !self.is_told {
            for job in self.waits.untold() {
                self.say(job, PendingReason::WaitingForTurn);
            }
        }
    }

    /// The next bind to send, if any may be sent now. It is either sent or put back.
    pub fn next_bind(&mut self, now_ms: u64) -> Option<Bind> {
        self.pass(now_ms);
        if self.now_ms < self.pauses.server_until_ms() {
            return None;
        }
        loop {
            let (number, decision) = self.outbox.next()?;
            if !self.may_begin(&decision) {
                continue;
            }
            if let Some(bind) = self.bind(number, &decision) {
                return Some(bind);
            }
            self.outbox.settle(number);
        }
    }

    /// The bind was not sent.
    pub fn put_back(&mut self, bind: &Bind) {
        self.outbox.put_back(bind.decision);
    }

    /// The bind is not sent and will not be: its pod stays assumed.
    pub fn keep(&mut self, bind: &Bind) {
        if let Some(decision) = self.outbox.settle(bind.decision) {
            let waited_ms = self.now_ms - decision.since_ms;
            self.news.push(News::WouldBind { bind: bind.clone(), waited_ms });
        }
    }

    /// When to call again even if nothing happens.
    pub fn due_ms(&self) -> Option<u64> {
        let server_ms = (self.outbox.to_send() > 0 && self.now_ms < self.pauses.server_until_ms())
            .then(|| self.pauses.server_until_ms());
        // What was taken back is decided anew.
        let told_ms = (self.is_told && self.engine.is_some()).then_some(self.now_ms);
        let engine_ms = self.engine.as_ref().and_then(Engine::due_ms);
        let paused_ms =
            self.pauses.next_due_ms().into_iter().chain(self.spared.next_due_ms()).min();
        let volumes_ms = self.provisioning.due_ms();
        let (rights_ms, tries_ms) = (self.rights_due_ms(), self.tries.due_ms());
        let own = [server_ms, told_ms, engine_ms, paused_ms, volumes_ms, rights_ms, tries_ms];
        own.into_iter().chain([self.world.due_ms()]).flatten().min()
    }

    /// Whether anybody waits for the engine.
    pub(super) fn somebody_waits(&self) -> bool {
        self.waits.pods() > 0
    }

    /// Whether pods are stopped for others.
    pub(super) fn stops_others(&self) -> bool {
        self.config.preemption.enabled
    }

    /// Whether all lists are complete.
    pub fn is_ready(&self) -> bool {
        self.world.is_ready()
    }

    /// What people should know since the last call.
    pub fn news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Whether anybody who holds something has begun to leave, or room is kept for others than before, since the last
    /// call: what was said before of who waits may hold no longer.
    pub fn take_somebody_leaves(&mut self) -> bool {
        let is_kept_anew = self.world.notices().is_room_kept_anew();
        std::mem::take(&mut self.somebody_leaves) || is_kept_anew
    }

    /// How many pods are where.
    pub fn counts(&self) -> Counts {
        let unschedulable = self.waits.unschedulable_pods();
        Counts {
            unschedulable,
            active: self.waits.pods() - unschedulable + self.provisioning.pods(),
            paused: self.pauses.paused_pods(),
            to_send: self.outbox.to_send(),
        }
    }

    /// What the objects say.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The engine, once there is one.
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    pub(super) fn engine_mut(&mut self) -> Option<&mut Engine> {
        self.engine.as_mut()
    }

    /// What a job says that waits for this reason; `None` if it does not wait.
    pub fn waiting(&mut self, job: JobId, reason: PendingReason) -> Option<status::Waiting> {
        if reason == PendingReason::Unschedulable {
            return self.no_room(job);
        }
        // Who only asks stops nobody, and may find nobody who does.
        let (world, only_asks) = (&self.world, self.only_asks);
        let stops = |pod: &Pod| pod.meta.is_deleting() || pod.preemption.is_target;
        let is_stopping = |owner: &Owner| match owner {
            Owner::Pod(pod) => !only_asks || world.pods().pod_of(*pod).is_some_and(stops),
            Owner::Foreign(_) | Owner::Reservation => true,
        };
        status::waiting(self.engine.as_mut()?, job, reason, &[], world.rules(), is_stopping)
    }

    /// What keeps the pods of a waiting job off the nodes, for each of its pod sets; nothing if it does not wait.
    pub fn obstacles(&mut self, job: JobId) -> Vec<Vec<status::Obstacle>> {
        let nodes = self.world.nodes().names();
        let Some(engine) = self.engine.as_mut() else { return Vec::new() };
        let waiting = engine.job(job).filter(|job| job.start_ms.is_none()).cloned();
        waiting.map_or_else(Vec::new, |job| {
            status::obstacles(engine, &job, &nodes, self.world.rules())
        })
    }

    /// Why a job waits, with the smallest changes that would start it now; `None` if it does not wait.
    pub fn why(&mut self, job: JobId) -> Option<dovetail_plan::explain::Waiting> {
        let engine = self.engine.as_mut()?;
        let mut waiting = engine.ask().why(job)?;
        let Some(anywhere) = engine.job(job).and_then(status::away_from_its_gang) else {
            return Some(waiting);
        };
        // What keeps it near others of its gang is the level that it requires, and no selector of its owner's.
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

    /// How many pods of a waiting job would find room now, one after the other, its queue aside; `None` if it
    /// does not wait.
    pub fn fitting(&mut self, job: JobId) -> Option<usize> {
        let engine = self.engine.as_mut()?;
        let mut job = engine.job(job).filter(|job| job.start_ms.is_none())?.clone();
        job.pod_sets.iter_mut().for_each(|set| set.min = 0);
        // Levels that are known to the job are known to the engine.
        Some(engine.ask().what_if_job(&job, &View::Now).ok()?.map_or(0, |pods| pods.len()))
    }

    /// Whether a waiting job could start if nobody held anything, its queue aside: where not, waiting will not help;
    /// `None` if it does not wait.
    pub fn fits_when_all_is_free(&mut self, job: JobId) -> Option<bool> {
        let engine = self.engine.as_mut()?;
        let job = engine.job(job).filter(|job| job.start_ms.is_none())?.clone();
        let held = engine.snapshot().holdings.iter().map(|holding| holding.id).collect();
        // Levels that are known to the job are known to the engine.
        Some(engine.ask().what_if_job(&job, &View::Without(held)).ok()?.is_some())
    }

    /// Notes what queues hold before anything is decided: from then on [`Scheduler::queue_use`] tells that, and nothing
    /// that would start.
    pub fn note_what_queues_hold(&mut self, now_ms: u64) {
        self.pass(now_ms);
        if self.engine.is_none() {
            self.open();
        }
        let Some(engine) = self.engine.as_mut() else { return };
        let there = self.world.queues().all().map(|(queue, _)| queue.meta.name.to_string());
        let missing = self.world.queues().missing().into_iter().map(|queue| queue.name);
        let all = there.chain(missing).map(|queue| {
            let usage = engine.queue_use(&engine_name(&queue));
            (queue, usage)
        });
        self.held_before = all.collect();
    }

    /// What a queue and everything below it hold.
    pub fn queue_use(&mut self, queue: &str) -> Option<QueueUse> {
        if let Some(before) = self.held_before.get(queue) {
            return Some(before.clone());
        }
        Some(self.engine.as_mut()?.queue_use(&engine_name(queue)))
    }

    /// What each queue is to say of itself.
    pub fn queue_statuses(&mut self) -> Vec<(String, Value)> {
        let Some(engine) = self.engine.as_mut() else { return Vec::new() };
        let mut waiting = engine.list().waiting_below();
        let rules = self.world.rules();
        let says = |(queue, problem): (&Queue, Option<&Problem>)| {
            let engine_name = engine_name(&queue.meta.name);
            let (usage, below) = (engine.queue_use(&engine_name), waiting.remove(&engine_name));
            let below = below.unwrap_or_default();
            (queue.meta.name.to_string(), queues::status(queue, problem, &usage, below, rules))
        };
        self.world.queues().all().map(says).collect()
    }

    /// The world as plain data.
    pub fn snapshot(&mut self, now_ms: u64) -> Snapshot {
        self.world.snapshot(now_ms)
    }

    /// Clocks of machines are set back at times; the engine's time never goes back.
    pub(super) fn pass(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        let mut events = self.world.pass(self.now_ms);
        let due_ms = self.engine.as_ref().and_then(Engine::due_ms);
        events.extend(due_ms.filter(|due_ms| *due_ms <= self.now_ms).map(|_| Event::Tick));
        self.tell(events);
        self.hear();
    }

    /// Takes what the world has to say to people.
    pub(super) fn hear(&mut self) {
        self.news.extend(self.world.notices().reports().into_iter().map(News::Object));
    }

    /// An engine over what the world says.
    fn open(&mut self) {
        self.spare_who_was_kept();
        let snapshot = self.world.snapshot(self.now_ms);
        let world = &self.world;
        self.waits.restart(|job| world.pods().pods_of(job).next().is_some());
        for job in snapshot.jobs.iter().filter(|job| job.start_ms.is_none()) {
            self.waits.begin(job, self.now_ms);
        }
        match Engine::new(self.config.clone(), &snapshot) {
            Ok(engine) => {
                if let Some(recording) = &self.recording {
                    recording.get().begin(&self.config, &engine);
                }
                self.engine = Some(engine);
                self.is_told = true;
                self.take_up_stops(&snapshot.claims);
                self.keep_for_the_lost();
            }
            Err(error) => self.news.push(News::Inconsistent(error)),
        }
    }

    pub(super) fn tell(&mut self, events: Vec<Event>) {
        for event in events {
            self.note(&event);
            // Without one, the next engine starts from what the world says.
            let Some(engine) = &mut self.engine else { continue };
            self.is_told = true;
            let to_record = self.recording.as_ref().map(|_| event.clone());
            match engine.apply(event, self.now_ms) {
                Ok(plan) => {
                    if let (Some(recording), Some(event)) = (&self.recording, to_record) {
                        recording.get().told(self.now_ms, &event, &plan);
                    }
                    self.follow(plan);
                }
                Err(error) => self.start_anew(error),
            }
        }
    }

    /// World and engine disagree, which is a bug. The world is right: an engine built from it is, too.
    fn start_anew(&mut self, error: EngineError) {
        self.news.push(News::Inconsistent(error));
        self.end();
    }

    /// Keeps book of who waits.
    fn note(&mut self, event: &Event) {
        self.somebody_leaves |= match event {
            Event::HeldChanged(holding) | Event::ForeignHeld(holding) => {
                matches!(holding.phase, Phase::Releasing { .. })
            }
            Event::Ending { .. } => true,
            // Who was told of the room of one that was ending has it, or has not; and others may have been told so.
            Event::PodEnded { .. } | Event::Ended { .. } | Event::ForeignReleased { .. } => {
                !self.promises.is_empty()
            }
            _ => false,
        };
        match event {
            Event::Submitted(job) => self.waits.begin(job, self.now_ms),
            Event::JobChanged(job) => self.waits.describe(job),
            Event::BindFailed { pod } => {
                self.waits.again(pod.job);
                self.unnominate(pod.job);
            }
            Event::Ended { job } => self.note_end(*job),
            Event::PodEnded { pod } => self.note_end(pod.job),
            Event::Confirmed { pod } => self.note_runs(*pod),
            Event::Adopted { holdings, .. } => {
                let owners = holdings.iter().map(|holding| &holding.owner);
                let pods = owners.filter_map(|owner| match owner {
                    Owner::Pod(pod) => Some(*pod),
                    _ => None,
                });
                pods.for_each(|pod| self.note_runs(pod));
            }
            _ => {}
        }
    }

    fn note_end(&mut self, job: JobId) {
        self.waits.pause(job);
        // A pod that pauses is still there.
        if self.world.pods().pods_of(job).next().is_none() {
            self.waits.forget(job);
            self.forget_tries(job);
            // What is kept for it is given back in a moment, and that is told.
            let is_kept = |engine: &Engine| engine.list().claim_of(job).is_some();
            if !self.engine.as_ref().is_some_and(is_kept) {
                self.needs_no_room(job);
            }
        }
    }

    fn note_runs(&mut self, pod: PodId) {
        self.waits.forget(pod.job);
        self.forget_tries(pod.job);
        self.has_its_room(pod.job);
        self.forget_pauses(pod);
    }

    fn forget_tries(&mut self, job: JobId) {
        self.tries.forget(job);
        self.world.forget_patience(job);
    }

    fn forget_pauses(&mut self, pod: PodId) {
        if self.pauses.is_empty() {
            return;
        }
        if let Some(pod) = self.world.pods().pod_of(pod) {
            self.pauses.forget(&PodKey::of(pod));
        }
    }

    fn follow(&mut self, plan: Plan) {
        // All of it before anything is told that follows: that may be about jobs of which this plan has more.
        let binds = plan.actions.iter().filter_map(|action| match action {
            Action::Bind { pod, node, .. } => Some((*pod, node.clone())),
            _ => None,
        });
        let binds: Vec<(PodId, NodeName)> = binds.collect();
        if !binds.is_empty() {
            let events = self.world.assumed(&binds);
            self.tell(events);
        }
        let mut actions = plan.actions.into_iter().peekable();
        let mut given_up = Vec::new();
        while let Some(action) = actions.next() {
            match action {
                Action::Bind { pod, node, .. } => {
                    let mut binds = vec![(pod, node)];
                    // All pods of a job come one after the other.
                    let same = |next: &Action| matches!(next, Action::Bind { pod: other, .. } if other.job == pod.job);
                    while let Some(Action::Bind { pod, node, .. }) = actions.next_if(same) {
                        binds.push((pod, node));
                    }
                    self.assume(pod.job, binds);
                }
                Action::Wait { job, reason } => self.say(job, reason),
                Action::Preempt { job, victims, places, cost, .. } => {
                    self.somebody_leaves = true;
                    self.preempt(job, &victims, &places, cost);
                }
                Action::GivenBack { job } => {
                    // What was kept for it others may count on.
                    self.somebody_leaves = true;
                    self.unnominate(job);
                }
                Action::RoomGivenUp { name, .. } => given_up.push(name),
                // The world has noticed, and has told what its pods are to do.
                Action::Lost { .. } | Action::Publish { .. } => {}
            }
        }
        // What follows for gangs may be about jobs of which this plan has more.
        if !given_up.is_empty() {
            let events = self.world.rooms_given_up(&given_up);
            self.tell(events);
        }
    }

    fn say(&mut self, job: JobId, reason: PendingReason) {
        self.waits.because(job, reason);
        let pods = self.world.pods().pods_of(job);
        self.news.extend(pods.map(|pod| News::Waits { pod: PodName::of(pod), job, reason }));
    }

    fn assume(&mut self, job: JobId, binds: Vec<(PodId, NodeName)>) {
        self.waits.pause(job);
        if binds.iter().any(|(pod, node)| self.world.pods().assumed_on(*pod) != Some(node)) {
            return self.start_anew(EngineError::UnknownJob { job });
        }
        let since_ms = self.waits.since_ms(job).unwrap_or(self.now_ms);
        self.send_when_provisioned(job, binds, since_ms);
    }

    /// Whether a bind may be the first of its gang, or is not. If the gang is not whole any more before
    /// anything of it was sent, nothing is: it is decided anew.
    fn may_begin(&mut self, decision: &Decision) -> bool {
        let Some(all) = decision.gang.and_then(|gang| self.outbox.begin(gang)) else { return true };
        let size = decision.gang.map_or(1, |gang| gang.size);
        if all.len() == size && all.iter().all(|(_, one)| self.is_current(one)) {
            return true;
        }
        let current = all.iter().filter(|(_, one)| self.is_current(one));
        let pods: Vec<PodId> = current.map(|(_, one)| one.pod).collect();
        let numbers: Vec<u64> = all.iter().map(|(number, _)| *number).collect();
        self.outbox.take_back(&numbers);
        let events = self.world.bind_failed(&pods);
        self.tell(events);
        false
    }

    /// The bind of a decision, unless it is out of date.
    fn bind(&self, number: u64, decision: &Decision) -> Option<Bind> {
        if !self.is_current(decision) {
            return None;
        }
        let meta = &self.world.pods().pod_of(decision.pod)?.meta;
        Some(Bind {
            decision: number,
            namespace: meta.namespace.to_string(),
            pod: meta.name.to_string(),
            uid: meta.uid.to_string(),
            node: decision.node.to_string(),
            epoch: self.epoch,
            tag: match decision.gang {
                Some(gang) => gang_decision(self.epoch, gang.number, gang.size),
                None => self.world.pods().name_of_decision(decision.pod, self.epoch, number),
            },
        })
    }

    fn not_bound(&mut self, number: u64, decision: Decision, cause: &Cause) {
        let asked_ms = match cause {
            Cause::Busy { retry_after_ms } => Some(*retry_after_ms),
            Cause::ServerFailed { code: 502..=504, .. } | Cause::NoAnswer { .. } => Some(None),
            // Nothing more is sent in this leadership.
            Cause::NotLeading | Cause::Stopped => return,
            Cause::Conflict | Cause::Refused { .. } | Cause::ServerFailed { .. } => None,
        };
        if let Some(asked_ms) = asked_ms {
            self.pauses.pause_server(self.now_ms, asked_ms);
        }
        if !self.is_current(&decision) {
            return;
        }
        if asked_ms.is_some() && decision.tries < RESENDS {
            return self.outbox.send_again(number, decision);
        }
        let Some(pod) = self.world.pods().pod_of(decision.pod).map(PodKey::of) else { return };
        let (pause, why) = match cause {
            Cause::Refused { code, message } => {
                let (node, message) = (decision.node.to_string(), message.clone());
                (Pause::Long, Some(NotYet::NotBound { node, code: *code, message }))
            }
            Cause::ServerFailed { code, message } => {
                let (node, message) = (decision.node.to_string(), message.clone());
                (Pause::Short, Some(NotYet::NotBound { node, code: *code, message }))
            }
            _ => (Pause::Short, None),
        };
        self.pauses.pause_pod(self.now_ms, &pod, pause);
        let events = self.world.hold_back(&pod, why);
        self.tell(events);
        self.hear();
    }

    /// Whether the pod still waits for this very bind.
    fn is_current(&self, decision: &Decision) -> bool {
        !decision.is_superseded
            && self.world.pods().assumed_on(decision.pod) == Some(&decision.node)
    }
}
