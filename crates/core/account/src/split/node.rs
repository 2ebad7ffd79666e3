//! One node over one period: who pays what.

use std::ops::{Add, AddAssign};

use dovetail_model::Money;
use serde::Serialize;
use thiserror::Error;

use super::budget::{budgets, share_out, split_money};
use super::method::SplitMethod;

/// A million vCPUs, a PiB and a million GPUs.
const MOST_CPU_MILLI: u64 = 1_000_000_000;
const MOST_MEMORY_BYTES: u64 = 1 << 50;
const MOST_GPU_MILLI: u64 = 1_000_000_000;

/// Splits what a node cost over its pods; the parts are the price to the micro-dollar.
///
/// # Errors
/// See [`SplitError`].
pub fn split_node(
    method: SplitMethod,
    node: &NodeCost,
    pods: &[PodParts],
    unused: Unused,
) -> Result<NodeSplit, SplitError> {
    let budgets = budgets(method, node)?;
    let has: Vec<[u64; 3]> = pods.iter().map(|pod| pod.charged().as_list()).collect();
    let (offered, budgets) = (node.offered.capped().as_list(), budgets.as_list());
    let mut costs = vec![PodCost::default(); pods.len()];
    let mut left = [Money::ZERO; 3];
    for resource in 0..3 {
        let weights: Vec<i128> = has.iter().map(|has| i128::from(has[resource])).collect();
        let (parts, unpaid) = share_out(budgets[resource], &weights, i128::from(offered[resource]));
        left[resource] = unpaid;
        for (cost, part) in costs.iter_mut().zip(parts) {
            *cost.of_resource.at(resource) += part;
        }
        if unused == Unused::Distributed && weights.iter().any(|weight| *weight > 0) {
            let parts = split_money(std::mem::take(&mut left[resource]), &weights);
            costs.iter_mut().zip(parts).for_each(|(cost, part)| cost.of_unused += part);
        }
    }
    let [cpu, memory, gpu] = left;
    Ok(NodeSplit { method, pods: costs, unused: ByResource { cpu, memory, gpu } })
}

/// Something of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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

    fn at(&mut self, resource: usize) -> &mut N {
        [&mut self.cpu, &mut self.memory, &mut self.gpu].into_iter().nth(resource).expect("three")
    }
}

impl<N: Copy + Add<Output = N>> ByResource<N> {
    /// Of all three together.
    pub fn total(self) -> N {
        self.cpu + self.memory + self.gpu
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
    fn as_list(self) -> [u64; 3] {
        [self.cpu_milli, self.memory_bytes, self.gpu_milli]
    }

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
    /// Length of the period.
    pub period_ms: u64,
    /// What pods can have.
    pub offered: NodeParts,
    /// Where CPU and memory are sold alone; `None` if nobody knows.
    pub list_prices: Option<ListPrices>,
}

/// What one pod had of a node, on average over the period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodParts {
    /// Requested and kept for it.
    pub reserved: NodeParts,
    /// Measured; `None` if nobody measured.
    pub used: Option<NodeParts>,
}

impl PodParts {
    /// The larger of reserved and used, for each resource.
    fn charged(&self) -> ByResource<u64> {
        let used = self.used.unwrap_or_default();
        ByResource {
            cpu: self.reserved.cpu_milli.max(used.cpu_milli),
            memory: self.reserved.memory_bytes.max(used.memory_bytes),
            gpu: self.reserved.gpu_milli.max(used.gpu_milli),
        }
    }
}

/// Who carries what nobody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// Nobody: it is a row of its own.
    Shown,
    /// The pods, in proportion to what they have of the same resource.
    Distributed,
}

/// Who pays what of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeSplit {
    pub method: SplitMethod,
    /// For each pod, in the order given.
    pub pods: Vec<PodCost>,
    /// What no pod carries.
    pub unused: ByResource<Money>,
}

/// What one pod pays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PodCost {
    pub of_resource: ByResource<Money>,
    /// Its share of what nobody has.
    pub of_unused: Money,
}

impl PodCost {
    /// Both together.
    pub fn total(self) -> Money {
        self.of_resource.total() + self.of_unused
    }
}

impl AddAssign for PodCost {
    fn add_assign(&mut self, other: Self) {
        self.of_resource.cpu += other.of_resource.cpu;
        self.of_resource.memory += other.of_resource.memory;
        self.of_resource.gpu += other.of_resource.gpu;
        self.of_unused += other.of_unused;
    }
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
