//! One write about a pod or a claim: what it is called, which right it needs, how it is sent, and what an answer to
//! it means.

use dovetail_cluster::world::{ClaimKey, PodKey};
use tracing::warn;

use super::OrderEnd;
use super::nominate::nominate;
use super::orders::Wires;
use super::request::{delete, mark, select_node, unmark, would_delete, would_mark};
use super::stop::{Kept, Stop};
use crate::announce::Condition;
use crate::client::{Answered, is_about_identity, lacked_right, message};
use crate::repeats::{Repeats, without_names};

/// One write about a pod or a claim.
pub(super) enum Step<'a> {
    /// Whether the server would do it; nothing is done.
    WouldMark(&'a PodKey, Stop),
    /// Whether the server would do it; nothing is done.
    WouldDelete(&'a PodKey),
    Mark(&'a PodKey, Stop),
    Delete(&'a PodKey),
    /// With why it is not stopped.
    Unmark(&'a PodKey, Kept),
    Nominate(&'a PodKey, &'a str, Option<&'a Condition>),
    SelectNode(&'a ClaimKey, &'a str, &'a str),
}

/// What is to be done after an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    End(OrderEnd),
    /// The server's code, if it has answered, and what went wrong.
    Again(Option<u16>, String),
}

impl<'a> Step<'a> {
    /// Namespace and name of what it is about.
    pub(super) fn about(&self) -> (&str, &str) {
        match self {
            Self::WouldMark(pod, _)
            | Self::WouldDelete(pod)
            | Self::Mark(pod, _)
            | Self::Delete(pod)
            | Self::Unmark(pod, _)
            | Self::Nominate(pod, ..) => (&pod.namespace, &pod.name),
            Self::SelectNode(claim, ..) => (&claim.namespace, &claim.name),
        }
    }

    /// The pod that it marks as one that is about to be stopped.
    pub(super) fn marks(&self) -> Option<&'a PodKey> {
        match self {
            Self::Mark(pod, _) => Some(pod),
            _ => None,
        }
    }

    /// Whether nothing is done by it.
    pub(super) fn is_question(&self) -> bool {
        matches!(self, Self::WouldMark(..) | Self::WouldDelete(_))
    }

    /// The right that the write needs, as roles name it.
    fn right(&self) -> &'static str {
        match self {
            Self::WouldMark(..) | Self::Mark(..) | Self::Unmark(..) | Self::Nominate(..) => {
                "patch on pods/status"
            }
            Self::WouldDelete(_) | Self::Delete(_) => "delete on pods",
            Self::SelectNode(..) => "patch on persistentvolumeclaims",
        }
    }

    /// Says that it is not carried out, unless the same was said a short while ago.
    pub(super) fn tell(&self, end: &OrderEnd, told: &mut Repeats<&'static str>, now_ms: u64) {
        let ((namespace, name), what) = (self.about(), self.what());
        let (code, problem) = match end {
            OrderEnd::Done | OrderEnd::Gone | OrderEnd::CalledOff => return,
            OrderEnd::Refused { code, message } => {
                if let Some(lacked) = lacked_right(*code, message) {
                    let right = self.right();
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

    /// What is done, after `cannot`.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::WouldMark(_, Stop::GangGivenUp) | Self::Mark(_, Stop::GangGivenUp) => {
                "mark the pod: its gang is given up"
            }
            Self::WouldMark(_, Stop::Preempted) | Self::Mark(_, Stop::Preempted) => {
                "mark the pod: it is stopped for one of a higher priority"
            }
            Self::WouldDelete(_) | Self::Delete(_) => "delete the pod",
            Self::Unmark(..) => "take back the mark of the pod: it is not stopped",
            Self::Nominate(_, "", _) => "tell the pod that no node is freed for it",
            Self::Nominate(..) => "tell the pod which node is freed for it",
            Self::SelectNode(..) => "tell the claim for which node it is to get its volume",
        }
    }

    pub(super) async fn send(&self, wires: &Wires) -> Answered {
        match self {
            Self::WouldMark(pod, why) => {
                let message = why.message(&wires.scheduler);
                would_mark(&wires.client, pod, why.reason(), &message).await
            }
            Self::WouldDelete(pod) => would_delete(&wires.client, pod).await,
            Self::Mark(pod, why) => {
                let message = why.message(&wires.scheduler);
                mark(&wires.client, pod, why.reason(), &message).await
            }
            Self::Delete(pod) => delete(&wires.client, pod).await,
            Self::Unmark(pod, kept) => {
                let message = kept.message(&wires.scheduler);
                unmark(&wires.client, pod, kept.reason(), &message).await
            }
            Self::Nominate(pod, node, says) => nominate(&wires.client, pod, node, *says).await,
            Self::SelectNode(claim, version, node) => {
                select_node(&wires.client, claim, version, node).await
            }
        }
    }
}

/// 404 and 409 say that the object, or the one with that UID or of that version, is gone; so does 422 about its
/// identity. Every other 4xx is a refusal: of a validating policy it is 422 unless it says otherwise.
pub(super) fn judge(code: u16, body: &[u8]) -> Next {
    match code {
        200..=299 => Next::End(OrderEnd::Done),
        404 | 409 => Next::End(OrderEnd::Gone),
        422 if is_about_identity(body) => Next::End(OrderEnd::Gone),
        429 | 500..=599 => Next::Again(Some(code), message(body)),
        _ => Next::End(OrderEnd::Refused { code, message: message(body) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_may_do_later_is_asked_again() {
        let done = Next::End(OrderEnd::Done);
        assert!([200, 202].iter().all(|code| judge(*code, b"") == done));
        let busy = judge(503, br#"{"message": "busy"}"#);
        assert!(matches!(busy, Next::Again(Some(503), problem) if problem == "busy"));
    }

    #[test]
    fn what_is_refused_is_told_from_what_is_gone() {
        let gone = Next::End(OrderEnd::Gone);
        assert!([404, 409].iter().all(|code| judge(*code, b"") == gone));
        let other = br#"{"message": "m", "details": {"causes": [{"field": "metadata.uid"}]}}"#;
        assert_eq!(judge(422, other), gone);
        for code in [400, 403, 422] {
            let refused = OrderEnd::Refused { code, message: "no".to_owned() };
            assert_eq!(judge(code, br#"{"message": "no"}"#), Next::End(refused));
        }
    }
}
