//! CAP-06: GPUs that are free on nodes in use, and usable: the engine places pods on them.
//!
//! A node on which pods have GPUs cannot be removed, and what is free beside them may be unusable:
//! too little CPU or memory is left. So the engine is asked to place a pod on what each node has
//! free, with as much CPU and memory for each GPU as the node has of it; what it places can be
//! used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_account::device_time::DeviceState;
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{
    DeviceRequest, FreeCause, Job, JobId, NodeAvailability, Requirement, Resources, Toleration,
};

use super::shapes::is_unused_profile;
use super::{View, claims_on, node_ref};
use crate::catalogue::Check;
use crate::facts::Node;
use crate::finding::Finding;
use crate::trial::placed;

const NO_DEMAND: DeviceState = DeviceState::Free(Some(FreeCause::NoDemand));

pub(super) fn free_beside_others(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let placed = view.gpu_workloads().flat_map(|workload| &workload.pods);
    let busy: BTreeSet<&str> = placed.filter_map(|pod| pod.node.as_deref()).collect();
    // Units that are free and usable on each node, by resource.
    let mut usable: BTreeMap<&str, Vec<Spare<'_>>> = BTreeMap::new();
    for resource in view.most_gpus.keys() {
        for spare in of_resource(view, resource, &busy) {
            usable.entry(&spare.node.node.name).or_default().push(spare);
        }
    }
    for spares in usable.into_values() {
        let node = spares[0].node;
        let mut finding = Finding::new(check, &node.pool).affecting([node_ref(node)]);
        for Spare { resource, free, usable, .. } in &spares {
            let on = &node.node.name;
            finding =
                finding.with("free and usable", format!("{usable} of {free} {resource} on {on}"));
        }
        finding.claims = claims_on(node, None, &[NO_DEMAND], view.facts.period);
        if spares.iter().any(|spare| spare.usable < spare.free) {
            finding.most_milli = Some(spares.iter().map(Spare::usable_milli).sum());
        }
        finding.needs_waste = true;
        if spares.iter().any(|spare| spare.usable > 0) {
            found.push(finding);
        }
    }
}

/// Units of a resource that are free on a node, and how many of them the engine gave to a pod.
struct Spare<'f> {
    node: &'f Node,
    resource: &'f str,
    free: i64,
    usable: i64,
}

impl Spare<'_> {
    /// In milli-GPU; a unit may be a part of a GPU.
    fn usable_milli(&self) -> i64 {
        let units = self.node.gpus.get(self.resource).map_or(1, |gpus| gpus.built_in).max(1);
        self.node.devices.len() as i64 * WHOLE_DEVICE_MILLI * self.usable / units
    }
}

fn of_resource<'f>(view: &View<'f>, resource: &'f str, busy: &BTreeSet<&str>) -> Vec<Spare<'f>> {
    let cluster = view.cluster(resource);
    let meant = view.facts.nodes.iter().filter(|node| {
        // Since when they are free must be known.
        node.node.condition == NodeAvailability::Ready
            && node.free_since_ms.is_some()
            && busy.contains(&*node.node.name)
    });
    let mut spares: Vec<Spare<'f>> = meant
        .map(|node| {
            let free = cluster.offered(node) - cluster.used_of(&node.node.name);
            Spare { node, resource, free, usable: 0 }
        })
        .filter(|spare| {
            spare.free > 0 && !is_unused_profile(view, spare.node, resource, spare.free)
        })
        .collect();
    if spares.is_empty() {
        return spares;
    }
    // The largest first: what is left fits anywhere.
    spares.sort_by_key(|spare| std::cmp::Reverse(spare.free));
    // Without DaemonSets: the pod asks for its part of all that the node has, and they leave less.
    let (mut world, _) = cluster.world_that_moves(&BTreeSet::new());
    for (place, spare) in spares.iter().enumerate() {
        let requirement = Arc::new(pod_on(spare));
        world.jobs.push(Job::single(JobId(place as u64), &spare.node.node.name, 0, requirement));
    }
    let mut given: BTreeMap<String, i64> = BTreeMap::new();
    for (job, node) in placed(&world) {
        let free = spares.get(job.0 as usize).map_or(0, |spare| spare.free);
        *given.entry(node).or_default() += free;
    }
    for spare in &mut spares {
        spare.usable = given.get(&*spare.node.node.name).copied().unwrap_or(0).min(spare.free);
    }
    spares
}

/// A pod that takes all that is free of a resource on a node, with the node's CPU and memory for as
/// many units.
fn pod_on(spare: &Spare<'_>) -> Requirement {
    let node = spare.node;
    let all: i64 = node.gpus.values().map(|gpus| gpus.allocatable).sum();
    let part = |amount: i64| amount / all.max(1) * spare.free;
    let count = u16::try_from(spare.free).unwrap_or(u16::MAX);
    let any_taint = Toleration { any_value: true, ..Toleration::default() };
    Requirement {
        resources: Resources {
            cpu_milli: part(node.node.allocatable.cpu_milli),
            memory_bytes: part(node.node.allocatable.memory_bytes),
            pod_slots: 1,
            ..Resources::default()
        },
        device: DeviceRequest::Whole { count, same_island: false },
        tolerations: vec![any_taint],
        ..Requirement::default()
    }
}
