//! Vocabulary of dovetail: plain data that every other crate speaks.
//!
//! Nothing here decides anything. The types are what a snapshot, an event or an action is made of;
//! the engine (`dovetail-plan`) interns them into dense tables, the judges (`dovetail-check`) read
//! them as they are.
//!
//! | module | what |
//! |---|---|
//! | [`snapshot`] | the whole world at one moment, as plain data |
//! | [`event`], [`action`] | what happens to the engine, what it answers |
//! | [`node`], [`device`], [`images`], [`topology`] | the supply |
//! | [`job`], [`requirement`], [`rule`], [`preference`], [`queue`] | the demand |
//! | [`holding`], [`preemption`] | who holds what, in which phase; who may be stopped for whom |
//! | [`booking`] | capacity that is reserved from one time to another |
//! | [`too_large`] | pods that are larger than every node |
//! | [`resources`], [`quantity`], [`money`] | amounts |
//! | [`proportion`] | splitting amounts without losing a unit |
//! | [`free_cause`] | why a GPU is free |
//! | [`gpu_model`], [`gpu_resource`], [`gpu_part`] | names of GPU models, of what counts GPUs, and what a unit of it is |
//! | [`instance_type()`] | the GPUs of the instance types of cloud providers |
//! | [`mig_layout`] | how GPUs can be cut, and what a layout leaves over |
//! | [`ids`], [`labels`] | names of things |

pub mod action;
pub mod booking;
pub mod checkpoint_interval;
pub mod cohort;
pub mod device;
pub mod digits;
pub mod event;
pub mod free_cause;
pub mod gpu_model;
pub mod gpu_part;
pub mod gpu_resource;
pub mod history;
pub mod holding;
pub mod ids;
pub mod images;
mod instance_type;
pub mod interruption;
pub mod job;
pub mod labels;
pub mod mig_layout;
mod mig_names;
mod mig_rules;
mod mig_shown;
mod mig_tables;
pub mod money;
mod named;
pub mod node;
mod owner_kind;
pub mod preemption;
pub mod preference;
pub mod proportion;
pub mod quantity;
pub mod queue;
pub mod requirement;
pub mod resources;
pub mod rule;
pub mod run_time;
mod selectors;
pub mod snapshot;
pub mod too_large;
pub mod topology;

pub use action::{Action, PendingReason, Plan};
pub use booking::{Beneficiary, Booked, Booking, BookingVerdict};
pub use checkpoint_interval::IntervalAdvice;
pub use device::{Device, DeviceAmount, MigProfile, MigTable, Mode};
pub use digits::grouped;
pub use event::Event;
pub use free_cause::FreeCause;
pub use gpu_model::{
    canonical_gpu_model, gpu_model, lacks_memory_size, memory_label, with_memory_size,
};
pub use gpu_part::{GpuFraction, GpuParts, to_nearest};
pub use gpu_resource::is_gpu_resource;
pub use history::{History, HowEnded};
pub use holding::{Attachment, HeldDevices, Holding, HoldingPhase, Owner};
pub use ids::{HoldingId, JobId, NodeId, NodeName, PodId, QueueName, ReservationId};
pub use images::{ImageName, Images};
pub use instance_type::{InstanceType, instance_type};
pub use interruption::{AttemptTime, InterruptionCost};
pub use job::{Estimate, Job, PodSet, TopologyRequest};
pub use mig_layout::Layout;
pub use mig_names::mig_profile_name;
pub use mig_rules::{MigTableError, check_mig_table};
pub use mig_shown::ShownProfiles;
pub use money::Money;
pub use node::{Knowledge, Node, NodeAvailability, Taint, TaintEffect};
pub use owner_kind::{OwnerKind, owner_kind};
pub use preemption::{
    Budget, Place, PreemptReason, PreemptionCost, PreemptionReservation, PreemptionRules, Reserved,
};
pub use preference::{Preference, Preferred};
pub use proportion::in_proportion;
pub use quantity::Quantity;
pub use queue::{Axis, BoundBy, Bounds, Charge, Queue, QueueUsage};
pub use requirement::{
    ConditionCause, DeviceRequest, NodeCondition, Requirement, SelectorTerm, Toleration,
};
pub use resources::Resources;
pub use rule::{CounterRule, CounterScope, RuleCause, RuleKind};
pub use run_time::{Burst, RunProfile, RunTimeCounts, RunTimeGroup, RunTimeTables};
pub use selectors::Selectors;
pub use snapshot::Snapshot;
pub use too_large::{NodeResource, TooLarge};
pub use topology::Topology;
