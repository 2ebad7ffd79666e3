//! Waiting pods that want devices nobody can hold against nodes: which GPUs these may be, and how many at most.

use dovetail_audit::Untold;

use super::claim::NotTold;
use super::whose::Whose;
use crate::facts::gathered::Unjudged;

/// A waiting pod of which nobody knows what it wants.
pub(in crate::facts) struct UntoldPod {
    /// Namespace and name.
    pod: String,
    /// Why, in words.
    reason: String,
    /// Which GPUs it may want.
    wants: Wants,
    /// How many.
    untold: Untold,
}

/// Which GPUs a pod may want.
enum Wants {
    /// Those of one name.
    Resource(&'static str),
    /// All of some drivers, and parts of them.
    Of(Whose),
}

impl UntoldPod {
    /// A pod of whose claims nobody can tell what they want.
    pub(super) fn of(pod: String, NotTold { reason, whose }: NotTold) -> Self {
        Self { pod, reason, wants: Wants::Of(whose), untold: Untold::Any }
    }

    /// A pod that wants so many parts of GPUs, for which so many whole ones at most would be cut.
    pub(super) fn of_parts(pod: String, part: &str, whole: &'static str, units: i64) -> Self {
        let reason =
            format!("it wants {part}, into which a GPU that is free as a whole can be cut");
        Self { pod, reason, wants: Wants::Resource(whole), untold: Untold::AtMost(units) }
    }

    /// Whether it may want GPUs of that name.
    pub(in crate::facts) fn may_want(&self, resource: &str) -> bool {
        match self.wants {
            Wants::Resource(wanted) => wanted == resource,
            Wants::Of(whose) => whose.may_be(resource),
        }
    }

    /// How many of those that it may want.
    pub(in crate::facts) fn units(&self) -> Untold {
        self.untold
    }

    /// As it is told.
    pub(in crate::facts) fn told(&self) -> Unjudged {
        Unjudged { pod: self.pod.clone(), reason: self.reason.clone() }
    }
}
