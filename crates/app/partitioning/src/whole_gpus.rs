//! How many whole GPUs pending pods request, wherever they could get them. Device plugins offer
//! replicas and MIG instances under the name of whole GPUs, too: a pod that only such nodes take
//! needs a part of a GPU, and keeps none whole.

use dovetail_gpus::node_gpus;
use dovetail_model::labels::NVIDIA_GPU;
use dovetail_objects::Pod;

use crate::eligible::{Target, requirement};
use crate::objects::Objects;

/// The nodes that offer `nvidia.com/gpu`, as if no pod was there, by what one unit of it is.
struct NodesWithGpus {
    whole: Vec<Target>,
    parts: Vec<Target>,
}

impl NodesWithGpus {
    fn of(objects: &Objects) -> Self {
        let mut nodes = Self { whole: Vec::new(), parts: Vec::new() };
        for (name, seen) in &objects.nodes {
            let Some(gpus) = node_gpus(&seen.node, seen.hami()) else { continue };
            let Some(units) = gpus.units_of(NVIDIA_GPU) else { continue };
            let alike = if units.are_whole_gpus() { &mut nodes.whole } else { &mut nodes.parts };
            alike.push(Target::of(seen, name, objects, &[]));
        }
        nodes
    }

    /// Whether a pod can get parts of GPUs and no whole one.
    fn give_parts_alone(&self, pod: &Pod, objects: &Objects) -> bool {
        if self.parts.is_empty() {
            return false;
        }
        let Ok(needs) = requirement(pod, objects) else { return false };
        let is_taken = |nodes: &[Target]| nodes.iter().any(|node| node.takes(&needs));
        is_taken(&self.parts) && !is_taken(&self.whole)
    }
}

/// How many whole GPUs these pending pods request.
pub(crate) fn requested<'o>(objects: &Objects, pods: impl Iterator<Item = &'o Pod>) -> i64 {
    let asked = |pod: &Pod| pod.requests.extended.get(NVIDIA_GPU).copied().unwrap_or(0);
    let mut asking = pods.filter(|pod| asked(pod) > 0).peekable();
    if asking.peek().is_none() {
        return 0;
    }
    let nodes = NodesWithGpus::of(objects);
    let whole = asking.filter(|pod| !nodes.give_parts_alone(pod, objects));
    whole.map(asked).fold(0, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::eligible::holders;
    use crate::objects::SeenNode;
    use crate::rooms::{Rooms, UnitShare};

    fn node(name: &str, replicas: &str, units: &str) -> (String, SeenNode) {
        of_product("NVIDIA-A100-SXM4-80GB", name, replicas, units)
    }

    /// A node that offers MIG instances as `nvidia.com/gpu` (MIG strategy `single`).
    fn sevenths(name: &str) -> (String, SeenNode) {
        of_product("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", name, "1", "14")
    }

    fn of_product(product: &str, name: &str, replicas: &str, units: &str) -> (String, SeenNode) {
        let labels = json!({"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": "2",
            "nvidia.com/gpu.replicas": replicas, "node": name});
        let offers = json!({"nvidia.com/gpu": units, "cpu": "8", "memory": "64Gi", "pods": "110"});
        let object = json!({"metadata": {"name": name, "labels": labels},
            "status": {"allocatable": offers, "capacity": offers,
                "conditions": [{"type": "Ready", "status": "True"}]}});
        (name.to_owned(), SeenNode::read(&object).expect("a node"))
    }

    fn pod(name: &str, gpus: u32, selector: &Value) -> Pod {
        let limits = json!({"nvidia.com/gpu": gpus.to_string()});
        let object = json!({"metadata": {"name": name, "namespace": "n"},
            "spec": {"nodeSelector": selector,
                "containers": [{"name": "c", "resources": {"limits": limits}}]},
            "status": {"phase": "Pending"}});
        serde_json::from_value(object).expect("a pod")
    }

    #[test]
    fn a_pod_that_only_nodes_with_parts_of_gpus_take_requests_no_whole_gpu() {
        let nodes = [node("quarters", "4", "8"), sevenths("sevenths"), node("whole", "1", "2")];
        let objects = Objects { nodes: nodes.into_iter().collect(), ..Objects::default() };
        for (selector, expected) in [
            (json!({"node": "quarters"}), 0),
            (json!({"node": "sevenths"}), 0),
            (json!({"node": "whole"}), 2),
            (json!({}), 2),
            // Where it can go is not known yet.
            (json!({"node": "new"}), 2),
        ] {
            let pods = [pod("p", 2, &selector)];
            assert_eq!(requested(&objects, pods.iter()), expected, "{selector}");
        }
    }

    /// All are offered as `nvidia.com/gpu`.
    #[test]
    fn a_pod_with_a_whole_gpu_does_not_move_to_a_part_of_one() {
        let nodes = [
            node("quarters", "4", "8"),
            sevenths("sevenths"),
            node("sixths", "6", "12"),
            node("whole", "1", "1"),
        ];
        let objects = Objects { nodes: nodes.into_iter().collect(), ..Objects::default() };
        let holders = holders(&objects);
        let needs = requirement(&pod("p", 1, &json!({})), &objects).expect("its needs");
        let places = |share: Option<UnitShare>| {
            let mut rooms = Rooms::besides("", &objects, &holders);
            let mut take = || rooms.take(&needs, ("nvidia.com/gpu", 1), share);
            [take(), take()]
        };
        let named = UnitShare::named("nvidia.com/gpu");
        assert_eq!(places(Some(named)), [Some("whole"), None]);
        assert_eq!(places(None), [Some("quarters"); 2]);
        let share = |name: &str| {
            let gpus = node_gpus(&objects.nodes[name].node, None).expect("GPUs");
            UnitShare::of(&gpus, "nvidia.com/gpu", 1)
        };
        assert_eq!((share("whole").milli, share("quarters").milli), (1_000, 250));
        assert_eq!(places(Some(share("whole"))), [Some("whole"), None]);
        assert_eq!(places(Some(share("sevenths"))), [Some("sevenths"); 2]);
        assert_eq!(places(Some(share("quarters"))), [Some("quarters"); 2]);
        // A quarter is no less than a sixth.
        assert_eq!(places(Some(share("sixths"))), [Some("quarters"); 2]);
    }
}
