//! Sharing the GPUs of nodes: what policies allow, and how one node gets another layout.
//!
//! | module | what |
//! |---|---|
//! | `policy`, `definition`, `status` | the SharingPolicy object: its fields, its CustomResourceDefinition, what it reports |
//! | `verdict`, `spec_rules` | policies that contradict each other or their nodes; values that the definition does not allow |
//! | `layout` | the MIG layout of a node, as NVIDIA's mig-parted and as device plugins write it |
//! | `amd` | how AMD's GPUs are partitioned |
//! | `replicas` | how many pods share a whole GPU, as the device plugin reads it |
//! | `component` | mig-manager, the device plugin, Device Config Manager: who changes a node |
//! | `side` | a layout before or after a change |
//! | `config_map`, `config_text`, `named_layout` | the ConfigMaps that they read; whether what one has under a name is the layout of a node |
//! | `mixed` | pods that should not share a GPU |
//! | `guard`, `label_owner` | nodes whose GPUs belong to another system, and nodes that must rest; who sets a label |
//! | `watch` | latency after a change: until when it is watched, what came of it |
//! | `outcome` | what came of a watch, and of the layouts of a policy |
//! | `way_back` | a node whose latency got worse goes back, or why it does not |
//! | `latency_query` | PromQL for the latency of a workload |
//! | `workload`, `object_name` | the owners of the pods on a node; names of objects |
//! | `movable`, `pod_move`, `moving` | pods that may be moved so that a node can change; one in a record; how they leave |
//! | `replacement` | a replica that a Deployment gets before a pod of it is evicted |
//! | `node_state`, `gpu_amounts`, `gpu_use` | what is read of a node before each step; how many GPUs are offered or asked for; which GPU each pod uses |
//! | `eviction`, `clearing` | what pods say about taints that evict pods; pods that leave by one, or are in the way |
//! | `record` | how far the change of a node is, in its annotation |
//! | `change_time` | how long changes take, by their records |
//! | `step` | what to write next |
//! | `owner`, `requests_record` | a Deployment or StatefulSet; what its pods asked for before a change, in its annotation |
//! | `allowed`, `requests_change`, `requests_write` | a workload that is to ask for another resource: by which policy, what to do next, how it is written |
//! | `node_write` | a write to a node, with the event that precedes it |
//!
//! Nothing is sent here. Between two steps nothing is kept but what the API server has, so a
//! process that dies at any point is continued by the next one.

mod allowed;
mod amd;
mod change_time;
mod clearing;
mod component;
pub mod config_map;
mod config_text;
mod definition;
mod eviction;
mod gpu_amounts;
mod gpu_use;
pub mod guard;
mod label_owner;
pub mod latency_query;
mod layout;
mod mixed;
mod movable;
mod moving;
mod named_layout;
pub mod names;
mod node_state;
mod node_write;
mod object_name;
mod outcome;
mod owner;
mod pod_move;
mod policy;
mod record;
mod replacement;
mod replicas;
mod requests_change;
mod requests_record;
mod requests_write;
mod side;
mod spec_rules;
mod status;
mod step;
mod verdict;
pub mod watch;
mod way_back;
mod workload;

pub use allowed::allowed_by;
pub use amd::Partition;
pub use change_time::change_seconds;
pub use component::Component;
pub use definition::definition;
pub use eviction::{EvictionFacts, Tolerations};
pub use gpu_amounts::{gpu_amounts, is_gpu, uses_gpus};
pub use gpu_use::{DeviceReport, GpuUse, gpu_uses};
pub use label_owner::label_owners;
pub use layout::{GpuLayout, NodeLayout};
pub use mixed::mixed;
pub use movable::{Movable, MoveFacts};
pub use moving::{adding_replica, begin_moving, evicting, held_up, moved_gpu_ms, waits_for_pods};
pub use node_state::{GpuPod, Seen};
pub use node_write::{Write, event_about};
pub use object_name::ObjectName;
pub use owner::{GpuContainer, Owner};
pub use pod_move::PodMove;
pub use policy::{Budget, Guard, Mode, Moves, PolicySpec, SharingPolicy};
pub use record::{PodWait, Record, Step};
pub use replacement::{Replacement, replacement, without_added};
pub use replicas::{Method, Replicas, shared_resource};
pub use requests_change::{
    Around, NextRequests, change, decided, due, gate_of_workloads, returned, roll_back, rolled,
    stopped_by,
};
pub use requests_record::{RequestsRecord, RequestsStep};
pub use requests_write::{RequestsWrite, apply_query, fragment};
pub use side::{AmdDevices, Side};
pub use status::{NextChange, PolicyReport, Receipt, status_patch};
pub use step::{Next, Refused, Timing, begin, is_for_pods, next, revert, stuck_remedy};
pub use verdict::{GpuNode, Problem, of_spec, problems};
pub use way_back::{give_back, record_not_rolled_back, why_not_rolled_back};
pub use workload::{Workload, workloads};
