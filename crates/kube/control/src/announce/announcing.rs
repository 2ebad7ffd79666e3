//! What the news of a scheduler means for what is announced, and when there is time for it.

use std::collections::BTreeSet;

use dovetail_cluster::world::{LastingOwner, PodKey};
use dovetail_cluster::{queues, reservations, world};
use dovetail_model::{JobId, PendingReason};
use dovetail_objects::{Kind, Meta};
use dovetail_translate::Receipt;
use serde_json::{Value, json};

use super::{
    AnnouncedWrite, Announcements, Limits, Note, StatusOf, Statuses, WatchedPod, WatchedStatus,
    WriteOutcome, WriteResult,
};
use crate::control::{Announced, LogEntry};
use crate::order::EvictionCause;
use crate::repeats::{Repeats, without_names};
use crate::schedule::{Evicted, EvictionRefused, News, Rechecks, Scheduler, is_unschedulable};
use crate::status::{self, WaitingReason};

/// A pod that is pending for less gets no condition.
const SETTLE_MS: u64 = 500;
/// While binds go out, explaining and writing wait, but not for longer than this.
const OVERDUE_MS: u64 = 5_000;
/// Jobs that are checked in one round of the loop.
const BATCH: usize = 256;
/// What queues are to say is added up so often.
const QUEUES_MS: u64 = 2_000;
/// A pending pod gets another event about evictions that are refused for it, for the same cause,
/// after so long.
const NOT_EVICTED_AGAIN_MS: u64 = 300_000;
/// The cause that is named where disruption budgets do not allow evictions.
const BY_BUDGETS: &str = "PodDisruptionBudget";
/// Writes on their way while binds go out for longer than that.
const BESIDE_BINDS: usize = 2;

/// Announces what one leadership decides.
pub(crate) struct Announcing {
    book: Announcements,
    statuses: Statuses,
    /// When queues and reservations are checked; `None` as long as there are none.
    queues_ms: Option<u64>,
    rechecks: Rechecks,
    on_their_way: usize,
    /// Whether a status is written before an event: each has its turn while there are more events
    /// than can be written.
    is_turn_of_statuses: bool,
    /// Since when binds go out, or claims are written before them, without a break.
    busy_since_ms: Option<u64>,
    /// Refusals that were logged: of what, and the code.
    warned: BTreeSet<(Announced, u16)>,
    /// Events that pending pods got lately about evictions that are refused for them.
    not_evicted: Repeats<String>,
}

impl Default for Announcing {
    fn default() -> Self {
        Self {
            book: Announcements::new(Limits::default()),
            statuses: Statuses::default(),
            queues_ms: None,
            rechecks: Rechecks::default(),
            on_their_way: 0,
            is_turn_of_statuses: false,
            busy_since_ms: None,
            warned: BTreeSet::new(),
            not_evicted: Repeats::every(NOT_EVICTED_AGAIN_MS),
        }
    }
}

impl Announcing {
    /// Takes note of what is to be announced.
    pub(crate) fn take(&mut self, news: &News, now_ms: u64) {
        match news {
            News::Bound { report, .. } => {
                let bind = &report.bind;
                self.book.bound(bind.pod.clone(), &bind.node, &bind.tag, now_ms);
            }
            News::Pending { job, .. } | News::ForecastMade(job) => {
                self.rechecks.at(now_ms + SETTLE_MS, *job);
            }
            News::Object(report) => self.take_report(report, now_ms),
            News::Preempts(preempts) => {
                for says in preempts.says.iter().cloned() {
                    self.book.expect(says.pod, says.waiting, now_ms);
                }
            }
            News::Evicted(stopped) => self.preempted_for(stopped, now_ms),
            News::GangGivenUp { pod, gang } => {
                let reason = EvictionCause::GangGivenUp.reason();
                self.book.note(Note::gang_given_up(pod.clone(), gang, reason, now_ms));
            }
            News::EvictionRefused(refused) => self.not_evicted(refused, now_ms),
            News::PreemptionBlocked { pod, text } => {
                if self.not_evicted.is_due(pod.uid.to_string(), BY_BUDGETS, now_ms) {
                    self.book.note(Note::preemption_blocked(pod.clone(), text, now_ms));
                }
            }
            News::Receipt { account, receipt } => {
                let of = StatusOf::receipt(account);
                self.statuses.wants(of, wanted_receipt(account, receipt), now_ms);
            }
            News::IntervalFarOff { account, advice } => {
                self.book.note(Note::interval_far_off(account, advice, now_ms));
            }
            News::JobTurned { job, suspended_for } => {
                self.book.note(Note::job_turned(job, *suspended_for, now_ms));
            }
            News::NoReceipt { .. }
            | News::NotBound(_)
            | News::WouldBind { .. }
            | News::Preempted { .. }
            | News::ChoosesBy { .. }
            | News::Inconsistent(_)
            | News::ForecastEnded(_)
            | News::Differs(_) => {}
        }
    }

    fn take_report(&mut self, report: &world::ObjectReport, now_ms: u64) {
        use world::ObjectReport;
        match report {
            ObjectReport::Refused { pod, reason, is_repeat } => {
                self.book.is_left_untouched(pod.clone(), reason, *is_repeat, now_ms);
            }
            ObjectReport::RunTimeUnreadable { pod, problem } => {
                self.book.note(Note::run_time_unreadable(pod.clone(), problem, now_ms));
            }
            ObjectReport::Contradiction { kind, about, reason, is_repeat } => {
                let of = StatusOf::group(&about.namespace, &about.name);
                if !is_repeat {
                    let text = reason.to_string();
                    self.book.note(Note::contradiction(*kind, about.clone(), &text, now_ms));
                }
                if *kind == Kind::PodGroup {
                    let wanted = status::group_is_left_untouched(reason);
                    self.statuses.wants(of, wanted, now_ms);
                }
            }
            ObjectReport::WaitsForMembers { pod, gang, gathering } => {
                let waiting = WaitingReason::for_members(gang, *gathering);
                self.book.waits(pod.clone(), waiting, now_ms);
            }
            ObjectReport::WaitsForDevices { pod, devices, node } => {
                let waiting = WaitingReason::for_devices(devices, node);
                self.book.waits(pod.clone(), waiting, now_ms);
            }
            ObjectReport::WaitsForVolumes { pod, claims, node } => {
                let waiting = WaitingReason::for_volumes(claims, node);
                self.book.waits(pod.clone(), waiting, now_ms);
            }
            ObjectReport::WaitsForVolumesOfOthers { pod, claims, node } => {
                let waiting = WaitingReason::for_volumes_of_others(claims, node);
                self.book.waits(pod.clone(), waiting, now_ms);
            }
            ObjectReport::GroupWaitsForVolumes { namespace, name, claims } => {
                let wanted = status::group_waits(&WaitingReason::of_group_for_volumes(claims));
                self.statuses.wants(StatusOf::group(namespace, name), wanted, now_ms);
            }
            ObjectReport::GroupWaits { namespace, name, gang, gathering } => {
                let wanted = status::group_waits(&WaitingReason::for_members(gang, *gathering));
                self.statuses.wants(StatusOf::group(namespace, name), wanted, now_ms);
            }
            ObjectReport::GroupHasItsSize { namespace, name } => {
                let of = StatusOf::group(namespace, name);
                self.statuses.wants(of, status::group_is_scheduled(), now_ms);
            }
            _ => {}
        }
    }

    /// Records for a pod an event about the pod that preempts it.
    fn preempted_for(&mut self, stopped: &Evicted, now_ms: u64) {
        let Evicted { victim, node, preemptor: Some(preemptor), reason } = stopped else { return };
        self.book.note(Note::preempted(victim.clone(), preemptor, node, *reason, now_ms));
    }

    /// Records for a pending pod that another one is not evicted for it.
    fn not_evicted(&mut self, refused: &EvictionRefused, now_ms: u64) {
        let Some(about) = refused.preemptor.clone() else { return };
        let (victim, message) = (&refused.victim, &refused.message);
        // A pending pod gets one event about a policy that refuses many.
        let names = [&*victim.namespace, &*victim.name];
        if !self.not_evicted.is_due(about.uid.to_string(), &without_names(message, names), now_ms) {
            return;
        }
        let note = match refused.is_for_all {
            true => Note::may_not_evict(about, victim, message, now_ms),
            false => Note::not_evicted(about, victim, refused.code, message, now_ms),
        };
        self.book.note(note);
    }

    /// Does as much as there is time for. `is_busy`: binds go out, or what comes before them.
    /// `room`: writes that may be on their way at once.
    pub(crate) fn go_on(
        &mut self,
        scheduler: &mut Scheduler,
        is_busy: bool,
        room: usize,
        now_ms: u64,
    ) -> Vec<AnnouncedWrite> {
        self.busy_since_ms = is_busy.then(|| self.busy_since_ms.unwrap_or(now_ms));
        if scheduler.take_recheck() {
            self.rechecks.sooner(now_ms, |job| is_unschedulable(scheduler, job));
        }
        self.explain(scheduler, is_busy, now_ms);
        self.update_queues(scheduler, is_busy, now_ms);
        let mut writes = Vec::new();
        while self.on_their_way < self.room(room, now_ms) {
            let look = |pod: &PodKey| seen(scheduler, pod);
            let status = |of: &StatusOf, wanted: &Value| compared(scheduler, of, wanted, now_ms);
            let (book, statuses) = (&mut self.book, &mut self.statuses);
            let mut next_status = || {
                let write = statuses.next(now_ms, status)?;
                Some(AnnouncedWrite::Status(Box::new(write)))
            };
            let write = match self.is_turn_of_statuses {
                true => next_status().or_else(|| book.next(now_ms, look)),
                false => book.next(now_ms, look).or_else(next_status),
            };
            let Some(write) = write else { break };
            self.is_turn_of_statuses = !self.is_turn_of_statuses;
            self.on_their_way += 1;
            writes.push(write);
        }
        writes
    }

    pub(crate) fn on_their_way(&self) -> usize {
        self.on_their_way
    }

    /// Events that wait to be written, and those given up since the last call.
    pub(crate) fn owed(&mut self) -> (usize, u64) {
        (self.book.events(), self.book.given_up())
    }

    /// Takes the outcome of a write.
    pub(crate) fn settle(&mut self, report: WriteResult, now_ms: u64) -> LogEntry {
        self.on_their_way = self.on_their_way.saturating_sub(1);
        let what = match &report.write {
            AnnouncedWrite::Event(..) => Announced::Event,
            AnnouncedWrite::Condition(_) => Announced::Condition,
            AnnouncedWrite::Status(status) if status.of.is_receipt => Announced::Receipt,
            AnnouncedWrite::Status(status) => match status.of.kind {
                Kind::Queue => Announced::QueueStatus,
                Kind::Reservation => Announced::ReservationStatus,
                _ => Announced::GroupStatus,
            },
        };
        let is_new = match &report.written {
            WriteOutcome::Refused { code, .. } => self.warned.insert((what, *code)),
            _ => false,
        };
        let written = report.written.clone();
        match &report.write {
            AnnouncedWrite::Status(status) => {
                self.statuses.outcome(&status.of, &report.written, now_ms)
            }
            _ => self.book.outcome(report, now_ms),
        }
        LogEntry::Announced { what, written, is_new }
    }

    /// When there is something to do that may be done.
    pub(crate) fn due_ms(&self, is_busy: bool, room: usize) -> Option<u64> {
        let wait_ms = if is_busy { OVERDUE_MS } else { 0 };
        let job_ms = self.rechecks.due_ms().map(|due_ms| due_ms + wait_ms);
        let overdue_ms = self.overdue_ms();
        let has_room = self.on_their_way < self.room(room, overdue_ms);
        let write_ms = self.book.due_ms().into_iter().chain(self.statuses.due_ms());
        let write_ms = write_ms.min().filter(|_| has_room).map(|due_ms| due_ms.max(overdue_ms));
        let queues_ms = self.queues_ms.map(|due_ms| due_ms + wait_ms);
        [job_ms, write_ms, queues_ms].into_iter().flatten().min()
    }

    /// Whether nothing is on its way and no event is owed.
    pub(crate) fn is_done(&self) -> bool {
        self.on_their_way == 0 && self.book.events() == 0
    }

    /// Writes that may be on their way at this time.
    fn room(&self, room: usize, now_ms: u64) -> usize {
        match self.busy_since_ms {
            None => room,
            Some(_) if now_ms < self.overdue_ms() => 0,
            Some(_) => BESIDE_BINDS.min(room),
        }
    }

    /// Until when binds hold up all writing; 0 if none go out.
    fn overdue_ms(&self) -> u64 {
        self.busy_since_ms.map_or(0, |since_ms| since_ms + OVERDUE_MS)
    }

    /// Adds up what is allocated to queues and pending in them, and looks at reservations.
    fn update_queues(&mut self, scheduler: &mut Scheduler, is_busy: bool, now_ms: u64) {
        let latest_ms = if is_busy { now_ms.saturating_sub(OVERDUE_MS) } else { now_ms };
        let world = scheduler.world();
        let has_queues = world.queues().all().next().is_some();
        if !has_queues && world.queues().reservations().all().next().is_none() {
            self.queues_ms = None;
        } else if *self.queues_ms.get_or_insert(now_ms) <= latest_ms {
            for (name, wanted) in scheduler.ask().queue_statuses() {
                self.statuses.wants(StatusOf::queue(&name), wanted, now_ms);
            }
            for (name, wanted) in scheduler.ask().reservation_statuses() {
                self.statuses.wants(StatusOf::reservation(&name), wanted, now_ms);
            }
            self.queues_ms = Some(now_ms + QUEUES_MS);
        }
    }

    /// Asks why jobs are pending. For an unschedulable one every node is checked: one of these in a
    /// round.
    fn explain(&mut self, scheduler: &mut Scheduler, is_busy: bool, now_ms: u64) {
        let latest_ms = if is_busy { now_ms.saturating_sub(OVERDUE_MS) } else { now_ms };
        for _ in 0..BATCH {
            let Some(job) = self.rechecks.pop_due(latest_ms) else { return };
            let Some(waiting) = scheduler.ask().announced(job) else { continue };
            let world = scheduler.world();
            for pod in world.pods().pending_pods(job) {
                self.book.waits(PodKey::of(pod), waiting.clone(), now_ms);
            }
            if let Some(group) = world.gangs().group_of_job(job) {
                let of = StatusOf::group(&group.meta.namespace, &group.meta.name);
                self.statuses.wants(of, status::group_waits(&waiting), now_ms);
            }
            match scheduler.pending_reason(job) {
                Some(PendingReason::Unschedulable) => return self.rechecks.again(now_ms, job),
                // The pods that make room for it leave one by one.
                Some(PendingReason::WaitingForReservation) => self.rechecks.again(now_ms, job),
                // When that checkpoint is due may change without another reason.
                Some(PendingReason::WaitingForTurn) if waits_for_checkpoint(scheduler, job) => {
                    self.rechecks.again(now_ms, job);
                }
                _ => {}
            }
        }
    }
}

/// Whether the pods to preempt for a job write a checkpoint first.
fn waits_for_checkpoint(scheduler: &Scheduler, job: JobId) -> bool {
    let engine = scheduler.engine();
    engine.is_some_and(|engine| engine.list().waits_for_checkpoint_ms(job).is_some())
}

/// An object beside what it is to say.
fn compared(scheduler: &Scheduler, of: &StatusOf, wanted: &Value, now_ms: u64) -> WatchedStatus {
    let world = scheduler.world();
    let patch = match of.kind {
        _ if of.is_receipt => {
            let object = world.preemption().remembers(of.kind, &of.namespace, &of.name);
            return object.map_or(WatchedStatus::Gone, |object| receipt_patch(object, wanted));
        }
        Kind::Queue => {
            world.queues().get(&of.name).map(|queue| queues::patch(queue, wanted, now_ms))
        }
        Kind::Reservation => {
            let object = world.queues().reservations().get(&of.name);
            object.map(|object| reservations::patch(object, wanted))
        }
        _ => world
            .gangs()
            .native_group(&of.namespace, &of.name)
            .map(|group| status::group_patch(group, wanted, now_ms)),
    };
    match patch {
        None => WatchedStatus::Gone,
        Some(None) => WatchedStatus::Says,
        Some(Some(patch)) => WatchedStatus::Differs(patch),
    }
}

/// What an object is to say, and which one of its name.
fn wanted_receipt(account: &LastingOwner, receipt: &Receipt) -> Value {
    json!({"uid": account.uid, "annotations": receipt.annotations()})
}

/// The merge patch that makes an object say what preemption cost it.
fn receipt_patch(object: &Meta, wanted: &Value) -> WatchedStatus {
    let mut all = wanted["annotations"].as_object().into_iter().flatten();
    let says = |(key, text): (&String, &Value)| object.annotations.get(key) == text.as_str();
    match all.all(says) {
        _ if wanted["uid"] != *object.uid => WatchedStatus::Gone,
        true => WatchedStatus::Says,
        false => WatchedStatus::Differs(json!({"metadata": wanted})),
    }
}

fn seen<'a>(scheduler: &'a Scheduler, pod: &PodKey) -> Option<WatchedPod<'a>> {
    let seen = scheduler.world().pods().pending_pod(&pod.namespace, &pod.name)?;
    let says = seen.unscheduled.as_ref().map(|says| (&*says.reason, &*says.message));
    let is_it = *seen.meta.uid == *pod.uid;
    is_it.then_some(WatchedPod { resource_version: &seen.meta.resource_version, says })
}
