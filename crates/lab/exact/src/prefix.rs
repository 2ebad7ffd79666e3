//! How many of the arriving pods any packer could hold before it must reject one.

use crate::certificate::Prefix;
use crate::device::{device_prefix, fewest_devices};
use crate::fluid::fluid_prefix;
use crate::input::{BoundError, BoundNode, BoundPod, DEVICE_MILLI, validate};
use crate::world::World;

/// An upper bound on the pods at the start of an arrival order that can be placed together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrefixBound {
    /// No packing holds the first `pods + 1` arrivals (unless `pods` is all of them).
    pub pods: usize,
    /// Requested GPU of these pods, in percent of the cluster's GPUs.
    pub arrived_percent: f64,
    /// Whether the relaxation really holds these pods (to solver accuracy). `false` means that the solver
    /// gave up early: the bound is still valid, but may be larger than the relaxation's own.
    pub tight: bool,
}

/// The prefix bounds of one arrival order on one cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrefixBounds {
    /// By cutting stock over GPU shares; nodes, models, CPU and memory ignored.
    pub device: PrefixBound,
    /// By the linear program over shapes and node classes.
    pub lp: PrefixBound,
}

impl PrefixBounds {
    /// The smaller of the bounds: the limit.
    #[must_use]
    pub fn limit(&self) -> PrefixBound {
        if self.device.pods <= self.lp.pods { self.device } else { self.lp }
    }
}

/// Bounds the longest prefix of `pods`, in order of arrival, that fits empty `nodes` without any departure.
///
/// # Errors
/// [`BoundError::Node`] and [`BoundError::Pod`] for a field out of range, [`BoundError::NoGpus`] for a cluster
/// without GPUs.
pub fn prefix_bounds(nodes: &[BoundNode], pods: &[BoundPod]) -> Result<PrefixBounds, BoundError> {
    validate(nodes, pods)?;
    let world = World::new(nodes, pods);
    if world.gpus == 0 {
        return Err(BoundError::NoGpus);
    }
    let bound = |prefix: Prefix| PrefixBound {
        pods: prefix.pods,
        arrived_percent: arrived_percent(&world, &pods[..prefix.pods]),
        tight: prefix.tight,
    };
    Ok(PrefixBounds { device: bound(device_prefix(&world)), lp: bound(fluid_prefix(&world)) })
}

/// The fewest GPUs that can hold the shares of all `pods`, by the cutting-stock relaxation rounded up.
///
/// A lower bound on any packing's number of GPUs in use; CPU, memory, models and nodes are ignored.
///
/// # Errors
/// [`BoundError::Pod`] for a field out of range.
pub fn fewest_gpus(pods: &[BoundPod]) -> Result<u64, BoundError> {
    validate(&[], pods)?;
    Ok(fewest_devices(&World::new(&[], pods)) as u64)
}

fn arrived_percent(world: &World, pods: &[BoundPod]) -> f64 {
    let requested: i128 = pods.iter().map(|pod| i128::from(pod.requested_milli())).sum();
    requested as f64 * 100.0 / (world.gpus as f64 * DEVICE_MILLI as f64)
}
