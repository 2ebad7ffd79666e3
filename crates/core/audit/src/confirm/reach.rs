//! Which rows of a ledger a finding is about, by the reach of its check.

use dovetail_account::device_time::DeviceState;
use dovetail_facts::ObjectRef;

use super::{FixedFinding, LedgerRow};
use crate::catalogue::{Reach, check};

/// The reach of the finding's check; of a check that is not in the catalogue nothing is known.
pub(super) fn reach(finding: &FixedFinding) -> Reach {
    check(&finding.id).map_or(Reach::Nothing, |check| check.reach)
}

impl Reach {
    /// How many it may be about: what is narrow has its time before what is wide.
    pub(super) fn width(self, object: &ObjectRef) -> u8 {
        match self {
            Self::Held(_) if object.kind == "Namespace" => 1,
            Self::Held(_) | Self::Nodes(_) => 0,
            Self::Cluster(_) | Self::Nothing => 2,
        }
    }

    /// Whether time in a state would end.
    pub(super) fn ends(self, state: DeviceState) -> bool {
        self.states().contains(&state)
    }

    /// The state in which nobody knows whether time is of those that would end.
    pub(super) fn blind(self) -> Option<DeviceState> {
        match self {
            Self::Held(_) => Some(DeviceState::Unknown),
            Self::Nodes(_) | Self::Cluster(_) => Some(DeviceState::Free(None)),
            Self::Nothing => None,
        }
    }

    /// Whether a row is of the objects of a finding, in whatever state.
    pub(super) fn is_about(self, row: &LedgerRow, object: &ObjectRef) -> bool {
        match (self, &row.holder) {
            (Self::Held(_), Some(holder)) if object.kind == "Namespace" => {
                holder.namespace == object.name
            }
            (Self::Held(_), Some(holder)) => {
                let is_kind = holder.kind == object.kind || holder.kind.is_empty();
                is_kind && holder.namespace == object.namespace && holder.name == object.name
            }
            (Self::Nodes(_), _) if object.kind == "Node" => row.node == object.name,
            (Self::Nodes(_), _) => row.pool == *object,
            (Self::Cluster(_), _) => true,
            _ => false,
        }
    }
}
