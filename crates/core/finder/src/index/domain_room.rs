//! Room for one demand per domain: how many pods each node could take, summed up the tree.

use dovetail_model::NodeId;

use dovetail_state::State;
use dovetail_state::domains::Path;
use dovetail_state::log::Cursor;
use dovetail_state::scope::Scope;
use dovetail_state::shapes::ShapeId;

/// Sums of node capacities.
#[derive(Debug)]
pub(crate) struct DomainRoom {
    shape: ShapeId,
    cursor: Cursor,
    built: bool,
    per_node: Vec<(u32, Path)>,
    per_domain: Vec<u64>,
    everywhere: u64,
}

impl DomainRoom {
    pub(crate) fn new(shape: ShapeId) -> Self {
        Self {
            shape,
            cursor: Cursor::default(),
            built: false,
            per_node: Vec::new(),
            per_domain: Vec::new(),
            everywhere: 0,
        }
    }

    /// Brings the sums up to date.
    pub(crate) fn refresh(&mut self, state: &mut State) {
        let touched: Option<Vec<NodeId>> =
            state.log.touched_since(self.cursor).map(Iterator::collect);
        self.cursor = state.log.end();
        match touched.filter(|_| self.built) {
            Some(nodes) => nodes.into_iter().for_each(|node| self.recount(state, node)),
            None => {
                self.built = true;
                self.per_node.clear();
                self.per_domain.clear();
                self.everywhere = 0;
                for slot in 0..state.nodes.slots() {
                    self.recount(state, NodeId(slot as u32));
                }
            }
        }
    }

    pub(crate) fn of(&self, scope: Scope) -> u64 {
        let known = match scope {
            Scope::Everywhere => return self.everywhere,
            Scope::Domain(domain) => self.per_domain.get(domain as usize).copied(),
            Scope::Node(node) => self.per_node.get(node.index()).map(|(room, _)| u64::from(*room)),
        };
        known.unwrap_or(0)
    }

    fn recount(&mut self, state: &mut State, node: NodeId) {
        if self.per_node.len() <= node.index() {
            self.per_node.resize(node.index() + 1, (0, Path::new()));
        }
        self.per_domain.resize(self.per_domain.len().max(state.domains.count()), 0);
        let (old, old_path) = std::mem::take(&mut self.per_node[node.index()]);
        self.everywhere -= u64::from(old);
        for domain in old_path {
            self.per_domain[domain as usize] -= u64::from(old);
        }
        if !state.nodes.hot(node).is_present() {
            return;
        }
        let room = self.shape.capacity(state, node) as u32;
        let path = state.nodes.cold(node).path.clone();
        self.everywhere += u64::from(room);
        for domain in &path {
            self.per_domain[*domain as usize] += u64::from(room);
        }
        self.per_node[node.index()] = (room, path);
    }
}
