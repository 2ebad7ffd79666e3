//! GPUs that KAI and Run:ai take off the device plugin for pods that share them: to Kubernetes the
//! pod that reserves a GPU holds it, and those who share it use it and pay for it.

use std::collections::BTreeMap;

use dovetail_facts::{HeldGpus, NodeGpus, PodName, Workload};
use dovetail_model::in_proportion;
use dovetail_objects::Pod;

use super::fractions::{fraction_milli, groups_of};
use super::pods::PodRecord;

/// One who shares a reserved GPU.
#[derive(Clone, Copy)]
struct Sharer<'p> {
    record: &'p PodRecord,
    workload: usize,
}

/// Gives what pods reserve for others to those, in proportion to their fractions: together they
/// hold the whole GPU, as no other pod can ask the device plugin for the rest. A GPU that nobody
/// shares stays with the pod that reserves it. Answers with the sharers of each such pod.
pub(super) fn share_out(
    held: Vec<HeldGpus>,
    (pods, of_group): (&[PodRecord], &[usize]),
    workloads: &[Workload],
    gpus: &[NodeGpus],
) -> (Vec<HeldGpus>, BTreeMap<PodName, Vec<PodName>>) {
    let mut shared = BTreeMap::new();
    if !workloads.iter().any(|workload| workload.reserves_for_others) {
        return (held, shared);
    }
    let mut sharers: BTreeMap<(&str, &str), Vec<Sharer<'_>>> = BTreeMap::new();
    let mut reserves: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for record in pods {
        let (pod, workload) = (&*record.pod, of_group[record.group]);
        for group in groups_of(pod) {
            match workloads[workload].reserves_for_others {
                true => drop(reserves.insert((&pod.meta.namespace, &pod.meta.name), group)),
                false => {
                    let of_group = sharers.entry((&pod.node, group)).or_default();
                    of_group.push(Sharer { record, workload });
                }
            }
        }
    }
    let mut all = Vec::with_capacity(held.len());
    for held in held {
        let namespace = &workloads[held.workload].owner.namespace;
        let group = reserves.get(&(namespace.as_str(), held.pod.as_str()));
        let of_group = group.and_then(|group| sharers.get(&(held.node.as_str(), *group)));
        let Some(of_group) = of_group else {
            all.push(held);
            continue;
        };
        let names = of_group.iter().map(|sharer| name_of(&sharer.record.pod));
        shared.insert((namespace.clone(), held.pod.clone()), names.collect());
        all.extend(parts(&held, of_group, gpus));
    }
    (all, shared)
}

/// What each sharer holds of a reserved GPU. To the device plugin all of them hold its units once.
fn parts(held: &HeldGpus, sharers: &[Sharer<'_>], gpus: &[NodeGpus]) -> Vec<HeldGpus> {
    let of_node = gpus.iter().find(|of_node| of_node.node == held.node);
    let units = of_node.into_iter().flat_map(|of_node| &of_node.units);
    let units = units.filter(|units| units.resource == held.resource);
    let all_milli =
        held.gpu_milli.unwrap_or_else(|| units.map(|of| of.parts.milli(0, held.units)).sum());
    let fractions: Option<Vec<i128>> =
        sharers.iter().map(|sharer| fraction_milli(&sharer.record.pod).map(i128::from)).collect();
    // Who asks for memory says no fraction: then all have the same part.
    let weights = fractions.unwrap_or_else(|| vec![1; sharers.len()]);
    let parts = in_proportion(i128::from(all_milli), &weights);
    let of_sharer = |(number, (sharer, part)): (usize, (&Sharer<'_>, i128))| HeldGpus {
        workload: sharer.workload,
        pod: sharer.record.pod.meta.name.to_string(),
        units: if number == 0 { held.units } else { 0 },
        gpu_milli: i64::try_from(part).ok(),
        state: sharer.record.state,
        gang: None,
        ..held.clone()
    };
    sharers.iter().zip(parts).enumerate().map(of_sharer).collect()
}

fn name_of(pod: &Pod) -> PodName {
    (pod.meta.namespace.to_string(), pod.meta.name.to_string())
}
