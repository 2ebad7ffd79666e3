//! Once all objects are read: which pods are waited for that nobody has made, and why.

use dovetail_objects::labels;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::ObjectRef;

use super::admission::Admission;
use super::missing::missing;
use super::{Fate, Key, Maker, PodSet, Says, UnmadePod, UnmadeWork, Why};
use crate::facts::cluster::ClusterObjects;
use crate::facts::leaders::add_leaders;
use crate::facts::owner::Owners;
use crate::facts::pods::{PodRecord, Pods};

/// Pods of one set that are waited for; more change no cause.
const MOST_WAITING: u64 = 1000;

/// The label by which pods are of one workload of Kueue.
const GROUP_LABEL: &str = labels::KUEUE_GROUP;

/// What Kueue keeps back.
#[derive(Default)]
struct HeldByKueue {
    /// Workloads whose pods are counted elsewhere.
    covered: BTreeSet<ObjectRef>,
    /// Makers that wait for quota, with since when; `None` if nobody knows.
    makers: BTreeMap<ObjectRef, Option<u64>>,
    /// Makers that somebody switched off.
    off: BTreeSet<ObjectRef>,
    /// Pods that wait for quota, as makers.
    pods: BTreeMap<Key, Option<u64>>,
}

/// What waits beside the pods that are there. Chains of owners are whole from here on.
pub(in crate::facts) fn settle(
    pods: &Pods,
    cluster: &ClusterObjects,
    owners: &mut Owners,
) -> UnmadeWork {
    add_leaders(owners, pods);
    owners.leave_out_what_is_made();
    let kept = kept_by_kueue(pods, owners);
    let mut of_groups = vec![0_u64; pods.groups.len()];
    for record in &pods.list {
        of_groups[record.group] += 1;
    }
    let mut there: BTreeMap<&ObjectRef, u64> = BTreeMap::new();
    for (group, count) in pods.groups.iter().zip(of_groups) {
        *there.entry(&group.owner).or_default() += count;
    }
    let unmade = &owners.unmade;
    let mut found = Vec::new();
    for (object, maker) in &unmade.makers {
        let Maker { why, sets } = maker;
        match *why {
            Why::Suspended if kept.off.contains(object) => {}
            Why::Suspended => {
                let waits = kept.makers.get(object);
                let fate = if waits.is_some() { Fate::WaitsForQuota } else { Fate::HeldBack };
                let since_ms = waits.copied().flatten();
                let kind = if object.kind == "Job" { "" } else { &object.kind };
                let why = format!("suspended {kind}");
                for set in sets {
                    let pods = (fate, set.pods(), since_ms);
                    found.extend(unmade_pods(object, set, pods, why.trim_end()));
                }
            }
            Why::Short { present, says, since_ms } => {
                let since_ms = since_ms.filter(|_| says == Says::NoQuota);
                let there = there.get(object).copied().unwrap_or(0).max(present);
                let quotas = cluster.quota_rooms.get(&object.namespace);
                let quotas = quotas.map_or(&[][..], Vec::as_slice);
                for set in sets {
                    for (fate, count) in missing(set, there, says, quotas) {
                        let by = if fate == Fate::Refused { "" } else { " by quota" };
                        let why = format!("refused{by} to {}", object.kind);
                        found.extend(unmade_pods(object, set, (fate, count, since_ms), &why));
                    }
                }
            }
        }
    }
    for (object, workload) in &unmade.workloads {
        if workload.is_off || kept.covered.contains(object) {
            continue;
        }
        let waits = workload.waits_for_quota;
        let fate = if waits { Fate::WaitsForQuota } else { Fate::HeldBack };
        let since_ms = workload.since_ms.filter(|_| waits);
        for set in &workload.sets {
            let pods = (fate, set.pods(), since_ms);
            found.extend(unmade_pods(object, set, pods, "not admitted"));
        }
    }
    let names_a_queue = unmade.names_a_queue;
    let admission = Admission::default();
    UnmadeWork { pods: found, kept_for_quota: kept.pods, names_a_queue, admission }
}

/// Which workloads of Kueue are about what is counted by itself: objects that are suspended,
/// and pods that are there.
fn kept_by_kueue(pods: &Pods, owners: &Owners) -> HeldByKueue {
    let workloads = &owners.unmade.workloads;
    let mut kept = HeldByKueue::default();
    let mut by_owner: BTreeMap<&ObjectRef, Vec<&ObjectRef>> = BTreeMap::new();
    for (object, workload) in workloads {
        for owner in &workload.owners {
            by_owner.entry(owner).or_default().push(object);
        }
    }
    let of = |objects: &[ObjectRef]| -> Vec<&ObjectRef> {
        objects.iter().filter_map(|object| by_owner.get(object)).flatten().copied().collect()
    };
    if workloads.is_empty() {
        return kept;
    }
    for (object, maker) in &owners.unmade.makers {
        if maker.why == Why::Suspended {
            for workload in of(&owners.chain(object, None)) {
                kept.covered.insert(workload.clone());
                if workloads[workload].waits_for_quota {
                    kept.makers.insert(object.clone(), workloads[workload].since_ms);
                }
                if workloads[workload].is_off {
                    kept.off.insert(object.clone());
                }
            }
        }
    }
    let groups = pods.groups.iter();
    let of_group: Vec<Vec<&ObjectRef>> =
        groups.map(|group| of(&owners.chain(&group.owner, None))).collect();
    for record in &pods.list {
        let mut about = of_group[record.group].clone();
        about.extend(of(&[named_as(record)]));
        let of_label = record.pod.meta.labels.get(GROUP_LABEL);
        let of_label = of_label
            .map(|name| ObjectRef::new("Workload", &record.pod.meta.namespace, name))
            .and_then(|named| workloads.get_key_value(&named));
        about.extend(of_label.map(|(workload, _)| workload));
        for workload in about {
            kept.covered.insert(workload.clone());
            if workloads[workload].waits_for_quota && record.pod.node.is_empty() {
                let meta = &record.pod.meta;
                let key = (meta.namespace.clone(), meta.name.clone());
                kept.pods.insert(key, workloads[workload].since_ms);
            }
        }
    }
    kept
}

fn named_as(record: &PodRecord) -> ObjectRef {
    ObjectRef::new("Pod", &record.pod.meta.namespace, &record.pod.meta.name)
}

/// So many pods of a set, as they are told.
fn unmade_pods(
    object: &ObjectRef,
    set: &PodSet,
    (fate, count, short_since_ms): (Fate, u64, Option<u64>),
    why: &str,
) -> impl Iterator<Item = UnmadePod> {
    let dash = if set.name.is_empty() { "" } else { "-" };
    let name = format!("{}{dash}{}", object.name, set.name);
    let numbered = move |number| {
        let mut pod = set.pod.clone();
        pod.meta.namespace = object.namespace.as_str().into();
        pod.meta.name = format!("{name}-{number} ({why})").into();
        let maker = object.clone();
        let claims = set.claims.clone();
        UnmadePod { pod, maker, claims, wants_claimed: false, fate, short_since_ms }
    };
    (0..count.min(MOST_WAITING)).map(numbered)
}
