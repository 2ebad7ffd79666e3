//! What dovetail keeps of the objects it watches.
//!
//! A full pod costs tens of kilobytes once decoded. These types keep what decides where pods can
//! run and nothing else; everything that follows from one object alone (what a pod asks for over
//! all its containers, which features it needs) is worked out while it is read, so that its parts
//! need not be kept. Fields that are absent or `null` are empty. An object whose fields have
//! another shape than they should is a [`Strange`] one: it is told apart from the others, and the
//! rest of a stream goes on.

mod affinity;
mod claim;
mod csi;
mod definition;
mod devices;
mod disruption_budget;
mod field_path;
mod fields;
mod gpu_labels;
mod harmless;
mod hyper_node;
mod images;
mod in_tree;
pub mod json;
mod kind;
mod label_selector;
mod label_set;
pub mod labels;
mod meta;
mod namespace;
mod node;
mod object;
mod persistent_volume;
mod pod;
mod pod_extended;
mod pod_group;
mod pod_json;
mod pod_preemption;
mod pod_volume;
mod queue;
mod read;
mod requests;
mod reservation;
mod shortened;
mod storage_class;
mod structural;
mod sub_group;
mod topology_labels;
mod vgpu;
mod workload;

pub use affinity::{InterPodAffinity, PodSelection, PodTerm, PreferredNode, SpreadConstraint};
pub use claim::{SELECTED_NODE, VolumeClaim};
pub use csi::{CsiDriver, CsiNode, StorageCapacity, VolumeAttachment};
pub use definition::{Definition, yaml};
pub use devices::{
    AllocatedDevice, Allocation, AskedCount, BindingConditions, ClaimConstraint, ClaimContents,
    ClaimRequest, ConstraintRule, Consumer, CounterSet, DeviceAsked, DeviceAttribute,
    DeviceCapacity, DeviceClass, DeviceCondition, DevicePool, DeviceReach, DeviceStatus,
    DeviceTaint, DeviceTaintRule, DeviceTaintSelector, DeviceToleration, OfferedDevice, Readiness,
    RequestPolicy, RequestRange, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
    TaintEffectOfDevice,
};
pub use disruption_budget::DisruptionBudget;
pub use dovetail_model::{OwnerKind, owner_kind};
pub use field_path::field_path;
pub use fields::ReadFields;
pub use gpu_labels::{GpuLabels, mig_of_product};
pub use harmless::harmless;
pub use hyper_node::{HyperNode, HyperNodeMember, HyperNodeSelector};
pub use in_tree::{InTreePlugin, VolumeSource};
pub use kind::Kind;
pub use label_selector::{LabelSelector, LabelTerm, LabelTest};
pub use label_set::Labels;
pub use meta::{Controller, Meta};
pub use namespace::Namespace;
pub use node::Node;
pub use object::Object;
pub use persistent_volume::{ClaimReference, PersistentVolume};
pub use pod::{Feature, HostPort, Pod, PodClaim, PodPhase, Unscheduled};
pub use pod_extended::{ExtendedClaimStatus, ExtendedContainer, ExtendedMapping, ExtendedRequest};
pub use pod_group::{INITIALLY_SCHEDULED, NetworkTopology, PodGroup};
pub use pod_preemption::{
    DISRUPTION_TARGET, NOT_STOPPED, ORDER_BY_SCHEDULER, PREEMPTION_BY_SCHEDULER, PodPreemption,
    RECLAIM_BY_SCHEDULER,
};
pub use pod_volume::{Disk, PodVolume};
pub use queue::{Queue, queue_spec_schema};
pub use read::{Strange, read};
pub use reservation::{Reservation, reservation_spec_schema};
pub use shortened::{MOST_CONDITION_LETTERS, shortened};
pub use storage_class::StorageClass;
pub use structural::{none_required, structural};
pub use sub_group::{SubGroup, SubGroupPolicy, TopologyConstraint};
pub use topology_labels::TopologyLabels;
pub use vgpu::is_vgpu_resource;
pub use workload::{
    HEAD_GROUP, JobSetSpec, JobSpec, LEADER, PodsMade, RaySpec, TrainingSpec, WORKERS,
    WorkloadKind, WorkloadObject, WorkloadRole, has_exclusive_domains, leaders_of,
};
