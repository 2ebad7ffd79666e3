//! The loop without its wires: changes and outcomes in, binds and orders out. No client, no clock.

use std::sync::Arc;

use dovetail_cluster::queues::engine_name;
use dovetail_cluster::world::{Change, Unwinding, VolumePatience, World};
use dovetail_model::{Action, Event, JobId, NodeName, PendingReason, Plan, PodId};
use dovetail_plan::engine::{EngineConfig, EngineError};
use dovetail_plan::{Engine, Learned, PolicySpec, StartCorrections};

use super::dispatch::Dispatch;
use super::gpu_time::GpuMeter;
use super::known::{Follows, Known};
use super::news::News;
use super::preempting::Preempting;
use super::questions::{Explained, Questions};
use super::resumes::Resumes;
use crate::bind::{Bind, BindReport};
use crate::order::{OrderEnd, PodOrder};
use crate::record::EngineEntry;

/// Decisions change what pods count into, which may let others in: so often in one go the engine
/// decides again.
const ROUNDS: u32 = 16;

/// Pods whose claims are being written, beyond which the next step decides further: each of them
/// is looked at in each step.
const MOST_CLAIMING: usize = 256;

/// Victims that one decision may name. The next one follows in the next step, so that evictions
/// begin before it is known of all pending jobs whether pods are preempted for them.
const MOST_VICTIMS: usize = 32;

/// Pods that are being evicted, beyond which no others are preempted: the server is the limit, and
/// what is decided later is decided with what is known by then.
const MOST_EVICTING: usize = 128;

/// Decides about the pods of one cluster, within one leadership.
pub struct Scheduler {
    known: Known,
    dispatch: Dispatch,
    preempting: Preempting,
    resumes: Resumes,
    explained: Explained,
    /// GPU-time that is counted as it passes.
    pub gpu_meter: GpuMeter,
    /// Whether there was an engine in this leadership.
    has_begun: bool,
}

/// Ways in which a scheduler may decide.
#[derive(Clone, Debug, Default)]
pub struct Modes {
    /// Nothing is written: a pod that would be evicted counts as gone.
    pub is_dry_run: bool,
    /// This is a question about the cluster at one moment, and no leader begins: no room is
    /// reserved for what was lost.
    pub only_asks: bool,
    /// How long volumes are waited for.
    pub volumes: VolumePatience,
    /// What is applied to engines and what they answer is kept for
    /// [`Scheduler::take_engine_entries`].
    pub is_recorded: bool,
}

/// How many pods are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodCounts {
    /// Pods that wait, of which no node can take these.
    pub unschedulable: usize,
    /// Pods that wait for another reason, or for the next decision.
    pub active: usize,
    /// Pods that are left alone for a while because their bind had no effect.
    pub paused: usize,
    /// Decisions that are not sent yet.
    pub to_send: usize,
    /// GPUs that are kept free in thousandths: for jobs that are next, and by reservations from one
    /// time to another.
    pub reserved_unused_gpu_milli: [i64; 2],
}

impl Scheduler {
    /// A scheduler that knows nothing yet. `epoch` goes into every bind.
    pub fn new(world: World, config: EngineConfig, epoch: u64) -> Self {
        Self {
            known: Known::new(world.in_epoch(epoch), config),
            dispatch: Dispatch::default(),
            preempting: Preempting::default(),
            resumes: Resumes::default(),
            explained: Explained::default(),
            gpu_meter: GpuMeter::default(),
            has_begun: false,
        }
    }

    /// The same, in other ways than by default; to be chosen before anything is applied.
    pub fn with(mut self, modes: Modes) -> Self {
        let Modes { is_dry_run, only_asks, volumes, is_recorded } = modes;
        (self.dispatch.is_dry_run, self.preempting.is_dry_run) = (is_dry_run, is_dry_run);
        (self.has_begun, self.explained.only_asks) = (only_asks, only_asks);
        self.dispatch.provisioning.wait_ms = volumes.wait_ms;
        self.known.engines = is_recorded.then(Vec::new);
        self
    }

    /// What engines were told and answered since the last call, if that is kept.
    pub fn take_engine_entries(&mut self) -> Vec<EngineEntry> {
        self.known.engines.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes a change of the objects.
    pub fn change(&mut self, change: Change, now_ms: u64) {
        self.pass(now_ms);
        self.dispatch.claiming.recheck(&change);
        let events = self.known.world.apply(change);
        self.known.apply(events);
        self.settle();
        self.preempting.end_exemptions_taken_back(&mut self.known);
        self.preempting.take_back_late_marks(&mut self.known);
        self.settle();
        self.dispatch.provisioning.recheck();
        if self.known.world.notices().are_queues_recounted() {
            self.known.end();
        }
        self.known.take_reports();
    }

    /// Chooses nodes by another policy from now on, if there is one of this name.
    pub fn choose_by(&mut self, policy: String, now_ms: u64) {
        self.pass(now_ms);
        let known = &mut self.known;
        let spec = PolicySpec { name: policy.clone(), ..known.config.policy.clone() };
        if spec.name == known.config.policy.name || spec.check().is_err() {
            return;
        }
        known.config.policy = spec;
        known.news.push(News::ChoosesBy { policy: policy.clone() });
        known.apply(vec![Event::PolicyChanged { name: policy }]);
        self.settle();
    }

    /// Takes the outcome of a bind.
    pub fn outcome(&mut self, report: BindReport, now_ms: u64) {
        self.pass(now_ms);
        self.dispatch.outcome(&mut self.known, report);
        self.settle();
    }

    /// What became of an order.
    pub fn order_ended(&mut self, order: &PodOrder, end: OrderEnd, now_ms: u64) {
        self.pass(now_ms);
        let known = &mut self.known;
        match (order, end) {
            (PodOrder::SelectNode { claim, version, node }, end) => {
                let decisions = known.world.decisions();
                self.dispatch.provisioning.written(decisions, claim, (node, version), end);
            }
            (PodOrder::WriteClaim(write), end) => {
                self.dispatch.claiming.written(write, end, known.now_ms);
            }
            (PodOrder::Evict { pod, why, decision }, end) => {
                self.preempting.eviction_ended(known, pod, *why, decision, end);
            }
            (PodOrder::MayEvict { pod, why }, end) => {
                self.preempting.right_answered(known, pod, *why, &end);
            }
            (PodOrder::Resume(job), end) => self.resumes.ended(known, job, &end),
            (PodOrder::Nominate { .. } | PodOrder::Unmark { .. }, _) => {}
        }
        self.settle();
    }

    /// Lets pods take part again whose pause is over.
    pub fn wake(&mut self, now_ms: u64) {
        self.pass(now_ms);
        self.dispatch.wake(&mut self.known);
        self.preempting.end_exemptions(&mut self.known);
        self.settle();
    }

    /// Gangs that are to be given up, since the last call: their pods are to be deleted.
    pub fn unwinding(&mut self) -> Vec<Unwinding> {
        self.known.world.notices().unwinding()
    }

    /// Decides, if everything is listed and anything has changed.
    pub fn decide(&mut self, now_ms: u64) {
        self.pass(now_ms);
        if !self.known.world.is_ready() {
            return;
        }
        if self.known.is_to_open() {
            self.open();
        }
        self.preempting.rejoin_gangs(&mut self.known);
        if !self.preempting.is_dry_run {
            self.resumes.order(&mut self.known);
        }
        self.settle();
        self.dispatch.claim(&mut self.known);
        self.dispatch.provision(&mut self.known);
        self.settle();
        let mut rounds = 0;
        while rounds < ROUNDS && self.known.decide(most_victims(&self.preempting, &self.explained))
        {
            self.settle();
            if is_held_back(&self.known) {
                break;
            }
            match self.known.engine().is_some_and(|engine| engine.has_more) {
                false => rounds += 1,
                // Nothing is written for questions, and nobody asks a second time.
                true if self.dispatch.claiming.pods() >= MOST_CLAIMING
                    && !self.explained.only_asks =>
                {
                    break;
                }
                true => {
                    self.dispatch.set_new_aside(&mut self.known);
                    self.settle();
                }
            }
        }
        // What was decided meanwhile is written at once.
        self.dispatch.claim(&mut self.known);
        self.dispatch.provision(&mut self.known);
        self.settle();
        self.known.report_the_rest();
        let preempting = &self.preempting;
        self.known.compare(|world, pod| preempting.leaves(world, pod));
        self.gpu_meter.count(self.known.engine(), self.known.now_ms);
        self.known.forget_what_is_gone();
    }

    /// The next bind to send, if any may be sent now.
    pub fn next_bind(&mut self, now_ms: u64) -> Option<Arc<Bind>> {
        self.pass(now_ms);
        let bind = self.dispatch.next_bind(&mut self.known);
        self.settle();
        bind
    }

    /// The bind is not sent and will not be: its pod stays assumed.
    pub fn would_bind(&mut self, bind: &Arc<Bind>) {
        self.dispatch.would_bind(&mut self.known, bind);
    }

    /// The next order to carry out.
    pub fn next_order(&mut self) -> Option<PodOrder> {
        self.known.orders.pop_front()
    }

    /// Decisions to evict pods that are called off, since the last call: what has not begun of them
    /// is not to begin.
    pub fn called_off(&mut self) -> Vec<u64> {
        self.preempting.evictions.take_called_off()
    }

    /// Searches for pods to preempt, since the last call.
    pub fn searches(&mut self) -> u64 {
        self.known.engine_mut().map_or(0, |engine| engine.take_search_effort().searches)
    }

    /// When to call again even if nothing happens.
    pub fn due_ms(&self) -> Option<u64> {
        let Self { known, dispatch, preempting, resumes, .. } = self;
        let preempts_more =
            is_held_back(known) && most_victims(preempting, &self.explained) != Some(0);
        let more_ms = preempts_more.then_some(known.now_ms);
        let own = [known.due_ms(), dispatch.due_ms(known.now_ms), resumes.due_ms(), more_ms];
        own.into_iter().chain([preempting.exemptions.due_ms(known)]).flatten().min()
    }

    /// What people should know since the last call.
    pub fn news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.known.news)
    }

    /// Whether pods have begun to terminate, or reservations changed, since the last call: what was
    /// said before of pending jobs may be out of date.
    pub fn take_recheck(&mut self) -> bool {
        let is_kept_anew = self.known.world.notices().are_reservations_new();
        std::mem::take(&mut self.known.recheck) || is_kept_anew
    }

    /// How many pods are where.
    pub fn counts(&self) -> PodCounts {
        let Self { known: Known { pending, .. }, dispatch, .. } = self;
        let unschedulable = pending.unschedulable_pods();
        PodCounts {
            unschedulable,
            active: pending.pods() - unschedulable
                + dispatch.provisioning.pods()
                + dispatch.claiming.pods(),
            paused: dispatch.pauses.pods.count(),
            to_send: dispatch.outbox.to_send(),
            reserved_unused_gpu_milli: self
                .known
                .engine()
                .map_or([0, 0], |engine| engine.list().reserved_unused_gpu_milli()),
        }
    }

    /// Why a job is pending, if it is.
    pub fn pending_reason(&self, job: JobId) -> Option<PendingReason> {
        self.known.pending.reason(job)
    }

    /// What the objects say.
    pub fn world(&self) -> &World {
        &self.known.world
    }

    /// The engine, once there is one.
    pub fn engine(&self) -> Option<&Engine> {
        self.known.engine()
    }

    /// Questions about what is known now.
    pub fn ask(&mut self) -> Questions<'_> {
        Questions {
            known: &mut self.known,
            explained: &mut self.explained,
            exemptions: &self.preempting.exemptions,
        }
    }

    /// Notes what queues hold before anything is decided: from then on [`Questions::queue_use`]
    /// gives that, and nothing that would start.
    pub fn note_queue_use(&mut self, now_ms: u64) {
        self.pass(now_ms);
        if self.known.engine().is_none() {
            self.open();
        }
        let (world, Some(engine)) = self.known.both() else { return };
        let there = world.queues().all().map(|(queue, _)| queue.meta.name.to_string());
        let missing = world.queues().missing().into_iter().map(|queue| queue.name);
        let all = there.chain(missing).map(|queue| {
            let usage = engine.queue_use(&engine_name(&queue));
            (queue, usage)
        });
        self.explained.held_before = all.collect();
    }
}

/// What follows from what was applied and decided.
impl Scheduler {
    fn pass(&mut self, now_ms: u64) {
        self.known.pass(now_ms);
        self.settle();
    }

    /// Lets all parts act upon what has happened, until nothing more follows.
    fn settle(&mut self) {
        while let Some(next) = self.known.next() {
            let Self { known, dispatch, preempting, explained, .. } = self;
            match next {
                Follows::PendingAgain(job) => preempting.unnominate(known, job),
                // What is reserved for it is given back in a moment, as a plan says.
                Follows::Ended(job, had_room) => {
                    preempting.exemptions.forget_job(job);
                    known.world.forget_preemptor(job);
                    if !had_room {
                        preempting.forget_preemption(known, job);
                    }
                }
                // A job that was promised the room of one that was ending has it, or has not; and
                // others may have been promised it.
                Follows::Gone => known.recheck |= !explained.promises.is_empty(),
                Follows::Runs(pod) => {
                    preempting.exemptions.forget_job(pod.job);
                    known.world.forget_preemptor(pod.job);
                    if preempting.reclaims_for(pod.job) {
                        self.gpu_meter.runs_in_reclaimed_room(pod.job);
                    }
                    preempting.preemptor_runs(known, pod.job);
                    dispatch.forget_pauses(known, pod);
                }
                Follows::Plan(plan) => self.follow(plan),
            }
        }
        self.known.take_reports();
    }

    fn follow(&mut self, plan: Plan) {
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
                Action::Wait { job, reason } => self.known.report_pending(job, reason),
                Action::Preempt { job, victims, places, cost, reason, .. } => {
                    self.known.recheck = true;
                    let says = self.ask().conditions_while_waiting(job);
                    let Self { known, dispatch, preempting, .. } = self;
                    let why = (cost, reason);
                    let victims = preempting.preempt(known, says, job, &victims, &places, why);
                    // Of decisions that wait for volumes nothing has begun: no pod of them is
                    // evicted.
                    dispatch.give_up_for_others(known, &victims);
                    dispatch.give_up_claims(known, &victims);
                    preempting.order_evictions(known, job);
                }
                Action::GivenBack { job } => {
                    // What was reserved for it others may count on.
                    self.known.recheck = true;
                    self.preempting.unnominate(&mut self.known, job);
                }
                Action::RoomGivenUp { name, .. } => given_up.push(name),
                // The world has noticed, and has reported what its pods are to do.
                Action::Lost { .. } | Action::Publish { .. } => {}
            }
        }
        // What follows for gangs may be about jobs of which this plan has more.
        if !given_up.is_empty() {
            let events = self.known.world.rooms_given_up(&given_up);
            self.known.apply(events);
        }
    }

    fn assume(&mut self, job: JobId, binds: Vec<(PodId, NodeName)>) {
        let known = &mut self.known;
        known.pending.pause(job);
        let decisions = known.world.decisions();
        let numbers = binds.iter().map(|(pod, node)| {
            let decision = decisions.of_pod(*pod).filter(|decision| decision.bind.node == *node);
            decision.map(|decision| decision.bind.decision)
        });
        match numbers.collect::<Option<Vec<u64>>>() {
            Some(numbers) => self.dispatch.send(known, numbers),
            None => known.restart_engine(EngineError::UnknownJob { job }),
        }
    }

    /// An engine over what the world says, which goes on where an earlier one ended.
    fn open(&mut self) {
        self.preempting.exempt_by_conditions(&mut self.known);
        let Some(snapshot) = self.known.open() else { return };
        self.preempting.take_up_evictions(&mut self.known, &snapshot.claims);
        if !std::mem::replace(&mut self.has_begun, true) {
            self.known.reserve_for_the_lost();
        }
        self.settle();
    }
}

/// Whether a job is pending because no node takes it.
pub fn is_unschedulable(scheduler: &Scheduler, job: JobId) -> bool {
    scheduler.pending_reason(job) == Some(PendingReason::Unschedulable)
}

/// What is learned so far.
pub fn learned(scheduler: &Scheduler) -> Learned {
    let known = &scheduler.known;
    let learned = known.engine().map_or_else(|| known.learned.clone(), Learned::of);
    Learned { starts: start_corrections(scheduler), ..learned }
}

/// How much later jobs start than forecasts say.
pub fn start_corrections(scheduler: &Scheduler) -> StartCorrections {
    scheduler.known.forecasts.corrections(scheduler.known.now_ms)
}

/// A scheduler that has not decided yet goes on with what another one learned.
pub fn go_on_with(mut learned: Learned, scheduler: &mut Scheduler) {
    scheduler.known.forecasts.go_on(std::mem::take(&mut learned.starts));
    scheduler.known.learned = learned;
}

/// Whether the engine preempts for more jobs as soon as it may name more victims.
fn is_held_back(known: &Known) -> bool {
    known.engine().is_some_and(|engine| engine.is_held_back)
}

/// How many victims the next decision may name; any number for a question, to which there is one
/// answer.
fn most_victims(preempting: &Preempting, explained: &Explained) -> Option<u64> {
    let left = MOST_EVICTING.saturating_sub(preempting.evictions.under_way());
    (!explained.only_asks).then_some(left.min(MOST_VICTIMS) as u64)
}
