//! What one unit of a resource is of a GPU: MIG slices under their own name and under that of whole
//! GPUs, replicas, and devices that a plugin offers under several names.

use dovetail_objects::{labels, mig_of_product};
use std::collections::BTreeMap;

use dovetail_audit::{Container, ContainerKind, Gpus, Slice};

/// The name of whole NVIDIA GPUs; plugins offer slices and replicas under it, too.
const NVIDIA_GPU: &str = labels::NVIDIA_GPU;

/// Percent of a GPU's compute that each GPU of a container gets (HAMi).
const GPU_CORES: &str = labels::HAMI_CORES;

/// Where HAMi writes the GPUs of a node: `ID,replicas,MiB,cores,model,NUMA node,healthy:` for each,
/// later as JSON.
pub(super) const HAMI_GPUS: &str = labels::HAMI_REGISTER;

/// Names of AWS Neuron chips; where a node has several, the first counts.
const NEURON_CHIPS: [&str; 2] = [labels::AWS_NEURON, "aws.amazon.com/neurondevice"];
/// Cores of these chips.
const NEURON_CORES: &str = "aws.amazon.com/neuroncore";

/// The model and the MIG profile of each `nvidia.com/gpu`, where GPU discovery names both: strategy
/// `single`.
pub(super) fn single_mig(product: &str) -> Option<(&str, &str)> {
    mig_of_product(product).filter(|(_, profile)| compute_slices(profile).is_some())
}

/// Physical GPUs that so many slices of one profile are cut from: as many of each GPU as its
/// compute and its memory give, since with the strategy `single` all GPUs of a node are cut alike.
pub(super) fn gpus_of_slices(model: &str, profile: &str, slices: i64) -> i64 {
    let Slice { part, of } = mig_slice(model, profile);
    let by_compute = of / part.max(1);
    let by_memory = gigabytes(model).zip(gigabytes(profile)).filter(|(_, slice)| *slice > 0);
    // Profiles are named after their memory, rounded.
    let by_memory = by_memory.map(|(gpu, slice)| (gpu + slice / 2) / slice);
    let of_each = by_memory.map_or(by_compute, |by_memory| by_compute.min(by_memory));
    let of_each = of_each.max(1);
    (slices + of_each - 1) / of_each
}

/// What one unit of a resource is of a GPU of this product, in so many replicas.
pub(super) fn slice_of(resource: &str, replicas: i64, product: Option<&str>) -> Slice {
    let product = product.unwrap_or_default();
    if let Some(profile) = resource.strip_prefix(labels::NVIDIA_MIG) {
        return mig_slice(product, profile);
    }
    if !resource.starts_with(NVIDIA_GPU) {
        return Slice { part: 1, of: 1 };
    }
    let whole = Slice { part: 1, of: 1 };
    let slice = single_mig(product).map_or(whole, |(model, profile)| mig_slice(model, profile));
    Slice { of: slice.of.saturating_mul(replicas.max(1)), ..slice }
}

/// Whether a resource counts shares of devices by its name: replicas that a plugin renames, and
/// devices that pods share by claims.
pub(super) fn is_of_shares(resource: &str) -> bool {
    resource.ends_with(".shared")
}

fn mig_slice(model: &str, profile: &str) -> Slice {
    // An A30 has four compute slices, every other model seven.
    let of = if model.contains("A30") { 4 } else { 7 };
    Slice { part: compute_slices(profile).unwrap_or(of).clamp(1, of), of }
}

fn compute_slices(profile: &str) -> Option<i64> {
    profile.split_once('g').and_then(|(slices, _)| slices.parse().ok())
}

/// The number before `gb` or `GB` in a name.
fn gigabytes(name: &str) -> Option<i64> {
    let end = name.find("gb").or_else(|| name.find("GB"))?;
    let digits = name[..end].bytes().rev().take_while(u8::is_ascii_digit).count();
    name[end - digits..end].parse().ok().filter(|gigabytes| *gigabytes < 10_000)
}

/// Physical GPUs of a node that HAMi shares out; `None` where it does not, 0 where its annotation
/// does not say.
pub(super) fn hami_gpus(annotation: Option<&str>) -> Option<i64> {
    let text = annotation?.trim();
    let count = match text.starts_with('[') {
        true => serde_json::from_str::<Vec<serde::de::IgnoredAny>>(text).map_or(0, |all| all.len()),
        false => text.split(':').filter(|gpu| gpu.split(',').count() >= 5).count(),
    };
    Some(i64::try_from(count).unwrap_or(0))
}

/// Where the units of a resource are counted under another name on a node: that name, and what one
/// unit is of one of its units.
pub(super) fn counted_as(
    offered: &BTreeMap<String, Gpus>,
    resource: &str,
) -> Option<(&'static str, Slice)> {
    let count = |name: &str| offered.get(name).map_or(0, |gpus| gpus.built_in);
    let chips = NEURON_CHIPS.into_iter().find(|chips| count(chips) > 0)?;
    let is_other_name = NEURON_CHIPS.contains(&resource) && resource != chips;
    let slice = match resource {
        NEURON_CORES => Slice { part: count(chips), of: count(NEURON_CORES).max(count(chips)) },
        _ if is_other_name => Slice { part: 1, of: 1 },
        _ => return None,
    };
    Some((chips, slice))
}

/// How much of GPUs the containers of a pod hold, in milli-GPU, where they say it in percent of
/// compute; what says nothing holds its part of the replicas.
pub(super) fn by_cores(containers: &[Container], resource: &str, slice: Slice) -> Option<i64> {
    let amount = |container: &Container, name: &str| container.limits.get(name).copied();
    let says = |container: &Container| amount(container, GPU_CORES).is_some_and(|cores| cores > 0);
    if resource != NVIDIA_GPU || slice.of <= slice.part || !containers.iter().any(says) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_that_slices_are_cut_from_are_known_by_compute_and_memory() {
        let gpus = |product: &str, slices| {
            let (model, profile) = single_mig(product).unwrap();
            gpus_of_slices(model, profile, slices)
        };
        assert_eq!(gpus("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 56), 8);
        assert_eq!(gpus("NVIDIA-A100-SXM4-80GB-MIG-1g.20gb", 32), 8);
        assert_eq!(gpus("NVIDIA-A100-SXM4-80GB-MIG-2g.20gb", 24), 8);
        assert_eq!(gpus("NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", 16), 8);
        assert_eq!(gpus("NVIDIA-A100-SXM4-80GB-MIG-7g.80gb", 8), 8);
        assert_eq!(gpus("NVIDIA-A30-MIG-2g.12gb", 8), 4);
        assert_eq!(single_mig("NVIDIA-A100-SXM4-80GB-MIG-INVALID"), None);
    }

    #[test]
    fn gpus_that_hami_shares_out_are_counted_in_both_of_its_formats() {
        let text = "GPU-1,10,81559,100,NVIDIA-H100,0,true:GPU-2,10,81559,100,NVIDIA-H100,0,true:";
        assert_eq!(hami_gpus(Some(text)), Some(2));
        assert_eq!(hami_gpus(Some(r#"[{"id":"GPU-1","count":10}]"#)), Some(1));
        assert_eq!((hami_gpus(Some("h-5f2")), hami_gpus(None)), (Some(0), None));
    }
}
