//! Which orders come one after the other, and which side by side.
//!
//! Orders about the same pod or claim are carried out in the order in which they were given, and so
//! are the evictions of one decision, after the pods that they are for name their nodes. All others
//! need not wait for each other: one that the server does not answer delays none of them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::{ClaimKey, LastingOwner, PodKey};

use super::PodOrder;

/// What an order is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Pod(PodKey),
    Claim(ClaimKey),
    Job(LastingOwner),
    /// Evictions that were decided together, by their number.
    Decision(u64),
}

/// Unfinished orders by number, and the last one about everything that any of them is about.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    open: BTreeMap<u64, Precedence>,
    last: BTreeMap<About, u64>,
}

#[derive(Debug)]
struct Precedence {
    about: BTreeSet<About>,
    /// Orders that must end first.
    after: BTreeSet<u64>,
    /// Orders that come after this one.
    before: Vec<u64>,
}

impl Sequence {
    /// An order is given after all others. Whether its turn has come.
    pub(super) fn give(&mut self, number: u64, order: &PodOrder) -> bool {
        let about = about(order);
        let mut first = about.clone();
        if let PodOrder::Evict { decision, .. } = order
            && !self.last.contains_key(&About::Decision(decision.number()))
        {
            // The first of them: after what is written about its pods and those that they are for.
            let pods = decision.named_first().iter().chain(decision.pods());
            first.extend(pods.cloned().map(About::Pod));
        }
        let after: BTreeSet<u64> =
            first.iter().filter_map(|one| self.last.get(one).copied()).collect();
        for one in &after {
            if let Some(turn) = self.open.get_mut(one) {
                turn.before.push(number);
            }
        }
        self.last.extend(about.iter().cloned().map(|one| (one, number)));
        let has_come = after.is_empty();
        self.open.insert(number, Precedence { about, after, before: Vec::new() });
        has_come
    }

    /// An order has ended: those whose turn has come by that.
    pub(super) fn end(&mut self, number: u64) -> Vec<u64> {
        let Some(Precedence { about, before, .. }) = self.open.remove(&number) else {
            return Vec::new();
        };
        for one in &about {
            if self.last.get(one) == Some(&number) {
                self.last.remove(one);
            }
        }
        let has_come = |next: &u64| {
            let Some(turn) = self.open.get_mut(next) else { return false };
            turn.after.remove(&number);
            turn.after.is_empty()
        };
        before.into_iter().filter(has_come).collect()
    }
}

fn about(order: &PodOrder) -> BTreeSet<About> {
    let pod = |pod: &PodKey| About::Pod(pod.clone());
    match order {
        PodOrder::Evict { pod: victim, decision, .. } if decision.pods().is_empty() => {
            [pod(victim)].into()
        }
        PodOrder::Evict { pod: victim, decision, .. } => {
            [pod(victim), About::Decision(decision.number())].into()
        }
        PodOrder::Unmark { pod: about }
        | PodOrder::Nominate { pod: about, .. }
        | PodOrder::MayEvict { pod: about, .. } => [pod(about)].into(),
        PodOrder::SelectNode { claim, .. } => [About::Claim(claim.clone())].into(),
        PodOrder::WriteClaim(write) => [About::Claim(write.claim.clone())].into(),
        PodOrder::Resume(job) => [About::Job(job.job.clone())].into(),
    }
}

#[cfg(test)]
mod tests {
    use dovetail_model::PreemptReason;

    use super::super::{EvictionCause, EvictionDecision};
    use super::*;

    fn key(name: &str) -> PodKey {
        PodKey { namespace: "n".into(), name: name.into(), uid: name.into() }
    }

    fn stop(name: &str, decision: &EvictionDecision) -> PodOrder {
        let why = EvictionCause::Preempted(PreemptReason::Priority);
        PodOrder::Evict { pod: key(name), why, decision: decision.clone() }
    }

    #[test]
    fn only_orders_that_belong_together_come_one_after_the_other() {
        let mut turns = Sequence::default();
        let decision = |number, pods: &[&str], by: &str| {
            let pods = pods.iter().map(|pod| key(pod)).collect();
            EvictionDecision::new(number, pods, vec![key(by)])
        };
        let (one, other) = (decision(1, &["a", "b"], "high"), decision(2, &["c"], "higher"));
        let nominate = PodOrder::nominate_nowhere(key("high"));
        let orders = [nominate, stop("a", &one), stop("b", &one), stop("c", &other)];
        let come: Vec<bool> =
            orders.iter().zip(0..).map(|(order, number)| turns.give(number, order)).collect();
        assert_eq!(come, [true, false, false, true]);
        assert_eq!(turns.end(0), [1], "the first eviction of the decision");
        // Another decision wants one of them that has not been tried yet.
        assert!(!turns.give(4, &stop("b", &decision(3, &["b"], "highest"))));
        assert_eq!(turns.end(1), [2]);
        assert_eq!(turns.end(2), [4]);
        assert_eq!((turns.end(3), turns.end(4)), (vec![], vec![]));
        assert!(turns.last.is_empty() && turns.open.is_empty(), "nothing is kept of what is over");
    }
}
