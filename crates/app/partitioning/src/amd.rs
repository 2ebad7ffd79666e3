//! Mode amd-partition: which nodes do not have their AMD GPUs partitioned as a policy says.

use std::collections::BTreeMap;

use dovetail_objects::Pod;
use dovetail_sharing::{AmdDevices, Component, PolicySpec, Seen, Side};

use crate::amd_gpus::side;
use crate::changes::NodeChange;
use crate::eligible::holders;
use crate::objects::{Objects, SeenNode};
use crate::replicas::Wanted;
use crate::stays::{is_in_use, stays_without_pods};

const BY: Component = Component::DeviceConfigManager;

/// The nodes whose AMD GPUs are partitioned otherwise than a policy says. `operator`: the namespace
/// of AMD's operator.
pub(crate) fn wanted(
    objects: &Objects,
    policy: &PolicySpec,
    operator: &str,
    now_ms: u64,
) -> Wanted {
    let mut wanted = Wanted::default();
    let Some(partition) = policy.partition else { return wanted };
    let holders = holders(objects);
    for (name, seen) in &objects.nodes {
        if !policy.selects(|key| seen.node.meta.labels.get(key)) {
            continue;
        }
        let Some(side) = side(seen) else { continue };
        let pods = holders.get(&**name).map_or(&[][..], Vec::as_slice);
        let why = match side {
            Ok(from) => {
                let Some(amd) = from.amd.filter(|amd| amd.partition != partition) else { continue };
                let why = stays(name, seen, pods, (objects, policy), operator, now_ms);
                if why.is_none() {
                    let gpus = from.layout.0.len();
                    let to = Side::partitioned(gpus, AmdDevices { partition, ..amd });
                    wanted.changes.push(change(name, from, to));
                }
                why
            }
            Err(why) => Some(why),
        };
        wanted.stays.extend(why.map(|why| (name.clone(), why)));
    }
    wanted
}

fn change(node: &str, from: Side, to: Side) -> NodeChange {
    let (served, moves, held_back) = (BTreeMap::new(), Vec::new(), None);
    NodeChange { node: node.to_owned(), by: BY, from, to, served, moves, held_back }
}

/// Why the GPUs of a node stay as they are now, if they do.
fn stays(
    name: &str,
    seen: &SeenNode,
    pods: &[&Pod],
    (objects, policy): (&Objects, &PolicySpec),
    operator: &str,
    now_ms: u64,
) -> Option<String> {
    if let Some(why) = stays_without_pods(name, seen, objects, policy, now_ms) {
        return Some(why);
    }
    if is_in_use(pods) {
        let why = "pods use GPUs of the node, and a change of the partition mode affects all GPUs \
                   of the node";
        return Some(why.to_owned());
    }
    let facts = |pod: &Pod| {
        let key = (pod.meta.namespace.to_string(), pod.meta.name.to_string());
        objects.evictions.get(&key)
    };
    let with_facts = pods.iter().map(|pod| (*pod, facts(pod)));
    Seen::default().clearing(BY, with_facts, operator).in_the_way(BY)
}

#[cfg(test)]
mod tests {
    use dovetail_model::labels::AMD_PRODUCT;
    use dovetail_sharing::EvictionFacts;
    use dovetail_sharing::names::AMD_PARTITION;
    use serde_json::{Value, json};

    use super::*;
    use crate::amd_gpus::has_gpus;

    fn node(name: &str, labels: Value, gpus: &Value) -> (String, SeenNode) {
        let of_model = json!({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"});
        (name.to_owned(), SeenNode::example(name, &[of_model, labels], gpus))
    }

    type Named<T> = ((String, String), T);

    fn pod(name: &str, node: &str, spec: &Value) -> Named<(Pod, EvictionFacts)> {
        let mut object = json!({"metadata": {"name": name, "namespace": "team"},
            "spec": {"nodeName": node, "containers": []}, "status": {"phase": "Running"}});
        for (key, value) in spec.as_object().expect("fields") {
            object["spec"][key] = value.clone();
        }
        let facts = serde_json::from_value(object.clone()).expect("a pod");
        let pod = serde_json::from_value(object).expect("a pod");
        (("team".to_owned(), name.to_owned()), (pod, facts))
    }

    #[test]
    fn nodes_change_to_the_partition_of_the_policy_and_the_others_say_why_not() {
        let mode = |name: &str| json!({AMD_PARTITION: name});
        let single = |count: &str| json!({"amd.com/gpu": count});
        let tainted = {
            let (name, mut seen) = node("tainted", mode("spx_nps1"), &single("8"));
            let object = json!({"metadata": {"name": "tainted"},
                "spec": {"taints": [{"key": "amd-dcm", "value": "up", "effect": "NoExecute"}]}});
            let other: dovetail_objects::Node = serde_json::from_value(object).expect("a node");
            seen.node.taints = other.taints;
            (name, seen)
        };
        let nodes = [
            node("busy", mode("spx_nps1"), &single("8")),
            node("done", mode("cpx_nps4"), &single("64")),
            node("free", mode("spx_nps1"), &single("8")),
            node("named", json!({}), &json!({"amd.com/dpx_nps2": "16", "amd.com/gpu": "0"})),
            node("old", json!({AMD_PRODUCT: "AMD_Instinct_MI250X"}), &single("8")),
            node("shared", mode("spx_nps1"), &single("8")),
            node("silent", json!({}), &single("8")),
            node("soon", mode("spx_nps1"), &single("8")),
            tainted,
            node("watched", mode("spx_nps1"), &single("8")),
        ];
        let gpu = json!({"containers": [{"name": "c",
            "resources": {"limits": {"amd.com/gpu": "1"}}}]});
        let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
        let limited = json!({"tolerations": [{"operator": "Exists", "tolerationSeconds": 60}]});
        let mut agent = tolerant.clone();
        agent["volumes"] = json!([{"name": "v", "hostPath": {"path": "/dev/kfd"}}]);
        let pods = [
            pod("job", "busy", &gpu),
            pod("web", "shared", &json!({})),
            pod("cni", "free", &tolerant),
            pod("late", "soon", &limited),
            pod("agent", "watched", &agent),
        ];
        let (pods, evictions): (BTreeMap<_, _>, BTreeMap<_, _>) =
            pods.into_iter().map(|(key, (pod, facts))| ((key.clone(), pod), (key, facts))).unzip();
        let objects =
            Objects { nodes: nodes.into_iter().collect(), pods, evictions, ..Objects::default() };
        let policy = json!({"mode": "amd-partition", "partition": "cpx_nps4"});
        let policy: PolicySpec = serde_json::from_value(policy).expect("a policy");
        let wanted = wanted(&objects, &policy, "kube-amd-gpu", 0);
        let changes = wanted.changes.iter().map(|change| {
            format!("{}: {} → {}", change.node, change.from.words(), change.to.words())
        });
        let changes: Vec<String> = changes.collect();
        assert_eq!(
            changes,
            ["free: 8 × spx_nps1 → 8 × cpx_nps4", "named: 8 × dpx_nps2 → 8 × cpx_nps4"]
        );
        assert_eq!(
            wanted.changes[1].to.offers(),
            BTreeMap::from([("amd.com/cpx_nps4".to_owned(), 64)])
        );
        let expected = [
            ("busy", "pods use GPUs of the node"),
            ("old", "AMD documents no partition modes for this GPU model"),
            ("shared", "tolerationSeconds: team/web;"),
            ("silent", "no label amd.com/compute-memory-partition shows"),
            ("soon", "tolerationSeconds: team/late;"),
            ("tainted", "another client tainted the node with amd-dcm=up"),
            ("watched", "team/agent use its GPUs and would stay"),
        ];
        assert_eq!(wanted.stays.len(), expected.len(), "{:?}", wanted.stays);
        for ((node, why), (name, said)) in wanted.stays.iter().zip(expected) {
            assert!(node == name && why.contains(said), "{node}: {why}");
        }
        assert!(has_gpus(&objects.nodes["named"]));
    }

    #[test]
    fn a_node_that_offers_less_than_its_gpus_stays() {
        let (_, mut seen) =
            node("n", json!({AMD_PARTITION: "cpx_nps4"}), &json!({"amd.com/gpu": "60"}));
        let why = |seen: &SeenNode| side(seen).expect("GPUs").expect_err("a reason");
        assert_eq!(why(&seen), "GPUs are missing");
        seen.node = node("n", json!({AMD_PARTITION: "cpx"}), &json!({"amd.com/gpu": "64"})).1.node;
        assert!(why(&seen).contains("which dovetail does not know"));
    }
}
