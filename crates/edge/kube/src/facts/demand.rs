//! What waits, as worlds that the engine can be asked about: one for each resource that counts GPUs.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_audit::{Demand, Node as FactNode, is_gpu_resource};
use dovetail_model::Condition;

use super::gathered::Unjudged;
use super::inventory::Inventory;
use crate::object::{Kind, Object, Pod};
use crate::translate::Rules;
use crate::world::{Change, Patience, Settings, World};

/// The scheduler that every waiting pod is said to name, so that all of them are judged alike.
const JUDGE: &str = "dovetail";

/// Waiting pods that cannot be judged are listed up to so many.
const MOST_UNJUDGED: usize = 100;

/// The worlds, and the waiting pods that cannot be held against nodes.
pub(super) fn worlds(inventory: Inventory, nodes: &[FactNode]) -> (Vec<Demand>, Vec<Unjudged>) {
    let resources: BTreeSet<&String> = nodes.iter().flat_map(|node| node.gpus.keys()).collect();
    let conditions = nodes.iter().map(|node| (&*node.node.name, node.node.condition));
    let conditions: BTreeMap<&str, Condition> = conditions.collect();
    let now_ms = inventory.now_ms;
    let lists = lists(inventory);
    let mut unjudged = Vec::new();
    let mut worlds = Vec::new();
    for resource in resources {
        let rules = Rules { device_resource: resource.clone(), ..Rules::default() };
        // Whoever is not there yet will not come.
        let patience = Patience { quiet_ms: 0, ..Patience::default() };
        let settings =
            Settings { scheduler: JUDGE.to_owned(), rules, patience, ..Settings::default() };
        let mut world = World::new(settings);
        for (kind, objects) in &lists {
            world.apply(Change::Listing(*kind));
            for object in objects {
                world.apply(Change::Applied(object.clone()));
            }
            world.apply(Change::Listed(*kind));
        }
        for (pod, reason) in world.refused() {
            if wants(pod, resource) && unjudged.len() < MOST_UNJUDGED {
                let pod = format!("{}/{}", pod.meta.namespace, pod.meta.name);
                unjudged.push(Unjudged { pod, reason: reason.to_string() });
            }
        }
        let mut snapshot = world.snapshot(now_ms);
        for node in &mut snapshot.nodes {
            // Another system's device driver on the node does not make its GPUs less free.
            node.condition = conditions.get(&*node.name).copied().unwrap_or_default();
        }
        worlds.push(Demand { resource: resource.clone(), world: snapshot });
    }
    (worlds, unjudged)
}

fn wants(pod: &Pod, resource: &str) -> bool {
    pod.requests.extended.contains_key(resource)
}

/// All objects by kind. Waiting pods are all of one scheduler and without gates; pods without a node that
/// need no GPU are left out: they wait for nothing that is counted here.
fn lists(inventory: Inventory) -> Vec<(Kind, Vec<Object>)> {
    let Inventory { nodes, namespaces, pods, owners, others, .. } = inventory;
    let mut lists: BTreeMap<Kind, Vec<Object>> = BTreeMap::new();
    let nodes = nodes.into_values().map(|(node, _)| Object::Node(Box::new(node)));
    lists.insert(Kind::Node, nodes.collect());
    lists.insert(Kind::Namespace, namespaces.into_values().map(Object::Namespace).collect());
    for ((kind, ..), mut object) in others {
        // Like gates: what is held back is asked about, too.
        if let Object::Workload(_, workload) = &mut object {
            workload.suspended = false;
        }
        lists.entry(kind).or_default().push(object);
    }
    let listed = pods.list.into_iter().map(|record| record.pod).chain(owners.suspended);
    let mut pods: Vec<Object> = Vec::new();
    for mut pod in listed {
        if pod.node.is_empty() {
            if pod.meta.deleting || !pod.requests.extended.keys().any(|name| is_gpu_resource(name))
            {
                continue;
            }
            pod.scheduler = JUDGE.into();
            pod.gated = false;
        } else {
            // Who placed it does not matter; as another's it is not told as a job that runs.
            pod.scheduler = Box::default();
        }
        pods.push(Object::Pod(Box::new(pod)));
    }
    lists.insert(Kind::Pod, pods);
    Kind::ALL.into_iter().map(|kind| (kind, lists.remove(&kind).unwrap_or_default())).collect()
}
