//! The order in which the binds of decisions are sent.

use std::collections::{BTreeSet, VecDeque};

use dovetail_cluster::world::GangDecision;

/// Numbers of decisions that are to be sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    to_send: VecDeque<u64>,
    /// Gangs of which nothing was sent yet, by the number of their first decision.
    whole: BTreeSet<u64>,
}

impl Outbox {
    /// The decisions about a job are to be sent, after all others.
    pub(super) fn add(&mut self, numbers: &[u64], gang: Option<GangDecision>) {
        self.whole.extend(gang.map(|gang| gang.first));
        self.to_send.extend(numbers);
    }

    /// The next to send.
    pub(super) fn next(&mut self) -> Option<u64> {
        self.to_send.pop_front()
    }

    /// Whether nothing of a gang was sent yet; something is now.
    pub(super) fn begin(&mut self, gang: GangDecision) -> bool {
        self.whole.remove(&gang.first)
    }

    /// These are not to be sent.
    pub(super) fn take_back(&mut self, numbers: &[u64]) {
        self.to_send.retain(|number| !numbers.contains(number));
    }

    /// It is to be sent once more, before all others: it is older.
    pub(super) fn send_again(&mut self, number: u64) {
        self.to_send.push_front(number);
    }

    /// How many are to be sent.
    pub(super) fn to_send(&self) -> usize {
        self.to_send.len()
    }
}
