//! What the scheduler has learned not to try for a while: evictions that the server refuses, and
//! preemption for jobs for which it is of no use. Of single pods their entries say it.

use std::collections::BTreeSet;

use dovetail_model::JobId;

/// What is exempt.
#[derive(Debug, Default)]
pub(crate) struct Exempt {
    /// Namespaces of which no pod is preempted.
    namespaces: BTreeSet<Box<str>>,
    /// Jobs that do not preempt.
    patient: BTreeSet<JobId>,
}

impl Exempt {
    pub(crate) fn has_namespace(&self, namespace: &str) -> bool {
        self.namespaces.contains(namespace)
    }

    /// A namespace is exempt, or not any more; whether that is new.
    pub(crate) fn set_namespace(&mut self, namespace: &str, is_exempt: bool) -> bool {
        match is_exempt {
            true => self.namespaces.insert(namespace.into()),
            false => self.namespaces.remove(namespace),
        }
    }

    /// Whether a job does not preempt for the time being, whatever its pods say.
    pub(crate) fn is_patient(&self, job: JobId) -> bool {
        self.patient.contains(&job)
    }

    pub(crate) fn set_patient(&mut self, job: JobId, is_patient: bool) {
        match is_patient {
            true => self.patient.insert(job),
            false => self.patient.remove(&job),
        };
    }
}
