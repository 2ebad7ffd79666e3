//! A bound that proves, without placing a gang, that some of its victims cannot be spared. Most of
//! many victims of one gang cannot, and to place the gang without each of them takes too long.

use std::collections::BTreeMap;

use dovetail_model::{HoldingId, HoldingPhase, NodeId, Owner};
use rustc_hash::{FxHashMap, FxHashSet};

use super::bounds::{NodeLeft, left_without};
use super::units::Unit;
use crate::gang::Gang;
use dovetail_state::State;
use dovetail_state::holdings::HoldingRecord;
use dovetail_state::scope::Scope;
use dovetail_state::shapes::ShapeId;

/// Below so many victims, placing the gang without each is as fast.
const FROM_UNITS: usize = 32;

/// How many pods of a gang all nodes take at most when its victims are gone.
pub(super) struct SparingBound {
    sets: Vec<SetRoom>,
}

struct SetRoom {
    shape: ShapeId,
    min: u64,
    room: u64,
    left: FxHashMap<NodeId, NodeLeft>,
}

impl SparingBound {
    /// `None` where it would not pay.
    pub(super) fn of(gang: &Gang, units: &[Unit], state: &mut State) -> Option<Self> {
        if units.len() < FROM_UNITS {
            return None;
        }
        let gone: FxHashSet<HoldingId> =
            units.iter().flat_map(|unit| &unit.holdings).copied().collect();
        let nodes = Scope::Everywhere.nodes(state);
        let goes = |id: HoldingId, record: &HoldingRecord| gone.contains(&id) || !stays(record);
        let mut sets = Vec::new();
        for set in gang.sets.iter().filter(|set| set.min > 0) {
            let (mut left, mut room) = (FxHashMap::default(), 0);
            for node in &nodes {
                let Some(there) = left_without(set.shape, *node, state, goes) else { continue };
                room += u64::from(there.pods(set.shape, state));
                left.insert(*node, there);
            }
            sets.push(SetRoom { shape: set.shape, min: u64::from(set.min), room, left });
        }
        Some(Self { sets })
    }

    /// Whether the gang does not fit if these victims stay. Never wrong when it says yes.
    pub(super) fn refutes(&self, staying: &[Unit], state: &State) -> bool {
        self.sets.iter().any(|set| {
            let lost: u64 = set.with(staying, state).map(|(_, _, lost)| lost).sum();
            set.room - lost < set.min
        })
    }

    /// These victims stay.
    pub(super) fn keep(&mut self, staying: &[Unit], state: &State) {
        for set in &mut self.sets {
            for (node, left, lost) in set.with(staying, state).collect::<Vec<_>>() {
                set.left.insert(node, left);
                set.room -= lost;
            }
        }
    }
}

impl SetRoom {
    /// Nodes on which these victims stay, with what is left there and for how many pods less.
    fn with(
        &self,
        staying: &[Unit],
        state: &State,
    ) -> impl Iterator<Item = (NodeId, NodeLeft, u64)> {
        let mut there: BTreeMap<NodeId, NodeLeft> = BTreeMap::new();
        for id in staying.iter().flat_map(|unit| &unit.holdings) {
            let record = state.holdings.get(*id);
            let before = self.left.get(&record.node).filter(|_| stays(record));
            if let Some(before) = before {
                there.entry(record.node).or_insert(*before).without(record);
            }
        }
        there.into_iter().map(|(node, left)| {
            let pods = |left: &NodeLeft| u64::from(left.pods(self.shape, state));
            let lost = pods(&self.left[&node]) - pods(&left);
            (node, left, lost)
        })
    }
}

/// Whether something is there until somebody makes it go.
fn stays(record: &HoldingRecord) -> bool {
    let leaves = matches!(record.phase, HoldingPhase::Releasing { .. });
    !leaves && !matches!(record.owner, Owner::Reservation)
}
