//! NVIDIA's GPU Operator, and AMD's, on nodes that have no GPUs.

#[cfg(feature = "full")]
mod amd_driver;
mod amd_node;
#[cfg(feature = "full")]
mod driver;
mod mig_node;
#[cfg(feature = "full")]
mod mount;
mod plugin;

#[cfg(feature = "full")]
pub use amd_driver::AmdOperator;
pub use amd_node::{AmdNode, AmdReport};
#[cfg(feature = "full")]
pub use driver::GpuOperator;
pub use mig_node::{Fault, MigNode, Report};
pub use plugin::{Offer, WHOLE};
