//! Bookings as time goes on: admitted or refused, in force, over.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{Booked, Booking, Condition, JobId, Owner, Place, Plan, PodId, Verdict};

use super::Reservations;
use super::bookings::Bookings;
use super::search::{Found, Search};
use crate::engine::Books;
use crate::gang::{Gang, UnknownLevel};
use dovetail_state::State;
use dovetail_state::cause::Help;

/// The pods of a booking as the search sees them.
pub(crate) fn gang_of(state: &mut State, booking: &Booking) -> Result<Arc<Gang>, UnknownLevel> {
    Gang::of(state, &booking.as_job(JobId(u64::MAX))).map(Arc::new)
}

impl Books {
    /// Something is to be booked; the next cycle decides about it. What was reserved under the same
    /// name for something else is free.
    pub(crate) fn book(&mut self, booking: Booking) -> Result<(), UnknownLevel> {
        let known = self.kept.bookings.all.get(&booking.name);
        if known.is_some_and(|entry| entry.booked.booking.asks_as(&booking)) {
            return Ok(());
        }
        let gang = gang_of(&mut self.placement.state, &booking)?;
        self.cancel(&booking.name);
        let used: BTreeSet<u32> = self.kept.bookings.iter().map(Booked::number).collect();
        let number = (0..).find(|number| !used.contains(number));
        let number = number.expect("there are fewer bookings than numbers");
        self.kept.bookings.adopt(Booked::requested(booking, number), gang);
        self.kept.bookings.is_changed = true;
        Ok(())
    }

    /// What is reserved under a name is free, and nothing is known of it.
    pub(crate) fn cancel(&mut self, name: &str) {
        free_places(self, name);
        self.kept.bookings.is_changed |= self.kept.bookings.all.remove(name).is_some();
    }
}

impl Reservations {
    /// At the start of a cycle: bookings are admitted, begin, find other places and end. `raised`
    /// says that expected ends were.
    pub(crate) fn settle_bookings(&mut self, books: &mut Books, raised: bool, plan: &mut Plan) {
        if books.kept.bookings.is_empty() && !books.kept.bookings.is_changed {
            return;
        }
        self.operations_left = self.config.max_operations;
        let helped = books.placement.state.helped;
        let mut names: Vec<(u64, String)> = books.kept.bookings.iter().map(at).collect();
        names.sort_unstable();
        for (_, name) in names {
            self.advance(books, &name, raised, helped);
        }
        let is_changed = std::mem::take(&mut books.kept.bookings.is_changed);
        if is_changed || raised || helped != Help::NONE {
            self.keep_all(books);
        }
        if is_changed {
            self.hopeless.clear();
            books.kept.news.is_unsettled = true;
            books.reclass(plan);
        }
    }

    /// What time and the cluster make of one booking.
    fn advance(&mut self, books: &mut Books, name: &str, raised: bool, helped: Help) {
        let now_ms = books.placement.now_ms;
        let Some(booked) = booked(books, name) else { return };
        let (from_ms, to_ms) = (booked.booking.from_ms, booked.booking.to_ms);
        match booked.verdict {
            Verdict::Refused { .. } | Verdict::Ended => return,
            _ if to_ms <= now_ms => {
                free_places(books, name);
                return decide(books, name, Verdict::Ended);
            }
            Verdict::Requested => self.admit(books, name),
            Verdict::Admitted if raised && now_ms < from_ms && counts_on_raised(books, name) => {
                let found = self.search(books, name, None).at(from_ms);
                found.into_iter().for_each(|found| take_places(books, name, found, true));
            }
            Verdict::Admitted | Verdict::Active => {}
        }
        drop_lost(books, name);
        let Some(booked) = self::booked(books, name) else { return };
        let missing = booked.missing();
        if booked.verdict == Verdict::Admitted && from_ms <= now_ms {
            decide(books, name, Verdict::Active);
            books.placement.state.helped |= Help::ALL;
        } else if !booked.verdict.is_in_force() {
            return;
        }
        if missing > 0 && helped != Help::NONE {
            let found = self.search(books, name, Some(missing)).at(from_ms.max(now_ms));
            found.into_iter().for_each(|found| take_places(books, name, found, false));
        }
    }

    /// Looks for places at its time.
    fn admit(&mut self, books: &mut Books, name: &str) {
        let now_ms = books.placement.now_ms;
        let Some(booking) = booked(books, name).map(|booked| booked.booking.clone()) else {
            return;
        };
        if booking.was_admitted {
            take_used(books, name);
        }
        let from_ms = booking.from_ms.max(now_ms);
        let missing = booked(books, name).map(Booked::missing);
        let found = self.search(books, name, missing).at(from_ms);
        let is_admitted = found.is_some() || booking.was_admitted;
        found.into_iter().for_each(|found| take_places(books, name, found, false));
        let verdict = match is_admitted {
            true => Verdict::Admitted,
            false => {
                let later = self.search(books, name, None).earliest(u64::MAX);
                Verdict::Refused { earliest_ms: later.map(|found| found.start_ms) }
            }
        };
        decide(books, name, verdict);
    }

    /// A search for so many places beside those that it has, else for all of them anew.
    fn search<'b>(
        &'b mut self,
        books: &'b mut Books,
        name: &str,
        missing: Option<u32>,
    ) -> Search<'b> {
        let entry = &books.kept.bookings.all[name];
        let mut gang = Gang::clone(&entry.gang);
        let first = entry.booked.claim.places.iter().map(|place| place.pod.ordinal + 1).max();
        for set in &mut gang.sets {
            if let Some(missing) = missing {
                (set.min, set.max) = (missing, missing);
                set.first_ordinal = first.unwrap_or(0);
            }
        }
        let job = entry.booked.claim.job;
        let after_ms = entry.booked.booking.from_ms.max(books.placement.now_ms);
        let but = missing.is_none().then(|| name.to_owned());
        Search::of_booking(books, (job, but), gang, after_ms, &mut self.operations_left)
    }
}

impl Books {
    /// Puts every waiting job into the class that it belongs to now: whose run time counts, and for
    /// whom room is reserved, is another.
    fn reclass(&mut self, plan: &mut Plan) {
        let mut waiting: Vec<JobId> = Vec::new();
        // order-free: sorted below.
        for (job, record) in &self.jobs.records {
            let Some((_, class)) = record.place else { continue };
            if self.class_key(&record.job, &record.gang) != *self.jobs.pending.asks(class).0 {
                waiting.push(*job);
            }
        }
        waiting.sort_unstable();
        waiting.into_iter().for_each(|job| self.change_class(job, plan));
    }
}

fn at(booked: &Booked) -> (u64, String) {
    (booked.booking.from_ms, booked.booking.name.clone())
}

fn booked<'b>(books: &'b Books, name: &str) -> Option<&'b Booked> {
    books.kept.bookings.all.get(name).map(|entry| &entry.booked)
}

fn decide(books: &mut Books, name: &str, verdict: Verdict) {
    let Bookings { all, is_changed, .. } = &mut books.kept.bookings;
    if let Some(entry) = all.get_mut(name) {
        *is_changed |= entry.booked.verdict != verdict;
        entry.booked.verdict = verdict;
    }
}

/// Takes over places, instead of those that it had or beside them.
fn take_places(books: &mut Books, name: &str, found: Found, instead: bool) {
    if instead {
        free_places(books, name);
    }
    let now_ms = books.placement.now_ms;
    let Bookings { all, is_changed, .. } = &mut books.kept.bookings;
    let Some(Booked { claim, since_ms, .. }) = all.get_mut(name).map(|it| &mut it.booked) else {
        return;
    };
    *is_changed = true;
    *since_ms = now_ms;
    claim.places.extend(found.places);
    for owner in found.awaited {
        if !claim.awaited.contains(&owner) {
            claim.awaited.push(owner);
        }
    }
}

/// Nothing is kept for it any more, and it has no places.
fn free_places(books: &mut Books, name: &str) {
    let Some(entry) = books.kept.bookings.all.get_mut(name) else { return };
    let claim = &mut entry.booked.claim;
    claim.places.clear();
    claim.awaited.clear();
    for id in books.placement.state.holdings.kept_by(claim.reservation) {
        books.survey.forget(books.placement.state.remove_holding(id).node);
    }
}

/// Places on nodes that are gone, or that take no pods, are none.
fn drop_lost(books: &mut Books, name: &str) {
    let nodes = &books.placement.state.nodes;
    let is_there = |place: &Place| {
        let slot = nodes.find(&place.node);
        slot.is_some_and(|slot| nodes.cold(slot).node.condition == Condition::Ready)
    };
    let Some(entry) = books.kept.bookings.all.get_mut(name) else { return };
    let before = entry.booked.claim.places.len();
    entry.booked.claim.places.retain(is_there);
    books.kept.bookings.is_changed |= before != entry.booked.claim.places.len();
}

/// Whether an expected end that it counts on lies behind its time by now.
fn counts_on_raised(books: &Books, name: &str) -> bool {
    let Some(booked) = booked(books, name) else { return false };
    let state = &books.placement.state;
    booked.claim.awaited.iter().any(|owner| {
        let held = books.jobs.held_by_owner(state, &books.kept.foreign, owner);
        held.is_some_and(|id| {
            let end_ms = state.holdings.get(id).phase.expected_end_ms();
            end_ms.is_none_or(|end_ms| end_ms > booked.claim.until_ms)
        })
    })
}

/// One that is in force elsewhere is taken over: pods of its beneficiary that started in its time
/// run in its places.
fn take_used(books: &mut Books, name: &str) {
    let Some(entry) = books.kept.bookings.all.get_mut(name) else { return };
    let Booked { booking, claim, .. } = &mut entry.booked;
    let Some(of) = &booking.beneficiary else { return };
    // order-free: sorted below.
    let all = books.jobs.records.values().filter(|record| {
        let since = record.job.start_ms.is_some_and(|start_ms| start_ms >= booking.from_ms);
        since && of.is(&record.job)
    });
    let mut jobs: Vec<_> = all.collect();
    jobs.sort_by_key(|record| record.job.id);
    let held = jobs.into_iter().flat_map(|record| &record.holdings);
    for (ordinal, id) in held.take(booking.count as usize).enumerate() {
        let holding = books.placement.state.holdings.get(*id);
        let node = books.placement.state.nodes.cold(holding.node).node.name.clone();
        let pod = PodId { job: claim.job, pod_set: 0, ordinal: ordinal as u32 };
        claim.places.push(Place { pod, node, devices: holding.devices.clone() });
        if let Owner::Pod(_) = holding.owner {
            claim.awaited.push(holding.owner.clone());
        }
    }
}
