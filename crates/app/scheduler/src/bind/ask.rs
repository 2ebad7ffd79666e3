//! What is asked before pods are stopped together: whether the server lets each of them go.
//!
//! Admission (a policy, a webhook) says only when a pod is to be deleted that it keeps it. Those of its decision that
//! were deleted before it would have been stopped in vain, and a gang would go on without them. So before the first
//! of several is touched, each mark and each delete is sent as a dry run: the server admits or refuses it as the write
//! itself, and does nothing. Of one pod alone nothing is asked: its own delete comes first and last. Only where stops
//! were in vain of late is it asked about, too, so that one pod after the other is not marked and unmarked.

use std::collections::BTreeSet;

use dovetail_cluster::world::PodKey;
use dovetail_control::answer::lacked_right;
use dovetail_control::bind::{Order, OrderEnd, Step, Stop, StopDecision};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};

use super::orders::{Wires, carry_out};

/// Questions of one decision on their way at once.
const AT_ONCE: usize = 16;

/// Asks about all pods of the decision that an order is part of, if it is the first of several, or if stops were in
/// vain of late. Which stops would not be carried out, and how each would end; `None` if nothing more may be written.
pub(super) async fn ask(wires: &Wires, order: &Order) -> Option<Vec<(Order, OrderEnd)>> {
    let Order::Stop { why, decision, .. } = order else { return Some(Vec::new()) };
    let is_in_doubt = decision.pods().len() > 1 || wires.doubts();
    if !is_in_doubt || decision.kept().is_some() {
        return Some(Vec::new());
    }
    let questions: Vec<BoxFuture<'_, _>> = questions(decision.pods(), *why)
        .map(|(pod, step)| take(wires, decision, pod, step).boxed())
        .collect();
    let mut answers = stream::iter(questions).buffered(AT_ONCE);
    let (mut kept, mut ends) = (BTreeSet::new(), Vec::new());
    while let Some(answer) = answers.next().await {
        let (pod, step, end) = answer?;
        if !would_fail(&end) || !kept.insert(pod.clone()) {
            continue;
        }
        wires.tell(&step, &end);
        let is_enough = may_be_of_all(&end);
        let (pod, why, decision) = (pod.clone(), *why, decision.clone());
        ends.push((Order::Stop { pod, why, decision }, end));
        if is_enough {
            break;
        }
    }
    decision.keep(kept);
    Some(ends)
}

/// Whether the end of an order is known from what was asked.
pub(super) fn has_answered(order: &Order) -> bool {
    let Order::Stop { pod, decision, .. } = order else { return false };
    decision.kept().is_some_and(|kept| kept.contains(pod))
}

/// Takes one step of a decision, if that still holds, with its end; `None` if nothing more may be written.
pub(super) async fn take<'a>(
    wires: &Wires,
    decision: &StopDecision,
    pod: &'a PodKey,
    step: Step<'a>,
) -> Option<(&'a PodKey, Step<'a>, OrderEnd)> {
    // Whoever decides may need them no more.
    let end = match decision.is_called_off() {
        true => OrderEnd::CalledOff,
        false => carry_out(wires, &step).await?,
    };
    Some((pod, step, end))
}

/// Each step of each stop, as a question.
fn questions(pods: &[PodKey], why: Stop) -> impl Iterator<Item = (&PodKey, Step<'_>)> {
    let of_pod = move |pod| [(pod, Step::WouldMark(pod, why)), (pod, Step::WouldDelete(pod))];
    pods.iter().flat_map(of_pod)
}

/// Whether a stop would end in vain that ends like this. A webhook that takes no dry runs says nothing about the pod.
fn would_fail(end: &OrderEnd) -> bool {
    match end {
        OrderEnd::Done | OrderEnd::Gone | OrderEnd::CalledOff => false,
        OrderEnd::Unanswered { .. } => true,
        OrderEnd::Refused { code, message } => {
            *code != 400 || !message.ends_with("does not support dry run")
        }
    }
}

/// Whether the other pods may well get the same answer, so that it is not waited for.
fn may_be_of_all(end: &OrderEnd) -> bool {
    match end {
        OrderEnd::Done | OrderEnd::Gone | OrderEnd::CalledOff => false,
        OrderEnd::Unanswered { .. } | OrderEnd::Refused { code: 429 | 500, .. } => true,
        OrderEnd::Refused { code, message } => lacked_right(*code, message).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, message: &str) -> OrderEnd {
        OrderEnd::Refused { code, message: message.to_owned() }
    }

    #[test]
    fn a_webhook_that_takes_no_dry_runs_keeps_nobody() {
        let webhook = "admission webhook \"a.example.com\" does not support dry run";
        assert!(!would_fail(&refused(400, webhook)));
        let denied = "admission webhook \"a.example.com\" denied the request: kept";
        assert!(would_fail(&refused(400, denied)));
    }

    #[test]
    fn only_what_a_policy_says_is_asked_of_every_pod() {
        let right =
            "pods \"a\" is forbidden: User \"u\" cannot delete resource \"pods\" in API group \"\"";
        let unanswered = OrderEnd::Unanswered { problem: "silence".to_owned() };
        let of_all = [refused(403, right), refused(429, "busy"), refused(500, "down"), unanswered];
        assert!(of_all.iter().all(|end| would_fail(end) && may_be_of_all(end)));
        let of_one = [refused(403, "kept"), refused(422, "kept")];
        assert!(of_one.iter().all(|end| would_fail(end) && !may_be_of_all(end)));
    }
}
