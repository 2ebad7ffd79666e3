//! The decision cycle: every class that is awake is tried, best place first, until nothing more
//! starts.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{JobId, PendingReason, Plan};

use super::models::{self, Models};
use super::woken::{Better, Woken, may_start};
use super::{Books, Engine, dividing, overdue, reclaiming, turning};
use crate::explain::DecisionRecord;
use crate::gang::Gang;
use crate::pending::{OrderKey, Pending, Sleep};
use crate::preemption::PreemptOutcome;
use crate::reserve;
use dovetail_state::cause::Help;

/// Why a job that was tried has not started.
enum Tried {
    /// For this reason, until something of that becomes better or a time has come.
    Waits(PendingReason, Help, Option<u64>),
    /// Others are being stopped for it.
    Claimed,
    /// Something else stands differently: it is to be tried again.
    Anew,
}

impl Tried {
    fn waits(reason: PendingReason, wants: Help) -> Self {
        Self::Waits(reason, wants, None)
    }

    /// The same where its queues may hold more of some GPU models alone, or of none: they may hold
    /// less of the others by then, and a node of another model would help as well.
    fn at_model_limit(self) -> Self {
        match self {
            Self::Waits(reason, mut wants, until_ms) => {
                wants |= Help::ALL;
                Self::Waits(reason, wants, until_ms)
            }
            other => other,
        }
    }
}

impl Engine {
    /// Starts whatever can start now; the decisions go to the plan.
    pub(super) fn cycle(&mut self, most_victims: Option<u64>, plan: &mut Plan) {
        self.books.known.forget();
        let Books { placement, jobs, turns, run_times, .. } = &mut self.books;
        turning::turn(turns.as_mut(), jobs, placement);
        let raised = overdue::raise(jobs, run_times, placement);
        if let Some(usage) = &mut self.books.usage {
            usage.note_all();
        }
        let Books { quota, capacity, jobs, placement, .. } = &mut self.books;
        dividing::divide(quota, capacity, jobs, &placement.state);
        self.books.settle_claims(plan);
        self.reserve.settle_bookings(&mut self.books, raised, plan);
        self.reserve.settle(&mut self.books, raised, plan);
        let Books { jobs, placement, .. } = &mut self.books;
        let first = not_searched(placement.state.helped, &mut jobs.pending);
        self.preemption.begin_cycle(first, most_victims);
        self.books.survey.clear();
        let mut woken = Woken::default();
        self.books.jobs.pending.wake_due(self.books.placement.now_ms);
        self.wake(&mut woken);
        let mut after: Option<OrderKey> = None;
        loop {
            let next = self.books.next_job(after);
            if let Some((job, class)) = next
                && let Some(place) = self.sleeps_on((job, class), &mut woken, plan)
            {
                after = Some(place);
                continue;
            }
            let next = next.map(|next| reclaiming::in_its_stead(next, &mut self.books));
            let has_ended = self.reserve.before(&mut self.books, next.map(|(job, _)| job), plan);
            if has_ended || self.books.placement.state.helped.meets(Help::FREED) {
                // The room of a reservation that ended may be anybody's, and is offered to all
                // before one of them is tried.
                self.wake(&mut woken);
                after = None;
                continue;
            }
            let Some((job, class)) = next else { break };
            let record = &self.books.jobs.records[&job];
            let place = record.place.expect("a pending job has a place").0;
            let needs_devices = record.gang.needs_devices;
            match self.try_start(job, plan) {
                Ok(()) => {
                    self.wake(&mut woken);
                    after = None;
                    if needs_devices && self.config.ends_at_claims {
                        self.has_more = true;
                        break;
                    }
                }
                // What was given up for a claim may be more than it needs.
                Err(Tried::Anew | Tried::Claimed) => {
                    self.wake(&mut woken);
                    after = None;
                }
                Err(Tried::Waits(reason, wants, until_ms)) => {
                    let sleep = Sleep { wants, reason, until_ms };
                    self.books.jobs.pending.sleep(class, sleep);
                    let told = self.reserve.for_head(&mut self.books, job, sleep, plan);
                    self.books.jobs.say(job, told, plan);
                    woken.note_tried((job, class), (&mut self.books, &self.reserve));
                    after = Some(place);
                }
            }
        }
        if self.preemption.is_cut_off() || self.preemption.is_held_back() {
            self.books.placement.state.helped |= Help::SEARCH;
        }
    }

    /// Wakes the classes that could start after what became better since the last time.
    fn wake(&mut self, woken: &mut Woken) {
        woken.wake_before_moved(&mut self.books);
        let state = &mut self.books.placement.state;
        let helped = std::mem::take(&mut state.helped);
        let nodes = std::mem::take(&mut state.helped_nodes);
        let lent_until_ms = reserve::lent_until_ms(&self.books);
        let better = Better { helped, nodes: &nodes, lent_until_ms };
        let mut known = self.books.known.take(&self.books.quota, &self.books.kept.claims);
        for class in self.books.jobs.pending.asleep_wanting(helped) {
            let sleep = self.books.jobs.pending.asleep(class).expect("it sleeps");
            if may_start((class, sleep), &mut self.books, &mut known, &better) {
                woken.note(class, sleep);
                self.books.jobs.pending.wake(class);
            } else if sleep.on().wants != sleep.wants {
                self.books.jobs.pending.sleep(class, sleep.on());
            }
        }
        self.books.known = known;
        woken.note_helped(helped, nodes);
        for class in self.reserve.that_may_take(&mut self.books) {
            // It is woken for what is reserved for others, whatever woke it before.
            woken.forget(class);
            self.books.jobs.pending.wake(class);
        }
    }

    /// The place of the first job of a class that was woken in this cycle for room that others have
    /// taken by now: it sleeps on. `None` if it is to be tried. The first job of a queue always is:
    /// room may be reserved for it, or be free to it that is reserved for others.
    fn sleeps_on(
        &mut self,
        (job, class): (JobId, usize),
        woken: &mut Woken,
        plan: &mut Plan,
    ) -> Option<OrderKey> {
        let mut known = self.books.known.take(&self.books.quota, &self.books.kept.claims);
        let asleep = woken.is_in_vain((job, class), (&mut self.books, &self.reserve), &mut known);
        self.books.known = known;
        let is_due =
            woken.note_asked(asleep.is_some(), self.books.jobs.pending.awake.classes().len());
        let sleep = asleep?;
        let (place, _) = self.books.jobs.records[&job].place?;
        self.books.jobs.pending.sleep(class, sleep);
        woken.forget(class);
        self.books.jobs.say(job, sleep.told(), plan);
        if is_due && self.books.jobs.pending.looks_at_queues() {
            let mut known = self.books.known.take(&self.books.quota, &self.books.kept.claims);
            woken.let_sleep((&mut self.books, &self.reserve), &mut known);
            self.books.known = known;
        }
        Some(place)
    }

    /// Starts a job, or says why not and what would help.
    fn try_start(&mut self, job: JobId, plan: &mut Plan) -> Result<(), Tried> {
        let books = &mut self.books;
        let gang = Arc::clone(&books.jobs.records[&job].gang);
        let Some(growth_limit) = books.bounded().growth_limit(job, &gang) else {
            return self.make_room(job, &gang, PendingReason::WaitingForQuota, plan);
        };
        if dividing::is_beyond_firm_quota(job, books) {
            return Err(Tried::waits(PendingReason::WaitingForQuota, Help::ALL));
        }
        let models = models::within_limits(&gang, job, books);
        let is_limited = !matches!(models, Models::AsAsked);
        let gang = match models {
            Models::AsAsked => gang,
            Models::Fewer(fewer) => Arc::new(fewer),
            Models::Nothing => {
                let made = self.make_room(job, &gang, PendingReason::WaitingForQuota, plan);
                return made.map_err(Tried::at_model_limit);
            }
        };
        let before = self.config.record_decisions.then(|| {
            let own = books.room_held_for(job);
            books.placement.as_if_free(own, |placement| placement.record_alternatives(&gang))
        });
        let awaited = reserve::awaited_jobs(books, job);
        let Books { placement, jobs, kept, survey, .. } = &mut *books;
        let record = &jobs.records[&job];
        let has_claim = kept.claims.get(job).is_some();
        let own = (placement, survey);
        let mut in_own = kept.place_in_own(own, record, &gang, growth_limit.clone());
        let reserved = &mut self.reserve;
        let in_claimed = in_own.as_mut().filter(|_| has_claim);
        let is_lent = match in_claimed {
            Some(placed) => reserved.note_start(books, job, placed),
            None => in_own.is_none(),
        };
        let placed =
            in_own.or_else(|| reserved.place_in_lent(books, job, &gang, growth_limit, plan));
        let Some(placed) = placed else {
            if !is_limited {
                return self.make_room(job, &gang, PendingReason::Unschedulable, plan);
            }
            let made = self.make_room(job, &gang, PendingReason::WaitingForQuota, plan);
            return made.map_err(Tried::at_model_limit);
        };
        if let Some(alternatives) = before {
            let record = DecisionRecord::of(&books.placement, job, &placed, alternatives);
            self.decisions.push(record);
        }
        books.start(job, placed, plan);
        reserve::note_no_longer_awaited(&awaited, books);
        self.reserve.forget_waiting(job);
        if is_lent || !books.kept.bookings.is_empty() {
            self.reserve.keep_after_start(books);
        }
        Ok(())
    }

    /// What follows for a job that does not fit, or (that is the reason then) may not start: it
    /// starts in room that was kept for others, or this is why not.
    fn make_room(
        &mut self,
        job: JobId,
        gang: &Gang,
        reason: PendingReason,
        plan: &mut Plan,
    ) -> Result<(), Tried> {
        match self.books.kept.claims.get(job) {
            Some(claim) if claim.awaited.is_empty() => {
                self.books.give_back(job, plan);
                self.reserve.take_back(&mut self.books, &[job]);
                return Err(Tried::Anew);
            }
            Some(_) => return Err(Tried::waits(PendingReason::WaitingForReservation, Help::FREED)),
            None => {}
        }
        let had_room = !self.books.room_held_for(job).is_empty();
        Err(match self.preemption.preempt_for((&mut self.books, &mut self.reserve), job, plan) {
            // That room is for others now.
            PreemptOutcome::Claimed if had_room => Tried::Anew,
            PreemptOutcome::Claimed => Tried::Claimed,
            PreemptOutcome::Freed => Tried::Anew,
            PreemptOutcome::RoomFreed(rooms) => {
                self.try_start(job, plan)?;
                let Books { placement, kept, survey, .. } = &mut self.books;
                kept.hold_needless((&mut placement.state, survey), rooms, plan);
                return Ok(());
            }
            // Anything that becomes better may be cheaper than that.
            PreemptOutcome::Later(until_ms) => Tried::Waits(reason, Help::ALL, Some(until_ms)),
            PreemptOutcome::Postponed => {
                let mut wants = Help::ALL;
                wants |= Help::SEARCH;
                Tried::waits(reason, wants)
            }
            PreemptOutcome::Nothing if reason == PendingReason::WaitingForQuota => {
                let mut wants = Help::QUOTA;
                if self.books.might_preempt(&self.books.jobs.records[&job]) {
                    wants |= self.wanted_by(job, gang);
                }
                Tried::waits(reason, wants)
            }
            PreemptOutcome::Nothing if self.books.kept.reserved.get(job).is_some() => {
                Tried::waits(PendingReason::WaitingForReservation, Help::ALL)
            }
            PreemptOutcome::Nothing => Tried::waits(reason, self.wanted_by(job, gang)),
        })
    }

    /// What could help a waiting job that does not fit.
    fn wanted_by(&mut self, job: JobId, gang: &Gang) -> Help {
        let own = self.books.room_held_for(job);
        self.books.placement.as_if_free(own, |placement| placement.wanted_by(gang))
    }
}

/// Classes that the last cycle did not search for.
fn not_searched(helped: Help, pending: &mut Pending) -> BTreeSet<usize> {
    match helped.meets(Help::SEARCH) {
        true => pending.asleep_wanting(Help::SEARCH).into_iter().collect(),
        false => BTreeSet::new(),
    }
}
