//! Room that is held for one waiting job alone: by its claim, or by somebody outside under names that the job states.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dovetail_model::{Action, Bounds, HoldingId, JobId, Knowledge, NodeId, Owner, Phase, Plan};

use super::rooms::{has_room_for, importance};
use crate::cause::Help;
use crate::engine::Engine;
use crate::gang::{Gang, PlacedPod};
use crate::state::holdings::HoldingRecord;

impl Engine {
    /// Places a job with what is kept for it, and keeps it no longer if that succeeds.
    pub(crate) fn place_in_kept(
        &mut self,
        job: JobId,
        gang: &Gang,
        growth_limit: Bounds,
    ) -> Option<Vec<PlacedPod>> {
        let kept = self.all_kept_for(job);
        if kept.is_empty() && self.claims.get(job).is_none() {
            let placed = self.place(job, gang, growth_limit);
            if placed.is_some() {
                drop(self.forget_room_held_for(job));
            }
            return placed;
        }
        let nodes: BTreeSet<NodeId> =
            kept.iter().map(|id| self.state.holdings.get(*id).node).collect();
        let mark = self.state.begin();
        kept.into_iter().for_each(|id| drop(self.state.release(id)));
        let placed = self.place(job, gang, growth_limit);
        if placed.is_none() {
            self.state.rollback(mark);
            return None;
        }
        self.state.commit(mark);
        let places = self.claims.remove(job).map(|claim| claim.places).unwrap_or_default();
        for node in places.iter().filter_map(|place| self.state.nodes.find(&place.node)) {
            self.survey.forget(node);
        }
        for node in nodes {
            self.survey.forget(node);
            if self.state.nodes.cold(node).missing_devices > 0 {
                self.state.rebuild_devices(node);
            }
        }
        // Their numbers may be others' by now.
        drop(self.forget_room_held_for(job));
        placed
    }

    /// Asks something as a job sees it: what is held for it alone, besides its claim, is free. Nothing changes.
    pub(crate) fn as_seen_by<T>(&mut self, job: JobId, ask: impl FnOnce(&mut Self) -> T) -> T {
        let own = self.room_held_for(job);
        self.as_if_free(own, ask)
    }

    /// Asks something as if these holdings were gone. Nothing changes.
    pub(crate) fn as_if_free<T>(
        &mut self,
        holdings: impl IntoIterator<Item = HoldingId>,
        ask: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut holdings = holdings.into_iter().peekable();
        if holdings.peek().is_none() {
            return ask(self);
        }
        let helped = self.state.helped;
        let mark = self.state.begin();
        holdings.for_each(|id| drop(self.state.release(id)));
        let answer = ask(self);
        self.state.rollback(mark);
        self.state.helped = helped;
        answer
    }

    /// Notes that a name is one under which room is kept for a job that is to come, or is not.
    pub(crate) fn note_room(&mut self, name: &str, phase: Phase) {
        if let Phase::Kept { priority } = phase {
            self.kept_rooms.insert(name.to_owned(), priority);
            // Others may start in its place.
            self.state.helped |= Help::ALL;
        } else {
            self.kept_rooms.remove(name);
        }
    }

    /// Room that is kept for jobs of a lower priority than this. What selectors count is none: as if it were gone, more
    /// would be different than that it is free.
    pub(super) fn lower_rooms(&self, priority: i32) -> Vec<HoldingId> {
        let lower = self.kept_rooms.iter().filter(|(_, of)| **of < priority);
        let held = lower.filter_map(|(name, _)| self.foreign.get(name).copied());
        held.filter(|id| {
            let record = self.state.holdings.get(*id);
            record.counts_into.is_empty() && record.attachments.is_empty()
        })
        .collect()
    }

    /// Room that was kept for others is free for a job of higher priority; what was held there.
    pub(crate) fn give_up_room(
        &mut self,
        job: JobId,
        name: String,
        plan: &mut Plan,
    ) -> Option<HoldingRecord> {
        let room = self.forget_foreign(&name).map(|id| self.state.remove_holding(id));
        if let Some(room) = &room {
            self.survey.forget(room.node);
        }
        plan.actions.push(Action::RoomGivenUp { job, name });
        room
    }

    /// Reserves again, after the job has started that rooms were given up for, those that are not in its way: pods of
    /// several sets are placed one set after the other, which can fail beside a room that none of them uses then.
    pub(crate) fn hold_needless(&mut self, mut rooms: Vec<HoldingRecord>, plan: &mut Plan) {
        rooms.sort_by_key(|room| Reverse(importance(room)));
        for room in rooms {
            let (Owner::Foreign(name), Phase::Kept { priority }) = (&room.owner, room.phase) else {
                continue;
            };
            let name = name.clone();
            if !has_room_for(&self.state, &room) {
                continue;
            }
            let node = room.node;
            let id = self.state.hold_again(room);
            if self.state.nodes.cold(node).node.knowledge == Knowledge::Counted {
                self.state.rebuild_devices(node);
            }
            self.survey.forget(node);
            self.kept_rooms.insert(name.clone(), priority);
            let is_of_it = |action: &Action| match action {
                Action::RoomGivenUp { name: given_up, .. } => *given_up == name,
                _ => false,
            };
            plan.actions.retain(|action| !is_of_it(action));
            self.foreign.insert(name, id);
        }
    }

    /// All that is held for a waiting job alone, by its claim or under the names that it states.
    pub(crate) fn all_kept_for(&self, job: JobId) -> Vec<HoldingId> {
        let mut kept = self.room_held_for(job);
        let claim = self.claims.get(job);
        kept.extend(claim.into_iter().flat_map(|c| self.state.holdings.kept_by(c.reservation)));
        kept
    }

    /// What is held under the names that a waiting job states.
    pub(crate) fn room_held_for(&self, job: JobId) -> Vec<HoldingId> {
        let record = self.jobs.get(&job).filter(|record| record.place.is_some());
        let names = record.into_iter().flat_map(|record| &record.job.kept_room);
        names.filter_map(|name| self.foreign.get(name).copied()).collect()
    }

    /// Nothing is held any more under the names that a job states.
    pub(crate) fn end_room_held_for(&mut self, job: JobId) {
        for id in self.forget_room_held_for(job) {
            let node = self.state.remove_holding(id).node;
            self.survey.forget(node);
        }
    }

    /// The names that a job states are nobody's; what was held under them.
    fn forget_room_held_for(&mut self, job: JobId) -> Vec<HoldingId> {
        let names = self.jobs.get(&job).map(|record| record.job.kept_room.clone());
        names.into_iter().flatten().filter_map(|name| self.forget_foreign(&name)).collect()
    }
}
