//! Sharing the GPUs of nodes: what policies allow, and how one node gets another layout.
//!
//! | module | what |
//! |---|---|
//! | `policy`, `definition`, `status` | the SharingPolicy object: its fields, its CustomResourceDefinition, what it reports |
//! | `verdict` | policies that contradict each other or their nodes |
//! | `layout` | the layout of a node, as NVIDIA's mig-parted and as device plugins write it |
//! | `config_map` | the ConfigMap that mig-manager reads |
//! | `guard` | nodes whose GPUs belong to another system, and nodes that must rest |
//! | `seen` | what is read of a node before each step |
//! | `record` | how far the change of a node is, in its annotation |
//! | `step` | what to write next |
//! | `write` | a write to a node, with the event that precedes it |
//!
//! Nothing is sent here. Between two steps nothing is kept but what the API server has, so a
//! process that dies at any point is continued by the next one.

pub mod config_map;
mod definition;
pub mod guard;
mod layout;
pub mod names;
mod policy;
mod record;
mod seen;
mod status;
mod step;
mod verdict;
mod write;

pub use definition::{definition, definition_text, yaml};
pub use layout::{GpuLayout, NodeLayout};
pub use policy::{Budget, Mode, Moves, PolicySpec, SharingPolicy};
pub use record::{Record, Side, Step};
pub use seen::{Seen, uses_gpus};
pub use status::{NextChange, PolicyReport, Receipt, status_patch};
pub use step::{Next, Refused, Timing, begin, next, revert};
pub use verdict::{GpuNode, Problem, problems};
pub use write::Write;
