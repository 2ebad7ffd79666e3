//! One leadership: reads the world from scratch, then decides until it is over.

use std::sync::{MutexGuard, PoisonError};

use dovetail_cluster::world::{Unwinding, World};

use super::pending_log::PendingLog;
use super::{Credits, Input, LogEntry, Settings, StepOutput};
use crate::announce::{Announcing, EventSource};
use crate::answer::lacked_right;
use crate::ask::{Question, Reply, ask};
use crate::bind::{BindOutcome, BindReport, Cause};
use crate::learned::{Keeping, LearnedNews};
use crate::order::{EvictionCause, EvictionDecision, PodOrder};
use crate::record::EngineEntry;
use crate::repeats::Repeats;
use crate::request::Now;
use crate::schedule::{Comparison, Modes, News, Scheduler, go_on_with, learned};
use crate::writes::{Ended, Writes};

/// The same refusal of a bind is logged again after so long.
const REFUSED_AGAIN_MS: u64 = 300_000;

pub(super) struct LeaderState {
    settings: Settings,
    scheduler: Scheduler,
    writes: Writes,
    keeping: Keeping,
    /// `None` in a dry run.
    announcing: Option<Announcing>,
    /// Only in a dry run.
    pending_log: Option<PendingLog>,
    /// Refusals of binds that were logged lately.
    refusals: Repeats<&'static str>,
    /// Nothing is begun any more but what is owed to people.
    is_to_stop: bool,
}

impl LeaderState {
    pub(super) fn new(settings: &Settings, epoch: u64) -> Self {
        let world = World::new(settings.world.clone());
        let modes = Modes {
            is_dry_run: settings.dry_run,
            only_asks: settings.only_asks,
            volumes: settings.volumes,
            is_recorded: settings.recording.is_some(),
        };
        let scheduler = Scheduler::new(world, settings.engine.clone(), epoch).with(modes);
        let controller = settings.world.scheduler.clone();
        let named = Some(&settings.instance).filter(|name| !name.is_empty());
        let source = EventSource { instance: named.unwrap_or(&controller).clone(), controller };
        Self {
            settings: settings.clone(),
            scheduler,
            writes: Writes::new(source),
            keeping: Keeping::new(settings.learned.clone().filter(|_| !settings.dry_run)),
            announcing: (!settings.dry_run).then(Announcing::default),
            pending_log: settings.dry_run.then(PendingLog::default),
            refusals: Repeats::every(REFUSED_AGAIN_MS),
            is_to_stop: false,
        }
    }

    /// What engines were told and answered since the last call.
    pub(super) fn take_engine_entries(&mut self) -> Vec<EngineEntry> {
        self.scheduler.take_engine_entries()
    }

    /// Takes what happened; nothing is decided.
    pub(super) fn take(&mut self, input: Input, now: Now, output: &mut StepOutput) {
        match input {
            Input::Change(change, _) => {
                if let Some(mut comparison) = comparison(&self.settings) {
                    comparison.see(&change, self.scheduler.world(), now.wall_ms);
                }
                self.scheduler.change(change, now.wall_ms);
            }
            Input::Answered(answer) => self.writes.answered(&answer, now),
            Input::Stop => {
                self.is_to_stop = true;
                self.writes.stop();
            }
            Input::Won { .. } | Input::End | Input::ChooseBy { .. } | Input::Tick => {}
        }
        self.settle(now.wall_ms, output);
    }

    /// Chooses nodes by another policy.
    pub(super) fn choose_by(&mut self, policy: String, now: Now) {
        self.scheduler.choose_by(policy, now.wall_ms);
    }

    /// Takes what became of writes; whether any has ended.
    fn settle(&mut self, now_ms: u64, output: &mut StepOutput) -> bool {
        let all = self.writes.ended();
        let have_ended = !all.is_empty();
        for ended in all {
            match ended {
                Ended::Bind(report) => self.scheduler.outcome(report, now_ms),
                Ended::Order(report) => {
                    self.scheduler.order_ended(&report.order, report.end, now_ms);
                }
                Ended::Announcement(report) => {
                    if let Some(announcing) = &mut self.announcing {
                        output.log.push(announcing.settle(report, now_ms));
                    }
                }
                Ended::LearnedRead(answered) => {
                    let (learned, news) = self.keeping.was_read(answered.as_ref());
                    if self.keeping.is_read() {
                        go_on_with(learned, &mut self.scheduler);
                    }
                    self.tell_learned(news, output);
                }
                Ended::LearnedWritten(answered) => {
                    let news = self.keeping.was_written(answered.as_ref());
                    self.tell_learned(news, output);
                }
            }
        }
        output.log.extend(self.writes.log().into_iter().map(LogEntry::Step));
        have_ended
    }

    /// Decides, and says what is to be done.
    pub(super) fn go_on(&mut self, credits: Credits, now: Now, output: &mut StepOutput) {
        if let Some(read) = self.keeping.next_read().filter(|_| !self.is_to_stop) {
            self.writes.read_learned(read);
        }
        if !self.scheduler.world().is_ready() || !self.keeping.is_read() {
            output.is_over = self.is_to_stop;
            output.requests = self.writes.requests(Credits::default(), now);
            return;
        }
        output.decides = !self.is_to_stop;
        if self.settings.only_asks {
            return self.decide_once(now.wall_ms);
        }
        if output.decides {
            self.scheduler.wake(now.wall_ms);
            self.scheduler.decide(now.wall_ms);
            output.searches = self.scheduler.searches();
            output.gpu_time = self.scheduler.gpu_meter.take();
            self.send(credits.binds, now.wall_ms);
            self.give_up(now, output);
            self.order(now, output);
        }
        self.tell(now.wall_ms, output);
        let room = credits.announcements.saturating_sub(self.keep(credits, now, output));
        let room = self.announcing.as_ref().map_or(0, |all| all.on_their_way() + room);
        self.announce(room, now, output);
        output.requests = self.writes.requests(credits, now);
        self.show(room, now, output);
    }

    /// Has what is learned written; how many requests that takes.
    fn keep(&mut self, credits: Credits, now: Now, output: &mut StepOutput) -> usize {
        if credits.announcements == 0 {
            return 0;
        }
        let learned = || learned(&self.scheduler);
        let (write, news) = self.keeping.next_write(learned, self.is_to_stop, now.wall_ms);
        self.tell_learned(news, output);
        write.map_or(0, |write| {
            self.writes.write_learned(write);
            1
        })
    }

    fn tell_learned(&self, news: Option<LearnedNews>, output: &mut StepOutput) {
        let news = self.settings.learned.clone().zip(news);
        output.log.extend(news.map(|(at, news)| LogEntry::Learned { at, news }));
    }

    /// Decides for questions.
    fn decide_once(&mut self, now_ms: u64) {
        if self.scheduler.engine().is_none() {
            self.scheduler.note_queue_use(now_ms);
            self.scheduler.decide(now_ms);
        }
    }

    pub(super) fn ask(&mut self, question: &Question, now_ms: u64) -> Option<Reply> {
        self.scheduler.engine()?;
        Some(ask(question, &self.settings.world.scheduler, now_ms, &mut self.scheduler))
    }

    fn show(&self, announcements: usize, now: Now, output: &mut StepOutput) {
        output.counts = self.scheduler.counts();
        output.is_idle = self.writes.is_idle();
        output.is_over = self.is_to_stop
            && output.is_idle
            && self.keeping.is_idle()
            && self.announcing.as_ref().is_none_or(Announcing::is_done);
        let is_busy = self.is_busy(now);
        let announcing_ms =
            self.announcing.as_ref().and_then(|all| all.due_ms(is_busy, announcements));
        let would_wait_ms = self.pending_log.as_ref().and_then(PendingLog::due_ms);
        let decided_ms = self.scheduler.due_ms().filter(|_| output.decides);
        // What only lacks credit waits for an answer.
        let kept_ms = self.keeping.due_ms().map(|due_ms| due_ms.max(now.wall_ms + 1_000));
        let due = decided_ms.into_iter().chain(announcing_ms).chain(would_wait_ms).chain(kept_ms);
        let waits = due.map(|due_ms| due_ms.saturating_sub(now.wall_ms));
        let own_ms = self.writes.due_ms(now).map(|due_ms| due_ms.saturating_sub(now.own_ms));
        output.wait_ms = waits.chain(own_ms).min();
    }

    /// Whether binds go out, or what comes before binds: claims are written, pods are evicted.
    fn is_busy(&self, now: Now) -> bool {
        self.writes.binds_on_their_way() > 0
            || self.writes.are_orders_under_way(now)
            || self.scheduler.counts().to_send > 0
    }

    /// Sends as much as may be sent.
    fn send(&mut self, credit: usize, now_ms: u64) {
        let mut room = credit.min(self.writes.room_for_binds());
        while self.settings.dry_run || room > 0 {
            let Some(bind) = self.scheduler.next_bind(now_ms) else { return };
            match self.settings.dry_run {
                true => self.scheduler.would_bind(&bind),
                false => {
                    self.writes.bind(bind);
                    room -= 1;
                }
            }
        }
    }

    /// Has the pods of gangs deleted that stayed short for too long.
    fn give_up(&mut self, now: Now, output: &mut StepOutput) {
        for Unwinding { gang, pods, min } in self.scheduler.unwinding() {
            let placed = pods.len();
            output.log.push(LogEntry::GivenUp { gang: gang.to_string(), placed, min });
            for pod in pods.into_iter().filter(|_| !self.settings.dry_run) {
                let (why, decision) = (EvictionCause::GangGivenUp, EvictionDecision::alone());
                self.writes.order(PodOrder::Evict { pod, why, decision }, now);
            }
        }
    }

    /// Has pods evicted for others, freed nodes named, and nodes chosen for claims.
    fn order(&mut self, now: Now, output: &mut StepOutput) {
        if self.settings.dry_run {
            return;
        }
        loop {
            for decision in self.scheduler.called_off() {
                self.writes.call_off(decision, now);
            }
            while let Some(order) = self.scheduler.next_order() {
                self.writes.order(order, now);
            }
            // What ends without a request may lead to other orders.
            if !self.settle(now.wall_ms, output) {
                return;
            }
        }
    }

    /// Whether a bind is refused as others were, or as before: it is tried again with pauses.
    fn is_repeat(&mut self, news: &News, now_ms: u64) -> bool {
        let News::NotBound(BindReport { outcome, .. }) = news else { return false };
        let BindOutcome::NotBound(Cause::Refused { code, message }) = outcome else { return false };
        let cause = lacked_right(*code, message).unwrap_or(message);
        !self.refusals.is_due("bind", cause, now_ms)
    }

    fn tell(&mut self, now_ms: u64, output: &mut StepOutput) {
        for news in self.scheduler.news() {
            let is_known = self.is_repeat(&news, now_ms);
            if let Some(announcing) = &mut self.announcing {
                announcing.take(&news, now_ms);
            }
            if let Some(pending_log) = &mut self.pending_log {
                pending_log.take(&news, now_ms);
            }
            if let (News::WouldBind { bind, .. }, Some(mut comparison)) =
                (&news, comparison(&self.settings))
            {
                comparison.decided(bind, self.scheduler.world(), now_ms);
            }
            output.log.push(LogEntry::News { news, is_known });
        }
    }

    /// Announces as much as there is time for. `room`: announcements on their way at once.
    fn announce(&mut self, room: usize, now: Now, output: &mut StepOutput) {
        if let Some(pending_log) = &mut self.pending_log {
            pending_log.tell(&mut self.scheduler, now.wall_ms, &mut output.log);
        }
        let is_busy = self.is_busy(now);
        let Some(announcing) = &mut self.announcing else { return };
        for write in announcing.go_on(&mut self.scheduler, is_busy, room, now.wall_ms) {
            self.writes.announce(write);
        }
        output.owed = announcing.owed();
    }
}

fn comparison(settings: &Settings) -> Option<MutexGuard<'_, Comparison>> {
    let comparison = settings.comparison.as_ref()?;
    Some(comparison.lock().unwrap_or_else(PoisonError::into_inner))
}
