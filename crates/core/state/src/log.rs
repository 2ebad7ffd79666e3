//! The change log: what an index has to look at again.

use dovetail_model::NodeId;

/// Entries kept for indices that lag behind; an index that lags further is rebuilt.
const KEPT_MIN: usize = 1 << 16;

/// Two append-only lists with a start that moves: touched nodes, and moved counters.
#[derive(Clone, Debug, Default)]
pub struct ChangeLog {
    nodes: Tail<u32>,
    /// Per node the position of its newest entry (older ones need no look), and behind its newest
    /// entry that was more than a hold.
    newest: Vec<(u64, u64)>,
    counters: Tail<(u32, u32)>,
}

/// The tail of an endless list.
#[derive(Clone, Debug)]
struct Tail<T> {
    start: u64,
    entries: Vec<T>,
}

impl<T> Default for Tail<T> {
    fn default() -> Self {
        Self { start: 0, entries: Vec::new() }
    }
}

impl<T> Tail<T> {
    fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    fn push(&mut self, entry: T, kept: usize) {
        if self.entries.len() >= 2 * kept {
            self.entries.drain(..kept);
            self.start += kept as u64;
        }
        self.entries.push(entry);
    }

    fn since(&self, cursor: u64) -> Option<&[T]> {
        self.entries.get(usize::try_from(cursor.checked_sub(self.start)?).ok()?..)
    }
}

/// Up to where an index has read the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub nodes: u64,
    pub counters: u64,
}

impl ChangeLog {
    /// Notes that anything about the node changed.
    pub fn touch(&mut self, node: NodeId) {
        self.touch_by_hold(node);
        self.newest[node.index()].1 = self.nodes.end();
    }

    /// Notes that something more is held on the node and nothing else changed: whatever did not fit
    /// there by itself does not fit now.
    #[inline]
    pub fn touch_by_hold(&mut self, node: NodeId) {
        if self.newest.len() <= node.index() {
            self.newest.resize(node.index() + 1, (0, 0));
        }
        self.newest[node.index()].0 = self.nodes.end();
        let kept = KEPT_MIN.max(self.newest.len());
        self.nodes.push(node.0, kept);
    }

    /// Notes that a counter moved for one value of its label.
    pub fn move_counter(&mut self, counter: u32, value: u32) {
        let kept = KEPT_MIN.max(self.newest.len());
        self.counters.push((counter, value), kept);
    }

    /// The position behind the newest entries.
    pub fn end(&self) -> Cursor {
        Cursor { nodes: self.nodes.end(), counters: self.counters.end() }
    }

    /// Nodes touched since the cursor, each once, in the order of their newest entry; `None` if the
    /// log no longer reaches back so far.
    #[inline]
    pub fn touched_since(&self, cursor: Cursor) -> Option<impl Iterator<Item = NodeId>> {
        let entries = self.nodes.since(cursor.nodes)?;
        Some(entries.iter().zip(cursor.nodes..).filter_map(|(node, position)| {
            (self.newest[*node as usize].0 == position).then_some(NodeId(*node))
        }))
    }

    /// Whether only holds touched the node since the cursor.
    #[inline]
    pub fn only_holds_since(&self, cursor: Cursor, node: NodeId) -> bool {
        self.newest[node.index()].1 <= cursor.nodes
    }

    /// (counter, value) pairs moved since the cursor; `None` if the log no longer reaches back.
    pub fn moved_since(&self, cursor: Cursor) -> Option<&[(u32, u32)]> {
        self.counters.since(cursor.counters)
    }
}
