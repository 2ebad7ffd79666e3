//! The pods with GPUs, also those that are over, each with its top owner and its times.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::ObjectRef;
use dovetail_model::is_gpu_resource;
use dovetail_objects::PodPhase;

use super::fractions::reserves_for_others;
use super::inventory::Inventory;
use super::life::LifeRecord;
use super::pods::REVISION_LABELS;
use super::unmade::{Fate, UnmadePod};

/// Owners that make others by a timetable: each of those is for itself.
const TIMETABLES: [&str; 4] =
    ["CronJob", "CronWorkflow", "ScheduledWorkflow", "ScheduledSparkApplication"];

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
            has_succeeded: pod.is_over().then_some(pod.phase == PodPhase::Succeeded),
            gpu_milli: record.gpu_milli,
            labels: kept.collect(),
        }
    };
    let asks_for_itself = |(_, record): &(_, &LifeRecord)| !reserves_for_others(&record.pod);
    inventory.pods.lives.iter().filter(asks_for_itself).map(life).collect()
}

/// Pods that wait for a quota and are not created yet, since what makes them was.
pub(super) fn not_yet_created(
    inventory: &Inventory,
    labels: &BTreeSet<String>,
) -> impl Iterator<Item = PodLife> {
    let of_gpus = |of: &&UnmadePod| {
        of.wants_claimed || of.pod.requests.extended.keys().any(|name| is_gpu_resource(name))
    };
    let waits = |of: &&UnmadePod| of.fate == Fate::WaitsForQuota;
    let waiting = inventory.waiting.pods.iter().filter(waits).filter(of_gpus);
    waiting.map(|UnmadePod { pod, maker, .. }| {
        let created_ms = inventory.owners.created_ms(maker);
        let kept = labels.iter().filter_map(|key| {
            let value = pod.meta.labels.get(key)?;
            Some((key.clone(), value.to_owned()))
        });
        PodLife {
            namespace: pod.meta.namespace.to_string(),
            pod: pod.meta.name.to_string(),
            node: None,
            owner: maker.clone(),
            owner_uid: None,
            owner_created_ms: created_ms,
            is_by_timetable: false,
            created_ms,
            scheduled_ms: None,
            ended_ms: None,
            has_succeeded: None,
            gpu_milli: None,
            labels: kept.collect(),
        }
    })
}
