//! What one unit of a resource is of a GPU where no layout says it: replicas, parts by the name of
//! a profile, and devices that a plugin offers under several names.

use dovetail_model::GpuFraction;
use dovetail_objects::{labels, mig_of_product};

/// The name of whole NVIDIA GPUs; plugins offer instances and replicas under it, too.
const NVIDIA_GPU: &str = labels::NVIDIA_GPU;

/// How the names of AMD's resources begin: `amd.com/gpu`, and partitions such as
/// `amd.com/cpx_nps4`.
const AMD: &str = "amd.com/";

/// Compute partitions of an AMD GPU in CPX mode, by what its model begins with: its dies (AMD's
/// documentation of the Instinct partition modes).
const CPX: [(&str, i64); 6] =
    [("MI300X", 8), ("MI325X", 8), ("MI350X", 8), ("MI355X", 8), ("MI300A", 6), ("MI308X", 4)];

/// Names of AWS Neuron chips; where a node has several, the first counts.
const NEURON_CHIPS: [&str; 2] = [labels::AWS_NEURON, "aws.amazon.com/neurondevice"];
/// Cores of these chips.
const NEURON_CORES: &str = "aws.amazon.com/neuroncore";

/// The model and the MIG profile of each `nvidia.com/gpu`, where GPU discovery names both: strategy
/// `single`.
pub(super) fn single_mig(product: &str) -> Option<(&str, &str)> {
    mig_of_product(product).filter(|(_, profile)| compute_slices(profile).is_some())
}

/// What one unit of a resource is of a GPU of this product, in so many replicas, by names alone:
/// where no table says how it is cut, and where a driver offers its parts one by one.
pub fn slice_of(resource: &str, replicas: i64, product: Option<&str>) -> GpuFraction {
    let product = product.unwrap_or_default();
    let slice = match resource.strip_prefix(labels::NVIDIA_MIG) {
        Some(profile) => mig_slice(product, profile),
        None if resource.starts_with(AMD) => {
            return amd_partition(&resource[AMD.len()..], Some(product));
        }
        None if !resource.starts_with(NVIDIA_GPU) => return GpuFraction::WHOLE,
        None => single_mig(product)
            .map_or(GpuFraction::WHOLE, |(model, profile)| mig_slice(model, profile)),
    };
    GpuFraction { of: slice.of.saturating_mul(replicas.max(1)), ..slice }
}

/// What one device is of an AMD GPU that is partitioned so, such as `cpx_nps4`: whole where that is
/// not known.
pub(super) fn amd_partition(partition: &str, product: Option<&str>) -> GpuFraction {
    let mode = partition.split('_').next().unwrap_or_default().to_ascii_lowercase();
    let product = product.unwrap_or_default().to_ascii_uppercase();
    let of = match &*mode {
        "dpx" => 2,
        "tpx" => 3,
        "qpx" => 4,
        "cpx" => CPX.iter().find(|(model, _)| product.contains(model)).map_or(1, |of| of.1),
        _ => 1,
    };
    GpuFraction { part: 1, of }
}

/// Whether a resource counts shares of devices by its name: replicas that a plugin renames, and
/// devices that pods share by claims.
pub fn is_of_shares(resource: &str) -> bool {
    resource.ends_with(".shared")
}

/// Whether GPU discovery says by the product that replicas are offered under the name of whole
/// GPUs, whether or not a label says how many.
pub(super) fn is_of_replicas(product: &str) -> bool {
    product.ends_with("-SHARED")
}

fn mig_slice(model: &str, profile: &str) -> GpuFraction {
    // An A30 has four compute slices, nearly every other model seven.
    let of = dovetail_model::MigTable::of_model(model).map_or(7, |t| i64::from(t.compute_slices));
    GpuFraction { part: compute_slices(profile).unwrap_or(of).clamp(1, of), of }
}

fn compute_slices(profile: &str) -> Option<i64> {
    profile.split_once('g').and_then(|(slices, _)| slices.parse().ok())
}

/// Physical GPUs of a node that HAMi shares out, by its annotation; `None` where it does not, 0
/// where the annotation does not say.
pub(super) fn hami_gpus(annotation: Option<&str>) -> Option<i64> {
    let text = annotation?.trim();
    let count = match text.starts_with('[') {
        true => serde_json::from_str::<Vec<serde_json::Value>>(text).map_or(0, |all| all.len()),
        false => text.split(':').filter(|gpu| gpu.split(',').count() >= 5).count(),
    };
    Some(i64::try_from(count).unwrap_or(0))
}

/// Where the units of a resource are counted under another name on a node: that name, and what one
/// unit is of one of its units. `built_in` says how many a node has by resource.
pub fn counted_as(
    built_in: impl Fn(&str) -> i64,
    resource: &str,
) -> Option<(&'static str, GpuFraction)> {
    let chips = NEURON_CHIPS.into_iter().find(|chips| built_in(chips) > 0)?;
    let is_other_name = NEURON_CHIPS.contains(&resource) && resource != chips;
    let slice = match resource {
        NEURON_CORES => {
            let of = built_in(NEURON_CORES).max(built_in(chips));
            GpuFraction { part: built_in(chips), of }
        }
        _ if is_other_name => GpuFraction::WHOLE,
        _ => return None,
    };
    Some((chips, slice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hami_lists_the_gpus_of_a_node_in_two_forms() {
        let listed = "GPU-1,10,81559,100,NVIDIA-H100,0,true:GPU-2,10,81559,100,NVIDIA-H100,0,true:";
        assert_eq!(hami_gpus(Some(listed)), Some(2));
        assert_eq!(hami_gpus(Some(r#"[{"id":"GPU-1","count":10}]"#)), Some(1));
        assert_eq!((hami_gpus(Some("h-5f2")), hami_gpus(None)), (Some(0), None));
    }

    #[test]
    fn a_part_is_known_by_the_name_of_its_profile() {
        let slice = |resource: &str, product| {
            let GpuFraction { part, of } = slice_of(resource, 1, Some(product));
            (part, of)
        };
        assert_eq!(slice("nvidia.com/mig-3g.40gb", "NVIDIA-A100-SXM4-80GB"), (3, 7));
        assert_eq!(slice("nvidia.com/mig-2g.12gb", "NVIDIA-A30"), (2, 4));
        assert_eq!(slice(NVIDIA_GPU, "NVIDIA-A30-MIG-1g.6gb"), (1, 4));
        assert_eq!(slice("amd.com/gpu", "MI300X"), (1, 1));
        assert_eq!(slice("amd.com/cpx_nps4", "AMD_Instinct_MI300X_OAM"), (1, 8));
        assert_eq!(slice("amd.com/cpx_nps1", "AMD_Instinct_MI300A"), (1, 6));
        assert_eq!(slice("amd.com/dpx_nps1", "MI325X"), (1, 2));
        // How many dies it has is not known.
        assert_eq!(slice("amd.com/cpx_nps4", "MI999"), (1, 1));
        assert_eq!(single_mig("NVIDIA-A100-SXM4-80GB-MIG-INVALID"), None);
    }
}
