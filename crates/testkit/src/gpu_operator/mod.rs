//! NVIDIA's GPU Operator on nodes that have no GPUs.

#[cfg(feature = "full")]
mod driver;
mod mig_node;
mod plugin;

#[cfg(feature = "full")]
pub use driver::GpuOperator;
pub use mig_node::{Fault, MigNode, Report};
pub use plugin::{Offer, WHOLE};
