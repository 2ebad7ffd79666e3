//! What a class of nodes can take in: sums and counts that every packing obeys.

use crate::input::DEVICE_MILLI;
use crate::world::{EqualNodes, PodShape};

/// What a limit counts. All are valid for whole pods on whole nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LimitKind {
    Cpu,
    Memory,
    GpuMilli,
    /// Shares above a half: one per GPU.
    AboveHalf,
    /// Shares above a third: two per GPU, where one above two thirds counts as two (the
    /// dual-feasible function u^(2) of Fekete and Schepers, "New classes of fast lower bounds for
    /// bin packing problems", Mathematical Programming 91, 2001).
    AboveThird,
    /// Pods on more than 1/(q+1) of the node's GPUs, no two on one GPU: q per node.
    Wide(u32),
    /// Pods with more than half of the node's CPU: one per node.
    MostOfCpu,
}

impl LimitKind {
    pub(crate) const ALL: [Self; 10] = [
        Self::Cpu,
        Self::Memory,
        Self::GpuMilli,
        Self::AboveHalf,
        Self::AboveThird,
        Self::Wide(1),
        Self::Wide(2),
        Self::Wide(4),
        Self::Wide(8),
        Self::MostOfCpu,
    ];

    /// Those that do not follow from the ways to cut a device.
    pub(crate) const WITHOUT_SHARES: [Self; 7] = [
        Self::Cpu,
        Self::Memory,
        Self::Wide(1),
        Self::Wide(2),
        Self::Wide(4),
        Self::Wide(8),
        Self::MostOfCpu,
    ];

    /// How much one pod of the shape counts on a node of the class.
    pub(crate) fn amount(self, shape: &PodShape, class: &EqualNodes) -> i64 {
        let count = i64::from(shape.gpu_count);
        match self {
            Self::Cpu => shape.cpu_milli,
            Self::Memory => shape.memory_bytes,
            Self::GpuMilli => count * shape.gpu_milli,
            Self::AboveHalf if 2 * shape.gpu_milli > DEVICE_MILLI => count,
            Self::AboveThird if 3 * shape.gpu_milli > 2 * DEVICE_MILLI => 2 * count,
            Self::AboveThird if 3 * shape.gpu_milli > DEVICE_MILLI => count,
            Self::Wide(q) => {
                let exclusive = count >= 2 && 2 * shape.gpu_milli > DEVICE_MILLI;
                i64::from(exclusive && count * i64::from(q + 1) > i64::from(class.gpu_count))
            }
            Self::MostOfCpu => i64::from(2 * shape.cpu_milli > class.cpu_milli),
            Self::AboveHalf | Self::AboveThird => 0,
        }
    }

    /// What all nodes of the class take in together.
    pub(crate) fn limit(self, class: &EqualNodes) -> i128 {
        let gpus = i128::from(class.gpu_count);
        let per_node = match self {
            Self::Cpu => i128::from(class.cpu_milli),
            Self::Memory => i128::from(class.memory_bytes),
            Self::GpuMilli => gpus * i128::from(DEVICE_MILLI),
            Self::AboveHalf => gpus,
            Self::AboveThird => 2 * gpus,
            Self::Wide(q) => i128::from(q),
            Self::MostOfCpu => 1,
        };
        per_node * i128::from(class.nodes)
    }
}
