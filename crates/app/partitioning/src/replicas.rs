//! Modes time-slicing, mps and whole: which nodes do not offer their GPUs as a policy says.

use std::collections::BTreeMap;

use dovetail_gpus::{GpuUnits, node_gpus};
use dovetail_model::labels::{NVIDIA_GPU, NVIDIA_MIG, NVIDIA_REPLICAS};
use dovetail_objects::Pod;
use dovetail_objects::labels::NVIDIA_STRATEGY;
use dovetail_sharing::{
    Component, Method, NodeLayout, PolicySpec, Replicas, Side, mixed, shared_resource,
};

use crate::changes::{NodeChange, present};
use crate::cluster::{needs_room, selects_none};
use crate::eligible::holders;
use crate::fleet::{Fleet, product_of};
use crate::moves::{candidates, held_back, left_of_budget, lets_leave};
use crate::objects::{Objects, SeenNode};
use crate::stays::{IN_USE, has_vgpus, stays};
use crate::whole_gpus::requested;

/// A node offers nothing for so long while its replicas change.
const CHANGE_MS: u64 = 180_000;

/// How a node offers its GPUs.
pub(crate) enum Offered {
    /// Whole GPUs, or replicas of them.
    Whole(Side),
    /// MIG instances, at least of one GPU.
    Cut,
    /// In a way that dovetail does not change, with the reason.
    Other(String),
}

/// How a node offers its GPUs; `None` if it has none.
pub(crate) fn offered(seen: &SeenNode) -> Option<Offered> {
    let gpus = node_gpus(&seen.node, seen.hami())?;
    let units: Vec<&GpuUnits> = gpus.units.iter().filter(|units| units.built_in > 0).collect();
    let count = usize::try_from(gpus.count.gpus).unwrap_or(0);
    let other = |why: &str| Some(Offered::Other(why.to_owned()));
    if units.iter().any(|units| units.resource.starts_with(NVIDIA_MIG)) {
        return Some(Offered::Cut);
    }
    let [units] = units[..] else {
        return other("its GPUs are advertised under several resource names");
    };
    let replicas = match &*units.resource {
        NVIDIA_GPU if !units.is_shared => None,
        NVIDIA_GPU => {
            return other(
                "its GPUs are shared under the resource name of whole GPUs, which dovetail does \
                 not support",
            );
        }
        resource if resource == shared_resource() => match labelled(seen) {
            Some(replicas) => Some(replicas),
            None => return other("no label shows how its GPUs are shared"),
        },
        resource => {
            return other(&format!(
                "{resource} is not a resource of NVIDIA's device plugin, and only mode amd-partition \
                 changes AMD GPUs"
            ));
        }
    };
    let side = Side::whole(count, replicas);
    let is_all = gpus.missing == 0 && units.usable == units.built_in;
    match is_all && side.offers().get(&units.resource) == Some(&units.usable) {
        true => Some(Offered::Whole(side)),
        false => other("GPUs are missing"),
    }
}

/// The replicas of each GPU, as labels of the node state them.
fn labelled(seen: &SeenNode) -> Option<Replicas> {
    let label = |key: &str| seen.node.meta.labels.get(key);
    let method = Method::named(label(NVIDIA_STRATEGY)?)?;
    let count = label(NVIDIA_REPLICAS)?.parse().ok()?;
    Some(Replicas { method, count })
}

/// How pods share each GPU of a node, also under the resource name of whole GPUs, which dovetail
/// does not change; `None` if they do not share GPUs, or no label shows how.
pub(crate) fn shown_replicas(seen: &SeenNode) -> Option<Replicas> {
    match offered(seen)? {
        Offered::Whole(side) => side.replicas,
        Offered::Cut => None,
        Offered::Other(_) => {
            let gpus = node_gpus(&seen.node, seen.hami())?;
            let shared = gpus.units_of(NVIDIA_GPU).filter(|units| units.is_shared);
            shared.and_then(|_| labelled(seen))
        }
    }
}

/// What a policy wants.
#[derive(Default)]
pub(crate) struct Wanted {
    /// Nodes that can change now.
    pub(crate) changes: Vec<NodeChange>,
    /// Nodes that should change and cannot now, with the reason.
    pub(crate) stays: Vec<(String, String)>,
}

/// The nodes that offer their GPUs otherwise than a policy says. `fleet`: its nodes as MIG cuts
/// them.
pub(crate) fn wanted(objects: &Objects, policy: &PolicySpec, fleet: &Fleet, now_ms: u64) -> Wanted {
    let (holders, layouts) = (holders(objects), present(fleet));
    let mut wanted = Wanted::default();
    // Nodes that only their pods keep as they are.
    let mut in_use: BTreeMap<String, NodeChange> = BTreeMap::new();
    let mut room = Room::of(objects, policy, &holders);
    for (name, seen) in &objects.nodes {
        if !policy.selects(|key| seen.node.meta.labels.get(key)) {
            continue;
        }
        let Some(offered) = offered(seen) else { continue };
        let pods = holders.get(&**name).map_or(&[][..], Vec::as_slice);
        let change = match change(name, offered, layouts.get(name), policy) {
            Ok(Some(change)) => change,
            Ok(None) => continue,
            Err(why) => {
                wanted.stays.push((name.clone(), why));
                continue;
            }
        };
        let why = stays(name, seen, pods, objects, policy, now_ms)
            .or_else(|| room.refuses(seen, &change));
        match why {
            Some(why) => {
                if why == IN_USE {
                    in_use.insert(name.clone(), change);
                }
                wanted.stays.push((name.clone(), why));
            }
            None => wanted.changes.push(change),
        }
    }
    if wanted.changes.is_empty() && lets_leave(policy) {
        add_moved(&mut wanted, in_use, &mut room, (objects, policy), now_ms);
    }
    wanted
}

/// Adds the change whose pods lose least by moving: one node at a time.
fn add_moved(
    wanted: &mut Wanted,
    mut in_use: BTreeMap<String, NodeChange>,
    room: &mut Room,
    (objects, policy): (&Objects, &PolicySpec),
    now_ms: u64,
) {
    let (found, why) = candidates(in_use.keys().cloned(), objects, policy, now_ms);
    for (node, stays) in &mut wanted.stays {
        if let Some(why) = why.get(node) {
            stays.clone_from(why);
        }
    }
    let left_ms = left_of_budget(objects, policy, now_ms);
    for (node, mut movers) in found {
        let Some(mut change) = in_use.remove(&node) else { continue };
        let offers = change.to.offers();
        // What waits for the new layout must be in it.
        let mut back: BTreeMap<&str, i64> = BTreeMap::new();
        for mover in movers.iter().filter(|mover| mover.comes_back()) {
            *back.entry(&mover.resource).or_default() += mover.count;
        }
        let fits =
            back.iter().all(|(name, count)| offers.get(*name).is_some_and(|has| has >= count));
        if !fits || room.refuses(&objects.nodes[&node], &change).is_some() {
            continue;
        }
        let seconds = objects.change_seconds(Component::DevicePlugin);
        let change_ms = seconds.map_or(CHANGE_MS, |seconds| seconds.unsigned_abs() * 1_000);
        for mover in movers.iter_mut().filter(|mover| mover.comes_back()) {
            mover.wait(change_ms);
        }
        change.moves = movers.into_iter().map(|mover| mover.one).collect();
        change.held_back = held_back(&change.moves, left_ms);
        wanted.stays.retain(|(stays, _)| *stays != node);
        wanted.changes.push(change);
        return;
    }
}

/// The change that a node needs, or why it can have none.
fn change(
    node: &str,
    offered: Offered,
    layout: Option<&NodeLayout>,
    policy: &PolicySpec,
) -> Result<Option<NodeChange>, String> {
    let change = |by, from, to| {
        let (served, moves, held_back) = (BTreeMap::new(), Vec::new(), None);
        Ok(Some(NodeChange { node: node.to_owned(), by, from, to, served, moves, held_back }))
    };
    match offered {
        Offered::Other(why) => Err(why),
        Offered::Whole(from) => {
            let to = Side::whole(from.layout.0.len(), policy.sharing());
            if from == to {
                return Ok(None);
            }
            change(Component::DevicePlugin, from, to)
        }
        Offered::Cut if policy.sharing().is_some() => {
            Err("its GPUs are partitioned with MIG: first apply a SharingPolicy with mode whole"
                .to_owned())
        }
        Offered::Cut if !policy.allow_mode_change => {
            Err("its GPUs are partitioned with MIG: the policy does not set allowModeChange"
                .to_owned())
        }
        Offered::Cut => match layout {
            None => Err("its GPUs have an unknown MIG layout".to_owned()),
            Some(layout) => {
                let to = NodeLayout(vec![None; layout.0.len()]);
                change(Component::MigManager, Side::of(layout.clone()), Side::of(to))
            }
        },
    }
}

/// Free whole GPUs by model, and how many must stay.
struct Room {
    free: BTreeMap<String, i64>,
    kept: i64,
}

impl Room {
    fn of(objects: &Objects, policy: &PolicySpec, holders: &BTreeMap<&str, Vec<&Pod>>) -> Self {
        let whole = |pod: &Pod| pod.holds().extended.get(NVIDIA_GPU).copied().unwrap_or(0);
        let mut free: BTreeMap<String, i64> = BTreeMap::new();
        for (name, seen) in &objects.nodes {
            // The free GPUs of a cordoned node serve no pod.
            if seen.node.unschedulable || !policy.selects(|key| seen.node.meta.labels.get(key)) {
                continue;
            }
            let Some(Offered::Whole(side)) = offered(seen) else { continue };
            let pods = holders.get(&**name).map_or(&[][..], Vec::as_slice);
            if side.replicas.is_none() && !has_vgpus(seen, pods) {
                let used: i64 = pods.iter().map(|pod| whole(pod)).sum();
                *free.entry(model(seen)).or_default() += side.layout.0.len() as i64 - used;
            }
        }
        let asked = requested(objects, objects.pods.values().filter(|pod| needs_room(pod)));
        Self { free, kept: i64::from(policy.keep_whole).saturating_add(asked) }
    }

    /// Takes the GPUs of a node that is to be shared, or says why they stay whole.
    fn refuses(&mut self, seen: &SeenNode, change: &NodeChange) -> Option<String> {
        if change.to.replicas.is_none() || change.from.replicas.is_some() {
            return None;
        }
        let free = self.free.entry(model(seen)).or_default();
        let left = *free - change.from.layout.0.len() as i64;
        if left < self.kept && self.kept > 0 {
            return Some(format!(
                "{} free GPUs of its model stay whole: keepWhole, plus the GPUs that pending pods request",
                self.kept
            ));
        }
        *free = left;
        None
    }
}

fn model(seen: &SeenNode) -> String {
    product_of(seen).unwrap_or_default().to_owned()
}

/// What is odd about a policy: it selects nothing, or pods that should not share GPUs do.
pub(crate) fn warnings(objects: &Objects, policy: &PolicySpec) -> Vec<String> {
    if selects_none(objects, policy) {
        return vec!["its nodeSelector selects no node with GPUs".to_owned()];
    }
    let holders = holders(objects);
    let nodes = objects.nodes.iter().filter(|(_, seen)| {
        policy.selects(|key| seen.node.meta.labels.get(key))
            && matches!(offered(seen), Some(Offered::Whole(side)) if side.replicas.is_some())
    });
    let warning = |(name, _): (&String, &SeenNode)| {
        let why = mixed(policy, holders.get(&**name)?)?;
        Some(format!("node {name}: {why}"))
    };
    nodes.filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::{Age, fleet};

    /// A node with labels and GPUs that it offers.
    fn node(name: &str, labels: Value, gpus: &Value) -> (String, SeenNode) {
        let of_model = json!({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
            "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "81920"});
        (name.to_owned(), SeenNode::example(name, &[of_model, labels], gpus))
    }

    fn told(objects: &Objects, spec: Value) -> Vec<String> {
        let policy: PolicySpec = serde_json::from_value(spec).expect("a policy");
        let tables: Vec<dovetail_model::MigTable> = dovetail_model::MigTable::all().collect();
        let fleet = fleet(objects, &policy, &tables, Age { now_ms: 0, young_ms: 0 });
        let wanted = wanted(objects, &policy, &fleet, 0);
        let changes = wanted.changes.iter().map(|change| {
            format!("{}: {} → {}", change.node, change.from.words(), change.to.words())
        });
        let stays = wanted.stays.iter().map(|(node, why)| format!("{node}: {why}"));
        changes.chain(stays).collect()
    }

    #[test]
    fn nodes_change_to_what_the_policy_says_and_the_others_say_why_not() {
        let shared = json!({"nvidia.com/gpu.sharing-strategy": "time-slicing",
            "nvidia.com/gpu.replicas": "4"});
        let nodes = [
            node("a", json!({}), &json!({"nvidia.com/gpu": "2"})),
            node("b", json!({}), &json!({"nvidia.com/gpu": "2"})),
            node("cut", json!({}), &json!({"nvidia.com/mig-3g.40gb": "4"})),
            node("named", shared.clone(), &json!({"nvidia.com/gpu": "8"})),
            node("shared", shared, &json!({"nvidia.com/gpu.shared": "8", "nvidia.com/gpu": "0"})),
        ];
        let objects = Objects { nodes: nodes.into_iter().collect(), ..Objects::default() };
        let named = "named: its GPUs are shared under the resource name of whole GPUs, which \
                     dovetail does not support";
        let sliced = json!({"mode": "time-slicing", "replicas": 4, "keepWhole": 2});
        assert_eq!(
            told(&objects, sliced),
            [
                "a: 2 × whole → 2 × 4 replicas (time-slicing)",
                "b: 2 free GPUs of its model stay whole: keepWhole, plus the GPUs that pending pods request",
                "cut: its GPUs are partitioned with MIG: first apply a SharingPolicy with mode whole",
                named,
            ]
        );
        let whole = |allow: bool| json!({"mode": "whole", "allowModeChange": allow});
        assert_eq!(
            told(&objects, whole(true)),
            [
                "cut: 2 × [3g.40gb][3g.40gb] → 2 × whole",
                "shared: 2 × 4 replicas (time-slicing) → 2 × whole",
                named,
            ]
        );
        let refused = &told(&objects, whole(false))[1];
        assert_eq!(
            refused,
            "cut: its GPUs are partitioned with MIG: the policy does not set allowModeChange"
        );
        let shown = |name: &str| shown_replicas(&objects.nodes[name]).map(Replicas::words);
        let replicas = Some("4 replicas (time-slicing)".to_owned());
        assert_eq!((shown("named"), shown("shared")), (replicas.clone(), replicas));
        assert_eq!((shown("a"), shown("cut")), (None, None));
        let none = json!({"mode": "whole", "nodeSelector": {"pool": "none"}});
        let none: PolicySpec = serde_json::from_value(none).expect("a policy");
        assert_eq!(warnings(&objects, &none), ["its nodeSelector selects no node with GPUs"]);
    }
}
