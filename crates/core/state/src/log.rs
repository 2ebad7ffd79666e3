//! The change log: what an index has to look at again.

use std::cmp::Reverse;
use std::collections::VecDeque;

use dovetail_model::NodeId;

/// Entries kept for indices that lag behind; an index that lags further is rebuilt.
const KEPT_MIN: usize = 1 << 16;

/// Two append-only lists with a start that moves: touched nodes, and moved counters.
#[derive(Clone, Debug, Default)]
pub struct ChangeLog {
    nodes: Touches,
    /// Per node the position of its newest entry (older ones need no look), and behind its newest
    /// entry that was more than a hold.
    newest: Vec<(u64, u64)>,
    /// Behind the newest entry that no rollback undoes.
    lasting: u64,
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
        self.newest[node.index()].1 = self.nodes.end;
    }

    /// The same where that stays so even if the transaction is undone.
    pub fn touch_lasting(&mut self, node: NodeId) {
        self.touch(node);
        self.lasting = self.nodes.end;
    }

    /// Notes that something more is held on the node and nothing else changed: whatever did not fit
    /// there by itself does not fit now.
    #[inline]
    pub fn touch_by_hold(&mut self, node: NodeId) {
        if self.newest.len() <= node.index() {
            self.newest.resize(node.index() + 1, (0, 0));
        }
        self.newest[node.index()].0 = self.nodes.end;
        self.nodes.push(node.0, KEPT_MIN.max(self.newest.len()));
    }

    /// Notes that everything noted from there on was undone: who has read up to there need not look
    /// at it.
    pub fn undo_from(&mut self, since: Cursor) {
        if self.lasting <= since.nodes {
            self.nodes.undo_from(since.nodes);
        }
    }

    /// Notes that a counter moved for one value of its label.
    pub fn move_counter(&mut self, counter: u32, value: u32) {
        let kept = KEPT_MIN.max(self.newest.len());
        self.counters.push((counter, value), kept);
    }

    /// The position behind the newest entries.
    pub fn end(&self) -> Cursor {
        Cursor { nodes: self.nodes.end, counters: self.counters.end() }
    }

    /// Nodes touched since the cursor, each once, in the order of their newest entry, without those
    /// of transactions that were undone since; `None` if the log no longer reaches back so far.
    pub fn touched_since(&self, cursor: Cursor) -> Option<impl Iterator<Item = NodeId>> {
        let (mut before, behind) = self.nodes.since(cursor.nodes)?;
        // Newest entries may be undone ones: before the last of those, each node is looked for.
        let plain = behind.first().map_or(self.nodes.end, |(position, _)| *position);
        before.retain(|(_, node)| self.newest[*node as usize].0 < plain);
        before.sort_unstable_by_key(|(position, node)| (*node, Reverse(*position)));
        before.dedup_by_key(|(_, node)| *node);
        before.sort_unstable();
        let is_newest = |(position, node): &&Entry| self.newest[*node as usize].0 == *position;
        let behind = behind.iter().filter(is_newest).copied();
        Some(before.into_iter().chain(behind).map(|(_, node)| NodeId(node)))
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

/// Touched nodes by position. Stretches of entries that were undone are passed over, and dropped
/// before others are.
#[derive(Clone, Debug, Default)]
struct Touches {
    /// Who has read less is told nothing.
    start: u64,
    end: u64,
    entries: Vec<Entry>,
    /// Those of them that were not undone.
    lasting: Vec<Entry>,
    /// From where to where nodes changed and changed back, ascending; none reaches into another.
    undone: VecDeque<(u64, u64)>,
    /// Of undone stretches before this there are no entries.
    dropped: u64,
}

impl Touches {
    fn push(&mut self, node: u32, kept: usize) {
        if self.entries.len() >= 2 * kept {
            self.drop_undone();
            if self.entries.len() > kept {
                let oldest = self.entries.len() - kept;
                self.forget_before(self.entries[oldest].0);
            }
        }
        self.entries.push((self.end, node));
        self.lasting.push((self.end, node));
        self.end += 1;
    }

    fn undo_from(&mut self, from: u64) {
        if from == self.end {
            return;
        }
        while self.undone.back().is_some_and(|(inner, _)| *inner >= from) {
            self.undone.pop_back();
        }
        if self.undone.len() >= KEPT_MIN {
            let (_, to) = self.undone[KEPT_MIN / 2];
            self.forget_before(to);
        }
        self.undone.push_back((from, self.end));
        self.lasting.truncate(behind(&self.lasting, from));
    }

    fn drop_undone(&mut self) {
        let mut undone = self.undone.iter().copied().peekable();
        self.entries.retain(|(position, _)| {
            while undone.next_if(|(_, to)| to <= position).is_some() {}
            undone.peek().is_none_or(|(from, _)| position < from)
        });
        self.dropped = self.end;
    }

    fn forget_before(&mut self, start: u64) {
        self.start = start;
        self.entries.drain(..behind(&self.entries, start));
        self.lasting.drain(..behind(&self.lasting, start));
        while self.undone.front().is_some_and(|(_, to)| *to <= start) {
            self.undone.pop_front();
        }
    }

    /// Entries since a position that were not undone since: a copy of those before the last undone
    /// stretch, and those behind it.
    fn since(&self, cursor: u64) -> Option<(Vec<Entry>, &[Entry])> {
        if cursor < self.start {
            return None;
        }
        let Some(last) = self.undone.back().map(|(_, to)| *to).filter(|to| *to > cursor) else {
            return Some((Vec::new(), &self.entries[behind(&self.entries, cursor)..]));
        };
        let (mut before, mut from) = (Vec::new(), cursor);
        let first = self.undone[self.undone.partition_point(|(_, to)| *to <= cursor)];
        if first.0 < cursor {
            // It was read in the middle of that stretch.
            if cursor < self.dropped {
                return None;
            }
            from = first.1;
            before.extend_from_slice(between(&self.entries, cursor, from));
        }
        before.extend_from_slice(between(&self.lasting, from, last));
        Some((before, &self.entries[behind(&self.entries, last)..]))
    }
}

/// A node behind the position of its entry.
type Entry = (u64, u32);

/// How many entries stand before a position.
fn behind(entries: &[Entry], position: u64) -> usize {
    entries.partition_point(|(place, _)| *place < position)
}

/// Entries from one position to another.
fn between(entries: &[Entry], from: u64, to: u64) -> &[Entry] {
    &entries[behind(entries, from)..behind(entries, to)]
}
