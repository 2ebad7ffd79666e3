//! What the cluster offers, as of a published version.

use std::collections::BTreeMap;

use dovetail_model::Node;
use serde::{Deserialize, Serialize};

use crate::learn::PodKind;
use dovetail_state::State;

/// Binary digits to which the CPU and memory of nodes are told apart, so that there are few
/// classes.
const DIGITS: u32 = 8;
/// One of [`LearnedSupply::scarcity`].
pub(crate) const PLENTY: i64 = 1 << 10;
/// A kind of pod counts as at most so many times as scarce as one that every node can be filled
/// with.
const MOST_SCARCE: i64 = 4;

/// Devices per model, and what the nodes with devices have beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LearnedSupply {
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
    /// How many nodes with devices there are, by what they can hold when they are empty.
    pub(crate) classes: Vec<(NodeClass, i64)>,
}

/// Nodes that are alike, but for the last digits of CPU and memory, which are rounded up.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NodeClass {
    cpu_milli: i64,
    memory_bytes: i64,
    /// Devices of one node by model.
    pub(super) devices: BTreeMap<String, i64>,
    /// Memory of a device by model, in bytes; the least where devices of a model differ.
    pub(super) device_memory_bytes: BTreeMap<String, i64>,
    ephemeral_bytes: i64,
    extended: BTreeMap<String, i64>,
}

impl LearnedSupply {
    pub(crate) fn of(state: &State) -> Self {
        let mut supply = Self::default();
        let mut classes: BTreeMap<NodeClass, i64> = BTreeMap::new();
        let (mut devices, mut cpu_milli, mut memory_bytes) = (0, 0i128, 0i128);
        for (_, node) in state.nodes.present().filter(|(_, node)| !node.devices.is_empty()) {
            for device in node.devices.iter().filter(|device| device.healthy) {
                *supply.milli_by_model.entry(device.model.clone()).or_default() += 1000;
            }
            *classes.entry(NodeClass::of(node)).or_default() += 1;
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
        supply.classes = classes.into_iter().collect();
        supply
    }

    /// All devices, over those that pods of the kind could use if they had the cluster for
    /// themselves, in 2^-10: [`PLENTY`] where they can fill every node, more where few nodes can
    /// hold one.
    pub(crate) fn scarcity(&self, kind: &PodKind) -> i64 {
        let (mut all, mut usable) = (0, 0);
        for (class, nodes) in &self.classes {
            all += class.devices.values().sum::<i64>() * nodes;
            usable += class.usable_by(kind) * nodes;
        }
        match usable {
            0 => PLENTY,
            usable => (all * PLENTY / usable).min(MOST_SCARCE * PLENTY),
        }
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

impl NodeClass {
    fn of(node: &Node) -> Self {
        let mut devices: BTreeMap<String, i64> = BTreeMap::new();
        let mut device_memory_bytes: BTreeMap<String, i64> = BTreeMap::new();
        for device in &node.devices {
            *devices.entry(device.model.clone()).or_default() += 1;
            let least = device_memory_bytes.entry(device.model.clone());
            let least = least.or_insert(device.memory_bytes);
            *least = device.memory_bytes.min(*least);
        }
        let amounts = node.allocatable.extended.iter();
        Self {
            cpu_milli: rounded_up(node.allocatable.cpu_milli),
            memory_bytes: rounded_up(node.allocatable.memory_bytes),
            devices,
            device_memory_bytes,
            ephemeral_bytes: rounded_up(node.allocatable.ephemeral_bytes),
            extended: amounts.map(|(name, amount)| (name.clone(), rounded_up(*amount))).collect(),
        }
    }

    /// What it has beside devices.
    pub(super) fn amounts(&self) -> impl Iterator<Item = i64> {
        let own = [self.cpu_milli, self.memory_bytes, self.ephemeral_bytes];
        own.into_iter().chain(self.extended.values().copied())
    }

    /// Devices that pods of the kind take of an empty node, at least one where a pod fits.
    fn usable_by(&self, kind: &PodKind) -> i64 {
        let memory = |model: &String| self.device_memory_bytes.get(model).copied().unwrap_or(0);
        let accepts = |model: &String| {
            (kind.gpu_models.is_empty() || kind.gpu_models.contains(model))
                && memory(model) >= kind.min_device_memory_bytes
        };
        let open: i64 = self.devices.iter().filter(|(m, _)| accepts(m)).map(|(_, n)| n).sum();
        let carried = |has: i64, asked: i64| if asked > 0 { has / asked } else { i64::MAX };
        let by_devices = open * 1000 / kind.total_milli().max(1);
        let by_device_memory = match kind.device_memory_bytes {
            0 => i64::MAX,
            asked => {
                let of = |(model, count): (&String, &i64)| count * (memory(model) / asked);
                self.devices.iter().filter(|(m, _)| accepts(m)).map(of).sum()
            }
        };
        let pods = by_devices
            .min(by_device_memory)
            .min(carried(self.cpu_milli, kind.cpu_milli))
            .min(carried(self.memory_bytes, kind.memory_bytes))
            .min(carried(self.ephemeral_bytes, kind.ephemeral_bytes));
        let has = |name: &String| self.extended.get(name).copied().unwrap_or(0);
        let extended = kind.extended.iter().map(|(name, asked)| carried(has(name), *asked));
        let pods = extended.fold(pods, i64::min);
        match pods {
            0 => 0,
            pods => (pods * kind.total_milli() / 1000).clamp(1, open),
        }
    }
}

/// The next number with [`DIGITS`] binary digits and zeros.
fn rounded_up(amount: i64) -> i64 {
    let amount = amount.max(0);
    let zeros = (i64::BITS - amount.leading_zeros()).saturating_sub(DIGITS);
    let step = 1i64 << zeros;
    amount.checked_add(step - 1).map_or(i64::MAX, |above| above / step * step)
}

#[cfg(test)]
impl LearnedSupply {
    /// Nodes as (CPU, devices, how many).
    pub(crate) fn of_nodes(nodes: &[(i64, i64, i64)]) -> Self {
        let class = |(cpu_milli, gpus, count): &(i64, i64, i64)| {
            let devices = BTreeMap::from([("A100".to_owned(), *gpus)]);
            let (cpu_milli, memory_bytes) = (*cpu_milli, 1 << 40);
            (NodeClass { cpu_milli, memory_bytes, devices, ..NodeClass::default() }, *count)
        };
        Self {
            largest_gpu_count: nodes.iter().map(|node| node.1).max().unwrap_or(0),
            cpu_milli_per_gpu: 8_000,
            classes: nodes.iter().map(class).collect(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(cpu_milli: i64, memory_bytes: i64, gpus: i64) -> NodeClass {
        let devices = BTreeMap::from([("A100".to_owned(), gpus)]);
        NodeClass { cpu_milli, memory_bytes, devices, ..NodeClass::default() }
    }

    fn kind(cpu_milli: i64, memory_bytes: i64, gpu_count: u16) -> PodKind {
        PodKind { cpu_milli, memory_bytes, gpu_count, gpu_milli: 1000, ..PodKind::default() }
    }

    #[test]
    fn a_kind_is_as_scarce_as_few_devices_are_open_to_it() {
        // 24 nodes of 8 devices, 12 of which have the memory; 32 nodes of 2 devices: 256 devices.
        let classes = vec![
            (class(96_000, 400, 8), 12),
            (class(96_000, 800, 8), 12),
            (class(16_000, 100, 2), 32),
        ];
        let supply = LearnedSupply { classes, ..LearnedSupply::default() };
        let times = |cpu, memory, gpus| supply.scarcity(&kind(cpu, memory, gpus));
        assert_eq!(times(8_000, 50, 1), 1024, "fills every node");
        assert_eq!(times(64_000, 300, 8), 256 * 1024 / 192, "every node of eight");
        assert_eq!(times(64_000, 700, 8), 256 * 1024 / 96, "twelve nodes");
        assert_eq!(
            times(24_000, 150, 1),
            256 * 1024 / (2 * 12 + 4 * 12),
            "as many as CPU and memory carry"
        );
        assert_eq!(times(96_000, 800, 1), 4 * 1024, "at most four times");
        assert_eq!(times(96_001, 0, 1), 1024, "no node can hold it");
    }

    #[test]
    fn amounts_are_rounded_up_to_eight_digits() {
        let of = [0, 1, 255, 256, 257, 96_000, i64::MAX].map(rounded_up);
        assert_eq!(of, [0, 1, 255, 256, 258, 96_256, i64::MAX]);
    }
}
