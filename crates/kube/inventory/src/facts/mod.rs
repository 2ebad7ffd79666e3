//! Objects of a cluster as facts that checks can be run on.
//!
//! An [`Inventory`] takes objects one at a time and keeps what the audit needs of them;
//! [`Inventory::facts`] turns that into a [`Gathered`]: facts, the GPUs of each node with what
//! holds them, what waits, and what could not be seen. Neither knows where the objects come from.

mod advice;
mod api_group;
mod autoscaler;
pub(crate) mod claims;
mod clamped;
pub(crate) mod class;
mod cluster;
mod deleted_volumes;
mod demand;
mod detail;
mod ended_kills;
mod evicted;
mod fractions;
mod gangs;
mod gathered;
mod ignored;
mod inventory;
mod kills;
pub(crate) mod launcher;
pub(crate) mod layout_change;
mod leaders;
mod lenient;
mod life;
pub(crate) mod limit_range;
mod lives;
pub(crate) mod model;
pub(crate) mod node;
mod node_removal;
mod owner;
mod owners_by_text;
pub(crate) mod pod_fields;
mod pods;
pub(crate) mod policy;
mod read_pod;
mod rejected;
mod scaled_object;
mod share;
mod sharers;
mod shown_by;
mod source;
mod template;
mod tenant;
mod to_come;
mod unjudged;
pub(crate) mod unmade;
mod unread;
mod unseen;

pub use clamped::{Clamped, ClampedOf};
pub use dovetail_gpus::GpuCount;
pub use gathered::Gathered;
pub use inventory::{Inventory, TEAM_LABELS};
pub use limit_range::{LimitRange, TemplateAmounts};
pub use lives::PodLife;
pub use node::POOL_LABELS;
pub use shown_by::POD as DESCRIBE_POD;
pub use source::{SourceTexts, manager};
pub use tenant::Tenant;
pub use unjudged::Unjudged;
pub use unmade::quota::QuotaRoom;
pub use unmade::replaced::{Charge, Exceeded, Replaced};
pub use unread::UnknownGpus;
pub use unseen::{OTHER_PODS, Unseen};
