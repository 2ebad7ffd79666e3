//! What the cluster offers, as of a published version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::state::State;

/// Devices per model and the largest node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Supply {
    /// Milli-GPU of healthy devices by model.
    pub(crate) milli_by_model: BTreeMap<String, i64>,
    /// Most CPU a node has, in thousandths of a core.
    pub(crate) largest_cpu_milli: i64,
    /// Most devices a node has.
    pub(crate) largest_gpu_count: i64,
}

impl Supply {
    pub(crate) fn of(state: &State) -> Self {
        let mut supply = Self::default();
        for (_, node) in state.nodes.present() {
            for device in node.devices.iter().filter(|device| device.healthy) {
                *supply.milli_by_model.entry(device.model.clone()).or_default() += 1000;
            }
            let gpu_count = node.devices.len() as i64;
            supply.largest_cpu_milli = supply.largest_cpu_milli.max(node.allocatable.cpu_milli);
            supply.largest_gpu_count = supply.largest_gpu_count.max(gpu_count);
        }
        supply
    }

    /// As named integers.
    pub(crate) fn values(&self) -> impl Iterator<Item = (String, i64)> {
        let models = self.milli_by_model.iter().map(|(m, milli)| (format!("supply {m}"), *milli));
        models.chain([
            ("largest cpu".to_owned(), self.largest_cpu_milli),
            ("largest gpus".to_owned(), self.largest_gpu_count),
        ])
    }
}
