//! How the AMD GPUs of a node are partitioned.

use dovetail_gpus::{node_gpus, offered};
use dovetail_model::gpu_model;
use dovetail_model::labels::{AMD_GPU, AMD_PRODUCT};
use dovetail_sharing::names::AMD_PARTITION;
use dovetail_sharing::{AmdDevices, Partition, Side, gpu_amounts, is_gpu};

use crate::objects::SeenNode;

/// Whether a node has GPUs, partitions of AMD's under any name among them.
pub(crate) fn has_gpus(seen: &SeenNode) -> bool {
    node_gpus(&seen.node, seen.hami()).is_some() || side(seen).is_some()
}

/// How the AMD GPUs of a node are partitioned, or why that is not known; `None` if it has none.
pub(crate) fn side(seen: &SeenNode) -> Option<Result<Side, String>> {
    let is_amd = |name: &str| name == AMD_GPU || Partition::of_resource(name).is_some();
    let names = seen.node.capacity.extended.keys().filter(|name| is_amd(name));
    let amounts = names.map(|name| (&**name, offered(&seen.node, name)));
    let amounts: Vec<(&str, (i64, i64))> =
        amounts.filter(|(_, (_, built_in))| *built_in > 0).collect();
    let label = |key: &str| seen.node.meta.labels.get(key);
    let (resource, (usable, built_in)) = match amounts[..] {
        [] => return None,
        [one] => one,
        _ => return Some(Err("its GPUs are partitioned in several ways".to_owned())),
    };
    let model = label(AMD_PRODUCT).and_then(gpu_model);
    let known = model.map(Partition::of_model).unwrap_or_default();
    if known.is_empty() {
        let model = label(AMD_PRODUCT).unwrap_or("no model");
        let why =
            format!("AMD documents no partition modes for this GPU model ({AMD_PRODUCT}: {model})");
        return Some(Err(why));
    }
    let named = Partition::of_resource(resource);
    let labelled = label(AMD_PARTITION);
    let partition = match (named, labelled.map(Partition::named)) {
        (Some(named), Some(labelled)) if labelled != Some(named) => {
            let label = label(AMD_PARTITION).unwrap_or_default();
            return Some(Err(format!("it offers {resource}, but {AMD_PARTITION} is `{label}`")));
        }
        (Some(partition), _) | (None, Some(Some(partition))) => partition,
        (None, Some(None)) => {
            let label = label(AMD_PARTITION).unwrap_or_default();
            return Some(Err(format!(
                "{AMD_PARTITION} is `{label}`, which dovetail does not know"
            )));
        }
        (None, None) => {
            return Some(Err(format!(
                "no label {AMD_PARTITION} shows how its GPUs are partitioned: apply the output of \
                 `dovetail partition setup`"
            )));
        }
    };
    let gpus = usize::try_from(built_in / partition.per_gpu()).unwrap_or(0);
    let side = Side::partitioned(gpus, AmdDevices { partition, is_named: named.is_some() });
    let is_all = usable == built_in && built_in % partition.per_gpu() == 0;
    let others = seen.node.capacity.extended.iter();
    let others = others.map(|(name, count)| (&**name, *count)).filter(|(name, _)| is_gpu(name));
    let others = gpu_amounts(others, None);
    Some(match (is_all, others.len() > 1) {
        (_, true) => Err("it has GPUs of several vendors".to_owned()),
        (false, _) => Err("GPUs are missing".to_owned()),
        (true, false) => Ok(side),
    })
}
