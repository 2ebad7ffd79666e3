//! Holdings: who holds what on which node.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::device::DeviceAmount;
use crate::ids::{HoldingId, NodeName, PodId, ReservationId};
use crate::resources::Resources;
use crate::selectors::Selectors;

/// Amounts of devices by index, ascending.
pub type HeldDevices = Vec<(u16, DeviceAmount)>;

/// One amount held on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    pub id: HoldingId,
    pub node: NodeName,
    /// Who holds it.
    pub owner: Owner,
    /// How firmly.
    pub phase: HoldingPhase,
    /// The reservation it belongs to, or was started under.
    #[serde(default)]
    pub reservation: Option<ReservationId>,
    /// Amounts of the node.
    pub resources: Resources,
    /// Amounts of devices, by index into the node's devices, ascending. On a node with counted
    /// devices the index stands for “one of them”.
    pub devices: HeldDevices,
    #[serde(default)]
    pub counts_into: Selectors,
    /// Volumes that the pod has attached to the node.
    #[serde(default)]
    pub attachments: BTreeSet<Attachment>,
}

/// A volume attached to a node: once, however many pods of the node use it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attachment {
    /// The limit it counts for, by name ([`crate::Node::attach_limits`]).
    pub limit: String,
    /// Name of the volume, unique within the limit.
    pub volume: String,
}

/// Who holds something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// A pod of a job the engine knows.
    Pod(PodId),
    /// Nobody yet: capacity kept by [`Holding::reservation`].
    Reservation,
    /// A pod the engine did not place: static, daemon, or of another scheduler.
    Foreign(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(pod) => write!(out, "pod {pod}"),
            Self::Reservation => out.write_str("a reservation"),
            Self::Foreign(name) => write!(out, "pod {name}, placed by others,"),
        }
    }
}

/// How firmly an amount is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldingPhase {
    /// Decided by the engine, not yet confirmed from outside.
    Assumed,
    /// Confirmed.
    Held {
        /// When it is expected to end; `None` is unknown.
        expected_end_ms: Option<u64>,
    },
    /// Ending: still held, soon free.
    Releasing {
        /// When it is expected to be free; `None` is unknown. Nobody counts on it any more when
        /// that has passed.
        expected_end_ms: Option<u64>,
    },
    /// Kept by somebody outside for a job that is to come ([`crate::Job::kept_room`]): given up for
    /// one of a higher priority that may stop others, before anybody is stopped for it.
    Kept {
        /// Priority of whoever it is kept for.
        priority: i32,
    },
}

impl HoldingPhase {
    /// When the amount is expected to be free; `None` is unknown.
    pub fn expected_end_ms(self) -> Option<u64> {
        match self {
            Self::Assumed | Self::Kept { .. } => None,
            Self::Held { expected_end_ms } | Self::Releasing { expected_end_ms } => expected_end_ms,
        }
    }

    /// Whether the amount is soon free: it is ending, and not late with that. What is late is held
    /// by something that may stay, and nobody counts on it.
    pub fn is_leaving(self, now_ms: u64) -> bool {
        match self {
            Self::Releasing { expected_end_ms } => {
                expected_end_ms.is_none_or(|end_ms| end_ms > now_ms)
            }
            _ => false,
        }
    }
}
