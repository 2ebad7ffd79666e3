//! The earliest time at which a job can start, by the real placement.

use std::collections::BTreeSet;

use dovetail_model::{Bounds, HoldingId, JobId, Owner, Place, PodId};

use crate::engine::Books;
use crate::gang::Gang;
use dovetail_state::Mark;
use dovetail_state::view::View;

/// When and where a job could start, and who must have ended by then.
pub(super) struct FoundStart {
    pub(super) start_ms: u64,
    pub(super) places: Vec<Place>,
    pub(super) awaited: Vec<Owner>,
}

/// A search that ends at a limit of operations.
pub(super) struct Search<'b> {
    books: &'b mut Books,
    of: Of,
    gang: Gang,
    /// Jobs whose reservations do not count.
    yielding: BTreeSet<JobId>,
    /// Later times are tried.
    after_ms: u64,
    operations_left: &'b mut u64,
}

/// For what room is searched.
enum Of {
    Job(JobId),
    /// A booking, which of bookings with their own places is the one that has none. Its places are
    /// of that job.
    Booking(JobId, Option<String>),
}

impl<'b> Search<'b> {
    /// For a job; what is reserved for those that are `yielding` is taken as free.
    pub(super) fn of(
        books: &'b mut Books,
        job: JobId,
        yielding: &BTreeSet<JobId>,
        operations_left: &'b mut u64,
    ) -> Self {
        let gang = books.jobs.records[&job].gang.at_smallest();
        let (yielding, after_ms) = (yielding.clone(), books.placement.now_ms);
        Self { books, of: Of::Job(job), gang, yielding, after_ms, operations_left }
    }

    /// For a booking; what is kept for `but` is taken as free.
    pub(super) fn of_booking(
        books: &'b mut Books,
        (job, but): (JobId, Option<String>),
        gang: Gang,
        after_ms: u64,
        operations_left: &'b mut u64,
    ) -> Self {
        let yielding = BTreeSet::new();
        Self { books, of: Of::Booking(job, but), gang, yielding, after_ms, operations_left }
    }

    /// Whether it would be placed at this time.
    pub(super) fn at(mut self, time_ms: u64) -> Option<FoundStart> {
        self.place_at(time_ms)
    }

    /// The earliest of the expected ends before `before_ms` at which the job would be placed. That
    /// it would be placed at a time is taken to hold for every later one: a time that does not
    /// follow this is found late, never wrong.
    pub(super) fn earliest(mut self, before_ms: u64) -> Option<FoundStart> {
        let ends = self.ends(before_ms);
        let mut found = None;
        // The last end at which it fails; the first at which it succeeds.
        let (mut fails, mut step) = (None::<usize>, 1);
        let mut good = ends.len();
        while good > fails.map_or(0, |last| last + 1) && *self.operations_left > 0 {
            let from = fails.map_or(0, |last| last + 1);
            // Ever farther until it succeeds, then in the middle.
            let probe = match good < ends.len() {
                true => from + (good - from) / 2,
                false => (from + step - 1).min(ends.len() - 1),
            };
            step *= 2;
            match self.place_at(ends[probe]) {
                Some(at) => (good, found) = (probe, Some(at)),
                None => fails = Some(probe),
            }
        }
        found
    }

    /// Expected ends from now until then, each once.
    fn ends(&self, before_ms: u64) -> Vec<u64> {
        let placement = &self.books.placement;
        let holdings = &placement.state.holdings;
        let ends = holdings.ending_by(before_ms.saturating_sub(1));
        let ends = ends.filter_map(|id| holdings.get(id).phase.expected_end_ms());
        let mut ends: Vec<u64> = ends.filter(|end_ms| *end_ms > self.after_ms).collect();
        if let Of::Booking(..) = self.of {
            let bookings = self.books.kept.bookings.iter();
            let bookings = bookings.filter(|booked| booked.verdict.is_in_force());
            let others = bookings.map(|booked| booked.booking.to_ms);
            ends.extend(others.filter(|end_ms| *end_ms > self.after_ms));
            ends.sort_unstable();
        }
        ends.dedup();
        ends
    }

    /// Places the job as the cluster is expected to be at a time. Nothing changes.
    fn place_at(&mut self, time_ms: u64) -> Option<FoundStart> {
        let Books { placement, kept, jobs, .. } = &mut *self.books;
        let (helped, draws) = (placement.state.helped, placement.draws());
        let holdings = &placement.state.holdings;
        let ending: Vec<HoldingId> = holdings.ending_by(time_ms).collect();
        let leaving = |id: &HoldingId| {
            let phase = holdings.get(*id).phase;
            phase.expected_end_ms().is_some_and(|end_ms| end_ms > placement.now_ms)
        };
        let ending = ending.into_iter().filter(leaving);
        let ending: Vec<_> =
            ending.map(|id| (holdings.get(id).node, holdings.get(id).owner.clone())).collect();
        let operations = 2 * ending.len() as u64 + 1;
        *self.operations_left = self.operations_left.saturating_sub(operations);
        let mark: Mark = View::At { time_ms }.open(&mut placement.state, placement.now_ms);
        let (job, but, gone_by_ms) = match &self.of {
            Of::Job(job) => (Some(*job), None, None),
            Of::Booking(_, but) => (None, but.as_deref(), Some(time_ms)),
        };
        let own = job
            .map(|job| kept.own_or_yielded(&placement.state, &jobs.records[&job], &self.yielding));
        for id in own.unwrap_or_default() {
            // Room outside may be expected to be free by then.
            if placement.state.holdings.contains(id) {
                placement.state.release(id);
            }
        }
        kept.claims.fill_all(&mut placement.state, jobs);
        let is_free = |other: JobId| Some(other) == job || self.yielding.contains(&other);
        kept.reserved.fill_but(is_free, &mut placement.state, jobs);
        kept.bookings.fill(&mut placement.state, (jobs, &kept.foreign), but, gone_by_ms);
        let placed = placement.place(JobId(u64::MAX), &self.gang, Bounds::default());
        placement.state.rollback(mark);
        placement.state.helped = helped;
        placement.set_draws(draws);
        let placed = placed?;
        let used: BTreeSet<_> = placed.iter().map(|pod| pod.node).collect();
        let awaited = ending.into_iter().filter(|(node, _)| used.contains(node));
        let (Of::Job(job) | Of::Booking(job, _)) = &self.of;
        let place = |pod: crate::gang::PlacedPod| Place {
            pod: PodId { job: *job, ..pod.pod },
            node: placement.state.nodes.cold(pod.node).node.name.clone(),
            devices: pod.devices,
        };
        Some(FoundStart {
            start_ms: time_ms,
            places: placed.into_iter().map(place).collect(),
            awaited: awaited.map(|(_, owner)| owner).collect(),
        })
    }
}
