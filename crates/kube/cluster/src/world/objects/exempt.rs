//! What takes no part in preemption for a while: evictions that the server refuses, and preemption
//! for jobs for which it failed again and again. Of single pods their entries say it.

use std::collections::BTreeSet;

use dovetail_model::JobId;

use crate::world::key::PodKey;

/// What takes no part in preemption for a while.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exempt {
    /// A pod, and with it the others of its job, is no victim.
    Pod(PodKey),
    /// No pod of a namespace is a victim.
    Namespace(Box<str>),
    /// No pod is preempted for a job, whatever its pods say.
    Preemptor(JobId),
}

/// Namespaces and jobs that are exempt.
#[derive(Debug, Default)]
pub(crate) struct ExemptSets {
    pub(crate) namespaces: BTreeSet<Box<str>>,
    pub(crate) preemptors: BTreeSet<JobId>,
}

/// Puts something in or takes it out; whether that changed anything.
pub(crate) fn set<T: Ord>(all: &mut BTreeSet<T>, one: T, is_in: bool) -> bool {
    if is_in { all.insert(one) } else { all.remove(&one) }
}
