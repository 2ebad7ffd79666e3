//! Resources of GPUs and of parts of them, in nodes and pods.

use std::collections::BTreeMap;

use dovetail_model::labels::NVIDIA_MIG;
use dovetail_model::{MigTable, is_gpu_resource};
use dovetail_objects::Pod;
use serde_json::Value;

use crate::amd::Partition;
use crate::layout::resource;

/// Whether a resource counts GPUs or parts of them, AMD's partitions of every mode among them.
pub fn is_gpu(resource: &str) -> bool {
    is_gpu_resource(resource) || Partition::of_resource(resource).is_some()
}

/// Whether a pod has GPUs of its node, or parts of them, from whomever.
pub fn uses_gpus(pod: &Pod) -> bool {
    let mut amounts = pod.holds().extended.iter();
    let has_gpus = amounts.any(|(name, count)| is_gpu(name) && *count > 0);
    let is_there = !pod.is_over() && !pod.node.is_empty();
    is_there && (has_gpus || pod.has_resource_claims || pod.vgpu().is_some())
}

/// What is offered, under the names of the table where drivers spell profiles in another way.
pub(crate) fn offers(allocatable: &Value, table: Option<&MigTable>) -> BTreeMap<String, i64> {
    let count = |amount: &Value| match amount {
        Value::String(text) => text.parse().unwrap_or(0),
        other => other.as_i64().unwrap_or(0),
    };
    let amounts = allocatable.as_object().into_iter().flatten();
    gpu_amounts(amounts.map(|(name, amount)| (&**name, count(amount))), table)
}

/// Amounts of GPUs and instances alone, under the names of the table.
pub fn gpu_amounts<'a>(
    amounts: impl Iterator<Item = (&'a str, i64)>,
    table: Option<&MigTable>,
) -> BTreeMap<String, i64> {
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    for (name, count) in amounts.filter(|(name, count)| is_gpu(name) && *count > 0) {
        *found.entry(known_resource(name, table)).or_default() += count;
    }
    found
}

/// A resource under the name of the table, where drivers spell its profile in another way.
pub(crate) fn known_resource(name: &str, table: Option<&MigTable>) -> String {
    let profile = name.strip_prefix(NVIDIA_MIG);
    let known = table.zip(profile).and_then(|(table, profile)| {
        let place = table.profile(profile)?;
        Some(resource(&table.profiles[place].name))
    });
    known.unwrap_or_else(|| name.to_owned())
}
