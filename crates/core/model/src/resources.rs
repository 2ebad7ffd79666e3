//! Amounts of everything a node offers besides devices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Amounts of CPU, memory, ephemeral storage, pod slots and extended resources.
///
/// Signed on purpose: a node whose allocatable fell below what it holds has negative free amounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    /// Local ephemeral storage in bytes.
    pub ephemeral_bytes: i64,
    /// Pod slots: a node's `pods` limit; a pod takes one.
    pub pod_slots: i64,
    /// Extended resources by name, in whole units (`rdma/hca`, `nvidia.com/mig-1g.5gb`).
    pub extended: BTreeMap<String, i64>,
}

impl Resources {
    /// What one ordinary pod asks for: CPU, memory and one pod slot.
    pub fn pod(cpu_milli: i64, memory_bytes: i64) -> Self {
        Self { cpu_milli, memory_bytes, pod_slots: 1, ..Self::default() }
    }

    /// Adds `times` × `other` in place; names that `self` lacks appear.
    pub fn add_times(&mut self, other: &Self, times: i64) {
        self.cpu_milli += other.cpu_milli * times;
        self.memory_bytes += other.memory_bytes * times;
        self.ephemeral_bytes += other.ephemeral_bytes * times;
        self.pod_slots += other.pod_slots * times;
        for (name, amount) in &other.extended {
            *self.extended.entry(name.clone()).or_default() += amount * times;
        }
    }
}
