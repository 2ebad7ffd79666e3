//! Events that an engine refuses.

use dovetail_model::{JobId, NodeName, Owner, PodId};
use thiserror::Error;

use crate::gang::UnknownLevel;
use dovetail_policy::named::UnknownPolicy;

/// An event that cannot be taken; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    /// The time of the event lies before that of an earlier one.
    #[error(
        "an event at {now_ms} ms came after one at {last_ms} ms: pass events in chronological order"
    )]
    TimeWentBack {
        /// Time of the event.
        now_ms: u64,
        /// Time of the newest event before.
        last_ms: u64,
    },
    /// The node is not known.
    #[error("node {node} is not known: add it before changing it")]
    UnknownNode { node: NodeName },
    /// The job is not known.
    #[error("job {job} is not known: it was never submitted or has already ended")]
    UnknownJob { job: JobId },
    /// Who is spoken of holds nothing.
    #[error("{owner} has no allocation: report its allocation first")]
    NothingHeld {
        /// Of whom the event speaks.
        owner: Owner,
    },
    /// The job does not wait.
    #[error("job {job} is not pending: its requests cannot change while it runs")]
    NotWaiting { job: JobId },
    /// A pod that its job does not have.
    #[error("job {} has no pod {pod}", .pod.job)]
    UnknownPod { pod: PodId },
    /// The identity is taken.
    #[error("job {name} has the ID {job}, which another job still uses")]
    DuplicateJob { job: JobId, name: String },
    /// The job has no pods.
    #[error("job {name} has no pod set with at least one pod: there is nothing to place")]
    EmptyJob { name: String },
    /// A level that the topology does not have.
    #[error(transparent)]
    UnknownLevel(#[from] UnknownLevel),
    /// A policy that does not exist.
    #[error(transparent)]
    UnknownPolicy(#[from] UnknownPolicy),
}
