//! Names of things: dense integers inside one engine.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $repr:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $repr);

        impl $name {
            /// The position of this thing in a dense table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(out)
            }
        }
    };
}

id!(
    /// A slot of the engine's node table. A slot is given to another node after its node is gone.
    NodeId,
    u32
);
id!(
    /// A job, in the order of submission: a smaller id was submitted earlier.
    JobId,
    u64
);
id!(
    /// One amount held on one node.
    HoldingId,
    u64
);
id!(
    /// Capacity kept for a job or a queue.
    ReservationId,
    u32
);

/// One pod of a job: the pod set it belongs to and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodId {
    pub job: JobId,
    /// Index into [`crate::Job::pod_sets`].
    pub pod_set: u16,
    /// Number of the pod within its set, from 0.
    pub ordinal: u32,
}

/// Job, pod set and number, as in `7/0/3`.
impl fmt::Display for PodId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}/{}", self.job, self.pod_set, self.ordinal)
    }
}

/// Name of a queue, as users write it.
pub type QueueName = String;

/// Name of a node, shared so that a decision costs no copy.
pub type NodeName = std::sync::Arc<str>;
