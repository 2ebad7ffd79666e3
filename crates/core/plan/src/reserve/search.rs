//! The earliest time at which a job can start, by the real placement.

use std::collections::BTreeSet;

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{Bounds, DeviceRequest, HoldingId, JobId, Owner, Place, PodId};

use crate::engine::{Books, NodeSearch};
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
        // Most that have a time do not find an earlier one.
        if before_ms < u64::MAX && self.fails_at_all(&ends) {
            return None;
        }
        let mut found = None;
        let mut probes = Probes::of(ends.len());
        while *self.operations_left > 0
            && let Some(probe) = probes.ask()
        {
            let at = self.place_at(ends[probe]);
            probes.note(probe, at.is_some());
            found = at.or(found);
        }
        found
    }

    /// Whether the job would be placed at none of these times, where it is enough to ask about the
    /// last one. If so, as many operations are counted as all probes take.
    fn fails_at_all(&mut self, ends: &[u64]) -> bool {
        let [_, .., last_ms] = *ends else { return false };
        let left = *self.operations_left;
        if left == 0 || !self.is_easier_later() {
            return false;
        }
        let fails = self.place_at(last_ms).is_none();
        *self.operations_left = left;
        if fails {
            self.count_failing(ends, last_ms);
        }
        fails
    }

    /// Whether it is proven that the job would be placed at each time after one at which it would
    /// be. It asks for whole devices at most, on any nodes, and nothing but whole ones is kept: a
    /// device that is empty with all that is kept stays so when others end. The exhaustive search
    /// asks about each time.
    fn is_easier_later(&self) -> bool {
        let Books { placement, kept, .. } = &*self.books;
        let [set] = self.gang.sets.as_slice() else { return false };
        let shape = placement.state.shapes.get(set.shape);
        let is_anywhere =
            self.gang.required.is_none() && self.gang.preferred.is_none() && !set.has_topology();
        let asks_whole = matches!(
            shape.requirement.device,
            DeviceRequest::None | DeviceRequest::Whole { same_island: false, .. }
        );
        let claims = kept.claims.iter().chain(kept.reserved.iter());
        let mut kept_devices =
            claims.flat_map(|claim| &claim.places).flat_map(|place| &place.devices);
        matches!(self.of, Of::Job(_))
            && matches!(placement.finder, NodeSearch::Indexed(_))
            && is_anywhere
            && asks_whole
            && shape.demand.is_plain()
            && kept.bookings.is_empty()
            && kept_devices.all(|(_, amount)| amount.compute_milli == WHOLE_DEVICE_MILLI)
    }

    /// Counts what it takes to ask about these times if the job is placed at none of them.
    fn count_failing(&mut self, ends: &[u64], last_ms: u64) {
        let holdings = &self.books.placement.state.holdings;
        let all = holdings.ending_between(self.after_ms, last_ms);
        let all: Vec<u64> = all.map(|(end_ms, _)| end_ms).collect();
        let mut probes = Probes::of(ends.len());
        while *self.operations_left > 0
            && let Some(probe) = probes.ask()
        {
            let ending = all.partition_point(|end_ms| *end_ms <= ends[probe]);
            *self.operations_left = self.operations_left.saturating_sub(operations(ending));
            probes.note(probe, false);
        }
    }

    /// Expected ends from now until then, each once.
    fn ends(&self, before_ms: u64) -> Vec<u64> {
        let placement = &self.books.placement;
        let holdings = &placement.state.holdings;
        let ends = holdings.ending_between(self.after_ms, before_ms.saturating_sub(1));
        let mut ends: Vec<u64> = ends.map(|(end_ms, _)| end_ms).collect();
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
        let ending = holdings.ending_between(placement.now_ms, time_ms);
        let ending: Vec<HoldingId> = ending.map(|(_, id)| id).collect();
        *self.operations_left = self.operations_left.saturating_sub(operations(ending.len()));
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
        let awaited = ending.into_iter().map(|id| placement.state.holdings.get(id));
        let awaited = awaited.filter(|held| used.contains(&held.node));
        let (Of::Job(job) | Of::Booking(job, _)) = &self.of;
        let place = |pod: crate::gang::PlacedPod| Place {
            pod: PodId { job: *job, ..pod.pod },
            node: placement.state.nodes.cold(pod.node).node.name.clone(),
            devices: pod.devices,
        };
        Some(FoundStart {
            start_ms: time_ms,
            places: placed.into_iter().map(place).collect(),
            awaited: awaited.map(|held| held.owner.clone()).collect(),
        })
    }
}

/// What it takes to place a job where so many holdings are gone.
fn operations(ending: usize) -> u64 {
    2 * ending as u64 + 1
}

/// Which of some times is asked about next, until the first good one is known: ever later ones
/// until one is good, then the one in the middle.
struct Probes {
    all: usize,
    /// So many of the earliest are bad.
    bad: usize,
    /// The earliest that is known to be good; `all` if none is.
    good: usize,
    step: usize,
}

impl Probes {
    fn of(all: usize) -> Self {
        Self { all, bad: 0, good: all, step: 1 }
    }

    fn ask(&mut self) -> Option<usize> {
        if self.good <= self.bad {
            return None;
        }
        let probe = match self.good < self.all {
            true => self.bad + (self.good - self.bad) / 2,
            false => (self.bad + self.step - 1).min(self.all - 1),
        };
        self.step *= 2;
        Some(probe)
    }

    fn note(&mut self, probe: usize, is_good: bool) {
        match is_good {
            true => self.good = probe,
            false => self.bad = probe + 1,
        }
    }
}
