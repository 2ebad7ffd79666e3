//! When pods with GPUs were made, got their node and ended: what queue waits and attempts are told
//! by. Pods that are over are here too, for as long as the API server keeps them.

use dovetail_objects::labels;
use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_facts::{MemoryKills, ObjectRef};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::is_gpu_resource;
use dovetail_objects::Pod;

use super::fractions::fraction_milli;

/// Resources of which a unit is a whole device.
const WHOLE: [&str; 4] =
    [labels::NVIDIA_GPU, labels::AMD_GPU, labels::HABANA_GAUDI, labels::GOOGLE_TPU];

/// What is kept of a pod while objects are read.
pub(super) struct LifeRecord {
    pub(super) pod: Arc<Pod>,
    pub(super) owner: Option<(ObjectRef, String)>,
    pub(super) ended_ms: Option<u64>,
    pub(super) memory_kills: MemoryKills,
    pub(super) gpu_milli: Option<i64>,
}

/// By namespace and name.
pub(super) type Lives = BTreeMap<(Box<str>, Box<str>), LifeRecord>;

/// Notes a pod, if it asks for GPUs: with what controls it, when it ended, and how often it was
/// killed for memory. One that asks by claims alone, or by a resource that a device class may
/// serve, of which nobody knows yet, is noted beside the others.
pub(super) fn note(
    (lives, by_claims): (&mut Lives, &mut Lives),
    pod: &Arc<Pod>,
    owner: Option<(ObjectRef, String)>,
    (ended_ms, memory_kills): (Option<u64>, MemoryKills),
) {
    let asked = || pod.requests.extended.iter().filter(|(_, count)| **count > 0);
    let fraction = labels::FRACTION.iter().any(|key| pod.meta.annotations.get(key).is_some());
    let asks = fraction || asked().any(|(name, _)| is_gpu_resource(name));
    if !asks && !pod.has_resource_claims && asked().next().is_none() {
        return;
    }
    let mut gpu_milli = if fraction { fraction_milli(pod) } else { Some(0) };
    for (name, count) in asked().filter(|(name, _)| is_gpu_resource(name)) {
        let whole = WHOLE.contains(&&**name).then(|| count.saturating_mul(WHOLE_DEVICE_MILLI));
        gpu_milli = gpu_milli.zip(whole).map(|(sum, more)| sum.saturating_add(more));
    }
    let record = LifeRecord { pod: Arc::clone(pod), owner, ended_ms, memory_kills, gpu_milli };
    let lives = if asks { lives } else { by_claims };
    lives.insert((pod.meta.namespace.clone(), pod.meta.name.clone()), record);
}

/// Notes that a pod asks for so many units of a resource by a claim.
pub(super) fn note_claimed(
    lives: &mut Lives,
    by_claims: &mut Lives,
    pod: &Pod,
    (resource, units): (&str, i64),
) {
    let key = (pod.meta.namespace.clone(), pod.meta.name.clone());
    if let Some(record) = by_claims.remove(&key) {
        lives.insert(key.clone(), record);
    }
    if let Some(record) = lives.get_mut(&key) {
        let whole = WHOLE.contains(&resource).then(|| units.saturating_mul(WHOLE_DEVICE_MILLI));
        let sum = record.gpu_milli.zip(whole);
        record.gpu_milli = sum.map(|(sum, more)| sum.saturating_add(more));
    }
}
