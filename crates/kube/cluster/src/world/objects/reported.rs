//! What was reported to the engine of a pod.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use dovetail_model::{Holding, HoldingPhase, JobId, NodeName, PodId, QueueName, Requirement};
use dovetail_objects::Pod;

/// What was reported to the engine.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Reported {
    /// Nothing, or that it is gone.
    #[default]
    Nothing,
    /// A job of this pod alone waits.
    Waiting {
        requirement: Arc<Requirement>,
        priority: i32,
        queue: QueueName,
        kept_room: BTreeSet<String>,
    },
    /// The job of its gang waits, or is about to.
    Member { requirement: Arc<Requirement> },
    /// The engine decided it itself.
    Assumed { node: NodeName, held: Fingerprint, requirement: Arc<Requirement> },
    /// A job runs; when this pod said that the job wrote a checkpoint.
    Running { node: NodeName, held: Fingerprint, checkpoint_ms: Option<u64> },
    /// Somebody else holds something.
    Foreign { node: NodeName, held: Fingerprint },
}

impl Reported {
    /// Whether a job of the pod waits.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Self::Waiting { .. } | Self::Member { .. })
    }

    /// Whether a job of the pod runs, as far as the engine knows.
    pub(crate) fn runs(&self) -> bool {
        matches!(self, Self::Assumed { .. } | Self::Running { .. })
    }

    /// The node on which the pod holds something.
    pub(crate) fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Assumed { node, .. }
            | Self::Running { node, .. }
            | Self::Foreign { node, .. } => Some(node),
            Self::Nothing | Self::Waiting { .. } | Self::Member { .. } => None,
        }
    }

    /// Whether the pod holds something on a node.
    pub(crate) fn is_on(&self, node: &str) -> bool {
        self.node().is_some_and(|on| **on == *node)
    }
}

/// What is held, in brief: equal if nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// Of everything but the counts.
    pub(crate) amounts: u64,
    /// Of the selectors that count it.
    pub(crate) counts: u64,
}

impl Fingerprint {
    pub(crate) fn of(holding: &Holding) -> Self {
        let releasing = match holding.phase {
            HoldingPhase::Releasing { expected_end_ms } => Some(expected_end_ms),
            _ => None,
        };
        let Holding { resources, devices, attachments, counts_into, .. } = holding;
        Self {
            amounts: hash(&(resources, devices, attachments, releasing)),
            counts: hash(counts_into),
        }
    }

    /// The same of what the engine holds by a requirement: pods of a gang that are decided together
    /// may count there for bounds that end when they have their devices.
    pub(crate) fn decided(holding: &Holding, requirement: &Requirement) -> Self {
        Self { counts: hash(&requirement.counts_into), ..Self::of(holding) }
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Namespace and name, as people write them.
pub(crate) fn full_name(pod: &Pod) -> String {
    format!("{}/{}", pod.meta.namespace, pod.meta.name)
}

pub(crate) fn only_pod(job: JobId) -> PodId {
    PodId { job, pod_set: 0, ordinal: 0 }
}
