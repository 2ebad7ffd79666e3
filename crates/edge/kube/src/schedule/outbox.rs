//! Decisions whose outcome is open, and the order in which they are sent.

use std::collections::{BTreeMap, VecDeque};

use dovetail_model::{NodeName, PodId};

/// A bind that the engine decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) pod: PodId,
    pub(super) node: NodeName,
    /// When its pod was first seen waiting.
    pub(super) since_ms: u64,
    /// Whether a later decision about the same pod was taken.
    pub(super) is_superseded: bool,
    /// How often it was sent to no effect.
    pub(super) tries: u32,
}

/// Decisions by number, oldest first.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    made: u64,
    open: BTreeMap<u64, Decision>,
    /// The last decision about each pod, if it is open.
    latest: BTreeMap<PodId, u64>,
    /// Open decisions that are not with the binder.
    to_send: VecDeque<u64>,
}

impl Outbox {
    /// Notes a decision; it is sent after those before it.
    pub(super) fn add(&mut self, pod: PodId, node: NodeName, since_ms: u64) {
        self.made += 1;
        let before = self.latest.insert(pod, self.made);
        if let Some(before) = before.and_then(|number| self.open.get_mut(&number)) {
            before.is_superseded = true;
        }
        let decision = Decision { pod, node, since_ms, is_superseded: false, tries: 0 };
        self.open.insert(self.made, decision);
        self.to_send.push_back(self.made);
    }

    /// The next to send.
    pub(super) fn next(&mut self) -> Option<(u64, Decision)> {
        let number = self.to_send.pop_front()?;
        // What is to be sent is open.
        Some((number, self.open.get(&number)?.clone()))
    }

    /// It was not sent after all.
    pub(super) fn put_back(&mut self, number: u64) {
        if self.open.contains_key(&number) {
            self.to_send.push_front(number);
        }
    }

    /// It shall be sent once more, before all others: it is older.
    pub(super) fn send_again(&mut self, number: u64, decision: Decision) {
        self.latest.insert(decision.pod, number);
        self.open.insert(number, Decision { tries: decision.tries + 1, ..decision });
        self.to_send.push_front(number);
    }

    /// Its outcome is known.
    pub(super) fn settle(&mut self, number: u64) -> Option<Decision> {
        let decision = self.open.remove(&number)?;
        if self.latest.get(&decision.pod) == Some(&number) {
            self.latest.remove(&decision.pod);
        }
        Some(decision)
    }

    /// Decisions that are not with the binder.
    pub(super) fn to_send(&self) -> usize {
        self.to_send.len()
    }
}
