//! Which jobs start in the room that is reserved for others.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use dovetail_model::{Bounds, Job, JobId, NodeId, Owner, Plan};

use super::awaited::end_reservation;
use super::bound::{expected_end_ms, is_within_share};
use super::heads::reserved_jobs;
use super::share::{exceeds_share, lent_milli, most_pods, of_placed};
use super::{Opened, Reservations};
use crate::engine::Books;
use crate::engine::relations::may_reclaim;
use crate::gang::{Gang, PlacedPod};
use crate::preemption::{KeptQuota, might_fit_without};
use dovetail_state::cause::Help;

/// The latest time until which room that is reserved for others is lent.
pub(crate) fn lent_until_ms(books: &Books) -> Option<u64> {
    let latest_ms = books.kept.reserved.iter().map(|claim| claim.until_ms);
    latest_ms.chain(books.kept.bookings.lent_until_ms()).max()
}

/// Whether a job that is expected to run so long (p90) could start in the room of any other at all.
pub(crate) fn lends_to(lent_until_ms: Option<u64>, p90_ms: Option<u64>, now_ms: u64) -> bool {
    lent_until_ms.zip(p90_ms).is_some_and(|(latest_ms, p90_ms)| now_ms + p90_ms <= latest_ms)
}

/// Whether a job gets quota back from others.
fn gets_back(books: &Books, job: JobId, known: &mut KeptQuota) -> bool {
    let record = books.jobs.records.get(&job);
    record.is_some_and(|record| may_reclaim(books, record, known))
}

/// Jobs whose reserved room is free to another.
#[derive(Debug)]
pub(crate) struct Lenders {
    /// They yield it, and wait on without.
    pub(crate) yielding: BTreeSet<JobId>,
    /// These, and those that lend it until their time.
    pub(crate) all: Vec<JobId>,
    /// Jobs in the room of any others: what their claims keep is not free to it, however important
    /// they are.
    pub(crate) spared: BTreeSet<JobId>,
}

impl Lenders {
    /// Whether none lends: the same ones yield to a job that starts later.
    pub(crate) fn only_yield(&self) -> bool {
        self.all.iter().all(|lender| self.yielding.contains(lender))
    }

    /// Before a job gets a claim on these nodes: jobs that yield what is held for them there wait
    /// on without, and others lend it. Whether any lends; what is left of its room it is to hold
    /// again beside the claim.
    pub(crate) fn make_way(
        &self,
        (books, reserve): (&mut Books, &mut Reservations),
        job: JobId,
        nodes: &BTreeSet<NodeId>,
        plan: &mut Plan,
    ) -> bool {
        let mut is_lent = false;
        for lender in &self.all {
            if !books.kept.holds_reserved_on(&books.placement.state, *lender, nodes) {
                continue;
            }
            if self.yielding.contains(lender) {
                end_reservation(*lender, books);
                books.change_class(*lender, plan);
            } else {
                let Books { placement, kept, survey, .. } = &mut *books;
                kept.lift_reserved(&mut placement.state, survey, *lender);
                reserve.lent.lend(*lender, job);
                is_lent = true;
            }
        }
        is_lent
    }
}

impl Reservations {
    /// Classes whose first job is the first of its queue and goes before a job for which something
    /// is held by now: it may be room enough for them.
    pub(crate) fn that_may_take(&self, books: &mut Books) -> Vec<usize> {
        let holds = |job: &JobId| books.kept.holds_reserved(&books.placement.state, *job);
        let mut held = reserved_jobs(books);
        held.retain(|job| Some(*job) != self.keeps_turn && holds(job));
        let latest = held.into_iter().filter_map(|job| books.turn_of(job)).max();
        let Some(latest) = latest else { return Vec::new() };
        let queues = books.jobs.pending.queues();
        let firsts: Vec<JobId> = queues.filter_map(|queue| self.first_of(books, queue)).collect();
        let mut classes = Vec::new();
        for job in firsts {
            let Some((_, class)) = books.jobs.records[&job].place else { continue };
            if books.jobs.pending.asleep(class).is_some()
                && books.turn_of(job).is_some_and(|turn| turn < latest)
            {
                classes.push(class);
            }
        }
        classes
    }

    /// Jobs that yield what is reserved for them to another, however long it runs. A job that gets
    /// quota back goes before all that do not, then priority counts, then, for the first job of a
    /// queue, whose turn is earlier: what is reserved for a later one keeps later jobs away, not
    /// this one.
    ///
    /// That is one strict order of all jobs. So neither two jobs nor more of them in a ring yield
    /// to each other: they would take turns for as long as searches may go on.
    pub(super) fn yield_to(&self, books: &mut Books, job: JobId) -> BTreeSet<JobId> {
        let mut others = reserved_jobs(books);
        others.retain(|other| *other != job);
        if others.is_empty() {
            return BTreeSet::new();
        }
        let mut known = books.known.take(&books.quota, &books.kept.claims);
        let reclaims = gets_back(books, job, &mut known);
        let Job { priority, queue, .. } = &books.jobs.records[&job].job;
        let (priority, is_first) = (*priority, self.first_of(books, queue) == Some(job));
        let turn = if is_first { books.turn_of(job) } else { None };
        let comes_later = |books: &mut Books, other: JobId| {
            let theirs = books.jobs.records.get(&other).map(|record| record.job.priority);
            match theirs.unwrap_or(i32::MIN).cmp(&priority) {
                Ordering::Less => true,
                Ordering::Equal => {
                    is_first && Some(other) != self.keeps_turn && books.turn_of(other) > turn
                }
                Ordering::Greater => false,
            }
        };
        // Whether others get quota back takes longest.
        others.retain(|other| match reclaims {
            true => !gets_back(books, *other, &mut known) || comes_later(books, *other),
            false => comes_later(books, *other) && !gets_back(books, *other, &mut known),
        });
        books.known = known;
        others.into_iter().collect()
    }

    /// Places a job in room that is reserved for others: it leaves before their time, or they yield
    /// it and wait on without a reservation.
    pub(crate) fn place_in_lent(
        &mut self,
        books: &mut Books,
        job: JobId,
        gang: &Gang,
        growth_limit: Bounds,
        plan: &mut Plan,
    ) -> Option<Vec<PlacedPod>> {
        let start_ms = books.placement.now_ms;
        let yielding = self.yield_to(books, job);
        let asked_milli = books.jobs.records[&job].job.min_gpu_milli();
        // How much of their room it would be in is known when it has a place.
        let mut lenders = self.lenders(books, (job, start_ms), &yielding, asked_milli.min(1));
        let mut open = booked_room(books, job, self.config.lent_percent);
        let share = (&self.lent, self.config.lent_percent);
        let exceeds = |books: &Books, lender: JobId, placed: &[PlacedPod]| {
            !yielding.contains(&lender) && exceeds_share(books, share, lender, (job, placed))
        };
        let helped = books.placement.state.helped;
        let gang = (gang, growth_limit);
        let rooms = (&mut lenders, &mut open);
        let placed = place_within_shares(job, gang, books, rooms, exceeds)?;
        let state = &mut books.placement.state;
        books.kept.bookings.note_start(state, &open, &placed);
        // What is not used is reserved again before anything else is tried.
        state.helped = helped;
        for pod in &placed {
            state.helped |= Help::of_hold(state.holdings.get(pod.holding));
        }
        let used: BTreeSet<NodeId> = placed.iter().map(|pod| pod.node).collect();
        for lender in lenders {
            if nodes_of(books, lender).is_disjoint(&used) {
                continue;
            }
            if yielding.contains(&lender) {
                self.end(books, lender, plan);
                continue;
            }
            count_on(lender, &placed, books);
            self.lent.lend(lender, job);
        }
        // What was kept for it is over as well: it has started beside it, or in it.
        books.kept.forget(&books.jobs.records[&job]);
        Some(placed)
    }

    /// A job starts in what its claim kept; those count on its end that lent it room for that.
    /// Pods beyond its smallest size start as far as these lend. Whether any did.
    pub(crate) fn note_start(
        &self,
        books: &mut Books,
        job: JobId,
        placed: &mut Vec<PlacedPod>,
    ) -> bool {
        let lenders = self.lent.lenders_of(job);
        if lenders.is_empty() {
            return false;
        }
        let smallest = books.jobs.records[&job].gang.min_pods() as usize;
        let share = (&self.lent, self.config.lent_percent);
        let pods = most_pods(placed, smallest, |placed| {
            lenders.iter().any(|lender| exceeds_share(books, share, *lender, (job, placed)))
        });
        let state = &mut books.placement.state;
        // It was free before as well: nobody else is helped.
        let (helped, nodes) = (state.helped, state.helped_nodes.len());
        placed.drain(pods..).for_each(|pod| drop(state.remove_holding(pod.holding)));
        state.helped = helped;
        state.helped_nodes.truncate(nodes);
        lenders.iter().for_each(|lender| count_on(*lender, placed, books));
        true
    }

    /// Jobs whose reserved room is free to another that starts by then: they yield it, or it leaves
    /// before their time.
    pub(crate) fn free_to(&self, books: &mut Books, job: JobId, start_ms: u64) -> Lenders {
        let yielding = self.yield_to(books, job);
        let asked_milli = books.jobs.records[&job].job.min_gpu_milli();
        let all = self.lenders(books, (job, start_ms), &yielding, asked_milli);
        let is_free = |lender: JobId| {
            lender == job || all.contains(&lender) || books.kept.reserved.get(lender).is_none()
        };
        let spared = self.lent.of_others(is_free);
        Lenders { yielding, all, spared }
    }

    /// Claims of these jobs were given back while others are tried: what was lent to them is
    /// reserved again before anybody else gets it.
    pub(crate) fn take_back(&mut self, books: &mut Books, jobs: &[JobId]) {
        let mut was_lent = false;
        jobs.iter().for_each(|job| was_lent |= self.lent.end_to(*job));
        if was_lent {
            self.keep_after_start(books);
        }
    }

    /// Jobs that lend their room to another that starts by then, of whose GPUs so many are in it at
    /// least, or yield it.
    fn lenders(
        &self,
        books: &Books,
        (job, start_ms): (JobId, u64),
        yielding: &BTreeSet<JobId>,
        inside_milli: i64,
    ) -> Vec<JobId> {
        let jobs = &books.jobs.records;
        let gpu_milli = |job: &JobId| jobs.get(job).map_or(0, |record| record.job.min_gpu_milli());
        let end_ms = expected_end_ms(&jobs[&job].job, start_ms);
        let percent = self.config.lent_percent;
        let lends = |lender: &JobId, until_ms: u64| {
            end_ms.is_some_and(|end_ms| end_ms <= until_ms) && {
                let lent_milli = lent_milli(books, &self.lent, (*lender, job));
                is_within_share(lent_milli + inside_milli, gpu_milli(lender), percent)
            }
        };
        let claims = books.kept.reserved.iter().filter(|claim| claim.job != job);
        let claims = claims
            .filter(|claim| yielding.contains(&claim.job) || lends(&claim.job, claim.until_ms));
        claims.map(|claim| claim.job).collect()
    }

    /// After a job has started, or was given a claim or lost it: what is left of the room that was
    /// lent is reserved again.
    pub(crate) fn keep_after_start(&self, books: &mut Books) {
        let state = &books.placement.state;
        let (helped, nodes) = (state.helped, state.helped_nodes.len());
        self.keep_all(books);
        // A pod that took some of what is booked counts there with all that it holds: less may be
        // kept beside it than before.
        if books.kept.bookings.is_empty() {
            let state = &mut books.placement.state;
            state.helped = helped;
            state.helped_nodes.truncate(nodes);
        }
    }
}

/// Places a job in what is kept for it, in what is `open` to it and in the room of `lenders`. If it
/// would exceed what one of them lends at its smallest size, it is placed again without that room;
/// beyond that size it grows as far as all of them lend. Those in whose room it may be are left,
/// and so is what is open to it.
fn place_within_shares(
    job: JobId,
    (gang, growth_limit): (&Gang, Bounds),
    books: &mut Books,
    (lenders, open): (&mut Vec<JobId>, &mut Vec<Opened>),
    exceeds: impl Fn(&Books, JobId, &[PlacedPod]) -> bool,
) -> Option<Vec<PlacedPod>> {
    let (helped, draws) = (books.placement.state.helped, books.placement.draws());
    let smallest = gang.min_pods() as usize;
    while !lenders.is_empty() || !open.is_empty() {
        let (state, record) = (&books.placement.state, &books.jobs.records[&job]);
        let mut kept = books.kept.own_or_yielded(state, record, lenders.iter());
        kept.extend(Opened::holdings(open, state, &books.kept.bookings));
        // Most find no room there: to look at it is cheaper than to free it.
        if !might_fit_without(gang, &kept, &mut books.placement) {
            return None;
        }
        let state = &mut books.placement.state;
        let mark = state.begin();
        kept.into_iter().for_each(|id| drop(state.release(id)));
        let mut placed = books.placement.place(job, gang, growth_limit.clone());
        let all = (lenders.len(), open.len());
        if let Some(placed) = &mut placed {
            let smallest = &placed[..smallest.min(placed.len())];
            lenders.retain(|lender| !exceeds(books, *lender, smallest));
            open.retain(|open| !exceeds_booked(books, open, (job, smallest)));
            if (lenders.len(), open.len()) == all {
                let pods = most_pods(placed, smallest.len(), |placed| {
                    open.iter().any(|open| exceeds_booked(books, open, (job, placed)))
                        || lenders.iter().any(|lender| exceeds(books, *lender, placed))
                });
                let state = &mut books.placement.state;
                placed.drain(pods..).for_each(|pod| drop(state.release(pod.holding)));
            }
        }
        let state = &mut books.placement.state;
        if placed.is_some() && (lenders.len(), open.len()) == all {
            state.commit(mark);
            return placed;
        }
        state.rollback(mark);
        state.helped = helped;
        placed?;
        books.placement.set_draws(draws);
    }
    None
}

/// Whether a job with these places would have more of what is booked than is lent to it.
fn exceeds_booked(books: &Books, open: &Opened, (job, placed): (JobId, &[PlacedPod])) -> bool {
    let gpus = of_placed(books, &books.jobs.records[&job], placed);
    open.is_exceeded(&gpus, &books.placement.state, &books.kept.bookings)
}

/// Booked room that is lent to a job, of each booking so many percent at most, and that is booked
/// for it.
fn booked_room(books: &Books, job: JobId, lent_percent: u32) -> Vec<Opened> {
    let (kept, record) = (&books.kept, &books.jobs.records[&job]);
    let (state, now_ms) = (&books.placement.state, books.placement.now_ms);
    let mut open = kept.bookings.lent_to((state, &books.jobs), record, now_ms, lent_percent);
    if !open.is_empty() || !kept.reserved.is_empty() {
        open.extend(kept.bookings.open_to(state, record, now_ms));
    }
    open
}

/// Nodes on which a job has its reserved places.
fn nodes_of(books: &Books, job: JobId) -> BTreeSet<NodeId> {
    let claim = books.kept.reserved.get(job).into_iter();
    let places = claim.flat_map(|claim| &claim.places);
    places.filter_map(|place| books.placement.state.nodes.find(&place.node)).collect()
}

/// What is reserved for a job counts on the end of these pods on its nodes.
fn count_on(job: JobId, placed: &[PlacedPod], books: &mut Books) {
    let nodes = nodes_of(books, job);
    let Some(claim) = books.kept.reserved.get_mut(job) else { return };
    let here = placed.iter().filter(|pod| nodes.contains(&pod.node));
    claim.awaited.extend(here.map(|pod| Owner::Pod(pod.pod)));
}
