//! One leadership: reads the world anew, then decides until it is over.

use std::sync::{MutexGuard, PoisonError};

use dovetail_cluster::world::{Unwinding, World};

use super::would_wait::WouldWait;
use super::{Credits, Input, Output, Settings, Told};
use crate::announce::Announcing;
use crate::answer::lacked_right;
use crate::bind::{Cause, Order, Outcome, Report, Stop, StopDecision};
use crate::repeats::Repeats;
use crate::schedule::{Comparison, News, Scheduler};

/// The same refusal of a bind is told again after so long.
const REFUSED_AGAIN_MS: u64 = 300_000;

pub(super) struct Term {
    settings: Settings,
    scheduler: Scheduler,
    /// `None` in a dry run.
    announcing: Option<Announcing>,
    /// Only in a dry run.
    would_wait: Option<WouldWait>,
    /// Refusals of binds that were told of late.
    refusals: Repeats<&'static str>,
    /// Nothing is begun any more but what is owed to people.
    is_to_stop: bool,
}

impl Term {
    pub(super) fn new(settings: &Settings, epoch: u64) -> Self {
        let world = World::new(settings.world.clone());
        let mut scheduler = Scheduler::new(world, settings.engine.clone(), epoch);
        scheduler.wait_for_volumes(settings.volumes.wait_ms);
        if settings.dry_run {
            scheduler.only_pretend();
        }
        if let Some(recording) = &settings.recording {
            scheduler.record(recording.clone());
        }
        Self {
            settings: settings.clone(),
            scheduler,
            announcing: (!settings.dry_run).then(Announcing::default),
            would_wait: settings.dry_run.then(WouldWait::default),
            refusals: Repeats::every(REFUSED_AGAIN_MS),
            is_to_stop: false,
        }
    }

    /// Decides no more.
    pub(super) fn end(&mut self) {
        self.scheduler.end();
    }

    /// Takes what happened; nothing is decided.
    pub(super) fn take(&mut self, input: Input, now_ms: u64, output: &mut Output) {
        match input {
            Input::Change(change) => {
                if let Some(mut comparison) = comparison(&self.settings) {
                    comparison.see(&change, self.scheduler.world(), now_ms);
                }
                self.scheduler.change(change, now_ms);
            }
            Input::Bound(report) => self.scheduler.outcome(report, now_ms),
            Input::Ordered(report) => {
                self.scheduler.order_ended(&report.order, report.end, now_ms);
            }
            Input::Announced(report) => {
                if let Some(announcing) = &mut self.announcing {
                    output.told.push(announcing.settle(report, now_ms));
                }
            }
            Input::Stop => self.is_to_stop = true,
            Input::Won { .. } | Input::End | Input::Tick => {}
        }
    }

    /// Decides, and says what is to be done.
    pub(super) fn go_on(&mut self, credits: Credits, now_ms: u64, output: &mut Output) {
        if !self.scheduler.is_ready() {
            output.is_over = self.is_to_stop;
            return;
        }
        output.decides = !self.is_to_stop;
        if output.decides {
            self.scheduler.wake(now_ms);
            self.scheduler.decide(now_ms);
            output.searches = self.scheduler.searches();
            self.send(credits.binds, now_ms, output);
            self.give_up(credits.orders, output);
            self.order(credits, output);
        }
        self.tell(now_ms, output);
        self.announce(credits, now_ms, output);
        self.show(credits, output);
    }

    fn show(&self, credits: Credits, output: &mut Output) {
        output.counts = self.scheduler.counts();
        let recording = self.settings.recording.as_ref();
        output.is_recording_broken = recording.is_some_and(|to| to.get().is_broken());
        output.is_over =
            self.is_to_stop && self.announcing.as_ref().is_none_or(Announcing::is_done);
        let is_busy = is_busy(&self.scheduler, credits, output);
        let announcing_ms =
            self.announcing.as_ref().and_then(|all| all.due_ms(is_busy, credits.announcements));
        let would_wait_ms = self.would_wait.as_ref().and_then(WouldWait::due_ms);
        let decided_ms = self.scheduler.due_ms().filter(|_| output.decides);
        let due = decided_ms.into_iter().chain(announcing_ms).chain(would_wait_ms);
        output.due_ms = due.min();
    }

    /// Sends as much as may be sent.
    fn send(&mut self, room: usize, now_ms: u64, output: &mut Output) {
        while self.settings.dry_run || output.binds.len() < room {
            let Some(bind) = self.scheduler.next_bind(now_ms) else { return };
            match self.settings.dry_run {
                true => self.scheduler.keep(&bind),
                false => output.binds.push(bind),
            }
        }
    }

    /// Has the pods of gangs deleted that stayed short for too long.
    fn give_up(&mut self, room: usize, output: &mut Output) {
        for Unwinding { gang, pods, min } in self.scheduler.unwinding() {
            let placed = pods.len();
            output.told.push(Told::GivenUp { gang: gang.to_string(), placed, min });
            if self.settings.dry_run {
                continue;
            }
            let stop =
                |pod| Order::Stop { pod, why: Stop::GangGivenUp, decision: StopDecision::alone() };
            // What finds no room is ordered again.
            let room = room.saturating_sub(output.orders.len());
            output.orders.extend(pods.into_iter().take(room).map(stop));
        }
    }

    /// Has pods stopped for others, nodes named that are freed, and nodes chosen for claims.
    fn order(&mut self, credits: Credits, output: &mut Output) {
        if self.settings.dry_run {
            return;
        }
        while let Some(order) = self.scheduler.next_order() {
            let (orders, room) = match order {
                Order::SelectNode { .. } => (&mut output.claims, credits.claims),
                _ => (&mut output.orders, credits.orders),
            };
            if orders.len() >= room {
                return self.scheduler.put_back_order(order);
            }
            orders.push(order);
        }
    }

    /// Whether a bind is refused as others were, or as before: it is tried again with pauses.
    fn is_told_of_late(&mut self, news: &News, now_ms: u64) -> bool {
        let News::NotBound(Report { outcome, .. }) = news else { return false };
        let Outcome::NotBound(Cause::Refused { code, message }) = outcome else { return false };
        let cause = lacked_right(*code, message).unwrap_or(message);
        !self.refusals.is_due("bind", cause, now_ms)
    }

    fn tell(&mut self, now_ms: u64, output: &mut Output) {
        for news in self.scheduler.news() {
            let is_known = self.is_told_of_late(&news, now_ms);
            if let Some(announcing) = &mut self.announcing {
                announcing.hear(&news, now_ms);
            }
            if let Some(would_wait) = &mut self.would_wait {
                would_wait.hear(&news, now_ms);
            }
            if let (News::WouldBind { bind, .. }, Some(mut comparison)) =
                (&news, comparison(&self.settings))
            {
                comparison.decided(bind, self.scheduler.world(), now_ms);
            }
            output.told.push(Told::News { news, is_known });
        }
    }

    /// Announces as much as there is time for.
    fn announce(&mut self, credits: Credits, now_ms: u64, output: &mut Output) {
        if let Some(would_wait) = &mut self.would_wait {
            would_wait.tell(&mut self.scheduler, now_ms, &mut output.told);
        }
        let is_busy = is_busy(&self.scheduler, credits, output);
        let Some(announcing) = &mut self.announcing else { return };
        let room = credits.announcements;
        output.announcements = announcing.go_on(&mut self.scheduler, is_busy, room, now_ms);
        output.owed = announcing.owed();
    }
}

/// Whether binds go out.
fn is_busy(scheduler: &Scheduler, credits: Credits, output: &Output) -> bool {
    credits.binds_on_their_way > 0 || !output.binds.is_empty() || scheduler.counts().to_send > 0
}

fn comparison(settings: &Settings) -> Option<MutexGuard<'_, Comparison>> {
    let comparison = settings.comparison.as_ref()?;
    Some(comparison.lock().unwrap_or_else(PoisonError::into_inner))
}
