//! Gangs by what says how many of their pods start together (an object, or the pods themselves),
//! and how many of these have a node.

use std::collections::BTreeMap;

use dovetail_facts::{GangCounts, ObjectRef, PendingGang, Workload};
use dovetail_objects::{Kind, Object, Pod, WorkloadKind, labels};
use dovetail_translate::gang::{GangName, GangSource, gang_of};

use super::inventory::Inventory;

/// What describes a gang, with its namespace and name.
type Described<'a> = (GangSource, &'a str, &'a str);

const LEADER_WORKER_SET: GangSource = GangSource::Workload(WorkloadKind::LeaderWorkerSet);

/// The gang of each pod that has not ended, in their order. `None` where a pod names none or two,
/// or nothing says how many start together.
pub(super) fn gangs(inventory: &Inventory) -> Vec<Option<GangCounts>> {
    let sizes: BTreeMap<Described<'_>, u32> =
        inventory.others.values().filter_map(size_of).collect();
    let min_of = |gang: &GangName, pod: &Pod| {
        let described = || sizes.get(&(gang.source, &*gang.namespace, &*gang.name)).copied();
        match gang.source {
            GangSource::Plain => said(pod, labels::MIN_MEMBERS),
            // Replicas of a server need each other only within a group of a LeaderWorkerSet.
            GangSource::Kueue if serves(pod) => said(pod, labels::LEADER_WORKER_SET_SIZE),
            GangSource::Kueue => said(pod, labels::KUEUE_TOTAL_COUNT),
            LEADER_WORKER_SET => said(pod, labels::LEADER_WORKER_SET_SIZE).or_else(described),
            _ => described(),
        }
    };
    let mut gangs: BTreeMap<GangName, GangCounts> = BTreeMap::new();
    let pods = inventory.pods.list.iter().map(|record| {
        let gang = gang_of(&record.pod).ok().flatten()?;
        let min = min_of(&gang, &record.pod)?;
        let of_gang =
            gangs.entry(gang.clone()).or_insert(GangCounts { min, placed: 0, pending: 0 });
        match record.pod.node.is_empty() {
            true => of_gang.pending += 1,
            false => of_gang.placed += 1,
        }
        Some(gang)
    });
    let names: Vec<Option<GangName>> = pods.collect();
    names.into_iter().map(|name| gangs.get(&name?).copied()).collect()
}

/// How many pods the groups of LeaderWorkerSets lack, by the number of a workload that has pods of
/// the group, one with GPUs if there is any. Workers may follow once their leader is ready.
pub(super) fn lacking_workers(
    inventory: &Inventory,
    workloads: &[Workload],
    of_group: &[usize],
) -> BTreeMap<usize, u64> {
    let mut groups: BTreeMap<GangName, (usize, u64, u64)> = BTreeMap::new();
    for record in &inventory.pods.list {
        let Some(size) = said(&record.pod, labels::LEADER_WORKER_SET_SIZE) else { continue };
        let gang = gang_of(&record.pod).ok().flatten();
        let Some(gang) = gang.filter(|gang| gang.source == LEADER_WORKER_SET) else { continue };
        let workload = of_group[record.group];
        let group = groups.entry(gang).or_insert((workload, u64::from(size), 0));
        if workloads[workload].has_gpus() {
            group.0 = workload;
        }
        group.2 += 1;
    }
    let mut lacking: BTreeMap<usize, u64> = BTreeMap::new();
    for (workload, size, there) in groups.into_values().filter(|(_, size, there)| there < size) {
        *lacking.entry(workload).or_default() += size - there;
    }
    lacking
}

/// A gang that waits, without its pods.
pub(super) fn pending_gang(gang: &GangName) -> PendingGang {
    let kind = Kind::ALL.into_iter().find(|kind| GangSource::of(*kind) == Some(gang.source));
    PendingGang {
        object: kind.map(|kind| ObjectRef::new(kind.name(), &gang.namespace, &gang.name)),
        resource: kind.map(Kind::resource).unwrap_or_default(),
        size: size_words(gang.source),
        pods: Vec::new(),
    }
}

/// What a person lowers so that a gang of a source starts with fewer pods.
fn size_words(source: GangSource) -> &'static str {
    match source {
        GangSource::Native => "minCount of the PodGroup",
        GangSource::Plain => "the annotation dovetail.dev/min-members of its pods",
        GangSource::SchedulerPlugins | GangSource::Kai => "minMember of the PodGroup",
        GangSource::Volcano => "minMember of the PodGroup (minAvailable of a Volcano Job)",
        GangSource::Kueue => "the number of its pods and kueue.x-k8s.io/pod-group-total-count",
        GangSource::Workload(kind) => match kind {
            WorkloadKind::Job => "parallelism of the Job",
            WorkloadKind::JobSet => "parallelism or replicas in replicatedJobs of the JobSet",
            WorkloadKind::LeaderWorkerSet => "leaderWorkerTemplate.size of the LeaderWorkerSet",
            WorkloadKind::RayCluster => "replicas in workerGroupSpecs of the RayCluster",
            WorkloadKind::PyTorchJob
            | WorkloadKind::TfJob
            | WorkloadKind::TrainingMpiJob
            | WorkloadKind::MpiJob
            | WorkloadKind::XgBoostJob
            | WorkloadKind::PaddleJob
            | WorkloadKind::JaxJob => "replicas of its workers",
        },
    }
}

/// How many pods start together by an object; `None` if it does not say.
fn size_of(object: &Object) -> Option<(Described<'_>, u32)> {
    let (source, meta, size) = match object {
        Object::PodGroup(kind, group) => (GangSource::of(*kind)?, &group.meta, group.min_count?),
        // Of each group; the size of one pod is what a set has that says none.
        Object::Workload(WorkloadKind::LeaderWorkerSet, set) => {
            let pods = set.roles.iter().fold(0, |sum: u32, role| sum.saturating_add(role.pods));
            (LEADER_WORKER_SET, &set.meta, Some(pods).filter(|pods| *pods > 1)?)
        }
        _ => return None,
    };
    Some(((source, &*meta.namespace, &*meta.name), size))
}

/// Whether the pods of its group of Kueue are replicas of a server.
fn serves(pod: &Pod) -> bool {
    pod.meta.annotations.get(labels::KUEUE_SERVING) == Some("true")
}

/// A number of pods in an annotation of a pod.
fn said(pod: &Pod, annotation: &str) -> Option<u32> {
    pod.meta.annotations.get(annotation)?.parse().ok()
}
