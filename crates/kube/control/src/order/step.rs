//! One write about a pod or a claim: what it is called, which right it needs, and what an answer to
//! it means.

use dovetail_cluster::world::{
    ClaimKey, ClaimPart, ClaimWrite, LastingOwner, PodKey, SuspendedJob,
};
use dovetail_model::PreemptReason;
use dovetail_objects::{Kind, WorkloadKind};

use super::eviction::{EvictionCause, Leaves, NotEvicted};
use super::kinds::OrderEnd;
use crate::announce::PodCondition;
use crate::answer::{is_about_identity, is_about_precondition, message};

/// One write about a pod or a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OrderWrite {
    /// Whether the server would do it; nothing is done.
    WouldMark(PodKey, EvictionCause),
    /// Whether the server would do it; nothing is done.
    WouldLeave(PodKey, Leaves),
    /// Sets the condition `DisruptionTarget`.
    Mark(PodKey, EvictionCause),
    Leave(PodKey, Leaves),
    /// Whether the server would do it; nothing is done.
    WouldSuspend(PodKey, LastingOwner, EvictionCause),
    /// Suspends the Job of a pod, by which the pod leaves, and all others of the Job.
    Suspend(PodKey, LastingOwner, EvictionCause),
    /// Resumes a Job that dovetail has suspended, if it still is by this suspension.
    Resume(Box<SuspendedJob>),
    /// Sets the condition again: the server replaces it by its own when it evicts a pod.
    SayWhy(PodKey, EvictionCause),
    /// With why it is not evicted.
    Unmark(PodKey, NotEvicted),
    /// Sets the node that is freed for the pod, and what the pod says of that.
    Nominate(PodKey, String, Option<Box<PodCondition>>),
    /// Sets the node for which a claim of this version is to get its volume.
    SelectNode(ClaimKey, Box<str>, String),
    /// Changes a claim of devices.
    WriteClaim(Box<ClaimWrite>),
}

/// What is to be done after an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextWrite {
    /// The step is over.
    End(OrderEnd),
    /// The server's code, if it has answered, and what went wrong.
    Again(Option<u16>, String),
}

impl OrderWrite {
    /// Namespace and name of what it is about.
    pub(super) fn about(&self) -> (&str, &str) {
        match self {
            Self::WouldMark(pod, _)
            | Self::WouldLeave(pod, _)
            | Self::Mark(pod, _)
            | Self::Leave(pod, _)
            | Self::SayWhy(pod, _)
            | Self::Unmark(pod, _)
            | Self::Nominate(pod, ..) => (&pod.namespace, &pod.name),
            Self::WouldSuspend(_, job, _) | Self::Suspend(_, job, _) => (&job.namespace, &job.name),
            Self::Resume(job) => (&job.job.namespace, &job.job.name),
            Self::SelectNode(claim, ..) => (&claim.namespace, &claim.name),
            Self::WriteClaim(write) => (&write.claim.namespace, &write.claim.name),
        }
    }

    /// Whether it states the version of what it changes, and not just its UID.
    fn states_version(&self) -> bool {
        matches!(self, Self::Nominate(..) | Self::SelectNode(..) | Self::WriteClaim(_))
    }

    /// Whether nothing is done by it.
    pub(super) fn is_question(&self) -> bool {
        matches!(self, Self::WouldMark(..) | Self::WouldLeave(..) | Self::WouldSuspend(..))
    }

    /// The right that the write needs, as roles name it.
    pub(super) fn right(&self) -> &'static str {
        match self {
            Self::WouldMark(..)
            | Self::Mark(..)
            | Self::SayWhy(..)
            | Self::Unmark(..)
            | Self::Nominate(..) => "patch on pods/status",
            Self::WouldLeave(_, Leaves::Deleted) | Self::Leave(_, Leaves::Deleted) => {
                "delete on pods"
            }
            Self::WouldLeave(_, Leaves::Evicted) | Self::Leave(_, Leaves::Evicted) => {
                "create on pods/eviction"
            }
            Self::WouldSuspend(_, job, _) | Self::Suspend(_, job, _) => right_on(job),
            Self::Resume(job) => right_on(&job.job),
            Self::SelectNode(..) => "patch on persistentvolumeclaims",
            Self::WriteClaim(write) => match write.what {
                ClaimPart::New => "create on resourceclaims",
                ClaimPart::Metadata => "patch on resourceclaims",
                ClaimPart::Status => "patch on resourceclaims/status and resourceclaims/binding",
                ClaimPart::Deletion => "delete on resourceclaims",
                ClaimPart::Pod(_) => "patch on pods/status",
            },
        }
    }

    /// What is done, after `cannot`.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::WouldMark(_, EvictionCause::GangGivenUp)
            | Self::Mark(_, EvictionCause::GangGivenUp) => "mark the pod: its gang restarts",
            Self::WouldMark(_, EvictionCause::Preempted(reason))
            | Self::Mark(_, EvictionCause::Preempted(reason)) => match reason {
                PreemptReason::Priority => "mark the pod: a pod of higher priority preempts it",
                PreemptReason::Order => {
                    "mark the pod: it is evicted for a pod that finishes sooner"
                }
                PreemptReason::Reclaim => "mark the pod: its queue returns borrowed quota",
            },
            Self::WouldLeave(_, Leaves::Deleted) | Self::Leave(_, Leaves::Deleted) => {
                "delete the pod"
            }
            Self::WouldLeave(_, Leaves::Evicted) | Self::Leave(_, Leaves::Evicted) => {
                "evict the pod"
            }
            Self::WouldSuspend(..) | Self::Suspend(..) => "suspend the workload",
            Self::Resume(_) => "resume the workload",
            Self::SayWhy(..) => "record why the pod is evicted",
            Self::Unmark(..) => "remove the mark of the pod: it is not evicted",
            Self::Nominate(_, node, _) if node.is_empty() => "clear the nominated node of the pod",
            Self::Nominate(..) => "nominate a node for the pod",
            Self::SelectNode(..) => "select the node of the claim",
            Self::WriteClaim(write) => match write.what {
                ClaimPart::New => "create the claim for the extended resources of its pod",
                ClaimPart::Metadata | ClaimPart::Status => "write the devices of the claim",
                ClaimPart::Deletion => "delete the claim: its pod does not start",
                ClaimPart::Pod(_) => "set the claim in the status of its pod",
            },
        }
    }
}

/// The right to suspend and resume a Job or JobSet.
fn right_on(job: &LastingOwner) -> &'static str {
    match job.kind {
        Kind::Workload(WorkloadKind::JobSet) => "patch on jobsets",
        _ => "patch on jobs",
    }
}

/// 404 says that the object is gone; so does 409 about its UID or version, and 422 about its
/// identity. Any other 409 was a race that the server lost against another write. Every other 4xx
/// is a refusal: of a validating policy it is 422 unless it says otherwise.
pub(super) fn judge(step: &OrderWrite, code: u16, body: &[u8]) -> NextWrite {
    match code {
        200..=299 => NextWrite::End(OrderEnd::Done),
        404 => NextWrite::End(OrderEnd::Gone),
        409 if step.states_version() || is_about_precondition(body) => {
            NextWrite::End(OrderEnd::Gone)
        }
        409 => NextWrite::Again(Some(code), message(body)),
        422 if is_about_identity(body) => NextWrite::End(OrderEnd::Gone),
        429 | 500..=599 => NextWrite::Again(Some(code), message(body)),
        _ => NextWrite::End(OrderEnd::Refused { code, message: message(body) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave() -> OrderWrite {
        let pod = PodKey { namespace: "n".into(), name: "p".into(), uid: "u".into() };
        OrderWrite::Leave(pod, Leaves::Deleted)
    }

    #[test]
    fn what_the_server_may_do_later_is_asked_again() {
        let done = NextWrite::End(OrderEnd::Done);
        assert!([200, 202].iter().all(|code| judge(&leave(), *code, b"") == done));
        let busy = judge(&leave(), 503, br#"{"message": "busy"}"#);
        assert!(matches!(busy, NextWrite::Again(Some(503), problem) if problem == "busy"));
        let lost_race = br#"{"message": "the object has been modified"}"#;
        assert!(matches!(judge(&leave(), 409, lost_race), NextWrite::Again(Some(409), _)));
    }

    #[test]
    fn what_is_refused_is_told_from_what_is_gone() {
        let gone = NextWrite::End(OrderEnd::Gone);
        assert_eq!(judge(&leave(), 404, b""), gone);
        for message in [
            "the UID in the precondition (u) does not match the UID in record (v)",
            "Precondition failed: UID in precondition: u, UID in object meta: v",
        ] {
            let body = format!(r#"{{"message": "{message}"}}"#);
            assert_eq!(judge(&leave(), 409, body.as_bytes()), gone);
        }
        let other = br#"{"message": "m", "details": {"causes": [{"field": "metadata.uid"}]}}"#;
        assert_eq!(judge(&leave(), 422, other), gone);
        for code in [400, 403, 422] {
            let refused = OrderEnd::Refused { code, message: "no".to_owned() };
            assert_eq!(judge(&leave(), code, br#"{"message": "no"}"#), NextWrite::End(refused));
        }
    }
}
