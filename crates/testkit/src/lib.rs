//! What tests stand on, and nothing that ships.
//!
//! - [`binaries`]: the programs of Kubernetes, built once from pinned sources.
//! - [`cluster`]: starts and stops a real control plane; needs no Kubernetes client.
//! - [`PrometheusServer`], [`PostgresServer`]: real servers, one per test; [`FakeExporter`]: what
//!   the first scrapes.
//! - [`MachineShape`]: GPU machines as Node objects.
//! - [`gpu_operator`]: plays mig-manager, device plugin and feature discovery of nodes.
//! - `ControlPlane`: a real control plane for tests, one per test program.
//! - `FakeApi`: an API server in memory, with faults on demand.
//! - `Kubelets`: plays the kubelets of all nodes.
//! - `dra_driver`: plays NVIDIA's DRA driver with dynamic MIG on them.
//! - `world`: worlds that kube-scheduler's own filters judge.
//!
//! The last five need the feature `full`.

pub mod binaries;
pub mod cluster;
pub mod gpu_operator;
mod servers;
mod shape;

#[cfg(feature = "full")]
mod control_plane;
#[cfg(feature = "full")]
pub mod dra_driver;
#[cfg(feature = "full")]
pub mod fake_api;
#[cfg(feature = "full")]
mod kubelets;
#[cfg(feature = "full")]
pub mod world;

pub use servers::{FakeExporter, PostgresServer, PrometheusServer};
pub use shape::{MachineShape, ShapeError};

#[cfg(feature = "full")]
pub use control_plane::{ControlPlane, ControlPlaneError, FreshControlPlane, TestNamespace};
#[cfg(feature = "full")]
pub use fake_api::FakeApi;
#[cfg(feature = "full")]
pub use kubelets::{EXIT_CODE, KubeletCounts, KubeletError, KubeletOptions, Kubelets, RUN_MS};
