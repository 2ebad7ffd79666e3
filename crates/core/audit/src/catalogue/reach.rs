//! Which GPU-time would end with a finding: what a ledger is asked for once the finding is gone.

use dovetail_account::device_time::{ActiveWork, DeviceState};
use dovetail_model::FreeCause;

/// Whose time, in which states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// What pods of the object hold; of a namespace, all pods in it.
    Held(&'static [DeviceState]),
    /// What stands on the nodes of the object.
    Nodes(&'static [DeviceState]),
    /// What is free for a cause, wherever it is: the object is what waits, or what strands it.
    Cluster(&'static [DeviceState]),
    /// It is about a risk: no GPU-time that a ledger counts as waste ends with it.
    Nothing,
}

pub(super) const IDLE: &[DeviceState] = &[DeviceState::Idle];
pub(super) const PROVISIONING: &[DeviceState] = &[DeviceState::Provisioning];
pub(super) const GANG_WAIT: &[DeviceState] = &[DeviceState::GangWait];
pub(super) const REPEATED: &[DeviceState] = &[DeviceState::Active(ActiveWork::Repeated)];
pub(super) const UNAVAILABLE: &[DeviceState] = &[DeviceState::Unavailable];
pub(super) const NO_DEMAND: &[DeviceState] = &[DeviceState::Free(Some(FreeCause::NoDemand))];
pub(super) const UNWANTED: &[DeviceState] = &[
    DeviceState::Free(Some(FreeCause::NoDemand)),
    DeviceState::Free(Some(FreeCause::TypeMismatch)),
];
pub(super) const DRAINING: &[DeviceState] =
    &[DeviceState::Free(Some(FreeCause::DrainingOrCordoned))];
pub(super) const TAINTED: &[DeviceState] = &[DeviceState::Free(Some(FreeCause::Taint))];
pub(super) const FRAGMENTED: &[DeviceState] = &[DeviceState::Free(Some(FreeCause::Fragmented))];
pub(super) const GANG_SHORT: &[DeviceState] = &[DeviceState::Free(Some(FreeCause::GangShort))];
pub(super) const MISMATCHED: &[DeviceState] = &[DeviceState::Free(Some(FreeCause::TypeMismatch))];
pub(super) const QUOTA: &[DeviceState] = &[DeviceState::Free(Some(FreeCause::Quota))];
pub(super) const LAYOUT_REST: &[DeviceState] = &[DeviceState::Free(Some(FreeCause::LayoutRest))];
pub(super) const NOT_APPLIED: &[DeviceState] = &[
    DeviceState::Unavailable,
    DeviceState::Free(Some(FreeCause::LayoutRest)),
    // Of a node that stays tainted because its change is stuck.
    DeviceState::Free(Some(FreeCause::Taint)),
    DeviceState::Free(Some(FreeCause::TypeMismatch)),
    DeviceState::Free(Some(FreeCause::NoDemand)),
];
pub(super) const STRANDED: &[DeviceState] = &[
    DeviceState::Free(Some(FreeCause::StrandedByCpu)),
    DeviceState::Free(Some(FreeCause::StrandedByMemory)),
];

impl Reach {
    /// The states of GPU-time that would end.
    pub fn states(self) -> &'static [DeviceState] {
        match self {
            Self::Held(states) | Self::Nodes(states) | Self::Cluster(states) => states,
            Self::Nothing => &[],
        }
    }
}
