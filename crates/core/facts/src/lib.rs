//! What is known of a cluster at one moment, as plain data that a reader fills and checks read.
//!
//! [`Facts`] say what there is, and [`measure`] notes on its pods what their GPUs did. A [`Moment`]
//! says who holds which GPUs and what waits for them: with it, [`device_states`] tells what every
//! part of every GPU is, and for how long that may be taken to go on. What nobody knows stays
//! unknown.
//!
//! | module | what |
//! |---|---|
//! | `cluster` | nodes, workloads, namespaces, budgets, autoscalers |
//! | `usage`, `measured_use` | what GPUs did while pods held them |
//! | `moment` | one moment as a month: what every part of every GPU is |
//! | `waste` | wasted time of devices, and what it costs |
//! | `hang` | time in which all members of a job waited for each other |
//! | `served_model` | how large a served model is, by its name |
//! | `node_removal` | when an autoscaler removes empty nodes |
//! | `thresholds` | from where on something is a finding |

mod cluster;
mod hang;
mod measured_use;
mod moment;
mod node_removal;
mod served_model;
mod thresholds;
mod usage;
mod waste;

pub use cluster::{
    Advice, Autoscaler, Budget, BudgetLimit, CheapestRegion, Container, ContainerKind, Facts, Gpus,
    HostPorts, MemoryKills, Namespace, Node, NumaPolicy, ObjectRef, Pod, PodTemplate, Recommended,
    Scoring, SharedMemory, ToCome, Workload, WorkloadClass,
};
pub use hang::Hang;
pub use measured_use::{Matched, measure};
pub use moment::{
    DeviceStates, GangCounts, GpuTimes, HeldGpus, HeldState, Lasting, MONTH_MS, Moment, NodeGpus,
    NodePart, NodeStates, PendingDemand, PendingGang, PodName, Recent, Units, Untold,
    device_states, devices_by_node, gpu_times, node_parts, recent,
};
pub use node_removal::{RemovalRule, ZeroBudget};
pub use served_model::ServedModel;
pub use thresholds::{THRESHOLDS, Threshold, Thresholds, threshold, thresholds_of};
pub use usage::{ActiveShare, GpuUse, UsagePeriod, UsesOfPods};
pub use waste::{DeviceWaste, PricedTime};
