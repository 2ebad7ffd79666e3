//! What pods use of the GPUs of a node, against what its plugin offers: GPUs that are allocated to
//! pods are not unavailable whatever the plugin reports, and GPUs may be in use by pods that do not
//! request them.

use std::collections::BTreeMap;

use dovetail_facts::{Gpus, Node, NodeGpus, Units, Workload};
use dovetail_model::{GpuFraction, GpuParts};
use dovetail_objects::labels;
use rustc_hash::FxHashMap;

use super::clamped::MOST_GPUS;
use super::pods::Pods;
use super::unread::UnrequestedGpus;

/// Resources whose units are whole GPUs where nothing else says what they are.
const WHOLE: [&str; 2] = [labels::NVIDIA_GPU, labels::AMD_GPU];

/// Counts GPUs that pods hold among those that pods can ask for: while a plugin restarts, or when a
/// device fails, it offers fewer than pods have.
pub(super) fn count_what_is_held(pods: &Pods, nodes: &mut [Node], gpus: &mut [NodeGpus]) {
    let mut held: FxHashMap<&str, BTreeMap<&str, i64>> = FxHashMap::default();
    let placed = pods.list.iter().filter(|record| !record.pod.node.is_empty());
    for record in placed {
        for (resource, count) in record.pod.holds().extended.iter().filter(|(_, count)| **count > 0)
        {
            let of_node = held.entry(&record.pod.node).or_default();
            *of_node.entry(resource).or_default() += (*count).min(MOST_GPUS);
        }
    }
    let mut nodes: FxHashMap<String, &mut Node> =
        nodes.iter_mut().map(|node| (node.node.name.to_string(), node)).collect();
    for gpus in gpus {
        let (Some(held), Some(node)) = (held.get(&*gpus.node), nodes.get_mut(&*gpus.node)) else {
            continue;
        };
        for units in &mut gpus.units {
            let built_in = node.gpus.get(&units.resource).map_or(0, |of| of.built_in);
            let held = held.get(&*units.resource).copied().unwrap_or(0).min(built_in);
            if held > units.count {
                gpus.unavailable_milli -= units.parts.milli(units.count, held);
                units.count = held;
            }
        }
        for resource in WHOLE {
            count_lost(gpus, node, resource, held.get(resource).copied().unwrap_or(0));
        }
        gpus.unavailable_milli = gpus.unavailable_milli.max(0);
    }
}

/// Counts whole GPUs that pods hold and no plugin lists any more.
fn count_lost(gpus: &mut NodeGpus, node: &mut Node, resource: &str, held: i64) {
    let units = gpus.units.iter_mut().find(|units| units.resource == resource);
    let counted = units.as_ref().map_or(0, |units| units.count);
    let is_whole = units.as_ref().is_none_or(|units| units.parts.milli(0, 1) >= 1000);
    let more = (held - counted).min(node.uncounted_gpus).min(gpus.unavailable_milli / 1000);
    if more <= 0 || !is_whole {
        return;
    }
    match units {
        Some(units) => units.count += more,
        None => gpus.units.push(Units {
            resource: resource.to_owned(),
            count: more,
            parts: GpuParts::Equal(GpuFraction::WHOLE),
            is_shared: false,
            unknown: 0,
        }),
    }
    gpus.unavailable_milli -= 1000 * more;
    node.uncounted_gpus -= more;
    let model = gpus.model.clone();
    let of_node = node.gpus.entry(resource.to_owned());
    of_node.or_insert_with(|| Gpus { model, ..Gpus::default() }).built_in += more;
}

/// Leaves it open who has the GPUs of a node that no pod is known to hold, where a pod uses GPUs
/// without requests; answers with these pods and nodes.
pub(super) fn open_where_seen(
    pods: &Pods,
    workloads: &[Workload],
    of_group: &[usize],
    gpus: &mut [NodeGpus],
) -> UnrequestedGpus {
    let mut unrequested = UnrequestedGpus::default();
    let sees: Vec<bool> = workloads.iter().map(Workload::uses_unrequested_gpus).collect();
    if !sees.contains(&true) {
        return unrequested;
    }
    let mut places: FxHashMap<String, &mut NodeGpus> =
        gpus.iter_mut().map(|of| (of.node.clone(), of)).collect();
    for record in pods.list.iter().filter(|record| sees[of_group[record.group]]) {
        let Some(of_node) = places.get_mut(&*record.pod.node) else { continue };
        for units in &mut of_node.units {
            units.unknown = units.count;
        }
        let meta = &record.pod.meta;
        unrequested.pods.insert(format!("{}/{}", meta.namespace, meta.name));
        unrequested.nodes.insert(record.pod.node.to_string());
    }
    unrequested
}
