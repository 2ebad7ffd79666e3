//! CAP-06: GPUs that are free on nodes in use, and usable: the engine places pods on them.
//!
//! A node on which pods have GPUs cannot be removed, and what is free beside them may be unusable:
//! too little CPU or memory is left. So the engine is asked to place a pod on what each node has
//! free, with as much CPU and memory for each GPU as the node has of it; what it places can be
//! used. Where that is too much, it is asked about as many as the CPU and memory that are left
//! suffice for, once the pods of AUT-06 and AUT-07 have moved.
//!
//! Pending pods that would start on a node if their selectors or models did not exclude it
//! (SCH-14), or if its GPUs had other MIG layouts (SHR-08), come first: what they would take is not
//! offered to other work, and the rest is only if there is CPU and memory for it beside them.

mod taken;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_account::device_time::DeviceState;
use dovetail_facts::{Node, NodeGpus, ObjectRef};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{
    DeviceRequest, FreeCause, Job, JobId, NodeAvailability, Requirement, Resources, Toleration,
};

use super::node_room::{requests_by_node, rooms};
use super::packing::beside_removals;
use super::resource_cluster::{ResourceCluster, arranged_world};
use super::shapes::is_unused_profile;
use super::{View, claims_on, node_ref};
use crate::catalogue::Check;
use crate::finding::Finding;
use crate::trial::placed;
use taken::taken_by_pending;

/// Nodes that are asked about with fewer units than they have free.
const MOST_SHORT: usize = 200;

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
    let taken = leave_to_pending(view, &mut usable);
    usable.retain(|_, spares| spares.iter().any(|spare| spare.usable > 0));
    // The findings of a pool become one, which is bounded only if each of them is.
    let is_bounded = |(name, spares): &(&&str, &Vec<Spare<'_>>)| {
        taken.contains(**name) || spares.iter().any(|spare| spare.usable < spare.free)
    };
    let bounded = usable.iter().filter(is_bounded).flat_map(|(_, spares)| spares);
    let bounded: BTreeSet<&ObjectRef> = bounded.map(|spare| &spare.node.pool).collect();
    let moment = view.moment.nodes.iter().map(|gpus| (&*gpus.node, gpus));
    let moment: BTreeMap<&str, &NodeGpus> = moment.collect();
    for (name, spares) in &usable {
        let Some(node) = spares.first().map(|spare| spare.node) else { continue };
        let mut finding = Finding::new(check, &node.pool).affecting([node_ref(node)]);
        for Spare { resource, free, usable, .. } in spares {
            finding =
                finding.with("free and usable", format!("{usable} of {free} {resource} on {name}"));
        }
        finding.claims = claims_on(node, None, &[NO_DEMAND], view.facts.period);
        if bounded.contains(&node.pool) {
            let gpus = moment.get(name).copied();
            finding.most_milli = Some(spares.iter().map(|spare| spare.usable_milli(gpus)).sum());
        }
        finding.needs_waste = true;
        found.push(finding);
    }
}

/// Leaves out what pending pods would take of these nodes, and nodes without CPU and memory both
/// for these and for the rest of each resource. Returns the nodes of which they would take
/// something.
fn leave_to_pending<'v>(
    view: &'v View<'_>,
    usable: &mut BTreeMap<&str, Vec<Spare<'_>>>,
) -> BTreeSet<&'v str> {
    let mut taken = taken_by_pending(view);
    taken.retain(|node, _| usable.contains_key(*node));
    if taken.is_empty() {
        return BTreeSet::new();
    }
    // Without DaemonSets, as for all that is free.
    let used = requests_by_node(view.facts, |workload| !workload.belongs_to_nodes());
    for (name, taken) in &taken {
        let Some(spares) = usable.get_mut(*name) else { continue };
        let mut asked = taken.requests.clone();
        for spare in spares.iter_mut() {
            let left = taken.leaves(spare.node, spare.resource, spare.free);
            spare.usable = spare.usable.min(left);
            asked.add_times(&share_of(spare.node, spare.usable), 1);
        }
        spares.retain(|spare| {
            let has = &spare.node.node.allocatable;
            spare.usable > 0 && rooms(has, &asked, used.get(*name)) > 0
        });
    }
    taken.into_keys().collect()
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
    fn usable_milli(&self, gpus: Option<&NodeGpus>) -> i64 {
        let units = gpus.and_then(|gpus| gpus.units.iter().find(|of| of.resource == self.resource));
        if let Some(units) = units {
            // What pods use comes first.
            let used = (units.count - self.free).max(0);
            return units.parts.milli(used, used + self.usable);
        }
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
        let resources = share_of(spare.node, spare.free);
        let requirement = any_pod(resources, whole(spare.free));
        let id = JobId(place as u64);
        world.jobs.push(Job::single(id, &spare.node.node.name, 0, Arc::new(requirement)));
    }
    let mut given: BTreeMap<String, i64> = BTreeMap::new();
    for (job, node) in placed(&world) {
        let free = spares.get(job.0 as usize).map_or(0, |spare| spare.free);
        *given.entry(node).or_default() += free;
    }
    for spare in &mut spares {
        spare.usable = given.get(&*spare.node.node.name).copied().unwrap_or(0).min(spare.free);
    }
    ask_for_fewer(view, &cluster, &mut spares);
    spares
}

/// Asks the engine about as many of the free units as the CPU and memory of a node suffice for,
/// where they do not suffice for all.
fn ask_for_fewer(view: &View<'_>, cluster: &ResourceCluster<'_>, spares: &mut [Spare<'_>]) {
    let short = spares.iter().enumerate().filter(|(_, spare)| spare.usable < spare.free);
    let short = short.map(|(place, spare)| (&*spare.node.node.name, place));
    let short: BTreeMap<&str, usize> = short.take(MOST_SHORT).collect();
    if short.is_empty() {
        return;
    }
    let mut world = arranged_world(cluster, &beside_removals(view));
    world.nodes.retain(|node| short.contains_key(&*node.name));
    world.holdings.retain(|holding| short.contains_key(&*holding.node));
    let mut used: BTreeMap<&str, (Resources, usize)> = BTreeMap::new();
    for holding in &world.holdings {
        let (resources, devices) = used.entry(&*holding.node).or_default();
        resources.add_times(&holding.resources, 1);
        *devices += holding.devices.len();
    }
    let (mut jobs, mut units_of) = (Vec::new(), BTreeMap::new());
    for node in &world.nodes {
        let Some((name, place)) = short.get_key_value(&*node.name) else { continue };
        let (spare, used) = (&spares[*place], used.get(&*node.name));
        let devices = used.map_or(0, |(_, devices)| *devices);
        let left = node.devices.len().saturating_sub(devices) as i64;
        let each = share_of(spare.node, 1);
        let units = rooms(&node.allocatable, &each, used.map(|(resources, _)| resources));
        let units = units.min(left).min(spare.free);
        if units > 0 {
            let requirement = pod_on(name, share_of(spare.node, units), whole(units));
            let id = JobId(*place as u64);
            jobs.push(Job::single(id, name, 0, Arc::new(requirement)));
            units_of.insert(id, (*place, units));
        }
    }
    world.jobs = jobs;
    let placed = placed(&world);
    for (place, units) in placed.keys().filter_map(|job| units_of.get(job)) {
        let usable = &mut spares[*place].usable;
        *usable = (*usable).max(*units);
    }
}

/// As much of a node's CPU and memory as so many of its units are of all of them.
fn share_of(node: &Node, units: i64) -> Resources {
    let all: i64 = node.gpus.values().map(|gpus| gpus.allocatable).sum();
    let part = |amount: i64| amount / all.max(1) * units;
    let has = &node.node.allocatable;
    Resources::pod(part(has.cpu_milli), part(has.memory_bytes))
}

fn whole(units: i64) -> DeviceRequest {
    let count = u16::try_from(units).unwrap_or(u16::MAX);
    DeviceRequest::Whole { count, same_island: false }
}

/// A pod that tolerates all taints.
fn any_pod(resources: Resources, device: DeviceRequest) -> Requirement {
    let any_taint = Toleration { any_value: true, ..Toleration::default() };
    Requirement { resources, device, tolerations: vec![any_taint], ..Requirement::default() }
}

/// The same for one node.
fn pod_on(node: &str, resources: Resources, device: DeviceRequest) -> Requirement {
    let node_names = BTreeSet::from([node.to_owned()]);
    Requirement { node_names, ..any_pod(resources, device) }
}
