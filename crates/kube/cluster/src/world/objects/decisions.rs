//! The book of decisions: which pod is assigned to which node. It is stored here alone; the index,
//! what is to be sent and what is on its way name decisions by their numbers.
//!
//! A decision is kept until its bind is settled and its pod does not count as being on the node by
//! it any more: because the watch shows where the pod is, or because the bind had no effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::{NodeName, PodId};

use crate::world::key::PodKey;

/// One decided bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    pub decision: u64,
    /// The pod: another one of the same name is never bound.
    pub pod: PodKey,
    /// Node it shall run on.
    pub node: NodeName,
    /// Epoch of the leadership in which it was decided.
    pub epoch: u64,
    /// Text that names the decision across processes, such as the gang's decision id; written into
    /// the pod.
    pub tag: String,
}

/// How far a decision is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionStage {
    /// Claims of its pod, or of others of its gang, get their volumes first.
    Provisioning,
    /// Its bind is to be sent.
    Queued,
    /// Its bind is with the API server.
    Sent,
    /// Its bind took effect. The watch may not show it yet.
    Bound,
    /// Its bind had no effect as far as anybody knows, or nothing more is sent.
    Settled,
}

impl DecisionStage {
    fn is_over(self) -> bool {
        matches!(self, Self::Bound | Self::Settled)
    }

    /// Whether the pod may be on the node although the watch does not show it.
    pub(crate) fn may_have_bound(self) -> bool {
        matches!(self, Self::Sent | Self::Bound)
    }
}

/// A decision about several pods that start together: number of the first, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GangDecision {
    /// The others have the numbers after it.
    pub first: u64,
    pub size: usize,
}

/// A pod is assigned to a node.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The pod and the node.
    pub bind: Arc<Bind>,
    /// The pod, as the engine names it.
    pub pod: PodId,
    /// The decision about its whole gang, if it is one of several that belong together.
    pub gang: Option<GangDecision>,
    /// When its pod was first seen pending.
    pub since_ms: u64,
    /// How far it is.
    pub stage: DecisionStage,
    /// How often it was sent without effect.
    pub tries: u32,
    /// Whether the pod counts as being on the node because of it.
    is_assumed: bool,
}

/// Decisions by number, oldest first.
#[derive(Debug, Default)]
pub struct Decisions {
    epoch: u64,
    made: u64,
    all: BTreeMap<u64, Decision>,
    /// The last decision about each pod.
    latest: BTreeMap<PodId, u64>,
}

impl Decisions {
    /// Decisions are made in this leadership from now on.
    pub(crate) fn begin_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// Numbers for the decision about so many pods: the first, and how they belong together.
    pub(crate) fn take_numbers(&mut self, size: usize) -> (u64, Option<GangDecision>) {
        let first = self.made + 1;
        self.made += size as u64;
        (first, (size > 1).then_some(GangDecision { first, size }))
    }

    /// Notes what was decided about a pod. `tag` names the decision of this epoch and number.
    pub(crate) fn add(
        &mut self,
        number: u64,
        (pod, key): (PodId, PodKey),
        node: &NodeName,
        (gang, since_ms): (Option<GangDecision>, u64),
        tag: impl FnOnce(u64, u64) -> String,
    ) {
        let epoch = self.epoch;
        let tag = tag(epoch, number);
        let bind = Bind { decision: number, pod: key, node: Arc::clone(node), epoch, tag };
        let bind = Arc::new(bind);
        let (stage, tries, is_assumed) = (DecisionStage::Queued, 0, true);
        self.latest.insert(pod, number);
        let decision = Decision { bind, pod, gang, since_ms, stage, tries, is_assumed };
        self.all.insert(number, decision);
    }

    /// The decision of a number, unless it is over.
    pub fn get(&self, number: u64) -> Option<&Decision> {
        self.all.get(&number)
    }

    /// The decision by which a pod counts as being on a node.
    pub fn of_pod(&self, pod: PodId) -> Option<&Decision> {
        self.get(*self.latest.get(&pod)?).filter(|decision| decision.is_assumed)
    }

    /// Whether its pod counts as being on the node by this very decision.
    pub fn is_current(&self, number: u64) -> bool {
        self.get(number).is_some_and(|decision| decision.is_assumed)
    }

    /// Whether it is not known yet what became of the last bind of a pod.
    pub fn is_open_for(&self, pod: PodId) -> bool {
        let last = self.latest.get(&pod).and_then(|number| self.all.get(number));
        last.is_some_and(|decision| !decision.stage.is_over())
    }

    /// A decision is so far now.
    pub fn advance(&mut self, number: u64, stage: DecisionStage) {
        if let Some(decision) = self.all.get_mut(&number) {
            decision.stage = stage;
        }
    }

    /// The bind of a decision had no effect, and is to be sent once more.
    pub fn try_again(&mut self, number: u64) {
        if let Some(decision) = self.all.get_mut(&number) {
            (decision.stage, decision.tries) = (DecisionStage::Queued, decision.tries + 1);
        }
    }

    /// A decision had no effect, or nothing is sent of it; `None` if it was over before.
    pub fn settle(&mut self, number: u64) -> Option<Decision> {
        self.end(number, DecisionStage::Settled)
    }

    /// A decision took effect; `None` if it was over before.
    pub fn bound(&mut self, number: u64) -> Option<Decision> {
        self.end(number, DecisionStage::Bound)
    }

    fn end(&mut self, number: u64, stage: DecisionStage) -> Option<Decision> {
        let decision = self.all.get_mut(&number).filter(|it| !it.stage.is_over())?;
        let before = decision.clone();
        decision.stage = stage;
        self.forget_if_over(number);
        Some(before)
    }

    /// Its pod does not count as being on the node by this decision any more.
    pub(crate) fn release(&mut self, number: u64) {
        if let Some(decision) = self.all.get_mut(&number) {
            decision.is_assumed = false;
            self.forget_if_over(number);
        }
    }

    fn forget_if_over(&mut self, number: u64) {
        let is_over = |it: &Decision| it.stage.is_over() && !it.is_assumed;
        let Some(pod) = self.all.get(&number).filter(|it| is_over(it)).map(|it| it.pod) else {
            return;
        };
        self.all.remove(&number);
        if self.latest.get(&pod) == Some(&number) {
            self.latest.remove(&pod);
        }
    }
}

#[cfg(test)]
mod tests {
    use dovetail_model::JobId;

    use super::*;

    fn decide(book: &mut Decisions, pods: u32) -> u64 {
        let (first, gang) = book.take_numbers(pods as usize);
        for ordinal in 0..pods {
            let pod = PodId { job: JobId(1), pod_set: 0, ordinal };
            let key = PodKey { namespace: "n".into(), name: "p".into(), uid: "u".into() };
            let tag = |epoch, number| format!("{epoch}-{number}");
            book.add(first + u64::from(ordinal), (pod, key), &"m".into(), (gang, 7), tag);
        }
        first
    }

    #[test]
    fn a_decision_is_kept_until_it_is_settled_and_released_in_either_order() {
        let mut book = Decisions::default();
        book.begin_epoch(3);
        let pod = PodId { job: JobId(1), pod_set: 0, ordinal: 0 };
        let one = decide(&mut book, 1);
        assert_eq!(book.of_pod(pod).map(|it| &*it.bind.tag), Some("3-1"));
        assert!(book.bound(one).is_some() && book.settle(one).is_none());
        assert!(book.is_current(one) && !book.is_open_for(pod), "the watch does not show it yet");
        book.release(one);
        let two = decide(&mut book, 1);
        book.release(two);
        assert!(!book.is_current(two) && book.is_open_for(pod), "the watch was first");
        assert!(book.of_pod(pod).is_none());
        book.settle(two);
        assert!(book.all.is_empty() && book.latest.is_empty());
    }

    #[test]
    fn an_earlier_decision_about_a_pod_is_not_current_whatever_becomes_of_the_later_one() {
        let mut book = Decisions::default();
        let gang = decide(&mut book, 2);
        let pod = PodId { job: JobId(1), pod_set: 0, ordinal: 1 };
        assert_eq!(book.get(2).and_then(|it| it.gang), Some(GangDecision { first: gang, size: 2 }));
        book.advance(2, DecisionStage::Sent);
        book.release(2);
        let later = decide(&mut book, 2) + 1;
        assert!(!book.is_current(2) && book.is_current(later));
        assert_eq!(book.of_pod(pod).map(|it| it.bind.decision), Some(later));
        book.release(later);
        book.settle(later);
        assert!(!book.is_current(2) && book.get(2).is_some());
    }
}
