//! When pods with GPUs were made, got their node and ended: what queue waits and attempts are told
//! by. Pods that are over are here too, for as long as the API server keeps them.

use dovetail_objects::labels;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_audit::ObjectRef;
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::is_gpu_resource;
use dovetail_objects::{Phase, Pod};

use super::inventory::Inventory;
use super::pods::REVISION_LABELS;

/// Owners that make others by a timetable: each of those is for itself.
const TIMETABLES: [&str; 4] =
    ["CronJob", "CronWorkflow", "ScheduledWorkflow", "ScheduledSparkApplication"];

/// Resources of which a unit is a whole device.
const WHOLE: [&str; 4] =
    [labels::NVIDIA_GPU, labels::AMD_GPU, labels::HABANA_GAUDI, labels::GOOGLE_TPU];

/// A pod that asks for GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLife {
    pub namespace: String,
    /// Name.
    pub pod: String,
    /// The node it has or had; none if it never had one.
    pub node: Option<String>,
    /// Its top owner; below a timetable what that made; itself where nothing owns it.
    pub owner: ObjectRef,
    /// Identity of that owner; `None` if nobody says.
    pub owner_uid: Option<String>,
    /// When that owner was made; `None` if nobody says.
    pub owner_created_ms: Option<u64>,
    /// Whether a timetable made that owner.
    pub is_by_timetable: bool,
    /// When it was made; `None` if it does not say.
    pub created_ms: Option<u64>,
    /// When it got its node; `None` if it has none, or nobody says when.
    pub scheduled_ms: Option<u64>,
    /// When its last container ended, if it is over; `None` if it is not, or nobody says.
    pub ended_ms: Option<u64>,
    /// Whether it ended well; `None` if it is not over.
    pub has_succeeded: Option<bool>,
    /// Devices that it asks for; `None` if it asks for parts of devices.
    pub gpu_milli: Option<i64>,
    /// Its labels, as far as asked for.
    pub labels: BTreeMap<String, String>,
}

/// What is kept of a pod while objects are read.
pub(super) struct LifeRecord {
    pod: Arc<Pod>,
    owner: Option<(ObjectRef, String)>,
    ended_ms: Option<u64>,
    gpu_milli: Option<i64>,
}

/// By namespace and name.
pub(super) type Lives = BTreeMap<(Box<str>, Box<str>), LifeRecord>;

/// Notes a pod, if it asks for GPUs: with what controls it, and when it ended. One that asks by
/// claims alone, or by a resource that a device class may serve, of which nobody knows yet, is
/// noted beside the others.
pub(super) fn note(
    (lives, by_claims): (&mut Lives, &mut Lives),
    pod: &Arc<Pod>,
    owner: Option<(ObjectRef, String)>,
    ended_ms: Option<u64>,
) {
    let asked = || pod.requests.extended.iter().filter(|(_, count)| **count > 0);
    let asks = asked().any(|(name, _)| is_gpu_resource(name));
    if !asks && !pod.has_resource_claims && asked().next().is_none() {
        return;
    }
    let mut gpu_milli = Some(0i64);
    for (name, count) in asked().filter(|(name, _)| is_gpu_resource(name)) {
        let whole = WHOLE.contains(&&**name).then(|| count.saturating_mul(WHOLE_DEVICE_MILLI));
        gpu_milli = gpu_milli.zip(whole).map(|(sum, more)| sum.saturating_add(more));
    }
    let record = LifeRecord { pod: Arc::clone(pod), owner, ended_ms, gpu_milli };
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

/// All pods that ask for GPUs, with these of their labels.
pub(super) fn lives(inventory: &Inventory, labels: &BTreeSet<String>) -> Vec<PodLife> {
    let is_known = |ms: &u64| *ms > 0;
    let life = |((namespace, name), record): (&(Box<str>, Box<str>), &LifeRecord)| {
        let pod = &record.pod;
        let itself = || (ObjectRef::new("Pod", namespace, name), String::new());
        let (nearest, uid) = record.owner.clone().unwrap_or_else(itself);
        let hash = REVISION_LABELS.iter().find_map(|key| pod.meta.labels.get(key));
        let chain = inventory.owners.chain(&nearest, hash);
        let top = chain.len() - 1;
        let is_by_timetable = top > 0 && TIMETABLES.contains(&chain[top].kind.as_str());
        let place = if is_by_timetable { top - 1 } else { top };
        let owner_uid = match place {
            0 => Some(uid),
            _ => inventory.owners.controller_uid(&chain[place - 1]),
        };
        let kept = labels
            .iter()
            .filter_map(|key| Some((key.clone(), pod.meta.labels.get(key)?.to_owned())));
        PodLife {
            namespace: namespace.to_string(),
            pod: name.to_string(),
            node: Some(pod.node.to_string()).filter(|node| !node.is_empty()),
            owner_uid: owner_uid.filter(|uid| !uid.is_empty()),
            owner_created_ms: inventory.owners.created_ms(&chain[place]),
            owner: chain[place].clone(),
            is_by_timetable,
            created_ms: Some(pod.meta.created_ms).filter(is_known),
            scheduled_ms: Some(pod.scheduled_ms).filter(is_known),
            ended_ms: record.ended_ms,
            has_succeeded: pod.is_over().then_some(pod.phase == Phase::Succeeded),
            gpu_milli: record.gpu_milli,
            labels: kept.collect(),
        }
    };
    inventory.pods.lives.iter().map(life).collect()
}
