//! How one step of an order is sent, and what is logged where it failed.

use dovetail_apiserver::pods::{delete, mark, select_node, unmark, would_delete, would_mark};
use dovetail_control::answer::{Answered, lacked_right};
use dovetail_control::bind::{OrderEnd, Step};
use dovetail_control::repeats::{Repeats, without_names};
use tracing::warn;

use super::nominate::nominate;
use super::orders::Wires;

/// Says that it is not carried out, unless the same was said a short while ago.
pub(super) fn tell(step: &Step<'_>, end: &OrderEnd, told: &mut Repeats<&'static str>, now_ms: u64) {
    let ((namespace, name), what) = (step.about(), step.what());
    let (code, problem) = match end {
        OrderEnd::Done | OrderEnd::Gone | OrderEnd::CalledOff => return,
        OrderEnd::Refused { code, message } => {
            if let Some(lacked) = lacked_right(*code, message) {
                let right = step.right();
                if told.is_due(right, lacked, now_ms) {
                    warn!(
                        %namespace, name, code,
                        "cannot {what}: the scheduler's account has not the right to {right} (deploy/rbac.yaml \
                         has it): {message}"
                    );
                }
                return;
            }
            (Some(*code), message)
        }
        OrderEnd::Unanswered { problem } => (None, problem),
    };
    // A policy that keeps many pods is told once, and not with the name of each.
    if told.is_due(what, &without_names(problem, [namespace, name]), now_ms) {
        match code {
            Some(code) => {
                warn!(%namespace, name, code, "cannot {what}: the server refuses it: {problem}");
            }
            None => warn!(%namespace, name, %problem, "cannot {what}"),
        }
    }
}

pub(super) async fn send(step: &Step<'_>, wires: &Wires) -> Answered {
    match step {
        Step::WouldMark(pod, why) => {
            let message = why.message(&wires.scheduler);
            would_mark(&wires.client, pod, why.reason(), &message).await
        }
        Step::WouldDelete(pod) => would_delete(&wires.client, pod).await,
        Step::Mark(pod, why) => {
            let message = why.message(&wires.scheduler);
            mark(&wires.client, pod, why.reason(), &message).await
        }
        Step::Delete(pod) => delete(&wires.client, pod).await,
        Step::Unmark(pod, kept) => {
            let message = kept.message(&wires.scheduler);
            unmark(&wires.client, pod, kept.reason(), &message).await
        }
        Step::Nominate(pod, node, says) => nominate(&wires.client, pod, node, *says).await,
        Step::SelectNode(claim, version, node) => {
            select_node(&wires.client, claim, version, node).await
        }
    }
}
