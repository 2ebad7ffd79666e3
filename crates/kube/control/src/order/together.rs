//! What is asked and written before pods are evicted together.
//!
//! Admission (a policy, a webhook) says only when a pod is to be deleted that it refuses. Pods of
//! the decision that were deleted before it would have been evicted without effect, and a gang
//! would go on without them. So before the first of several is touched, each delete is sent as a
//! dry run: the server admits or refuses it as the write itself, and does nothing. Of one pod
//! alone nothing is asked: its own delete comes first and last. Only where evictions had no effect
//! of late is it asked about, too, so that one pod after the other is not marked and unmarked.
//! Marks are not asked about: they are taken back where another is refused.
//!
//! Then all of several are marked before the first of them is deleted: the next leader finds by
//! those that are left what was begun, however soon the others are gone.

use std::collections::{BTreeSet, VecDeque};

use dovetail_cluster::world::PodKey;

use super::eviction::{EvictionCause, EvictionDecision};
use super::kinds::OrderEnd;
use super::step::OrderWrite;
use crate::answer::lacked_right;

/// Questions, marks or evictions of one decision on their way at once.
pub(super) const AT_ONCE: usize = 16;

/// What is known of the pods that are evicted by one decision.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Orders of it that are not over.
    pub(super) orders: usize,
    /// What has not begun of it does not begin.
    pub(super) is_called_off: bool,
    pub(super) is_asked: bool,
    /// Pods that the server would not evict.
    pub(super) refused: BTreeSet<PodKey>,
    pub(super) is_marked: bool,
    pub(super) marked: BTreeSet<PodKey>,
    /// Pods whose mark the server refused, or did not answer.
    pub(super) unmarkable: BTreeSet<PodKey>,
}

impl Together {
    /// Whether the end of the eviction of a pod is known from what was asked or marked.
    pub(super) fn has_ended(&self, pod: &PodKey) -> bool {
        self.refused.contains(pod) || self.unmarkable.contains(pod)
    }
}

/// Steps that are taken side by side before the first pod is evicted, and what came of them.
#[derive(Debug, Default)]
pub(super) struct ParallelSteps {
    pub(super) left: VecDeque<OrderWrite>,
    pub(super) on_their_way: usize,
    /// Pods whose eviction would not be carried out, and how each would end.
    pub(super) ends: Vec<(PodKey, OrderEnd)>,
}

impl ParallelSteps {
    /// A dry run of what makes each pod leave.
    pub(super) fn of_questions(decision: &EvictionDecision, why: EvictionCause) -> Self {
        let of_pod = |pod: &PodKey| match decision.suspends(pod) {
            Some((_, false)) => None,
            Some((job, true)) => Some(OrderWrite::WouldSuspend(pod.clone(), job.clone(), why)),
            None => Some(OrderWrite::WouldLeave(pod.clone(), why.leaves())),
        };
        Self { left: decision.pods().iter().filter_map(of_pod).collect(), ..Self::default() }
    }

    pub(super) fn of_marks(pods: &[PodKey], why: EvictionCause) -> Self {
        let marks = pods.iter().map(|pod| OrderWrite::Mark(pod.clone(), why));
        Self { left: marks.collect(), ..Self::default() }
    }

    /// The next step to take, if another may be on its way.
    pub(super) fn next(&mut self) -> Option<OrderWrite> {
        let step = if self.on_their_way < AT_ONCE { self.left.pop_front() } else { None };
        self.on_their_way += usize::from(step.is_some());
        step
    }

    pub(super) fn is_over(&self) -> bool {
        self.left.is_empty() && self.on_their_way == 0
    }
}

/// Whether an eviction would have no effect that ends like this. A webhook that takes no dry runs
/// says nothing about the pod.
pub(super) fn would_fail(end: &OrderEnd) -> bool {
    match end {
        OrderEnd::Done | OrderEnd::Gone | OrderEnd::CalledOff => false,
        OrderEnd::Unanswered { .. } => true,
        OrderEnd::Refused { code, message } => {
            *code != 400 || !message.ends_with("does not support dry run")
        }
    }
}

/// Whether the other pods may well get the same answer, so that it is not waited for.
pub(super) fn may_be_of_all(end: &OrderEnd) -> bool {
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
    fn a_webhook_that_takes_no_dry_runs_keeps_no_pod() {
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
