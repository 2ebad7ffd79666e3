//! What pods say of GPUs that KAI and Run:ai share out: fractions, and the groups that share one.

use dovetail_model::is_gpu_resource;
use dovetail_objects::{Pod, labels};

/// Whether KAI made the pod: of those that share a device it alone asks the device plugin for one.
pub(super) fn reserves_for_others(pod: &Pod) -> bool {
    let asks = |(name, count): (&String, &i64)| *count > 0 && is_gpu_resource(name);
    groups_of(pod).next().is_some() && pod.requests.extended.iter().any(asks)
}

/// Thousandths of a GPU that a pod asks KAI for; `None` if it asks for memory, or for none.
pub(super) fn fraction_milli(pod: &Pod) -> Option<i64> {
    let fraction: f64 = pod.meta.annotations.get(labels::FRACTION[0])?.parse().ok()?;
    let milli = (fraction * 1000.0).round();
    (1.0..=1000.0).contains(&milli).then_some(milli as i64)
}

/// Groups of pods that share a GPU, to which a pod belongs. One with fractions of several GPUs is
/// in a group for each.
pub(super) fn groups_of(pod: &Pod) -> impl Iterator<Item = &str> {
    let is_group = |key: &str| {
        let rest = key.strip_prefix(labels::KAI_DEVICE_GROUP);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let labels = pod.meta.labels.iter();
    labels.filter(move |(key, _)| is_group(key)).map(|(_, group)| group)
}
