//! Physical GPUs and the ways one can be shared out.
//!
//! The free state of a device is a small vector; which axes of it are in use depends on the
//! [`Mode`], and a device changes its mode only when nothing is held on it.

use serde::{Deserialize, Serialize};

/// Compute of a whole device, in thousandths.
pub const WHOLE_DEVICE_MILLI: i64 = 1000;

/// One physical accelerator of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Device {
    /// Model as nodes and jobs name it, for example `H100` or `V100M32`; empty when unknown.
    pub model: String,
    /// Device memory in bytes; 0 when unknown, and then no request for device memory fits.
    #[serde(default)]
    pub memory_bytes: i64,
    /// NVLink or NUMA island within the node; devices of one number talk fast to each other.
    #[serde(default)]
    pub island: u16,
    /// False while the device is lost or failed: it takes nothing new.
    #[serde(default = "yes")]
    pub healthy: bool,
    /// Name of the [`MigTable`] this device can be cut by; `None` if it cannot.
    #[serde(default)]
    pub mig_table: Option<String>,
    /// Replicas offered in time-slicing or MPS mode; 0 if not configured.
    #[serde(default)]
    pub replicas: u16,
    /// Named counters with their totals, as DRA's shared counters; empty if it has none.
    #[serde(default)]
    pub counters: Vec<(String, i64)>,
}

fn yes() -> bool {
    true
}

impl Device {
    /// A plain healthy device that can be held whole or by share.
    pub fn plain(model: &str, memory_bytes: i64) -> Self {
        Self {
            model: model.to_owned(),
            memory_bytes,
            island: 0,
            healthy: true,
            mig_table: None,
            replicas: 0,
            counters: Vec::new(),
        }
    }
}

/// What a device is currently used as.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing is held; any mode the device can do may come next.
    #[default]
    Empty,
    /// Held whole, or by compute and memory share.
    Shared,
    /// Cut into MIG slices.
    Sliced,
    /// Offered as interchangeable replicas.
    Replicated,
    /// Handed out by named counters (DRA partitionable devices).
    Counted,
}

/// What one pod holds of one device. Axes outside its mode are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceAmount {
    pub mode: Mode,
    /// Compute in thousandths of the device ([`Mode::Shared`]).
    pub compute_milli: i64,
    /// Device memory in bytes ([`Mode::Shared`]).
    pub memory_bytes: i64,
    /// Replica slots ([`Mode::Replicated`]).
    pub replicas: u16,
    /// Memory slices, one bit each, lowest first ([`Mode::Sliced`]).
    pub slice_mask: u16,
    /// Compute slices ([`Mode::Sliced`]).
    pub compute_slices: u8,
    /// Amount per counter, in the order of [`Device::counters`] ([`Mode::Counted`]).
    pub counters: Vec<i64>,
}

impl DeviceAmount {
    /// A share of compute and memory; a whole device is 1000 milli and all its memory.
    pub fn share(compute_milli: i64, memory_bytes: i64) -> Self {
        Self { mode: Mode::Shared, compute_milli, memory_bytes, ..Self::default() }
    }
}

/// The slices a device model can be cut into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigTable {
    /// Name that devices refer to, for example `A100-40GB`.
    pub name: String,
    /// Memory slices of the device (8 on A100 and H100, 4 on A30).
    pub memory_slices: u8,
    /// Compute slices of the device (7 on A100 and H100, 4 on A30).
    pub compute_slices: u8,
    /// The profiles, in the vendor's order.
    pub profiles: Vec<MigProfile>,
}

/// One way to cut a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigProfile {
    /// Name, for example `1g.5gb`.
    pub name: String,
    /// Compute slices it takes.
    pub compute_slices: u8,
    /// Memory slices it takes.
    pub memory_slices: u8,
    /// Memory slices at which it may start.
    pub starts: Vec<u8>,
}

impl MigProfile {
    /// The memory slices taken when the profile starts at `start`, as a bit mask.
    pub fn mask_at(&self, start: u8) -> u16 {
        ((1u16 << self.memory_slices) - 1) << start
    }
}
