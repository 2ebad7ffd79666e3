//! Which GPU-time would end with a finding.

use dovetail_ledger::FreeCause;
use dovetail_ledger::device_time::{DeviceState, Work};

use super::{FixedFinding, LedgerRow};
use crate::facts::ObjectRef;

/// Whose time, in which states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// What pods of the object hold; of a namespace, all pods in it.
    Held(&'static [DeviceState]),
    /// What stands on the nodes of the object.
    Nodes(&'static [DeviceState]),
    /// What is free for a cause, wherever it is: the object is what waits, or what strands it.
    Cluster(&'static [DeviceState]),
    /// It is about a risk.
    Nothing,
}

const IDLE: &[DeviceState] = &[DeviceState::Idle];
const REPEATED: &[DeviceState] = &[DeviceState::Active(Work::Repeated)];
const UNAVAILABLE: &[DeviceState] = &[DeviceState::Unavailable];
const NO_DEMAND: &[DeviceState] = &[DeviceState::Free(Some(FreeCause::NoDemand))];
const DRAINING: &[DeviceState] = &[DeviceState::Free(Some(FreeCause::DrainingOrCordoned))];
const STRANDED: &[DeviceState] = &[
    DeviceState::Free(Some(FreeCause::StrandedByCpu)),
    DeviceState::Free(Some(FreeCause::StrandedByMemory)),
];

/// Checks whose findings would end GPU-time that a ledger counts as waste.
const REACHES: [(&str, Reach); 26] = [
    ("REQ-04", Reach::Held(IDLE)),
    ("REQ-05", Reach::Held(IDLE)),
    ("REQ-06", Reach::Held(IDLE)),
    ("REQ-08", Reach::Cluster(STRANDED)),
    ("REQ-09", Reach::Held(IDLE)),
    ("REQ-10", Reach::Held(REPEATED)),
    ("REQ-11", Reach::Held(IDLE)),
    ("REQ-12", Reach::Held(IDLE)),
    ("SCH-04", Reach::Cluster(&[DeviceState::Free(Some(FreeCause::Taint))])),
    ("SCH-08", Reach::Cluster(&[DeviceState::Free(Some(FreeCause::Fragmented))])),
    ("SCH-09", Reach::Held(&[DeviceState::GangWait])),
    ("SHR-02", Reach::Held(IDLE)),
    ("IDL-01", Reach::Held(IDLE)),
    ("IDL-02", Reach::Held(IDLE)),
    ("IDL-03", Reach::Held(IDLE)),
    ("IDL-04", Reach::Held(IDLE)),
    ("IDL-05", Reach::Held(&[DeviceState::Provisioning])),
    ("IDL-06", Reach::Held(IDLE)),
    ("GOV-03", Reach::Held(IDLE)),
    ("AUT-03", Reach::Nodes(NO_DEMAND)),
    ("AUT-04", Reach::Nodes(NO_DEMAND)),
    ("AUT-06", Reach::Nodes(DRAINING)),
    ("SPT-01", Reach::Held(REPEATED)),
    ("CAP-01", Reach::Nodes(UNAVAILABLE)),
    ("CAP-02", Reach::Nodes(UNAVAILABLE)),
    ("CAP-05", Reach::Nodes(UNAVAILABLE)),
];

pub(super) fn reach(finding: &FixedFinding) -> Reach {
    let known = REACHES.iter().find(|(id, _)| *id == finding.id);
    known.map_or(Reach::Nothing, |(_, reach)| *reach)
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
        match self {
            Self::Held(states) | Self::Nodes(states) | Self::Cluster(states) => {
                states.contains(&state)
            }
            Self::Nothing => false,
        }
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
