//! Questions about the index: none changes anything.

mod claim_writes;
mod device_claims;
mod gangs;
mod nodes;
mod pods;
mod preemption;
mod queues;
mod reservations;
mod suspension;
mod volumes;

pub use claim_writes::{ClaimPart, ClaimWrite};
pub use device_claims::{DeviceClaimView, DevicePatience};
pub use gangs::{GangLook, GangView, MemberLook};
pub use nodes::NodeView;
pub use pods::PodView;
pub use preemption::PreemptionView;
pub use queues::QueueView;
pub use reservations::ReservationView;
pub use suspension::{SuspendedJob, SuspensionView};
pub use volumes::VolumeView;
