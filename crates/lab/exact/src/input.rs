//! The plain inputs of the bounds, and what is wrong with them.

use thiserror::Error;

/// Milli-GPU of one whole device.
pub const DEVICE_MILLI: i64 = 1000;

/// One empty node of the cluster a bound is computed for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundNode {
    /// CPU that pods may request, in milli-cores.
    pub cpu_milli: i64,
    /// Memory that pods may request, in bytes.
    pub memory_bytes: i64,
    /// Number of GPUs; each holds [`DEVICE_MILLI`].
    pub gpu_count: u32,
    /// GPU model, compared as text with [`BoundPod::models`].
    pub model: Option<String>,
}

/// One pod, in the order of arrival where an order matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundPod {
    /// Requested CPU, in milli-cores.
    pub cpu_milli: i64,
    /// Requested memory, in bytes.
    pub memory_bytes: i64,
    /// Number of different GPUs of one node that the pod holds; 0 for a pod without GPU.
    pub gpu_count: u32,
    /// Share of each of these GPUs, 1..=1000; not read when `gpu_count` is 0.
    pub gpu_milli: i64,
    /// GPU models the pod accepts; empty means any. Not read when `gpu_count` is 0.
    pub models: Vec<String>,
}

impl BoundPod {
    /// Whether the pod fits the node when nothing else is on it.
    #[must_use]
    pub fn fits_empty(&self, node: &BoundNode) -> bool {
        self.cpu_milli <= node.cpu_milli
            && self.memory_bytes <= node.memory_bytes
            && self.gpu_count <= node.gpu_count
            && self.accepts_model(node.model.as_deref())
    }

    pub(crate) fn accepts_model(&self, model: Option<&str>) -> bool {
        self.gpu_count == 0
            || self.models.is_empty()
            || model.is_some_and(|model| self.models.iter().any(|accepted| accepted == model))
    }
}

/// Why a bound could not be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BoundError {
    /// A field of a node is out of range.
    #[error("node {index}: {field} is {value}, expected {expected}; correct the node list")]
    Node {
        /// Position in the node list, from 0.
        index: usize,
        field: &'static str,
        value: i64,
        /// The accepted range in words.
        expected: &'static str,
    },
    /// A field of a pod is out of range.
    #[error("pod {index}: {field} is {value}, expected {expected}; correct the pod list")]
    Pod {
        /// Position in the pod list, from 0.
        index: usize,
        field: &'static str,
        value: i64,
        /// The accepted range in words.
        expected: &'static str,
    },
    /// A field of a job is out of range.
    #[error("job {index}: {field} is {value}, expected {expected}; correct the job list")]
    Job {
        /// Position in the job list, from 0.
        index: usize,
        field: &'static str,
        value: i64,
        /// The accepted range in words.
        expected: &'static str,
    },
    /// The pool of GPUs is larger than the arithmetic is made for.
    #[error("a pool of {capacity_gpus} GPUs is more than {limit}; correct the capacity")]
    Capacity {
        capacity_gpus: u32,
        /// The most accepted.
        limit: u32,
    },
    /// The cluster has no GPU, so that a share of its GPUs means nothing.
    #[error(
        "the cluster has no GPUs, so percentages of its GPUs are undefined: pass nodes with GPUs"
    )]
    NoGpus,
}

/// The largest CPU or memory amount accepted (2^53): sums over a million nodes stay far inside
/// 128-bit integers.
const AMOUNT_LIMIT: i64 = 1 << 53;
const AMOUNT_RANGE: &str = "0 to 2^53";
/// The largest number of GPUs accepted in one node or pod.
const GPU_LIMIT: u32 = 1 << 20;

pub(crate) fn validate(nodes: &[BoundNode], pods: &[BoundPod]) -> Result<(), BoundError> {
    for (index, node) in nodes.iter().enumerate() {
        let fault = amount_fault(node.cpu_milli, node.memory_bytes, node.gpu_count);
        if let Some((field, value, expected)) = fault {
            return Err(BoundError::Node { index, field, value, expected });
        }
    }
    for (index, pod) in pods.iter().enumerate() {
        let fault = amount_fault(pod.cpu_milli, pod.memory_bytes, pod.gpu_count).or_else(|| {
            let bad = pod.gpu_count > 0 && !(1..=DEVICE_MILLI).contains(&pod.gpu_milli);
            bad.then_some(("gpu_milli", pod.gpu_milli, "1 to 1000 for each GPU"))
        });
        if let Some((field, value, expected)) = fault {
            return Err(BoundError::Pod { index, field, value, expected });
        }
    }
    Ok(())
}

fn amount_fault(
    cpu_milli: i64,
    memory_bytes: i64,
    gpu_count: u32,
) -> Option<(&'static str, i64, &'static str)> {
    if !(0..=AMOUNT_LIMIT).contains(&cpu_milli) {
        Some(("cpu_milli", cpu_milli, AMOUNT_RANGE))
    } else if !(0..=AMOUNT_LIMIT).contains(&memory_bytes) {
        Some(("memory_bytes", memory_bytes, AMOUNT_RANGE))
    } else if gpu_count > GPU_LIMIT {
        Some(("gpu_count", i64::from(gpu_count), "0 to 2^20"))
    } else {
        None
    }
}
