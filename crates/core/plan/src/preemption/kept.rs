//! Room that is held for one waiting job alone: by its claim, or by somebody outside under names
//! that the job states.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dovetail_model::{Action, Bounds, HoldingId, JobId, NodeId, Plan};

use super::rooms::{has_room_for, importance};
use crate::engine::Books;
use crate::gang::{Gang, PlacedPod};
use crate::state::holdings::HoldingRecord;

impl Books {
    /// Places a job with what is kept for it, and keeps it no longer if that succeeds.
    pub(crate) fn place_in_kept(
        &mut self,
        job: JobId,
        gang: &Gang,
        growth_limit: Bounds,
    ) -> Option<Vec<PlacedPod>> {
        let kept = self.all_kept_for(job);
        let has_claim = self.claims.get(job).is_some() || self.reserved.get(job).is_some();
        if kept.is_empty() && !has_claim {
            let placed = self.placement.place(job, gang, growth_limit);
            if placed.is_some() {
                drop(self.foreign.forget_rooms_of(&self.jobs.records[&job].job.kept_room));
            }
            return placed;
        }
        let state = &mut self.placement.state;
        let nodes: BTreeSet<NodeId> = kept.iter().map(|id| state.holdings.get(*id).node).collect();
        let mark = state.begin();
        kept.into_iter().for_each(|id| drop(state.release(id)));
        let placed = self.placement.place(job, gang, growth_limit);
        let state = &mut self.placement.state;
        if placed.is_none() {
            state.rollback(mark);
            return None;
        }
        state.commit(mark);
        let reserved = self.reserved.remove(job);
        let claim = self.claims.remove(job).or(reserved);
        let places = claim.map(|claim| claim.places).unwrap_or_default();
        for node in places.iter().filter_map(|place| state.nodes.find(&place.node)) {
            self.survey.forget(node);
        }
        for node in nodes {
            self.survey.forget(node);
            if state.nodes.cold(node).missing_devices > 0 {
                state.rebuild_devices(node);
            }
        }
        // Their numbers may be others' by now.
        drop(self.foreign.forget_rooms_of(&self.jobs.records[&job].job.kept_room));
        placed
    }

    /// Room that was kept for others is free for a job of higher priority; what was held there.
    pub(crate) fn give_up_room(
        &mut self,
        job: JobId,
        name: String,
        plan: &mut Plan,
    ) -> Option<HoldingRecord> {
        let id = self.foreign.forget(&name);
        let room = id.map(|id| self.placement.state.remove_holding(id));
        if let Some(room) = &room {
            self.survey.forget(room.node);
        }
        plan.actions.push(Action::RoomGivenUp { job, name });
        room
    }

    /// Reserves again, after the job has started that rooms were given up for, those that are not
    /// in its way: pods of several sets are placed one set after the other, which can fail beside a
    /// room that none of them uses then.
    pub(crate) fn hold_needless(&mut self, mut rooms: Vec<HoldingRecord>, plan: &mut Plan) {
        rooms.sort_by_key(|room| Reverse(importance(room)));
        for room in rooms {
            let (state, node) = (&mut self.placement.state, room.node);
            if !has_room_for(state, &room) {
                continue;
            }
            let Some(name) = self.foreign.reserve_again(state, room) else { continue };
            self.survey.forget(node);
            let is_of_it = |action: &Action| match action {
                Action::RoomGivenUp { name: given_up, .. } => *given_up == name,
                _ => false,
            };
            plan.actions.retain(|action| !is_of_it(action));
        }
    }

    /// All that is held for a waiting job alone, by its claim or under the names that it states.
    pub(crate) fn all_kept_for(&self, job: JobId) -> Vec<HoldingId> {
        let mut kept = self.room_held_for(job);
        let claims = self.claims.get(job).into_iter().chain(self.reserved.get(job));
        let claim = claims.map(|claim| claim.reservation);
        let holdings = &self.placement.state.holdings;
        kept.extend(claim.flat_map(|reservation| holdings.kept_by(reservation)));
        kept
    }

    /// What is held under the names that a waiting job states.
    pub(crate) fn room_held_for(&self, job: JobId) -> Vec<HoldingId> {
        let record = self.jobs.waiting(job);
        record.map(|record| self.foreign.room_of(&record.job)).unwrap_or_default()
    }

    /// Nothing is held any more under the names that a job states.
    pub(crate) fn end_room_held_for(&mut self, job: JobId) {
        let Some(record) = self.jobs.records.get(&job) else { return };
        for id in self.foreign.forget_rooms_of(&record.job.kept_room) {
            let node = self.placement.state.remove_holding(id).node;
            self.survey.forget(node);
        }
    }
}
