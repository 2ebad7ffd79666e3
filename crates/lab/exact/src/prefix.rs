//! How many of the arriving pods any packer could hold before it must reject one.

use crate::certificate::Prefix;
use crate::device::{CuttingStock, device_prefix};
use crate::fluid::{class_devices_prefix, limits_prefix};
use crate::input::{BoundError, BoundNode, BoundPod, DEVICE_MILLI, validate};
use crate::world::PackingProblem;

/// An upper bound on the pods at the start of an arrival order that can be placed together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrefixBound {
    /// No packing holds the first `pods + 1` arrivals (unless `pods` is all of them).
    pub pods: usize,
    /// Requested GPU of these pods, in percent of the cluster's GPUs.
    pub arrived_percent: f64,
    /// Whether the relaxation really holds these pods (to solver accuracy). `false` means that the
    /// solver gave up early: the bound is still valid, but may be larger than the relaxation's own.
    pub tight: bool,
}

/// The prefix bounds of one arrival order on one cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrefixBounds {
    /// By cutting stock over GPU shares; nodes, models, CPU and memory ignored.
    pub device: PrefixBound,
    /// By the linear program over shapes and node classes.
    pub lp: PrefixBound,
    /// By the linear program in which each node class also cuts its GPUs into the shares it gets;
    /// only from [`combined_prefix_bounds`], and never above the other two.
    pub combined: Option<PrefixBound>,
}

impl PrefixBounds {
    /// The smaller of the device and the LP bound: the limit.
    #[must_use]
    pub fn limit(&self) -> PrefixBound {
        if self.device.pods <= self.lp.pods { self.device } else { self.lp }
    }
}

/// Bounds the longest prefix of `pods`, in order of arrival, that fits empty `nodes` without any
/// departure.
///
/// # Errors
/// [`BoundError::Node`] and [`BoundError::Pod`] for a field out of range, [`BoundError::NoGpus`]
/// for a cluster without GPUs.
pub fn prefix_bounds(nodes: &[BoundNode], pods: &[BoundPod]) -> Result<PrefixBounds, BoundError> {
    let world = checked_world(nodes, pods)?;
    Ok(limits_of(&world, &mut CuttingStock::new(&world)))
}

/// As [`prefix_bounds`], with the third bound. It takes several times as long and can only differ
/// where device shares compete for some kinds of node alone, as they do when pods name GPU models.
///
/// # Errors
/// As [`prefix_bounds`].
pub fn combined_prefix_bounds(
    nodes: &[BoundNode],
    pods: &[BoundPod],
) -> Result<PrefixBounds, BoundError> {
    let world = checked_world(nodes, pods)?;
    let mut stock = CuttingStock::new(&world);
    let bounds = limits_of(&world, &mut stock);
    let combined = class_devices_prefix(&world, &stock, bounds.limit().pods);
    Ok(PrefixBounds { combined: Some(PrefixBound::new(&world, combined)), ..bounds })
}

fn checked_world(nodes: &[BoundNode], pods: &[BoundPod]) -> Result<PackingProblem, BoundError> {
    validate(nodes, pods)?;
    let world = PackingProblem::new(nodes, pods);
    if world.gpus == 0 { Err(BoundError::NoGpus) } else { Ok(world) }
}

fn limits_of(world: &PackingProblem, stock: &mut CuttingStock) -> PrefixBounds {
    PrefixBounds {
        device: PrefixBound::new(world, device_prefix(world, stock)),
        lp: PrefixBound::new(world, limits_prefix(world)),
        combined: None,
    }
}

impl PrefixBound {
    fn new(world: &PackingProblem, prefix: Prefix) -> Self {
        let milli_of = |&shape: &usize| world.shapes[shape].requested_milli();
        let requested: i128 = world.arrivals[..prefix.pods].iter().map(milli_of).sum();
        let cluster = world.gpus as f64 * DEVICE_MILLI as f64;
        let arrived_percent = requested as f64 * 100.0 / cluster;
        Self { pods: prefix.pods, arrived_percent, tight: prefix.tight }
    }
}
