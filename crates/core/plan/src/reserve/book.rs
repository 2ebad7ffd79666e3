//! All reservations, and to whom their room is lent.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{JobId, Plan, PreemptionReservation, Reserved};

use super::awaited::note_no_longer_awaited;
use super::calendar::Calendar;
use super::known_heads::KnownHeads;
use super::{LentRooms, ReserveConfig};
use crate::engine::Books;
use crate::preemption::ReservedCapacity;
use dovetail_state::cause::Help;

/// Reservations of jobs that are next. Each is a claim that waits for ends
/// ([`ReservedCapacity::reserved`]): `until_ms` is when the job is to start.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    pub(super) config: ReserveConfig,
    /// Jobs in the room of each.
    pub(super) lent: LentRooms,
    /// Jobs for which no time was found, each with how many allocations without a known end there
    /// were. They are searched for again when there are others, or when nodes change.
    pub(super) hopeless: BTreeMap<JobId, u64>,
    /// Jobs that have found no time, or wait for their quota, since this cycle began or a job last
    /// started in it: until then they are not searched for again, whatever reservation ends. So a
    /// cycle that starts nothing more comes to an end.
    pub(super) set_aside: BTreeSet<JobId>,
    /// The job with a reservation that was first of all when it had one, whatever its queue gets
    /// since then; one at a time.
    pub(super) keeps_turn: Option<JobId>,
    /// Whether a reservation was made or ended since it was last asked who keeps its turn.
    pub(super) is_turn_open: bool,
    /// Holds and releases left to the searches of this cycle.
    pub(super) operations_left: u64,
    /// Who may have a reservation, while nothing changes that this depends on.
    pub(super) known_heads: KnownHeads,
}

impl Reservations {
    pub(crate) fn new(
        config: ReserveConfig,
        reserved: &[Reserved],
        hopeless: &[(JobId, u64)],
    ) -> Self {
        let hopeless = hopeless.iter().copied().collect();
        let keeps_turn = reserved.iter().find(|reserved| reserved.keeps_turn);
        let keeps_turn = keeps_turn.map(|reserved| reserved.claim.job);
        Self {
            config,
            lent: LentRooms::of(reserved),
            hopeless,
            set_aside: BTreeSet::new(),
            keeps_turn,
            is_turn_open: false,
            operations_left: 0,
            known_heads: KnownHeads::default(),
        }
    }

    /// Whether anything is reserved at all.
    pub(crate) fn is_on(&self) -> bool {
        self.config.heads > 0
    }

    /// As plain data.
    pub(crate) fn export(&self, kept: &ReservedCapacity) -> Vec<Reserved> {
        kept.reserved.iter().map(|claim| plain(self, kept, claim)).collect()
    }

    /// Jobs for which no time was found, without those that the next cycle searches for again
    /// whatever happens.
    pub(crate) fn hopeless(&self, kept: &ReservedCapacity) -> Vec<(JobId, u64)> {
        let is_any_known = !kept.news.fewer_reserved && !kept.bookings.is_changed;
        let is_known = |job: &JobId| is_any_known && !kept.news.ended.contains(job);
        let hopeless = self.hopeless.iter().filter(|(job, _)| is_known(job));
        hopeless.map(|(job, open)| (*job, *open)).collect()
    }

    /// The latest expected end of a job that ended before it and that nothing was searched for
    /// after yet.
    pub(crate) fn freed_until_ms(&self, kept: &ReservedCapacity) -> u64 {
        if self.is_on() { kept.news.freed_until_ms } else { 0 }
    }

    /// At the start of a cycle: bookings are admitted, begin, find other places and end. `raised`
    /// says that expected ends were.
    pub(crate) fn settle_bookings(&mut self, books: &mut Books, raised: bool, plan: &mut Plan) {
        let bookings = &books.kept.bookings;
        if bookings.is_empty() && !bookings.is_changed {
            return;
        }
        self.operations_left = self.config.max_operations;
        let helped = books.placement.state.helped;
        let spared = bookings.spared.clone();
        Calendar::of(books).advance(raised, &mut self.operations_left);
        let is_changed = std::mem::take(&mut books.kept.bookings.is_changed);
        if is_changed || raised || helped != Help::NONE {
            self.keep_all(books);
        }
        // Also where no booking is left.
        books.kept.bookings.count_spared();
        note_no_longer_awaited(&spared, books);
        if is_changed {
            self.hopeless.clear();
            books.kept.news.is_unsettled = true;
            Calendar::of(books).reclass(plan);
        }
    }

    /// Takes in which jobs have ended; until when they were expected to hold on.
    pub(super) fn follow(&mut self, kept: &mut ReservedCapacity) -> u64 {
        kept.news.is_unsettled = true;
        for job in std::mem::take(&mut kept.news.ended) {
            self.forget(job);
        }
        std::mem::take(&mut kept.news.freed_until_ms)
    }

    /// A job starts: it lends nothing any more.
    pub(crate) fn forget_waiting(&mut self, job: JobId) {
        self.known_heads.forget();
        self.set_aside.clear();
        self.hopeless.remove(&job);
        self.lent.end_by(job);
    }

    /// A job leaves: nothing is lent by it any more, or to it.
    fn forget(&mut self, job: JobId) {
        self.hopeless.remove(&job);
        self.lent.end_by(job);
        self.lent.end_to(job);
    }

    /// When expected ends may have passed that reservations count on.
    pub(crate) fn due_ms(kept: &ReservedCapacity) -> Option<u64> {
        kept.reserved.iter().map(|claim| claim.until_ms.saturating_add(1)).min()
    }
}

/// The reservations of jobs that have lent any of them, as plain data.
pub(crate) fn that_lend(all: &Reservations, kept: &ReservedCapacity) -> Vec<Reserved> {
    let lends = |claim: &&PreemptionReservation| all.lent.by(claim.job).next().is_some();
    kept.reserved.iter().filter(lends).map(|claim| plain(all, kept, claim)).collect()
}

fn plain(all: &Reservations, kept: &ReservedCapacity, claim: &PreemptionReservation) -> Reserved {
    let lent = all.lent.by(claim.job).filter(|to| !kept.news.ended.contains(to)).collect();
    Reserved { claim: claim.clone(), lent, keeps_turn: all.keeps_turn == Some(claim.job) }
}
