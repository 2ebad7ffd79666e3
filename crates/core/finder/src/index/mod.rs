//! Exact indices over the state: the best node and the room per domain, kept up to date lazily.
//!
//! One score tree per demand (resources × device need × mask × rules), refreshed only when it is
//! asked and only for what the change log says moved since. The trees are caches: dropping any of
//! them changes no decision, only its cost.

pub(crate) mod domain_room;
pub(crate) mod score_index;
pub mod wide_tree;

use std::collections::BTreeMap;

use dovetail_model::NodeId;
use rustc_hash::FxHashMap;

use crate::finder::Finder;
use crate::index::domain_room::DomainRoom;
use crate::index::score_index::ScoreIndex;
use dovetail_policy::random::RandomSequence;
use dovetail_policy::{Pick, Policy};
use dovetail_state::State;
use dovetail_state::cause::CauseCounts;
use dovetail_state::domains::DomainId;
use dovetail_state::scope::Scope;
use dovetail_state::shapes::ShapeId;

/// Memory that score trees may take before the least recently used ones are dropped, in bytes.
pub const DEFAULT_MAX_BYTES: usize = 512 << 20;

/// All trees. The bound is checked when a tree is built; at least one tree is always kept.
#[derive(Debug)]
pub struct Index {
    trees: FxHashMap<TreeKey, IndexedTree>,
    rooms: BTreeMap<u32, DomainRoom>,
    uses: u64,
    bytes: usize,
    max_bytes: usize,
    random: RandomSequence,
}

/// Demand, the images that make a difference, and the domain.
type TreeKey = (u32, Option<u32>, Option<DomainId>);

#[derive(Debug)]
struct IndexedTree {
    tree: ScoreIndex,
    bytes: usize,
    last_use: u64,
}

impl Default for Index {
    fn default() -> Self {
        Self::with_max_bytes(DEFAULT_MAX_BYTES)
    }
}

impl Index {
    /// An index that keeps its score trees within `max_bytes`.
    pub fn with_max_bytes(max_bytes: usize) -> Self {
        Self {
            trees: FxHashMap::default(),
            rooms: BTreeMap::new(),
            uses: 0,
            bytes: 0,
            max_bytes,
            random: RandomSequence::default(),
        }
    }

    /// The up-to-date tree of a shape in a scope.
    fn tree(
        &mut self,
        state: &mut State,
        policy: &mut dyn Policy,
        shape: ShapeId,
        domain: Option<DomainId>,
    ) -> &mut ScoreIndex {
        self.uses += 1;
        let images = shape.images_in_force(state);
        let key = (state.shapes.get(shape).demand_id, images, domain);
        if !self.trees.contains_key(&key) {
            let mut tree = ScoreIndex::new(state, shape, images, domain);
            tree.refresh(state, policy);
            let bytes = tree.bytes();
            self.make_room(bytes);
            self.bytes += bytes;
            self.trees.insert(key, IndexedTree { tree, bytes, last_use: self.uses });
        }
        let entry = self.trees.get_mut(&key).expect("present or just built");
        entry.last_use = self.uses;
        entry.tree.refresh(state, policy);
        &mut entry.tree
    }

    fn make_room(&mut self, bytes: usize) {
        while self.bytes + bytes > self.max_bytes {
            // order-free: no two trees were used last at the same moment
            let oldest = self.trees.iter().min_by_key(|(_, entry)| entry.last_use);
            let Some(key) = oldest.map(|(key, _)| *key) else { break };
            self.bytes -= self.trees.remove(&key).expect("just found").bytes;
        }
    }

    /// The second best node everywhere, for explanations.
    pub fn runner_up(
        &mut self,
        state: &mut State,
        policy: &mut dyn Policy,
        shape: ShapeId,
    ) -> Option<NodeId> {
        self.tree(state, policy, shape, None).runner_up()
    }
}

impl Finder for Index {
    fn best(
        &mut self,
        state: &mut State,
        policy: &mut dyn Policy,
        shape: ShapeId,
        scope: Scope,
    ) -> Option<NodeId> {
        let domain = match scope {
            Scope::Everywhere => None,
            Scope::Domain(domain) => Some(domain),
            Scope::Node(node) => return shape.fits(state, node).then_some(node),
        };
        match policy.pick() {
            Pick::Best => self.tree(state, policy, shape, domain).best(),
            Pick::Random { seed } => {
                let fitting = self.tree(state, policy, shape, domain).fitting(state);
                let place = (!fitting.is_empty()).then(|| self.random.below(seed, fitting.len()));
                place.map(|place| fitting[place])
            }
        }
    }

    fn room(&mut self, state: &mut State, shape: ShapeId, scope: Scope) -> u64 {
        let demand = state.shapes.get(shape).demand_id;
        let room = self.rooms.entry(demand).or_insert_with(|| DomainRoom::new(shape));
        room.refresh(state);
        room.of(scope)
    }

    fn obstacles(
        &mut self,
        state: &mut State,
        policy: &mut dyn Policy,
        shape: ShapeId,
    ) -> CauseCounts {
        self.tree(state, policy, shape, None).obstacles(state)
    }

    fn prepare(&mut self, state: &mut State, policy: &mut dyn Policy, shape: ShapeId) {
        let key = (state.shapes.get(shape).demand_id, shape.images_in_force(state), None);
        let current = self.trees.get(&key).is_some_and(|entry| entry.tree.is_of(policy.version()));
        if !current {
            self.tree(state, policy, shape, None);
        }
    }

    fn draws(&self) -> u64 {
        self.random.drawn
    }

    fn set_draws(&mut self, draws: u64) {
        self.random.drawn = draws;
    }
}
