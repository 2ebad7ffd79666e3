//! Which orders come one after the other, and which side by side.
//!
//! Orders about the same pod or claim are carried out in the order in which they were given. Of
//! the evictions of one decision, the first one comes after the pods that they are for name their
//! nodes: with it all pods of the decision are asked about and marked. The others come after it,
//! several side by side, because there may be thousands. Where Jobs are suspended in place of
//! evictions, one comes after the other: pods leave by the write of another one. All other orders
//! need not wait for each other: one that the server does not answer delays none of them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::{ClaimKey, LastingOwner, PodKey};

use super::PodOrder;
use super::together::AT_ONCE;

/// What an order is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Pod(PodKey),
    Claim(ClaimKey),
    Job(LastingOwner),
    /// Evictions that were decided together, by the number of their decision, of which each comes
    /// after the one before it in its lane.
    Decision(u64, usize),
}

/// Unfinished orders by number, and the last one about everything that any of them is about.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    open: BTreeMap<u64, Precedence>,
    last: BTreeMap<About, u64>,
    /// Decisions of which evictions are unfinished, by number.
    decisions: BTreeMap<u64, Lanes>,
}

/// The evictions of one decision that were given.
#[derive(Debug)]
struct Lanes {
    /// The order of the first one.
    first: u64,
    given: usize,
    unfinished: usize,
}

#[derive(Debug)]
struct Precedence {
    about: BTreeSet<About>,
    /// Orders that must end first.
    after: BTreeSet<u64>,
    /// Orders that come after this one.
    before: Vec<u64>,
    /// The decision whose eviction it is.
    decision: Option<u64>,
}

impl Sequence {
    /// An order is given after all others. Whether its turn has come.
    pub(super) fn give(&mut self, number: u64, order: &PodOrder) -> bool {
        let mut about = about(order);
        let mut first = about.clone();
        let mut after: BTreeSet<u64> = BTreeSet::new();
        let mut of_decision = None;
        if let PodOrder::Evict { decision, .. } = order
            && !decision.pods().is_empty()
        {
            let one = decision.number();
            of_decision = Some(one);
            let lanes = self.decisions.entry(one);
            let lanes = lanes.or_insert(Lanes { first: number, given: 0, unfinished: 0 });
            let side_by_side = if decision.suspends_jobs() { 1 } else { AT_ONCE };
            let lane = About::Decision(one, lanes.given % side_by_side);
            (lanes.given, lanes.unfinished) = (lanes.given + 1, lanes.unfinished + 1);
            if lanes.first == number {
                // After what is written about its pods and those that they are for.
                let pods = decision.named_first().iter().chain(decision.pods());
                first.extend(pods.cloned().map(About::Pod));
            } else if self.open.contains_key(&lanes.first) {
                after.insert(lanes.first);
            }
            first.insert(lane.clone());
            about.insert(lane);
        }
        after.extend(first.iter().filter_map(|one| self.last.get(one).copied()));
        for one in &after {
            if let Some(turn) = self.open.get_mut(one) {
                turn.before.push(number);
            }
        }
        self.last.extend(about.iter().cloned().map(|one| (one, number)));
        let has_come = after.is_empty();
        let precedence = Precedence { about, after, before: Vec::new(), decision: of_decision };
        self.open.insert(number, precedence);
        has_come
    }

    /// An order has ended: those whose turn has come by that.
    pub(super) fn end(&mut self, number: u64) -> Vec<u64> {
        let Some(Precedence { about, before, decision, .. }) = self.open.remove(&number) else {
            return Vec::new();
        };
        if let Some(decision) = decision
            && let Some(lanes) = self.decisions.get_mut(&decision)
        {
            lanes.unfinished -= 1;
            if lanes.unfinished == 0 {
                self.decisions.remove(&decision);
            }
        }
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
        PodOrder::Evict { pod: about, .. }
        | PodOrder::Unmark { pod: about }
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
    use dovetail_objects::{Kind, WorkloadKind};

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
        assert!(turns.decisions.is_empty(), "nor of decisions");
    }

    /// Numbers of evictions that are under way when so many of one decision are given and the first
    /// `ended` of them have ended, in this order.
    fn under_way(decision: &EvictionDecision, ended: u64) -> Vec<u64> {
        let mut turns = Sequence::default();
        let orders = decision.pods().iter().map(|pod| stop(&pod.name, decision)).zip(0..);
        let mut under_way: Vec<u64> = Vec::new();
        for (order, number) in orders {
            under_way.extend(turns.give(number, &order).then_some(number));
        }
        for number in 0..ended {
            let come = turns.end(number);
            under_way.retain(|one| *one != number);
            under_way.extend(come);
        }
        under_way.sort_unstable();
        under_way
    }

    #[test]
    fn after_the_first_eviction_of_a_decision_others_are_carried_out_side_by_side() {
        let pods: Vec<PodKey> = (0..40).map(|at| key(&format!("p{at:02}"))).collect();
        let decision = EvictionDecision::new(1, pods.clone(), Vec::new());
        assert_eq!(under_way(&decision, 0), [0]);
        assert_eq!(under_way(&decision, 1), (1..=16).collect::<Vec<u64>>());
        assert_eq!(under_way(&decision, 5), (5..=20).collect::<Vec<u64>>());
        let kind = Kind::Workload(WorkloadKind::Job);
        let [namespace, name, uid] = ["n", "job", "u"].map(Into::into);
        let job = LastingOwner { kind, namespace, name, uid };
        let suspending = decision.suspending([(pods[0].clone(), job)].into());
        assert_eq!(under_way(&suspending, 1), [1], "one write is for several pods");
    }
}
