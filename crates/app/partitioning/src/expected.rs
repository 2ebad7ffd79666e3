//! Layouts that nodes are about to get: by changes that are under way, and by those that policies
//! before have planned. The pods that they will serve are no demand for another policy: it plans
//! as if these nodes had their new layout already.

use std::collections::BTreeMap;

use dovetail_objects::Pod;
use dovetail_sharing::{Component, NodeLayout, PodMove, Record, Step};

use crate::changes::NodeChange;
use crate::objects::{Objects, SeenNode};

/// How a node will be once its change is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedNode {
    /// What each of its GPUs is cut into.
    pub(crate) layout: NodeLayout,
    /// Pods that leave it for good, as namespace and name with a slash between.
    leaving: Vec<String>,
}

/// Such nodes by name.
pub(crate) type ExpectedNodes = BTreeMap<String, ExpectedNode>;

impl ExpectedNode {
    fn of<'m>(layout: &NodeLayout, moves: impl Iterator<Item = &'m PodMove>) -> Self {
        // Without a node to go to, and not waited for, a pod comes back.
        let leaves = moves.filter(|one| !one.to.is_empty() || one.waits_until_ms.is_some());
        Self { layout: layout.clone(), leaving: leaves.map(|one| one.pod.clone()).collect() }
    }

    /// What a change that is under way makes of a node; `None` if it is over, changes no MIG
    /// layout, or is on its way back, for which a node may wait until people restart its pods.
    fn under_way(record: &Record) -> Option<Self> {
        let is_forward = matches!(record.step, Step::Emptying | Step::Tainted | Step::Applying)
            && record.then != Some(Step::Reverting)
            && !is_return(record);
        let is_mig = record.by == Component::MigManager;
        (is_forward && is_mig).then(|| Self::of(&record.to.layout, record.own_moves()))
    }

    /// The pods of the node that stay there.
    pub(crate) fn staying<'p>(&self, pods: &[&'p Pod]) -> Vec<&'p Pod> {
        let name = |pod: &Pod| format!("{}/{}", pod.meta.namespace, pod.meta.name);
        pods.iter().copied().filter(|pod| !self.leaving.contains(&name(pod))).collect()
    }
}

/// What policies that were followed before have planned in this run, and verdicts on latency.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    /// Changes that begin now, in a dry run, and nodes that go back.
    begin: ExpectedNodes,
    /// Changes that are held back.
    held_back: ExpectedNodes,
}

impl Expected {
    /// Adds a change that a policy has planned. `begins`: whether a call that is no dry run would
    /// begin it now.
    pub(crate) fn add(&mut self, change: &NodeChange, begins: bool) {
        if change.by != Component::MigManager {
            return;
        }
        let nodes = if begins { &mut self.begin } else { &mut self.held_back };
        let node = ExpectedNode::of(&change.to.layout, change.moves.iter());
        nodes.insert(change.node.clone(), node);
    }

    /// Adds a node that has its former layout again at the end of this call because its latency got
    /// worse, in a dry run. `record`: its record by then.
    pub(crate) fn add_return(&mut self, node: &str, record: &Record) {
        let is_back = record.step == Step::Done && is_return(record);
        if is_back && record.by == Component::MigManager {
            let layout = ExpectedNode::of(&record.to.layout, record.own_moves());
            self.begin.insert(node.to_owned(), layout);
        }
    }

    /// The nodes whose change another policy plans with. What is held back may begin much later, or
    /// never: it keeps no policy from acting, but is not reported twice. `acts`: whether the policy
    /// sets `apply`.
    pub(crate) fn nodes(&self, objects: &Objects, acts: bool) -> ExpectedNodes {
        let mut nodes = if acts { ExpectedNodes::new() } else { self.held_back.clone() };
        nodes.extend(self.begin.clone());
        nodes.extend(under_way(objects));
        nodes
    }
}

fn is_return(record: &Record) -> bool {
    record.watch.as_ref().is_some_and(|watch| watch.is_return)
}

/// The nodes whose MIG layout is being changed.
fn under_way(objects: &Objects) -> impl Iterator<Item = (String, ExpectedNode)> {
    let of = |(name, seen): (&String, &SeenNode)| {
        Some((name.clone(), ExpectedNode::under_way(&seen.record()?)?))
    };
    objects.nodes.iter().filter_map(of)
}

#[cfg(test)]
mod tests {
    use dovetail_model::MigTable;
    use dovetail_sharing::names::{RECORD, TAINT};
    use dovetail_sharing::watch::{Outcome, Watch};
    use dovetail_sharing::{PolicySpec, SharingPolicy};
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::Age;
    use crate::planned::Planned;

    const PRODUCT: &str = "NVIDIA-A100-SXM4-80GB";

    /// A node with one GPU, the only one of its pool.
    fn node(name: &str, taints: &Value) -> (String, SeenNode) {
        let labels =
            json!({"nvidia.com/gpu.product": PRODUCT, "nvidia.com/gpu.count": "1", "pool": name});
        let offers =
            json!({"nvidia.com/mig-1g.10gb": "7", "cpu": "8", "memory": "64Gi", "pods": "110"});
        let object = json!({"metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints},
            "status": {"allocatable": offers, "capacity": offers,
                "conditions": [{"type": "Ready", "status": "True"}]}});
        (name.to_owned(), SeenNode::read(&object).expect("a node"))
    }

    /// Two nodes, the first with taints, and so many pods that are pending for half of a GPU.
    fn objects(pods: u32, taints: &Value) -> Objects {
        let pod = |number: u32| {
            let name = format!("p{number}");
            let limits = json!({"nvidia.com/mig-3g.40gb": "1"});
            let object = json!({"metadata": {"name": name, "namespace": "n"},
                "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]},
                "status": {"phase": "Pending"}});
            (("n".to_owned(), name), serde_json::from_value(object).expect("a pod"))
        };
        let nodes = BTreeMap::from([node("a", taints), node("b", &json!([]))]);
        Objects { nodes, pods: (0..pods).map(pod).collect(), ..Objects::default() }
    }

    /// What a policy for a node changes.
    fn changes(objects: &Objects, node: &str, expected: &ExpectedNodes) -> Vec<NodeChange> {
        let node_selector = BTreeMap::from([("pool".to_owned(), node.to_owned())]);
        let policy = PolicySpec { node_selector, ..PolicySpec::default() };
        let tables: Vec<MigTable> = MigTable::all().collect();
        let age = Age { now_ms: 1_000_000, young_ms: 0 };
        let planned = Planned::of_objects(objects, &policy, &tables, age, expected);
        planned.expect("a plan").changes()
    }

    #[test]
    fn a_pod_is_planned_for_under_one_policy() {
        for (pods, of_second) in [(1, 0), (2, 0), (3, 1)] {
            let objects = objects(pods, &json!([]));
            let alone = changes(&objects, "b", &ExpectedNodes::new());
            assert_eq!(alone.len(), 1);
            let first = changes(&objects, "a", &ExpectedNodes::new());
            assert_eq!(first.len(), 1);
            let mut expected = Expected::default();
            expected.add(&first[0], true);
            for acts in [true, false] {
                let second = changes(&objects, "b", &expected.nodes(&objects, acts));
                assert_eq!(second.len(), of_second, "{pods} pods: {second:?}");
            }
            // A change that does not begin now keeps no other policy from acting.
            let mut expected = Expected::default();
            expected.add(&first[0], false);
            assert_eq!(changes(&objects, "b", &expected.nodes(&objects, true)), alone);
            let reported = changes(&objects, "b", &expected.nodes(&objects, false));
            assert_eq!(reported.len(), of_second);
        }
    }

    /// The node is tainted until its change is over, and then takes the pods.
    #[test]
    fn a_change_that_is_under_way_serves_pods_before_other_policies_do() {
        let change = changes(&objects(1, &json!([])), "a", &ExpectedNodes::new()).remove(0);
        let mut objects = objects(1, &json!([{"key": TAINT, "effect": "NoSchedule"}]));
        let mut record = Record::begun(Component::MigManager, change.from, change.to, 0);
        record.attempt = 1;
        for (step, changed) in [(Step::Applying, 0), (Step::Reverting, 1), (Step::Undone, 1)] {
            record.step = step;
            let node = objects.nodes.get_mut("a").expect("a node");
            node.annotations.insert(RECORD.to_owned(), record.text());
            let nodes = Expected::default().nodes(&objects, true);
            assert_eq!(changes(&objects, "b", &nodes).len(), changed, "{step:?}");
        }
    }

    /// As in a call that is no dry run, which reads the cluster again.
    #[test]
    fn a_node_that_goes_back_changes_no_more_and_serves_pods_in_its_former_layout() {
        let mut objects = objects(1, &json!([]));
        let change = changes(&objects, "a", &ExpectedNodes::new()).remove(0);
        let guarded = json!({"metadata": {"name": "p"}, "spec": {"mode": "mig", "guard": {}}});
        let guarded: SharingPolicy = serde_json::from_value(guarded).expect("a policy");
        let watch = Watch::of(&guarded).expect("a guard");
        let mut back = Record::begun(Component::MigManager, change.from, change.to, 999_000);
        back.watch = Some(Watch { outcome: Outcome::Worse, is_return: true, ..watch });
        let changed = |objects: &mut Objects, record: &Record| {
            let mut expected = Expected::default();
            expected.add_return("a", record);
            objects.nodes.get_mut("a").expect("a node").set_record(record);
            let nodes = expected.nodes(objects, true);
            let counts = ["a", "b"].map(|node| changes(objects, node, &nodes).len());
            (counts, objects.nodes["a"].node.taints.len())
        };
        // Pods are in the way: it is tainted until they have finished.
        back.step = Step::Emptying;
        assert_eq!(changed(&mut objects, &back), ([0, 1], 1));
        (back.step, back.attempt) = (Step::Done, 1);
        assert_eq!(changed(&mut objects, &back), ([0, 0], 0));
    }
}
