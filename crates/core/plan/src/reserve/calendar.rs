//! Bookings as time goes on: admitted or refused, in force, over.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{
    Booked, Booking, BookingVerdict, JobId, NodeAvailability, NodeId, Owner, Place, Plan, PodId,
    TooLarge,
};

use super::awaited::note_no_longer_awaited;
use super::bookings::Bookings;
use super::search::{FoundStart, Search};
use crate::engine::Books;
use crate::gang::{Gang, UnknownLevel};
use dovetail_state::State;
use dovetail_state::cause::Help;

/// The pods of a booking as the search sees them.
pub(crate) fn gang_of(state: &mut State, booking: &Booking) -> Result<Arc<Gang>, UnknownLevel> {
    Gang::of(state, &booking.as_job(JobId(u64::MAX))).map(Arc::new)
}

/// What changes bookings as time goes on.
pub(crate) struct Calendar<'c> {
    books: &'c mut Books,
}

impl<'c> Calendar<'c> {
    pub(crate) fn of(books: &'c mut Books) -> Self {
        Self { books }
    }

    /// Something is to be booked; the next cycle decides about it. What was reserved under the same
    /// name for something else is free.
    pub(crate) fn book(&mut self, booking: Booking) -> Result<(), UnknownLevel> {
        let known = self.booked(&booking.name);
        if known.is_some_and(|booked| booked.booking.asks_as(&booking)) {
            return Ok(());
        }
        let gang = gang_of(&mut self.books.placement.state, &booking)?;
        self.cancel(&booking.name);
        let bookings = &mut self.books.kept.bookings;
        let used: BTreeSet<u32> = bookings.iter().map(Booked::number).collect();
        let number = (0..).find(|number| !used.contains(number));
        let number = number.expect("there are fewer bookings than numbers");
        bookings.adopt(Booked::requested(booking, number), gang);
        bookings.is_changed = true;
        Ok(())
    }

    /// What is reserved under a name is free, and nothing is known of it. Who is no longer awaited
    /// is noted at once: a snapshot before the next cycle knows nothing of the booking.
    pub(crate) fn cancel(&mut self, name: &str) {
        if self.booked(name).is_none() {
            return;
        }
        let spared = self.books.kept.bookings.spared.clone();
        self.free_places(name);
        let bookings = &mut self.books.kept.bookings;
        bookings.is_changed |= bookings.remove(name);
        bookings.count_spared();
        note_no_longer_awaited(&spared, self.books);
    }

    /// What time and the cluster make of all bookings. `left`: holds and releases that searches may
    /// take.
    pub(super) fn advance(&mut self, raised: bool, left: &mut u64) {
        let helped = self.books.placement.state.helped;
        let names: Vec<String> = self.books.kept.bookings.names().map(str::to_owned).collect();
        for name in names {
            self.advance_one(&name, raised, helped, left);
        }
    }

    fn advance_one(&mut self, name: &str, raised: bool, helped: Help, left: &mut u64) {
        let now_ms = self.books.placement.now_ms;
        let Some(booked) = self.booked(name) else { return };
        let (from_ms, to_ms) = (booked.booking.from_ms, booked.booking.to_ms);
        match booked.verdict {
            BookingVerdict::Refused { .. } | BookingVerdict::Ended => return,
            _ if to_ms <= now_ms => {
                self.free_places(name);
                return self.decide(name, BookingVerdict::Ended);
            }
            BookingVerdict::Requested => self.admit(name, left),
            BookingVerdict::Admitted
                if raised && now_ms < from_ms && self.counts_on_raised(name) =>
            {
                if let Some(found) = self.search(name, None, left).at(from_ms) {
                    self.free_places(name);
                    self.take_places(name, found);
                }
            }
            BookingVerdict::Admitted | BookingVerdict::Active => {}
        }
        self.drop_lost(name);
        let Some(booked) = self.booked(name) else { return };
        let (missing, verdict) = (booked.missing(), booked.verdict);
        if !verdict.is_in_force() {
            return;
        }
        if verdict == BookingVerdict::Admitted && from_ms <= now_ms {
            self.decide(name, BookingVerdict::Active);
            self.books.placement.state.helped |= Help::ALL;
        }
        if missing > 0 && helped != Help::NONE {
            let found = self.search(name, Some(missing), left).at(from_ms.max(now_ms));
            found.into_iter().for_each(|found| self.take_places(name, found));
        }
    }

    /// Looks for places at its time.
    fn admit(&mut self, name: &str, left: &mut u64) {
        let now_ms = self.books.placement.now_ms;
        let Some(booking) = self.booked(name).map(|booked| booked.booking.clone()) else {
            return;
        };
        if booking.was_admitted {
            self.take_used(name);
        }
        let from_ms = booking.from_ms.max(now_ms);
        let missing = self.booked(name).map(Booked::missing);
        let found = self.search(name, missing, left).at(from_ms);
        let is_admitted = found.is_some() || booking.was_admitted;
        found.into_iter().for_each(|found| self.take_places(name, found));
        let verdict = match is_admitted {
            true => BookingVerdict::Admitted,
            false => {
                let later = self.search(name, None, left).earliest(u64::MAX);
                let earliest_ms = later.map(|found| found.start_ms);
                let nodes = self.books.placement.state.nodes.present().map(|(_, node)| node);
                let too_large = match earliest_ms {
                    Some(_) => None,
                    None => TooLarge::of(&booking.requirement, nodes),
                };
                BookingVerdict::Refused { earliest_ms, too_large }
            }
        };
        self.decide(name, verdict);
    }

    /// A search for so many places beside those that it has, else for all of them anew.
    fn search<'b>(&'b mut self, name: &str, missing: Option<u32>, left: &'b mut u64) -> Search<'b> {
        let entry = &self.books.kept.bookings.all[name];
        let mut gang = Gang::clone(&entry.gang);
        let first = entry.booked.claim.places.iter().map(|place| place.pod.ordinal + 1).max();
        for set in &mut gang.sets {
            if let Some(missing) = missing {
                (set.min, set.max) = (missing, missing);
                set.first_ordinal = first.unwrap_or(0);
            }
        }
        let job = entry.booked.claim.job;
        let after_ms = entry.booked.booking.from_ms.max(self.books.placement.now_ms);
        let but = missing.is_none().then(|| name.to_owned());
        Search::of_booking(self.books, (job, but), gang, after_ms, left)
    }

    /// Puts every waiting job into the class that it belongs to now: whose run time counts, and for
    /// whom room is reserved, is another.
    pub(super) fn reclass(&mut self, plan: &mut Plan) {
        let mut waiting: Vec<JobId> = Vec::new();
        // order-free: sorted below.
        for (job, record) in &self.books.jobs.records {
            let Some((_, class)) = record.place else { continue };
            if self.books.class_key(&record.job, &record.gang)
                != *self.books.jobs.pending.asks(class)
            {
                waiting.push(*job);
            }
        }
        waiting.sort_unstable();
        waiting.into_iter().for_each(|job| self.books.change_class(job, plan));
    }

    fn booked(&self, name: &str) -> Option<&Booked> {
        self.books.kept.bookings.all.get(name).map(|entry| &entry.booked)
    }

    fn decide(&mut self, name: &str, verdict: BookingVerdict) {
        let books = &mut *self.books;
        let Bookings { all, is_changed, .. } = &mut books.kept.bookings;
        if let Some(entry) = all.get_mut(name) {
            *is_changed |= entry.booked.verdict != verdict;
            entry.booked.verdict = verdict;
        }
    }

    /// Takes over places, beside those that it has.
    fn take_places(&mut self, name: &str, found: FoundStart) {
        let books = &mut *self.books;
        let now_ms = books.placement.now_ms;
        let Bookings { all, is_changed, .. } = &mut books.kept.bookings;
        let Some(Booked { claim, since_ms, .. }) = all.get_mut(name).map(|it| &mut it.booked)
        else {
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
    fn free_places(&mut self, name: &str) {
        let books = &mut *self.books;
        let Some(entry) = books.kept.bookings.all.get_mut(name) else { return };
        let claim = &mut entry.booked.claim;
        claim.places.clear();
        claim.awaited.clear();
        for id in books.placement.state.holdings.kept_by(claim.reservation) {
            books.survey.forget(books.placement.state.remove_holding(id).node);
        }
    }

    /// Places on nodes that are gone, or that take no pods, are none.
    fn drop_lost(&mut self, name: &str) {
        let books = &mut *self.books;
        let nodes = &books.placement.state.nodes;
        let is_there = |place: &Place| {
            let slot = nodes.find(&place.node);
            slot.is_some_and(|slot| nodes.cold(slot).node.condition == NodeAvailability::Ready)
        };
        let Some(entry) = books.kept.bookings.all.get_mut(name) else { return };
        let before = entry.booked.claim.places.len();
        let claim = &mut entry.booked.claim;
        claim.places.retain(is_there);
        if before == claim.places.len() {
            return;
        }
        // Whoever holds something elsewhere is not waited for any more.
        let on: BTreeSet<NodeId> =
            claim.places.iter().filter_map(|place| nodes.find(&place.node)).collect();
        let (state, jobs, foreign) = (&books.placement.state, &books.jobs, &books.kept.foreign);
        claim.awaited.retain(|owner| {
            let held = jobs.held_by_owner(state, foreign, owner);
            held.is_some_and(|id| on.contains(&state.holdings.get(id).node))
        });
        books.kept.bookings.is_changed = true;
    }

    /// Whether an expected end that it counts on lies behind its time by now.
    fn counts_on_raised(&self, name: &str) -> bool {
        let books = &*self.books;
        let Some(booked) = self.booked(name) else { return false };
        let state = &books.placement.state;
        booked.claim.awaited.iter().any(|owner| {
            let held = books.jobs.held_by_owner(state, &books.kept.foreign, owner);
            held.is_some_and(|id| {
                let end_ms = state.holdings.get(id).phase.expected_end_ms();
                end_ms.is_none_or(|end_ms| end_ms > booked.claim.until_ms)
            })
        })
    }

    /// One that is in force elsewhere is taken over: pods of its beneficiary that started in its
    /// time run in its places.
    fn take_used(&mut self, name: &str) {
        let books = &mut *self.books;
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
}
