//! Which jobs get a reservation, and when it is searched for again.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{JobId, NodeName, Owner, PendingReason, Plan, PreemptionReservation};

use super::Reservations;
use super::awaited::{awaited_jobs, end_reservation, note_no_longer_awaited};
use super::known_heads::Versions;
use super::search::{FoundStart, Search};
use super::share::beyond_share;
use crate::engine::Books;
use crate::pending::Sleep;
use crate::preemption::{FIRST_OF_RESERVED, News};
use dovetail_state::cause::Help;

/// Classes of a queue that are looked at for its first job.
const MAX_CLASSES: usize = 64;

impl Reservations {
    /// At the start of a cycle: what is reserved follows what has happened. `raised` says that
    /// expected ends were.
    pub(crate) fn settle(&mut self, books: &mut Books, raised: bool, plan: &mut Plan) {
        if !self.is_on() {
            books.kept.news = News::default();
            return;
        }
        let freed_until_ms = self.follow(&mut books.kept);
        self.known_heads.forget();
        let lends = |lender| books.kept.reserved.get(lender).is_some();
        self.lent.retain(lends, |job| is_in_its_room(books, job));
        self.set_aside.clear();
        let fewer_reserved = self.look_again(books);
        self.keeps_turn = self.keeps_turn.filter(|job| books.kept.reserved.get(*job).is_some());
        self.operations_left = self.config.max_operations;
        let helped = books.placement.state.helped;
        if helped.meets(Help::NODES) {
            self.hopeless.clear();
        }
        for job in reserved_jobs(books) {
            let until_ms = books.kept.reserved.get(job).map_or(0, |claim| claim.until_ms);
            let is_stale = raised && counts_on_raised(books, job)
                || until_ms <= books.placement.now_ms
                || helped.meets(Help::NODES) && !has_its_nodes(books, job);
            if is_stale {
                let is_due = until_ms <= books.placement.now_ms;
                if !is_due || !fits_now(job, books, &mut self.operations_left) {
                    self.search_again(books, job, u64::MAX, plan);
                }
            } else if fewer_reserved
                || freed_until_ms >= until_ms
                || helped.meets(Help::NODES) && helped != Help::ALL
            {
                // Nothing else can let it start earlier than at this time.
                self.search_again(books, job, until_ms, plan);
            }
        }
        if helped != Help::NONE || raised {
            self.keep_all(books);
        }
    }

    /// Before a job is tried: whoever is first in a queue, goes before it and sleeps gets a
    /// reservation. Whether one that is no longer first has lost its own.
    pub(crate) fn before(
        &mut self,
        books: &mut Books,
        tried: Option<JobId>,
        plan: &mut Plan,
    ) -> bool {
        if !self.is_on() || !books.kept.news.is_unsettled {
            return false;
        }
        let fewer_reserved = self.look_again(books);
        let heads = self.heads(books);
        let first = heads.first().copied();
        let mut has_ended = false;
        for job in reserved_jobs(books) {
            if !heads.contains(&job) {
                self.end(books, job, plan);
                has_ended = true;
            } else if fewer_reserved {
                // Room that is reserved for others counts as taken for ever: only when their jobs
                // run is it known when it is free again.
                let until_ms = books.kept.reserved.get(job).map_or(0, |claim| claim.until_ms);
                has_ended |= self.search_again(books, job, until_ms, plan);
            }
        }
        let mut all_settled = true;
        let turn = tried.and_then(|tried| books.turn_of(tried));
        for job in heads.iter().copied() {
            let Some((_, class)) = books.jobs.records[&job].place else { continue };
            if books.kept.reserved.get(job).is_some() {
                continue;
            }
            let goes_first = turn.is_none() || books.turn_of(job) < turn;
            match books.jobs.pending.asleep(class) {
                Some(sleep) if goes_first => {
                    self.for_head(books, job, sleep, plan);
                    all_settled &= books.kept.reserved.get(job).is_some();
                }
                _ => all_settled = false,
            }
        }
        self.give_turn(books, first);
        books.kept.news.is_unsettled = !all_settled;
        has_ended
    }

    /// After a reservation was made or ended: the first of all jobs keeps its turn if it has one,
    /// unless another job does. At other times nothing is given, so that it does not matter when
    /// cycles are run.
    fn give_turn(&mut self, books: &Books, first: Option<JobId>) {
        let has_reserved = |job: &JobId| books.kept.reserved.get(*job).is_some();
        let is_open = std::mem::take(&mut self.is_turn_open);
        if is_open && !self.keeps_turn.as_ref().is_some_and(has_reserved) {
            self.known_heads.forget();
            self.keeps_turn = first.filter(has_reserved);
        }
    }

    /// Reserves for a job that did not start and sleeps for this reason, if it is first in its
    /// queue; why it is told that it waits then.
    pub(crate) fn for_head(
        &mut self,
        books: &mut Books,
        job: JobId,
        sleep: Sleep,
        plan: &mut Plan,
    ) -> PendingReason {
        let is_other = match sleep.reason {
            PendingReason::WaitingForQuota => self.set_aside.insert(job),
            _ => !self.hopeless.contains_key(&job) && self.set_aside.remove(&job),
        };
        if is_other {
            self.known_heads.forget();
        }
        let may = self.is_on()
            && sleep.reason == PendingReason::Unschedulable
            && books.kept.claims.get(job).is_none();
        if !may || books.kept.reserved.get(job).is_some() {
            return sleep.told();
        }
        let of_queue = self.first_of(books, &books.jobs.records[&job].job.queue);
        if of_queue != Some(job) || !self.heads(books).contains(&job) {
            return sleep.told();
        }
        let yielding = self.yield_to(books, job);
        let search = Search::of(books, job, &yielding, &mut self.operations_left);
        match search.earliest(u64::MAX) {
            Some(found) => {
                self.reserve_instead(books, job, (&yielding, found), plan);
                (self.is_turn_open, books.kept.news.is_unsettled) = (true, true);
                PendingReason::WaitingForReservation
            }
            None => {
                self.known_heads.forget();
                self.hopeless.insert(job, books.placement.state.holdings.without_end());
                self.set_aside.insert(job);
                sleep.told()
            }
        }
    }

    /// Whoever had no hope may have some where other allocations have no known end, or where a
    /// reservation ended: its job may run by now, and have a known end. Not so who is set aside:
    /// the one after it in its queue may have a reservation by now for which others ended, and
    /// would lose it again, for as long as searches may go on. Returns whether a reservation ended.
    fn look_again(&mut self, books: &mut Books) -> bool {
        let fewer_reserved = std::mem::take(&mut books.kept.news.fewer_reserved);
        let hopeless = self.hopeless.len();
        if fewer_reserved {
            self.hopeless.retain(|job, _| self.set_aside.contains(job));
            self.is_turn_open = true;
        }
        if !self.hopeless.is_empty() {
            let open = books.placement.state.holdings.without_end();
            self.hopeless.retain(|_, known| *known == open);
        }
        if self.hopeless.len() != hopeless {
            self.known_heads.forget();
        }
        fewer_reserved
    }

    /// The first job of each queue that may have a reservation, in their order, but before all the
    /// one that keeps its turn. Only these are ranked.
    fn heads(&mut self, books: &mut Books) -> Arc<[JobId]> {
        let versions = Versions::of(books);
        if let Some(heads) = self.known_heads.of(versions) {
            debug_assert_eq!(*heads, *ranked_heads(self, books), "what they depend on has changed");
            return heads;
        }
        let heads: Arc<[JobId]> = ranked_heads(self, books).into();
        self.known_heads.keep(versions, &heads);
        heads
    }

    /// The first job of a queue that may have a reservation.
    pub(crate) fn first_of(&self, books: &Books, queue: &str) -> Option<JobId> {
        let may = |(job, class): &(JobId, usize)| {
            let asleep = books.jobs.pending.asleep(*class);
            asleep.is_none_or(|sleep| sleep.reason != PendingReason::WaitingForQuota)
                && books.kept.claims.get(*job).is_none()
                && !self.hopeless.contains_key(job)
                && !self.set_aside.contains(job)
        };
        let first = books.jobs.pending.heads_in(queue).take(MAX_CLASSES).find(may);
        first.map(|(job, _)| job)
    }

    /// Searches for a time before `before_ms`. Without one a reservation that is good stays as it
    /// is, and one that is not ends. Returns whether it did not stay.
    fn search_again(
        &mut self,
        books: &mut Books,
        job: JobId,
        before_ms: u64,
        plan: &mut Plan,
    ) -> bool {
        let before = books.kept.reserved.get(job).map(|claim| claim.until_ms);
        let yielding = self.yield_to(books, job);
        let search = Search::of(books, job, &yielding, &mut self.operations_left);
        let found = search.earliest(before_ms);
        let is_other = found.is_some() || before_ms == u64::MAX;
        match found {
            Some(found) => {
                if before.is_some_and(|before_ms| before_ms < found.start_ms) {
                    books.placement.state.helped |= Help::LENT;
                }
                self.reserve_instead(books, job, (&yielding, found), plan);
            }
            None if before_ms == u64::MAX => self.end(books, job, plan),
            None => {}
        }
        is_other
    }

    /// Reserves what was found for a job in the stead of what was reserved for it, and of what was
    /// there for those that yield it; what these need then is searched for again, in the order of
    /// jobs.
    fn reserve_instead(
        &mut self,
        books: &mut Books,
        job: JobId,
        (yielding, found): (&BTreeSet<JobId>, FoundStart),
        plan: &mut Plan,
    ) {
        let ending = that_yield(books, yielding, &found);
        // On whom the new one counts as well is known when it is there.
        let mut awaited = awaited_jobs(books, job);
        for other in ending {
            awaited.append(&mut awaited_jobs(books, other));
            books.kept.release(&mut books.placement.state, &mut books.survey, other);
            books.change_class(other, plan);
        }
        books.kept.release(&mut books.placement.state, &mut books.survey, job);
        self.reserve(books, job, found, plan);
        note_no_longer_awaited(&awaited, books);
    }

    /// Ends the reservation of a job, which waits on.
    pub(super) fn end(&self, books: &mut Books, job: JobId, plan: &mut Plan) {
        end_reservation(job, books);
        books.change_class(job, plan);
    }

    fn reserve(&mut self, books: &mut Books, job: JobId, found: FoundStart, plan: &mut Plan) {
        let FoundStart { start_ms: until_ms, places, mut awaited } = found;
        let mut seen = BTreeSet::new();
        awaited.retain(|owner| match owner {
            Owner::Pod(pod) => seen.insert(*pod),
            _ => true,
        });
        let reservation = books.kept.reserved.unused_from(FIRST_OF_RESERVED);
        let is_reclaimed = false;
        let claim =
            PreemptionReservation { job, reservation, places, awaited, until_ms, is_reclaimed };
        books.kept.reserved.insert(claim);
        for other in beyond_share(books, (&self.lent, self.config.lent_percent), job) {
            self.lent.end_between(job, other);
        }
        self.keep_all(books);
        books.change_class(job, plan);
    }

    /// Holds for each reservation what it needs and is free by now.
    pub(super) fn keep_all(&self, books: &mut Books) {
        let Books { kept, placement, jobs, survey, .. } = books;
        if kept.reserved.is_empty() && kept.bookings.is_empty() {
            return;
        }
        survey.clear();
        kept.keep_reserved(&mut placement.state, jobs, &self.lent);
        kept.keep_bookings(&mut placement.state, jobs);
    }
}

/// The first job of each queue that may have a reservation, in their order, but before all the one
/// that keeps its turn.
fn ranked_heads(all: &Reservations, books: &mut Books) -> Vec<JobId> {
    let queues = books.jobs.pending.queues();
    let mut heads: Vec<JobId> = queues.filter_map(|queue| all.first_of(books, queue)).collect();
    heads.sort_by_cached_key(|job| (all.keeps_turn != Some(*job), books.turn_of(*job)));
    heads.truncate(all.config.heads as usize);
    heads
}

/// Whether what a job needs is there, though the time of its reservation has come: it is kept until
/// the job is tried in this cycle.
fn fits_now(job: JobId, books: &mut Books, operations_left: &mut u64) -> bool {
    let now_ms = books.placement.now_ms;
    Search::of(books, job, &BTreeSet::new(), operations_left).at(now_ms).is_some()
}

/// Whether a job that was lent room is there, or has a claim on it: what was kept in vain for one
/// that waits is free again.
fn is_in_its_room(books: &Books, job: JobId) -> bool {
    books.jobs.waiting(job).is_none() || books.kept.claims.get(job).is_some()
}

/// Jobs with a reservation, by number.
pub(super) fn reserved_jobs(books: &Books) -> Vec<JobId> {
    books.kept.reserved.iter().map(|claim| claim.job).collect()
}

/// Whether an expected end that a reservation counts on lies behind its time by now.
fn counts_on_raised(books: &Books, job: JobId) -> bool {
    let Some(claim) = books.kept.reserved.get(job) else { return false };
    let state = &books.placement.state;
    claim.awaited.iter().any(|owner| {
        let held = books.jobs.held_by_owner(state, &books.kept.foreign, owner);
        let end_ms = held.and_then(|id| state.holdings.get(id).phase.expected_end_ms());
        held.is_some() && end_ms.is_none_or(|end_ms| end_ms > claim.until_ms)
    })
}

/// Of those that yield, whose reserved places are on nodes of what was found for another.
fn that_yield(books: &Books, yielding: &BTreeSet<JobId>, found: &FoundStart) -> Vec<JobId> {
    let nodes: BTreeSet<&NodeName> = found.places.iter().map(|place| &place.node).collect();
    let is_there = |claim: &&PreemptionReservation| {
        yielding.contains(&claim.job)
            && claim.places.iter().any(|place| nodes.contains(&place.node))
    };
    books.kept.reserved.iter().filter(is_there).map(|claim| claim.job).collect()
}

/// Whether all nodes are there and take pods on which a job has its places.
fn has_its_nodes(books: &Books, job: JobId) -> bool {
    let Some(claim) = books.kept.reserved.get(job) else { return false };
    let nodes = &books.placement.state.nodes;
    claim.places.iter().all(|place| {
        let slot = nodes.find(&place.node);
        slot.is_some_and(|slot| {
            nodes.cold(slot).node.condition == dovetail_model::NodeAvailability::Ready
        })
    })
}
