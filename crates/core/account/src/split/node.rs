//! One node over one period: what it offered and cost, and why that cannot be split.

use dovetail_model::Money;
use thiserror::Error;

/// A million vCPUs, a PiB and a million GPUs.
const MOST_CPU_MILLI: u64 = 1_000_000_000;
const MOST_MEMORY_BYTES: u64 = 1 << 50;
const MOST_GPU_MILLI: u64 = 1_000_000_000;

/// Something of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByResource<N> {
    pub cpu: N,
    pub memory: N,
    pub gpu: N,
}

impl<N: Copy> ByResource<N> {
    /// CPU, memory, GPU.
    pub(crate) fn as_list(self) -> [N; 3] {
        [self.cpu, self.memory, self.gpu]
    }
}

/// Amounts of CPU, memory and GPUs, on average over a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeParts {
    /// Thousandths of a vCPU.
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    /// Thousandths of a GPU, in full-GPU equivalents.
    pub gpu_milli: u64,
}

impl NodeParts {
    /// No node has more: what claims to is a slip, and sums stay within their bits.
    pub(crate) fn capped(self) -> Self {
        Self {
            cpu_milli: self.cpu_milli.min(MOST_CPU_MILLI),
            memory_bytes: self.memory_bytes.min(MOST_MEMORY_BYTES),
            gpu_milli: self.gpu_milli.min(MOST_GPU_MILLI),
        }
    }
}

/// What CPU and memory cost alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPrices {
    /// Micro-USD per vCPU and hour.
    pub usd_micros_per_vcpu_hour: u32,
    /// Micro-USD per GiB and hour.
    pub usd_micros_per_gib_hour: u32,
}

/// What a node offered and cost over a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCost {
    /// Of the whole period.
    pub price: Money,
    pub period_ms: u64,
    /// What pods can have.
    pub offered: NodeParts,
    /// Where CPU and memory are sold alone; `None` if nobody knows.
    pub list_prices: Option<ListPrices>,
}

/// Who carries what nobody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// Nobody: it is a row of its own.
    Shown,
    /// The pods, in proportion to what they have of the same resource.
    Distributed,
}

/// Why a node cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SplitError {
    /// `residual` needs them.
    #[error("the method `residual` needs list prices of CPU and memory: set them, or use `all-in`")]
    UnknownListPrices,
    /// There is nothing to pay for.
    #[error("the node offers neither CPU nor memory nor GPUs, so its price cannot be split")]
    NothingOffered,
    /// A credit is not a price.
    #[error("the price of the node is {price}: account for credits separately from prices")]
    NegativePrice { price: Money },
}
