//! Pods that are larger than every node: none could hold one, however empty it was.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digits::grouped;
use crate::node::Node;
use crate::requirement::{DeviceRequest, Requirement};

const MEBIBYTE: i64 = 1 << 20;

/// What a pod requests more of than the largest node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooLarge {
    pub resource: NodeResource,
    pub requested: i64,
    /// What the node has that has most of it.
    pub largest: i64,
}

/// A resource of which nodes have more or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeResource {
    /// Whole GPUs, of any model.
    Gpus,
    CpuMilli,
    MemoryBytes,
}

/// Amounts of GPUs, CPU and memory.
type Amounts = [i64; 3];

const RESOURCES: [NodeResource; 3] =
    [NodeResource::Gpus, NodeResource::CpuMilli, NodeResource::MemoryBytes];

impl TooLarge {
    /// The first resource of which such a pod requests more than any of these nodes has; `None` if
    /// there is none, or no node. A pod that fits nowhere for another reason is not too large.
    pub fn of<'n>(
        requirement: &Requirement,
        nodes: impl Iterator<Item = &'n Node>,
    ) -> Option<Self> {
        let largest = nodes.map(amounts_of).reduce(larger)?;
        let gpus = match requirement.device {
            DeviceRequest::Whole { count, .. } => i64::from(count),
            _ => 0,
        };
        let resources = &requirement.resources;
        let requested: Amounts = [gpus, resources.cpu_milli, resources.memory_bytes];
        let mut all = RESOURCES.into_iter().zip(requested.into_iter().zip(largest));
        all.find(|(_, (requested, largest))| requested > largest)
            .map(|(resource, (requested, largest))| Self { resource, requested, largest })
    }
}

fn amounts_of(node: &Node) -> Amounts {
    [node.devices.len() as i64, node.allocatable.cpu_milli, node.allocatable.memory_bytes]
}

fn larger(left: Amounts, right: Amounts) -> Amounts {
    std::array::from_fn(|at| left[at].max(right[at]))
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, requested, largest } = *self;
        f.write_str("no node is large enough: each pod requests ")?;
        match resource {
            NodeResource::Gpus => {
                let gpus = if requested == 1 { "GPU" } else { "GPUs" };
                write!(f, "{requested} {gpus}, and the largest node has {largest}")
            }
            NodeResource::CpuMilli => {
                let [requested, largest] = [requested, largest].map(|milli| milli as f64 / 1e3);
                let cpus = if requested == 1.0 { "CPU" } else { "CPUs" };
                write!(f, "{requested} {cpus}, and the largest node has {largest}")
            }
            NodeResource::MemoryBytes => {
                // Apart however near they are: what is requested is rounded up, what is there down.
                let bytes = [requested.saturating_add(MEBIBYTE - 1), largest];
                let [requested, largest] =
                    bytes.map(|bytes| grouped(bytes.max(0).unsigned_abs() / MEBIBYTE as u64));
                write!(f, "{requested} MiB of memory, and the largest node has {largest} MiB")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Resources;

    /// A pod of so many GPUs and CPUs, and of so many MiB of memory.
    fn told(gpus: u16, cpus: i64, mebibytes: i64) -> Option<String> {
        let nodes = [
            Node::plain("gpus", 64_000, 512 * MEBIBYTE, 4, "A100"),
            Node::plain("memory", 96_500, 2_048 * MEBIBYTE, 0, ""),
        ];
        let requirement = Requirement {
            resources: Resources::pod(cpus * 1_000, mebibytes * MEBIBYTE),
            device: DeviceRequest::Whole { count: gpus, same_island: false },
            ..Requirement::default()
        };
        assert_eq!(TooLarge::of(&requirement, std::iter::empty()), None, "there is no node");
        TooLarge::of(&requirement, nodes.iter()).map(|too_large| too_large.to_string())
    }

    #[test]
    fn a_pod_is_too_large_if_no_node_has_as_much_of_one_resource() {
        // Each of these is there, although on different nodes.
        assert_eq!(told(4, 96, 2_048), None);
        let says = |text: &str| Some(format!("no node is large enough: each pod requests {text}"));
        assert_eq!(told(16, 0, 0), says("16 GPUs, and the largest node has 4"));
        assert_eq!(told(1, 128, 0), says("128 CPUs, and the largest node has 96.5"));
        let memory = "4,096 MiB of memory, and the largest node has 2,048 MiB";
        assert_eq!(told(1, 1, 4_096), says(memory));
    }
}
