//! Scores of one demand on all nodes, or on those of one domain.

use dovetail_model::NodeId;
use rustc_hash::FxHashMap;

use crate::index::wide_tree::WideTree;
use dovetail_policy::{Policy, SCORE_LIMIT, whole_score};
use dovetail_state::State;
use dovetail_state::cause::{CAUSES, Cause, CauseCounts};
use dovetail_state::domains::DomainId;
use dovetail_state::log::Cursor;
use dovetail_state::rules::RuleVerdicts;
use dovetail_state::shapes::{Demand, ShapeId};

/// A tree of (score, rank) with the obstacle of every node that does not fit.
#[derive(Debug)]
pub(crate) struct ScoreIndex {
    shape: ShapeId,
    demand: Demand,
    /// Images that make a difference.
    images: Option<u32>,
    images_version: u64,
    domain: Option<DomainId>,
    tree: WideTree,
    /// First obstacle per leaf, as [`Cause`].
    causes: Vec<u8>,
    counts: CauseCounts,
    /// How many leaves are [`STALE`].
    stale: u32,
    /// Nodes by leaf; without a domain a leaf is a slot and this stays empty.
    members: Vec<NodeId>,
    leaf_of: FxHashMap<NodeId, usize>,
    cursor: Cursor,
    policy_version: u64,
    static_versions: u64,
    verdicts: RuleVerdicts,
    built: bool,
    touched: Vec<NodeId>,
}

const FITS: u8 = Cause::None as u8;
/// A leaf that stands for no node.
const NO_NODE: u8 = u8::MAX;
/// A leaf whose node still does not fit, after holds; which obstacle is first now is found out when
/// asked.
const STALE: u8 = u8::MAX - 1;
/// Touched nodes from which on they are taken in order.
const MANY: usize = 128;

impl ScoreIndex {
    pub(crate) fn new(
        state: &State,
        shape: ShapeId,
        images: Option<u32>,
        domain: Option<DomainId>,
    ) -> Self {
        Self {
            shape,
            demand: state.shapes.get(shape).demand.clone(),
            images,
            images_version: 0,
            domain,
            tree: WideTree::default(),
            causes: Vec::new(),
            counts: [0; CAUSES],
            stale: 0,
            members: Vec::new(),
            leaf_of: FxHashMap::default(),
            cursor: Cursor::default(),
            policy_version: 0,
            static_versions: 0,
            verdicts: RuleVerdicts::default(),
            built: false,
            touched: Vec::new(),
        }
    }

    /// Brings the scores up to date.
    #[inline]
    pub(crate) fn refresh(&mut self, state: &mut State, policy: &mut dyn Policy) {
        let end = state.log.end();
        let static_changed = self.static_versions != state.nodes.static_versions();
        let members_changed = static_changed && self.domain.is_some();
        if !self.built || members_changed {
            return self.rebuild(state, policy);
        }
        let new_version = self.policy_version != policy.version();
        if self.cursor == end && !new_version && !self.images_moved(state) {
            return;
        }
        self.touched.clear();
        let reaches_back = match state.log.touched_since(self.cursor) {
            Some(nodes) => {
                self.touched.extend(nodes);
                true
            }
            None => false,
        };
        if !reaches_back {
            return self.rebuild(state, policy);
        }
        if !self.demand.rules.is_empty() && !self.refresh_rules(state, static_changed) {
            return self.rebuild(state, policy);
        }
        if !self.demand.liking.counted.is_empty() && !self.touch_counted(state) {
            return self.rebuild(state, policy);
        }
        self.touch_images(state);
        self.static_versions = state.nodes.static_versions();
        let since = std::mem::replace(&mut self.cursor, end);
        self.rescore_touched(state, policy, since);
        if new_version {
            self.rescore_all(state, policy);
        }
    }

    /// Scores all nodes that fit anew for a new policy version; what keeps the others off stays.
    fn rescore_all(&mut self, state: &mut State, policy: &mut dyn Policy) {
        self.policy_version = policy.version();
        let mut tree = std::mem::take(&mut self.tree);
        tree.rebuild((0..self.causes.len()).map(|leaf| match self.causes[leaf] {
            FITS => {
                let node = self.node(leaf);
                let points = self.demand.points(state, self.images, node);
                let score = whole_score(policy, state, self.shape, points, node);
                key(score, state.nodes.hot(node).rank)
            }
            _ => 0,
        }));
        self.tree = tree;
    }

    /// Whether the scores are of this policy version, apart from nodes touched since.
    pub(crate) fn is_of(&self, policy_version: u64) -> bool {
        self.built && self.policy_version == policy_version
    }

    #[inline]
    pub(crate) fn best(&self) -> Option<NodeId> {
        self.tree.best().map(|(_, leaf)| self.node(leaf))
    }

    /// The best node if the best one were not there.
    pub(crate) fn runner_up(&mut self) -> Option<NodeId> {
        let (key, leaf) = self.tree.best()?;
        self.tree.set(leaf, 0);
        let second = self.best();
        self.tree.set(leaf, key);
        second
    }

    /// All nodes that fit, lowest rank first.
    pub(crate) fn fitting(&self, state: &State) -> Vec<NodeId> {
        let fits = |(_, cause): &(usize, &u8)| **cause == Cause::None as u8;
        let mut nodes: Vec<NodeId> =
            self.causes.iter().enumerate().filter(fits).map(|(leaf, _)| self.node(leaf)).collect();
        nodes.sort_unstable_by_key(|node| state.nodes.hot(*node).rank);
        nodes
    }

    /// Nodes by obstacle.
    pub(crate) fn obstacles(&mut self, state: &mut State) -> CauseCounts {
        for leaf in 0..self.causes.len() {
            if self.stale == 0 {
                break;
            }
            if self.causes[leaf] == STALE {
                let node = self.node(leaf);
                let cause = self.demand.obstacle(state, node);
                debug_assert!(cause != Cause::None, "a hold made room on node {node:?}");
                self.set_cause(leaf, cause as u8);
            }
        }
        self.counts
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.tree.bytes()
            + self.causes.capacity()
            + self.members.capacity() * 32
            + self.verdicts.bytes()
    }

    fn node(&self, leaf: usize) -> NodeId {
        if self.domain.is_some() { self.members[leaf] } else { NodeId(leaf as u32) }
    }

    fn rebuild(&mut self, state: &mut State, policy: &mut dyn Policy) {
        self.built = true;
        self.cursor = state.log.end();
        self.policy_version = policy.version();
        self.static_versions = state.nodes.static_versions();
        if let Some(domain) = self.domain {
            self.members = state.domains.nodes(domain).to_vec();
            self.leaf_of = self.members.iter().enumerate().map(|(l, node)| (*node, l)).collect();
        }
        self.images_version = self.images.map_or(0, |list| state.images.version(list));
        if !self.demand.rules.is_empty() {
            self.verdicts.refresh(&self.demand.rules, &state.counters, None, |_, _| {});
        }
        self.counts = [0; CAUSES];
        self.stale = 0;
        self.causes.clear();
        let leaves = match self.domain {
            Some(_) => self.members.len(),
            None => state.nodes.slots(),
        };
        let mut tree = std::mem::take(&mut self.tree);
        tree.rebuild((0..leaves).map(|leaf| {
            let (key, cause) = self.judge(state, policy, self.node(leaf));
            self.causes.push(cause);
            self.count(cause, 1);
            key
        }));
        self.tree = tree;
    }

    /// Brings the rule verdicts up to date and adds the nodes of values that flipped to the touched
    /// ones; false if the log no longer reaches back.
    fn refresh_rules(&mut self, state: &State, static_changed: bool) -> bool {
        let Some(moved) = state.log.moved_since(self.cursor) else { return false };
        let moved = (!static_changed).then_some(moved);
        let mut seen: rustc_hash::FxHashSet<NodeId> = self.touched.iter().copied().collect();
        let touched = &mut self.touched;
        self.verdicts.refresh(&self.demand.rules, &state.counters, moved, |rule, value| {
            let nodes = &state.counters.key_of(rule.counter).nodes[value as usize];
            touched.extend(nodes.iter().copied().filter(|node| seen.insert(*node)));
        });
        true
    }

    /// Adds the nodes in whose domains other pods are counted than before for what the pod prefers;
    /// false if the log no longer reaches back.
    fn touch_counted(&mut self, state: &State) -> bool {
        let Some(moved) = state.log.moved_since(self.cursor) else { return false };
        let mut seen: rustc_hash::FxHashSet<NodeId> = self.touched.iter().copied().collect();
        let mut looked_at: rustc_hash::FxHashSet<(u32, u32)> = Default::default();
        let liked = |counter: u32| self.demand.liking.counted.iter().any(|(c, _)| *c == counter);
        for (counter, value) in moved.iter().filter(|(counter, _)| liked(*counter)) {
            if looked_at.insert((*counter, *value)) {
                let nodes = &state.counters.key_of(*counter).nodes[*value as usize];
                self.touched.extend(nodes.iter().copied().filter(|node| seen.insert(*node)));
            }
        }
        true
    }

    /// Whether images are on another share of the nodes than when they were last looked at.
    #[inline]
    fn images_moved(&self, state: &State) -> bool {
        self.images.is_some_and(|list| state.images.version(list) != self.images_version)
    }

    /// Adds the nodes that have images whose share is another than before. Nodes that no longer
    /// have one are in the change log.
    fn touch_images(&mut self, state: &State) {
        let Some(list) = self.images.filter(|_| self.images_moved(state)) else { return };
        self.images_version = state.images.version(list);
        let mut seen: rustc_hash::FxHashSet<NodeId> = self.touched.iter().copied().collect();
        self.touched.extend(state.images.nodes_of(list).filter(|node| seen.insert(*node)));
    }

    /// Looks again at the touched nodes. Many are taken in the order of their leaves, which the
    /// caches of the machine like best.
    fn rescore_touched(&mut self, state: &mut State, policy: &mut dyn Policy, since: Cursor) {
        let mut touched = std::mem::take(&mut self.touched);
        let many = touched.len() >= MANY;
        if many {
            ascending(&mut touched, state.nodes.slots());
        }
        let holds_cannot_help = self.demand.is_plain();
        for node in &touched {
            let Some(leaf) = self.leaf(*node) else { continue };
            let known = self.causes.get(leaf).copied().unwrap_or(NO_NODE);
            if known != FITS
                && known != NO_NODE
                && holds_cannot_help
                && state.log.only_holds_since(since, *node)
            {
                self.set_cause(leaf, STALE);
                continue;
            }
            let (key, cause) = self.judge(state, policy, *node);
            self.set_cause(leaf, cause);
            match many {
                true => self.tree.put(leaf, key),
                false => self.tree.set(leaf, key),
            }
        }
        self.tree.settle();
        self.touched = touched;
    }

    #[inline]
    fn leaf(&self, node: NodeId) -> Option<usize> {
        match self.domain {
            None => Some(node.index()),
            Some(_) => self.leaf_of.get(&node).copied(),
        }
    }

    #[inline]
    fn set_cause(&mut self, leaf: usize, cause: u8) {
        if self.causes.len() <= leaf {
            self.causes.resize(leaf + 1, NO_NODE);
        }
        let old = std::mem::replace(&mut self.causes[leaf], cause);
        if old != cause {
            self.count(old, -1);
            self.count(cause, 1);
        }
    }

    #[inline]
    fn count(&mut self, cause: u8, by: i32) {
        match cause {
            NO_NODE => {}
            STALE => self.stale = self.stale.wrapping_add_signed(by),
            cause => {
                let count = &mut self.counts[usize::from(cause)];
                *count = count.wrapping_add_signed(by);
            }
        }
    }

    #[inline]
    fn judge(&self, state: &mut State, policy: &mut dyn Policy, node: NodeId) -> (u64, u8) {
        if !state.nodes.hot(node).is_present() {
            return (0, NO_NODE);
        }
        match self.demand.obstacle(state, node) {
            Cause::None => {
                let points = self.demand.points(state, self.images, node);
                let score = whole_score(policy, state, self.shape, points, node);
                (key(score, state.nodes.hot(node).rank), Cause::None as u8)
            }
            cause => (0, cause as u8),
        }
    }
}

/// Bits of a key that hold the rank; the rest holds the score.
const RANK_BITS: u32 = 24;

/// A key that orders by score, then by lowest rank; never 0.
#[inline]
fn key(score: i64, rank: u32) -> u64 {
    debug_assert!(score.abs() < SCORE_LIMIT, "score {score} has more than 40 bits");
    debug_assert!(rank < (1 << RANK_BITS) - 1, "rank {rank} has more than 24 bits");
    let above_zero = (score + SCORE_LIMIT) as u64;
    above_zero << RANK_BITS | u64::from((1 << RANK_BITS) - 1 - rank)
}

/// Sorts distinct nodes by slot, by way of one bit per slot.
fn ascending(nodes: &mut Vec<NodeId>, slots: usize) {
    let mut bits = vec![0u64; slots.div_ceil(64)];
    for node in nodes.iter() {
        bits[node.index() / 64] |= 1 << (node.index() % 64);
    }
    nodes.clear();
    for (word, mut bits) in bits.into_iter().enumerate() {
        while bits != 0 {
            nodes.push(NodeId(word as u32 * 64 + bits.trailing_zeros()));
            bits &= bits - 1;
        }
    }
}
