//! What pods are told that are stopped together, before the first of them is: whoever takes over in the middle finds by
//! those that are left what was begun, however soon the others are gone.

use dovetail_control::bind::{Order, OrderEnd, Step, Told};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};

use super::ask::take;
use super::orders::Wires;

/// Marks of one decision on their way at once.
const AT_ONCE: usize = 16;

/// Marks all pods of the decision that an order is part of, if it is the first of several. Which could not be marked, and how
/// that ended; `None` if nothing more may be written.
pub(super) async fn mark_all(wires: &Wires, order: &Order) -> Option<Vec<(Order, OrderEnd)>> {
    let Order::Stop { why, decision, .. } = order else { return Some(Vec::new()) };
    if decision.pods().len() < 2 || decision.told().is_some() || decision.is_called_off() {
        return Some(Vec::new());
    }
    let marks: Vec<BoxFuture<'_, _>> = decision
        .pods()
        .iter()
        .map(|pod| take(wires, decision, pod, Step::Mark(pod, *why)).boxed())
        .collect();
    let mut marks = stream::iter(marks).buffered(AT_ONCE);
    let (mut told, mut ends) = (Told::default(), Vec::new());
    while let Some(marked) = marks.next().await {
        let (pod, step, end) = marked?;
        match end {
            OrderEnd::Done => _ = told.marked.insert(pod.clone()),
            // Its own order finds that.
            OrderEnd::Gone | OrderEnd::CalledOff => {}
            OrderEnd::Refused { .. } | OrderEnd::Unanswered { .. } => {
                wires.tell(&step, &end);
                decision.call_off();
                told.refused.insert(pod.clone());
                let (pod, why, decision) = (pod.clone(), *why, decision.clone());
                ends.push((Order::Stop { pod, why, decision }, end));
            }
        }
    }
    decision.tell(told);
    Some(ends)
}

/// Whether the end of an order is known from telling all of them.
pub(super) fn could_not_be_told(order: &Order) -> bool {
    let Order::Stop { pod, decision, .. } = order else { return false };
    decision.told().is_some_and(|told| told.refused.contains(pod))
}
