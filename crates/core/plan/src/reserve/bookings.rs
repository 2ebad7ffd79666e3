//! Bookings with what is decided about them, and the room that is kept for them.
//!
//! A booking counts on the end of what holds its places when they are chosen. Whoever starts in its
//! room later, because it was lent until its time or because it is for that job, is counted on as
//! well: what it leaves is kept again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{
    Beneficiary, Booked, BookingVerdict, HoldingId, Job, JobId, Owner, ReservationId,
};

use super::bound::{OnNodes, expected_end_ms, gpus_of, held_gpus, inside, most_lent_milli};
use crate::engine::{Foreign, JobRecord, Jobs};
use crate::gang::{Gang, PlacedPod};
use crate::preemption::claims::{Leaving, Wanted, keep_wanted, still_held, wanted_by_claim};
use crate::preemption::has_room_for;
use dovetail_state::State;
use dovetail_state::holdings::HoldingRecord;
use dovetail_state::kept::ToKeep;

/// All bookings, by name.
#[derive(Debug, Default)]
pub(crate) struct Bookings {
    pub(super) all: BTreeMap<String, BookedGang>,
    /// The same by when they begin.
    by_time: BTreeSet<(u64, String)>,
    /// Jobs in whose place bookings count on: nobody preempts them.
    pub(crate) spared: BTreeSet<JobId>,
    /// Something was booked, or ended, that nothing follows yet.
    pub(super) is_changed: bool,
}

/// A booking with its pods as the search sees them.
#[derive(Debug)]
pub(super) struct BookedGang {
    pub(super) booked: Booked,
    pub(super) gang: Arc<Gang>,
}

/// Room of a booking that is free to a job.
pub(crate) struct Opened {
    name: String,
    kept: Vec<HoldingRecord>,
    /// GPUs that it may have of those that are booked, in milli-GPU, where these are lent to it.
    most_milli: Option<i64>,
}

/// What bookings are looked at beside: jobs, and what others hold.
pub(super) type Beside<'b> = (&'b Jobs, &'b Foreign);

impl Bookings {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Booked> {
        self.all.values().map(|entry| &entry.booked)
    }

    /// Takes over one with what was decided about it.
    pub(crate) fn adopt(&mut self, booked: Booked, gang: Arc<Gang>) {
        let name = booked.booking.name.clone();
        self.remove(&name);
        self.by_time.insert((booked.booking.from_ms, name.clone()));
        self.all.insert(name, BookedGang { booked, gang });
    }

    /// Forgets one; whether it was there.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let Some(entry) = self.all.remove(name) else { return false };
        self.by_time.remove(&(entry.booked.booking.from_ms, name.to_owned()))
    }

    /// Names by when they begin.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_time.iter().map(|(_, name)| name.as_str())
    }

    /// Those in force, the earliest first.
    fn in_force(&self) -> impl Iterator<Item = &BookedGang> + Clone {
        let all = self.by_time.iter().filter_map(|(_, name)| self.all.get(name));
        all.filter(|entry| entry.booked.verdict.is_in_force())
    }

    /// When something starts or ends.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        let due = |booked: &Booked| match booked.verdict {
            BookingVerdict::Admitted => Some(booked.booking.from_ms),
            BookingVerdict::Active => Some(booked.booking.to_ms),
            _ => None,
        };
        self.iter().filter_map(due).min()
    }

    /// Under which number room is reserved for jobs of this name alone.
    pub(crate) fn for_name(&self, job: &Job) -> Option<ReservationId> {
        let is_for = |booked: &&Booked| {
            let of = booked.booking.beneficiary.as_ref();
            let named = of.is_some_and(|of| matches!(of, Beneficiary::Job(_)) && of.is(job));
            named && booked.verdict.is_in_force()
        };
        self.iter().find(is_for).map(|booked| booked.claim.reservation)
    }

    /// Whether jobs of a queue, or those with this number, may use any room now.
    pub(crate) fn is_for(&self, queue: &str, number: Option<ReservationId>) -> bool {
        self.iter().filter(|booked| booked.verdict == BookingVerdict::Active).any(|booked| {
            match &booked.booking.beneficiary {
                Some(Beneficiary::Queue(of)) => of == queue,
                Some(Beneficiary::Job(_)) => number == Some(booked.claim.reservation),
                None => false,
            }
        })
    }

    /// The latest time until which room is lent.
    pub(crate) fn lent_until_ms(&self) -> Option<u64> {
        let admitted = self.iter().filter(|booked| booked.verdict == BookingVerdict::Admitted);
        admitted.map(|booked| booked.booking.from_ms).max()
    }

    /// Room that is free to a job now because it is booked for it. Where the same room is booked
    /// for later as well, the job must be expected (p90) to have left it by then.
    pub(crate) fn open_to(&self, state: &State, record: &JobRecord, now_ms: u64) -> Vec<Opened> {
        let job = &record.job;
        let end_ms = expected_end_ms(job, now_ms);
        let leaves_in_time = |entry: &&BookedGang| {
            let Booked { booking, claim, .. } = &entry.booked;
            self.in_force().all(|later| {
                let Booked { booking: next, claim: of_next, .. } = &later.booked;
                let is_later = next.from_ms >= booking.to_ms;
                let shares = || {
                    claim
                        .places
                        .iter()
                        .any(|place| of_next.places.iter().any(|other| other.node == place.node))
                };
                !is_later || !shares() || end_ms.is_some_and(|end_ms| end_ms <= next.from_ms)
            })
        };
        let is_for = |entry: &&BookedGang| {
            let Booked { booking, verdict, .. } = &entry.booked;
            *verdict == BookingVerdict::Active
                && booking.beneficiary.as_ref().is_some_and(|of| of.is(job))
        };
        let open = self.in_force().filter(is_for).filter(leaves_in_time);
        open.map(|entry| opened(state, &entry.booked, None)).collect()
    }

    /// Room that is lent to a job which leaves it before its time (p90): of each booking to at most
    /// `percent` of its GPUs.
    pub(crate) fn lent_to(
        &self,
        (state, jobs): (&State, &Jobs),
        record: &JobRecord,
        now_ms: u64,
        percent: u32,
    ) -> Vec<Opened> {
        let Some(end_ms) = expected_end_ms(&record.job, now_ms) else { return Vec::new() };
        let lends = |entry: &BookedGang| {
            let Booked { booking, verdict, .. } = &entry.booked;
            if *verdict != BookingVerdict::Admitted || end_ms > booking.from_ms {
                return None;
            }
            let own: i64 = entry.gang.sets.iter().map(|set| gpu_milli(state, set)).sum();
            let most_milli = most_lent_milli(own, percent) - entry.lent_milli(state, jobs);
            // How much of it the job would have is known when it has a place.
            (record.job.min_gpu_milli().min(1) <= most_milli)
                .then(|| opened(state, &entry.booked, Some(most_milli)))
        };
        self.in_force().filter_map(lends).collect()
    }

    /// A job has started where room was open to it: what it took of that is kept again when it
    /// leaves.
    pub(crate) fn note_start(&mut self, state: &State, open: &[Opened], placed: &[PlacedPod]) {
        for Opened { name, kept, .. } in open {
            let Some(entry) = self.all.get_mut(name) else { continue };
            for record in kept.iter().filter(|record| !has_room_for(state, record)) {
                let here = placed.iter().filter(|pod| pod.node == record.node);
                entry.booked.claim.awaited.extend(here.map(|pod| Owner::Pod(pod.pod)));
            }
        }
    }

    /// Keeps for each booking what it needs and is free by now.
    pub(crate) fn keep_all(&mut self, state: &mut State, beside: Beside<'_>) {
        for entry in self.all.values_mut() {
            still_held(&mut entry.booked.claim, state, beside);
        }
        for entry in self.in_force() {
            let wanted = self.wanted(entry, state, beside);
            keep_wanted(state, entry.booked.claim.reservation, wanted);
        }
        self.count_spared();
    }

    /// Notes in whose places bookings are.
    pub(crate) fn count_spared(&mut self) {
        let awaited = self.in_force().flat_map(|entry| &entry.booked.claim.awaited);
        let jobs = awaited.filter_map(|owner| match owner {
            Owner::Pod(pod) => Some(pod.job),
            _ => None,
        });
        self.spared = jobs.collect();
    }

    /// Inside a transaction: as if all were kept that bookings need beyond what those still hold
    /// whose ends they count on. One of them may be left out, and so may those that end by a time.
    pub(crate) fn fill(
        &self,
        state: &mut State,
        beside: Beside<'_>,
        but: Option<&str>,
        gone_by_ms: Option<u64>,
    ) {
        for entry in self.in_force() {
            for id in state.holdings.kept_by(entry.booked.claim.reservation) {
                state.release(id);
            }
        }
        for entry in self.in_force() {
            let Booked { booking, claim, .. } = &entry.booked;
            let is_gone = gone_by_ms.is_some_and(|time_ms| booking.to_ms <= time_ms);
            if is_gone || but == Some(booking.name.as_str()) {
                continue;
            }
            for (node, (amounts, devices)) in self.wanted(entry, state, beside) {
                let reservation = claim.reservation;
                ToKeep { node, reservation, amounts, devices }.hold(state);
            }
        }
    }

    /// What is to be kept for a booking. What others free is counted on once by all bookings of the
    /// same time.
    fn wanted(&self, of: &BookedGang, state: &State, beside: Beside<'_>) -> Wanted {
        let mut leaving = Leaving::new();
        for entry in self.in_force() {
            let is_it = std::ptr::eq(entry, of);
            if is_it || entry.booked.booking.overlaps(&of.booked.booking) {
                let awaited = self.awaited(entry, state, beside);
                let claim = (&entry.booked.claim, awaited.as_slice());
                let wanted = wanted_by_claim(state, &entry.gang, claim, &mut leaving);
                if is_it {
                    return wanted;
                }
            }
        }
        Wanted::new()
    }

    /// Whose room a booking counts on: its own, and that of bookings which end before it.
    fn awaited(&self, of: &BookedGang, state: &State, beside: Beside<'_>) -> Vec<HoldingId> {
        let (jobs, foreign) = beside;
        let mut awaited: BTreeSet<HoldingId> = BTreeSet::new();
        for entry in self.in_force() {
            let is_it = std::ptr::eq(entry, of);
            let ends_before = entry.booked.booking.to_ms <= of.booked.booking.from_ms;
            if !is_it && !ends_before {
                continue;
            }
            let claim = &entry.booked.claim;
            let held = claim.awaited.iter();
            awaited.extend(held.filter_map(|it| jobs.held_by_owner(state, foreign, it)));
            if ends_before {
                awaited.extend(state.holdings.kept_by(claim.reservation));
            }
        }
        awaited.into_iter().collect()
    }
}

impl BookedGang {
    /// GPUs of its places.
    fn gpus(&self, state: &State) -> OnNodes {
        let places = self.booked.claim.places.iter();
        let places =
            places.filter_map(|place| Some((place.pod.pod_set, state.nodes.find(&place.node)?)));
        gpus_of(state, &self.gang, places)
    }

    /// What running jobs have of its GPUs that were lent its room, in milli-GPU.
    fn lent_milli(&self, state: &State, jobs: &Jobs) -> i64 {
        let mut lent = self.lent_to(jobs).peekable();
        // Most lend nothing by now, and may have many places.
        if lent.peek().is_none() {
            return 0;
        }
        let reserved = self.gpus(state);
        let held = |record: &JobRecord| held_gpus(state, &record.gang, &record.holdings);
        lent.map(|record| inside(&held(record), &reserved)).sum()
    }

    /// Running jobs that were lent its room until its time.
    fn lent_to<'j>(&self, jobs: &'j Jobs) -> impl Iterator<Item = &'j JobRecord> + use<'j> {
        let since_ms = self.booked.since_ms;
        let awaited = self.booked.claim.awaited.iter();
        let awaited: BTreeSet<JobId> = awaited
            .filter_map(|owner| match owner {
                Owner::Pod(pod) => Some(pod.job),
                _ => None,
            })
            .collect();
        let running = awaited.into_iter().filter_map(|job| jobs.records.get(&job));
        running.filter(move |record| record.job.start_ms.is_some_and(|at_ms| at_ms >= since_ms))
    }
}

fn opened(state: &State, booked: &Booked, most_milli: Option<i64>) -> Opened {
    let kept = state.holdings.kept_by(booked.claim.reservation);
    let kept = kept.into_iter().map(|id| state.holdings.get(id).clone()).collect();
    Opened { name: booked.booking.name.clone(), kept, most_milli }
}

fn gpu_milli(state: &State, set: &crate::gang::GangSet) -> i64 {
    state.shapes.get(set.shape).gpu_milli * i64::from(set.min)
}

impl Opened {
    /// Whether a job with so many GPUs on these nodes, in milli-GPU, has more of those that are
    /// booked than are lent to it.
    pub(super) fn is_exceeded(&self, gpus: &OnNodes, state: &State, bookings: &Bookings) -> bool {
        let Some(most_milli) = self.most_milli else { return false };
        let booked = bookings.all.get(&self.name);
        booked.is_some_and(|entry| inside(gpus, &entry.gpus(state)) > most_milli)
    }

    /// What is held there.
    pub(crate) fn holdings<'o>(
        open: &'o [Self],
        state: &'o State,
        bookings: &'o Bookings,
    ) -> impl Iterator<Item = HoldingId> + 'o {
        let booked = open.iter().filter_map(|open| bookings.all.get(&open.name));
        booked.flat_map(|entry| state.holdings.kept_by(entry.booked.claim.reservation))
    }
}
