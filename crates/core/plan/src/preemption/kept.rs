//! What is kept: for waiting jobs alone, by their claims and reservations or by somebody outside
//! under names that they state, and under names for jobs to come.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dovetail_model::{Action, Bounds, HoldingId, JobId, NodeId, Owner, Plan};

use super::rooms::{has_room_for, importance};
use super::{Claims, OutlookSurvey};
use crate::engine::{Foreign, JobRecord, Jobs, Placement};
use crate::gang::{Gang, PlacedPod};
use crate::reserve::{Bookings, LentRooms, Opened};
use dovetail_state::State;
use dovetail_state::holdings::HoldingRecord;

/// By whom room is set aside for whom.
#[derive(Debug, Default)]
pub(crate) struct ReservedCapacity {
    /// Until those have left who are preempted for a job.
    pub(crate) claims: Claims,
    /// Until those are expected to have left who are in the way of a job that is next.
    pub(crate) reserved: Claims,
    /// From one time to another.
    pub(crate) bookings: Bookings,
    pub(crate) foreign: Foreign,
    pub(crate) news: News,
}

/// What happened that reservations follow at the next cycle.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Somebody else than before may be who is to get a reservation.
    pub(crate) is_unsettled: bool,
    /// A reservation is over: its job started, left or waits on without.
    pub(crate) fewer_reserved: bool,
    /// The latest expected end of a job that ended before it.
    pub(crate) freed_until_ms: u64,
    /// Jobs that are over, or away.
    pub(crate) ended: BTreeSet<JobId>,
}

impl News {
    fn note_ended(&mut self, was_reserved: bool) {
        self.is_unsettled |= was_reserved;
        self.fewer_reserved |= was_reserved;
    }
}

impl ReservedCapacity {
    /// Keeps for each claim what it needs and is free by now.
    pub(crate) fn keep_claims(&mut self, state: &mut State, jobs: &Jobs) {
        self.claims.keep_all(state, (jobs, &self.foreign));
    }

    /// The same after a claim of a job was made, and nothing else has happened.
    pub(crate) fn keep_claim(&mut self, job: JobId, state: &mut State, jobs: &Jobs) {
        self.claims.keep_new(job, state, (jobs, &self.foreign));
    }

    /// Holds for each reservation what it needs and is free by now, beside what claims keep for
    /// those that it is `lent` to.
    pub(crate) fn keep_reserved(&mut self, state: &mut State, jobs: &Jobs, lent: &LentRooms) {
        let Self { claims, reserved, foreign, .. } = self;
        let claims: &Claims = claims;
        let in_its_room = |state: &State, lender: JobId| -> Vec<HoldingId> {
            let borrowers = lent.by(lender).filter_map(|job| claims.get(job));
            borrowers.flat_map(|claim| state.holdings.kept_by(claim.reservation)).collect()
        };
        reserved.keep_all_beside(state, (jobs, &*foreign), in_its_room);
    }

    /// Holds for each booking what it needs and is free by now.
    pub(crate) fn keep_bookings(&mut self, state: &mut State, jobs: &Jobs) {
        self.bookings.keep_all(state, (jobs, &self.foreign));
    }

    /// Inside a transaction: as if everything were kept that claims and bookings are for, beside
    /// what those still hold who are there.
    pub(crate) fn fill_all(&self, state: &mut State, jobs: &Jobs) {
        self.claims.fill_all(state, jobs);
        self.bookings.fill(state, (jobs, &self.foreign), None, None);
    }

    /// All that is held for a waiting job alone, by its claims or under the names that it states,
    /// and what is booked for it.
    pub(crate) fn all_for(&self, placement: &Placement, record: &JobRecord) -> Vec<HoldingId> {
        let state = &placement.state;
        let mut kept = self.own_of(state, record);
        let open = self.bookings.open_to(state, record, placement.now_ms);
        kept.extend(Opened::holdings(&open, state, &self.bookings));
        kept
    }

    /// All that is held for a waiting job alone, by its claims or under the names that it states.
    pub(crate) fn own_of(&self, state: &State, record: &JobRecord) -> Vec<HoldingId> {
        let mut kept = self.foreign.room_of(&record.job);
        let job = record.job.id;
        let claims = self.claims.get(job).into_iter().chain(self.reserved.get(job));
        kept.extend(claims.flat_map(|claim| state.holdings.kept_by(claim.reservation)));
        kept
    }

    /// Whether something is reserved for a job on one of these nodes.
    pub(crate) fn holds_reserved_on(
        &self,
        state: &State,
        job: JobId,
        nodes: &BTreeSet<NodeId>,
    ) -> bool {
        self.reserved_for(state, job).any(|id| nodes.contains(&state.holdings.get(id).node))
    }

    /// Whether anything is held by now of what is reserved for a job.
    pub(crate) fn holds_reserved(&self, state: &State, job: JobId) -> bool {
        self.reserved_for(state, job).next().is_some()
    }

    /// Jobs that a job may not preempt: reservations count on their places that it does not get.
    pub(crate) fn promised_to_others(
        &self,
        job: JobId,
        yielding: &BTreeSet<JobId>,
    ) -> BTreeSet<JobId> {
        let others = self.reserved.iter();
        let others = others.filter(|claim| claim.job != job && !yielding.contains(&claim.job));
        let pods = others.flat_map(|claim| &claim.awaited).filter_map(|owner| match owner {
            Owner::Pod(pod) => Some(pod.job),
            Owner::Foreign(_) | Owner::Reservation => None,
        });
        pods.chain(self.bookings.spared.iter().copied()).collect()
    }

    /// The same, and what is reserved for others that yield it.
    pub(crate) fn own_or_yielded<'j>(
        &self,
        state: &State,
        record: &JobRecord,
        yielding: impl IntoIterator<Item = &'j JobId>,
    ) -> Vec<HoldingId> {
        let mut kept = self.own_of(state, record);
        kept.extend(yielding.into_iter().flat_map(|other| self.reserved_for(state, *other)));
        kept
    }

    fn reserved_for(&self, state: &State, job: JobId) -> impl Iterator<Item = HoldingId> {
        let claim = self.reserved.get(job).into_iter();
        claim.flat_map(|claim| state.holdings.kept_by(claim.reservation))
    }

    /// Places a job with what is kept for it, and keeps it no longer if that succeeds.
    pub(crate) fn place_in_own(
        &mut self,
        (placement, survey): (&mut Placement, &mut OutlookSurvey),
        record: &JobRecord,
        gang: &Gang,
        growth_limit: Bounds,
    ) -> Option<Vec<PlacedPod>> {
        let job = record.job.id;
        let mut kept = self.own_of(&placement.state, record);
        let open = self.bookings.open_to(&placement.state, record, placement.now_ms);
        kept.extend(Opened::holdings(&open, &placement.state, &self.bookings));
        let has_claim = self.claims.get(job).is_some() || self.reserved.get(job).is_some();
        if kept.is_empty() && !has_claim {
            let placed = placement.place(job, gang, growth_limit);
            if placed.is_some() {
                drop(self.foreign.forget_rooms_of(&record.job.kept_room));
            }
            return placed;
        }
        let state = &mut placement.state;
        let nodes: BTreeSet<NodeId> = kept.iter().map(|id| state.holdings.get(*id).node).collect();
        let mark = state.begin();
        kept.into_iter().for_each(|id| drop(state.release(id)));
        let placed = placement.place(job, gang, growth_limit);
        let state = &mut placement.state;
        if placed.is_none() {
            state.rollback(mark);
            return None;
        }
        state.commit(mark);
        self.bookings.note_start(state, &open, placed.as_deref().unwrap_or_default());
        let reserved = self.reserved.remove(job);
        self.news.note_ended(reserved.is_some());
        let claim = self.claims.remove(job).or(reserved);
        let places = claim.map(|claim| claim.places).unwrap_or_default();
        for node in places.iter().filter_map(|place| state.nodes.find(&place.node)) {
            survey.forget(node);
        }
        for node in nodes {
            survey.forget(node);
            if state.nodes.cold(node).missing_devices > 0 {
                state.rebuild_devices(node);
            }
        }
        // Their numbers may be others' by now.
        drop(self.foreign.forget_rooms_of(&record.job.kept_room));
        placed
    }

    /// Nothing is kept for a job any more that has started.
    pub(crate) fn forget(&mut self, record: &JobRecord) {
        let reserved = self.reserved.remove(record.job.id);
        self.news.note_ended(reserved.is_some());
        self.claims.remove(record.job.id);
        drop(self.foreign.forget_rooms_of(&record.job.kept_room));
    }

    /// Frees what is reserved for a job; whether anything was.
    pub(crate) fn release(
        &mut self,
        state: &mut State,
        survey: &mut OutlookSurvey,
        job: JobId,
    ) -> bool {
        let Some(claim) = self.reserved.remove(job) else { return false };
        self.news.note_ended(true);
        for id in state.holdings.kept_by(claim.reservation) {
            survey.forget(state.remove_holding(id).node);
        }
        true
    }

    /// Frees what is held of what is reserved for a job, which is held again at once as far as it
    /// is there: nobody else gets it.
    pub(crate) fn lift_reserved(&self, state: &mut State, survey: &mut OutlookSurvey, job: JobId) {
        let (helped, nodes) = (state.helped, state.helped_nodes.len());
        let held: Vec<HoldingId> = self.reserved_for(state, job).collect();
        for id in held {
            survey.forget(state.remove_holding(id).node);
        }
        state.helped = helped;
        state.helped_nodes.truncate(nodes);
    }

    /// Nothing is held any more under the names that a job states.
    pub(crate) fn end_room_for(
        &mut self,
        state: &mut State,
        survey: &mut OutlookSurvey,
        record: &JobRecord,
    ) {
        for id in self.foreign.forget_rooms_of(&record.job.kept_room) {
            survey.forget(state.remove_holding(id).node);
        }
    }

    /// Room that was kept for others is free for a job of higher priority; what was held there.
    pub(crate) fn give_up_room(
        &mut self,
        (state, survey): (&mut State, &mut OutlookSurvey),
        job: JobId,
        name: String,
        plan: &mut Plan,
    ) -> Option<HoldingRecord> {
        let room = self.foreign.forget(&name).map(|id| state.remove_holding(id));
        if let Some(room) = &room {
            survey.forget(room.node);
        }
        plan.actions.push(Action::RoomGivenUp { job, name });
        room
    }

    /// Reserves again, after the job has started that rooms were given up for, those that are not
    /// in its way: pods of several sets are placed one set after the other, which can fail beside a
    /// room that none of them uses then.
    pub(crate) fn hold_needless(
        &mut self,
        (state, survey): (&mut State, &mut OutlookSurvey),
        mut rooms: Vec<HoldingRecord>,
        plan: &mut Plan,
    ) {
        rooms.sort_by_key(|room| Reverse(importance(room)));
        for room in rooms {
            let node = room.node;
            if !has_room_for(state, &room) {
                continue;
            }
            let Some(name) = self.foreign.reserve_again(state, room) else { continue };
            survey.forget(node);
            let is_of_it = |action: &Action| match action {
                Action::RoomGivenUp { name: given_up, .. } => *given_up == name,
                _ => false,
            };
            plan.actions.retain(|action| !is_of_it(action));
        }
    }

    /// A job is over, maybe before it was expected to be.
    pub(crate) fn note_end(&mut self, record: &JobRecord, state: &State) {
        let end_ms = |id| state.holdings.get(id).phase.expected_end_ms().unwrap_or(u64::MAX);
        let latest_ms = record.holdings.iter().map(|id| end_ms(*id)).max();
        self.news.freed_until_ms = self.news.freed_until_ms.max(latest_ms.unwrap_or(0));
        self.news.ended.insert(record.job.id);
    }
}
