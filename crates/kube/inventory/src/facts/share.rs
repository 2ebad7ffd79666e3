//! How much of GPUs a pod holds where it says so in percent of their compute (HAMi).

use dovetail_facts::{Container, ContainerKind};
use dovetail_model::{GpuFraction, GpuParts};
use dovetail_objects::labels;

/// The name of whole NVIDIA GPUs, under which HAMi offers shares.
const NVIDIA_GPU: &str = labels::NVIDIA_GPU;

/// Where HAMi writes the GPUs of a node: `ID,replicas,MiB,cores,model,NUMA node,healthy:` for each,
/// later as JSON.
pub(super) const HAMI_GPUS: &str = labels::HAMI_REGISTER;

/// Percent of a GPU's compute that each GPU of a container gets.
const GPU_CORES: &str = labels::HAMI_CORES;

/// How much of GPUs the containers of a pod hold, in milli-GPU, where they say it in percent of
/// compute; what says nothing holds its part of the replicas.
pub(super) fn by_cores(containers: &[Container], resource: &str, parts: &GpuParts) -> Option<i64> {
    let GpuParts::Equal(slice) = parts else { return None };
    let GpuFraction { part, of } = *slice;
    let amount = |container: &Container, name: &str| container.limits.get(name).copied();
    let says = |container: &Container| amount(container, GPU_CORES).is_some_and(|cores| cores > 0);
    if resource != NVIDIA_GPU || of <= part || !containers.iter().any(says) {
        return None;
    }
    let lasting = containers.iter().filter(|container| container.kind != ContainerKind::Init);
    let milli = lasting.map(|container| {
        let gpus = amount(container, resource).unwrap_or(0).clamp(0, 4096);
        match amount(container, GPU_CORES).filter(|cores| *cores > 0) {
            Some(cores) => gpus * cores.min(100) * 10,
            None => slice.milli(gpus),
        }
    });
    Some(milli.sum())
}
