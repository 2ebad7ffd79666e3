//! Which orders come one after the other, and which side by side.
//!
//! Orders about the same pod or claim are carried out in the order in which they were given, and so are the stops of
//! one decision, after what the pods that they are for are told. All others need not wait for each other: what the
//! server does not answer of one holds up none of them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::{ClaimKey, PodKey};
use futures_util::FutureExt;
use futures_util::future::{Shared, join_all};
use tokio::sync::oneshot;

use dovetail_control::bind::Order;

/// What an order is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Pod(PodKey),
    Claim(ClaimKey),
    /// Stops that were decided together, by their number.
    Decision(u64),
}

/// The last order about everything that any unfinished one is about.
#[derive(Debug, Default)]
pub(super) struct Turns {
    given: u64,
    last: BTreeMap<About, Last>,
}

#[derive(Debug)]
struct Last {
    number: u64,
    end: Shared<oneshot::Receiver<()>>,
}

/// When an order is carried out.
#[derive(Debug)]
pub(super) struct Turn {
    after: Vec<Shared<oneshot::Receiver<()>>>,
    ended: Ended,
}

/// An order that has come to its end. Whatever waits for it is held up until this is dropped.
#[derive(Debug)]
pub(super) struct Ended {
    number: u64,
    about: BTreeSet<About>,
    _end: oneshot::Sender<()>,
}

impl Turns {
    /// The turn of an order that was given after all others.
    pub(super) fn give(&mut self, order: &Order) -> Turn {
        self.given += 1;
        let number = self.given;
        let about = about(order);
        let mut after = about.clone();
        if let Order::Stop { decision, .. } = order
            && !self.last.contains_key(&About::Decision(decision.number()))
        {
            // The first of them: what its pods are told, and what was to become of all of them before.
            let pods = decision.named_first().iter().chain(decision.pods());
            after.extend(pods.cloned().map(About::Pod));
        }
        let after = after.iter().filter_map(|one| Some(self.last.get(one)?.end.clone())).collect();
        let (sender, receiver) = oneshot::channel();
        let end = receiver.shared();
        for one in about.iter().cloned() {
            self.last.insert(one, Last { number, end: end.clone() });
        }
        Turn { after, ended: Ended { number, about, _end: sender } }
    }

    /// An order has come to its end.
    pub(super) fn take_back(&mut self, ended: Ended) {
        for one in &ended.about {
            if self.last.get(one).is_some_and(|last| last.number == ended.number) {
                self.last.remove(one);
            }
        }
    }
}

impl Turn {
    /// Waits until everything has come to its end that is to be before.
    pub(super) async fn comes(self) -> Ended {
        // That the sender is gone is the end.
        _ = join_all(self.after).await;
        self.ended
    }
}

fn about(order: &Order) -> BTreeSet<About> {
    let pod = |pod: &PodKey| About::Pod(pod.clone());
    match order {
        Order::Stop { pod: victim, decision, .. } if decision.pods().is_empty() => {
            [pod(victim)].into()
        }
        Order::Stop { pod: victim, decision, .. } => {
            [pod(victim), About::Decision(decision.number())].into()
        }
        Order::TakeBack { pod: about } | Order::Nominate { pod: about, .. } => [pod(about)].into(),
        Order::MayStop { pod: about } => [pod(about)].into(),
        Order::SelectNode { claim, .. } => [About::Claim(claim.clone())].into(),
    }
}

#[cfg(test)]
mod tests {
    use dovetail_control::bind::{Stop, StopDecision};

    use super::*;

    fn key(name: &str) -> PodKey {
        PodKey { namespace: "n".into(), name: name.into(), uid: name.into() }
    }

    fn stop(name: &str, decision: &StopDecision) -> Order {
        Order::Stop { pod: key(name), why: Stop::Preempted, decision: decision.clone() }
    }

    /// Whether the turn of an order has come.
    fn has_come(turn: &Turn) -> bool {
        turn.after.iter().all(|end| end.clone().now_or_never().is_some())
    }

    #[test]
    fn only_what_belongs_together_comes_one_after_the_other() {
        let mut turns = Turns::default();
        let decision = |number, pods: &[&str], by: &str| {
            let pods = pods.iter().map(|pod| key(pod)).collect();
            StopDecision::new(number, pods, vec![key(by)])
        };
        let (one, other) = (decision(1, &["a", "b"], "high"), decision(2, &["c"], "higher"));
        let nominate = Order::nominate_nowhere(key("high"));
        let orders = [nominate, stop("a", &one), stop("b", &one), stop("c", &other)];
        let mut given: Vec<Turn> = orders.iter().map(|order| turns.give(order)).collect();
        let comes = |given: &Vec<Turn>| given.iter().map(has_come).collect::<Vec<_>>();
        assert_eq!(comes(&given), [true, false, false, true]);
        turns.take_back(given.remove(0).ended);
        assert_eq!(comes(&given), [true, false, true]);
        // Somebody else wants one of them that has not been tried yet.
        let third = decision(3, &["b"], "highest");
        given.push(turns.give(&stop("b", &third)));
        assert_eq!(comes(&given), [true, false, true, false]);
        turns.take_back(given.remove(0).ended);
        assert_eq!(comes(&given), [true, true, false]);
        turns.take_back(given.remove(0).ended);
        assert_eq!(comes(&given), [true, true]);
        given.drain(..).for_each(|turn| turns.take_back(turn.ended));
        assert!(turns.last.is_empty(), "nothing is kept of what is over");
    }
}
