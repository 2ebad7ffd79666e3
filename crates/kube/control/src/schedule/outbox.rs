//! Decisions whose outcome is open, and the order in which they are sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
    /// The decision about its whole gang, if it is one of several that belong together.
    pub(super) gang: Option<GangDecision>,
}

/// A decision about several pods that start together: number of the first, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GangDecision {
    pub(super) number: u64,
    pub(super) size: usize,
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
    /// Gangs of which nothing was sent yet, by the number of their first decision.
    whole: BTreeSet<u64>,
}

impl Outbox {
    /// Notes what was decided about a job; it is sent after what was decided before.
    pub(super) fn add(&mut self, binds: Vec<(PodId, NodeName)>, since_ms: u64) {
        let (number, size) = (self.made + 1, binds.len());
        let gang = (size > 1).then_some(GangDecision { number, size });
        self.whole.extend(gang.map(|gang| gang.number));
        for (pod, node) in binds {
            self.add_one(pod, node, since_ms, gang);
        }
    }

    fn add_one(&mut self, pod: PodId, node: NodeName, since_ms: u64, gang: Option<GangDecision>) {
        self.made += 1;
        let before = self.latest.insert(pod, self.made);
        if let Some(before) = before.and_then(|number| self.open.get_mut(&number)) {
            before.is_superseded = true;
        }
        let decision = Decision { pod, node, since_ms, is_superseded: false, tries: 0, gang };
        self.open.insert(self.made, decision);
        self.to_send.push_back(self.made);
    }

    /// The next to send.
    pub(super) fn next(&mut self) -> Option<(u64, Decision)> {
        let number = self.to_send.pop_front()?;
        // What is to be sent is open.
        Some((number, self.open.get(&number)?.clone()))
    }

    /// The decisions about a gang, if nothing of them was sent yet. They are to be sent now, or to
    /// be settled.
    pub(super) fn begin(&mut self, gang: GangDecision) -> Option<Vec<(u64, Decision)>> {
        if !self.whole.remove(&gang.number) {
            return None;
        }
        let numbers = gang.number..gang.number + gang.size as u64;
        Some(self.open.range(numbers).map(|(number, one)| (*number, one.clone())).collect())
    }

    /// Decisions of which nothing was sent are void.
    pub(super) fn take_back(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.settle(*number);
        }
        self.to_send.retain(|number| self.open.contains_key(number));
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

    /// Whether what became of the last decision about a pod is not known.
    pub(super) fn is_open_for(&self, pod: PodId) -> bool {
        self.latest.contains_key(&pod)
    }

    /// Decisions that are not with the binder.
    pub(super) fn to_send(&self) -> usize {
        self.to_send.len()
    }
}
