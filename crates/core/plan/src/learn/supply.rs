//! What the cluster offers, as of a published version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::state::State;

/// Devices per model, and what the nodes with devices have beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Supply {
    /// Milli-GPU of healthy devices by model.
    pub(crate) milli_by_model: BTreeMap<String, i64>,
    /// CPU of the nodes with devices, for each of their devices, in thousandths of a core.
    pub(crate) cpu_milli_per_gpu: i64,
    /// The same for memory, in bytes.
    pub(crate) memory_bytes_per_gpu: i64,
    /// Most CPU a node with devices has, in thousandths of a core.
    pub(crate) largest_cpu_milli: i64,
    /// Most devices a node has.
    pub(crate) largest_gpu_count: i64,
}

impl Supply {
    pub(crate) fn of(state: &State) -> Self {
        let mut supply = Self::default();
        let (mut devices, mut cpu_milli, mut memory_bytes) = (0, 0i128, 0i128);
        for (_, node) in state.nodes.present().filter(|(_, node)| !node.devices.is_empty()) {
            for device in node.devices.iter().filter(|device| device.healthy) {
                *supply.milli_by_model.entry(device.model.clone()).or_default() += 1000;
            }
            let gpu_count = node.devices.len() as i64;
            supply.largest_cpu_milli = supply.largest_cpu_milli.max(node.allocatable.cpu_milli);
            supply.largest_gpu_count = supply.largest_gpu_count.max(gpu_count);
            devices += i128::from(gpu_count);
            cpu_milli += i128::from(node.allocatable.cpu_milli);
            memory_bytes += i128::from(node.allocatable.memory_bytes);
        }
        let each = |amount: i128| (amount / devices.max(1)) as i64;
        supply.cpu_milli_per_gpu = each(cpu_milli);
        supply.memory_bytes_per_gpu = each(memory_bytes);
        supply
    }

    /// As named integers.
    pub(crate) fn values(&self) -> impl Iterator<Item = (String, i64)> {
        let models = self.milli_by_model.iter().map(|(m, milli)| (format!("supply {m}"), *milli));
        models.chain([
            ("cpu per gpu".to_owned(), self.cpu_milli_per_gpu),
            ("memory per gpu".to_owned(), self.memory_bytes_per_gpu),
            ("largest cpu".to_owned(), self.largest_cpu_milli),
            ("largest gpus".to_owned(), self.largest_gpu_count),
        ])
    }
}
