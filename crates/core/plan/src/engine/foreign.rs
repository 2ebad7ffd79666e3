//! What others hold under names, and room that is reserved under names for jobs to come.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Holding, HoldingId, HoldingPhase, Job, Knowledge, Owner, Selectors};

use dovetail_state::State;
use dovetail_state::cause::Help;
use dovetail_state::holdings::HoldingRecord;

/// Holdings by the name of their owner.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    held: BTreeMap<String, HoldingId>,
    /// On nodes that are not there yet.
    unplaced: BTreeMap<String, Holding>,
    /// Names of reservations for jobs to come, with their priority; some may hold nothing any more.
    reserved: BTreeMap<String, i32>,
}

impl Foreign {
    pub(crate) fn get(&self, name: &str) -> Option<HoldingId> {
        self.held.get(name).copied()
    }

    /// What is held on nodes that are not there yet.
    pub(crate) fn unplaced(&self) -> impl Iterator<Item = &Holding> {
        self.unplaced.values()
    }

    /// Something is held under a name, instead of what was.
    pub(crate) fn hold(&mut self, state: &mut State, holding: Holding) {
        let Owner::Foreign(name) = &holding.owner else { return };
        let name = name.clone();
        if let Some(id) = self.held.remove(&name) {
            state.remove_holding(id);
        }
        let id = state.add_holding(&holding);
        self.adopt(state, &name, (holding, id));
    }

    /// What is held under a name was added to the state, if its node is there.
    pub(crate) fn adopt(
        &mut self,
        state: &mut State,
        name: &str,
        (holding, id): (Holding, Option<HoldingId>),
    ) {
        if let HoldingPhase::Kept { priority } = holding.phase {
            self.reserved.insert(name.to_owned(), priority);
            // Others may start in its place.
            state.helped |= Help::ALL;
        } else {
            self.reserved.remove(name);
        }
        self.unplaced.remove(name);
        match id {
            Some(id) => drop(self.held.insert(name.to_owned(), id)),
            None => drop(self.unplaced.insert(name.to_owned(), holding)),
        }
    }

    /// A name is nobody's; what was held under it.
    pub(crate) fn forget(&mut self, name: &str) -> Option<HoldingId> {
        self.unplaced.remove(name);
        self.reserved.remove(name);
        self.held.remove(name)
    }

    /// The names that a job states are nobody's; what was held under them.
    pub(crate) fn forget_rooms_of(&mut self, names: &BTreeSet<String>) -> Vec<HoldingId> {
        names.iter().filter_map(|name| self.forget(name)).collect()
    }

    /// What is held under the names that a job states.
    pub(crate) fn room_of(&self, job: &Job) -> Vec<HoldingId> {
        job.kept_room.iter().filter_map(|name| self.get(name)).collect()
    }

    /// A node is there: what is held on it.
    pub(crate) fn take_on(&mut self, node: &str) -> Vec<Holding> {
        let here = |holding: &Holding| &*holding.node == node;
        let names: Vec<String> =
            self.unplaced.iter().filter(|(_, h)| here(h)).map(|(name, _)| name.clone()).collect();
        names.iter().filter_map(|name| self.unplaced.remove(name)).collect()
    }

    /// A node is gone with what was held on it.
    pub(crate) fn forget_lost(&mut self, state: &State) {
        self.held.retain(|_, id| state.holdings.contains(*id));
    }

    /// Which selectors count what is held on a node that is not there yet; false if there is no
    /// such holding.
    pub(crate) fn count_unplaced(&mut self, name: &str, counts_into: &Selectors) -> bool {
        let holding = self.unplaced.get_mut(name);
        holding.map(|holding| holding.counts_into = counts_into.clone()).is_some()
    }

    /// Whether room is reserved for a job to come of a lower priority than this.
    pub(crate) fn has_room_below(&self, priority: i32) -> bool {
        self.reserved.values().any(|of| *of < priority)
    }

    /// Room that is reserved for jobs of a lower priority than this. What selectors count is none:
    /// as if it were gone, more would be different than that it is free.
    pub(crate) fn rooms_below(&self, state: &State, priority: i32) -> Vec<HoldingId> {
        let lower = self.reserved.iter().filter(|(_, of)| **of < priority);
        let held = lower.filter_map(|(name, _)| self.get(name));
        held.filter(|id| {
            let record = state.holdings.get(*id);
            record.counts_into.is_empty() && record.attachments.is_empty()
        })
        .collect()
    }

    /// Room is reserved again that was not in the way of the job that it was given up for; its
    /// name.
    pub(crate) fn reserve_again(
        &mut self,
        state: &mut State,
        room: HoldingRecord,
    ) -> Option<String> {
        let (Owner::Foreign(name), HoldingPhase::Kept { priority }) = (&room.owner, room.phase)
        else {
            return None;
        };
        let (name, node) = (name.clone(), room.node);
        let id = state.hold_again(room);
        if state.nodes.cold(node).node.knowledge == Knowledge::Counted {
            state.rebuild_devices(node);
        }
        self.reserved.insert(name.clone(), priority);
        self.held.insert(name.clone(), id);
        Some(name)
    }
}
