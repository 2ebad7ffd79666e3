//! Nodes whose pods fit elsewhere.

use super::*;
use crate::finding::{Attribution, Move};

/// Two more nodes of eight GPUs with one server each.
pub(super) fn one_server_on_each_node(facts: &mut Facts) {
    for (place, name) in ["g2", "g3"].into_iter().enumerate() {
        let mut node = gpu_node(name, "H100");
        node.devices = (8 * (place as u32 + 1)..8 * (place as u32 + 2)).collect();
        add_node(facts, node);
        facts.workloads[SERVE].pods[place].node = Some(name.into());
    }
}

/// By hand: both nodes have seven free GPUs. One of them goes, and its server takes one of the
/// seven of the other: eight GPUs are no longer free.
#[test]
fn a_node_whose_pods_fit_elsewhere_frees_as_many_gpus_as_it_has() {
    let mut facts = healthy();
    one_server_on_each_node(&mut facts);
    let found = audit(&facts);
    let [finding] = &found[..] else { panic!("{found:?}") };
    let moves: Vec<_> =
        finding.moves.iter().map(|of| (&*of.pod.name, &*of.from, &*of.to)).collect();
    assert_eq!(moves, [("serve-0", "g2", "g3")]);
    // What is free of g2, which has seven, then as much of g3 as moves there.
    let devices = |claims: &[Attribution]| claims.iter().map(|of| of.device).collect::<Vec<u32>>();
    assert_eq!(devices(&finding.claims), (8..16).collect::<Vec<u32>>());
    assert_eq!(devices(&finding.fills), (16..24).collect::<Vec<u32>>());
    assert_eq!(finding.fills_milli, 1_000);
    // A third server beside it has no room to move its pod to, and stays.
    requests(&mut facts, SERVE, "cpu", 60_000);
    requests(&mut facts, SERVE, "memory", 4 * GIB);
    assert!(audit(&facts).iter().all(|finding| finding.check.id != "AUT-07"));
}

/// Nodes of eight GPUs, each with one replica of one GPU; the nodes that can go, once something is
/// changed.
fn emptied(nodes: &[&str], change: &dyn Fn(&mut Facts)) -> Vec<String> {
    let mut facts = healthy();
    for (place, name) in nodes.iter().enumerate() {
        let mut node = gpu_node(name, "H100");
        node.devices = (8 * (place as u32 + 1)..8 * (place as u32 + 2)).collect();
        node.pool = ObjectRef::new("Node", "", name);
        add_node(&mut facts, node);
    }
    let pod = |name: &&str| Pod {
        name: format!("serve-{name}"),
        node: Some((*name).to_owned()),
        ..facts.workloads[SERVE].pods[0].clone()
    };
    let pods = nodes.iter().map(pod).collect();
    facts.workloads[SERVE].pods = pods;
    facts.workloads[SERVE].replicas = nodes.len() as u32;
    change(&mut facts);
    let found = audit(&facts);
    let found = found.iter().filter(|finding| finding.check.id == "AUT-07");
    let moved: Vec<&Move> = found.clone().flat_map(|finding| &finding.moves).collect();
    let gone: Vec<String> = found.map(|finding| finding.object.name.clone()).collect();
    assert!(moved.iter().all(|of| !gone.contains(&of.to)), "{moved:?}");
    gone
}

/// By hand: CPU for two pods on each node, so half of the nodes can go; a node that has taken a pod
/// goes with both if no other way is left.
#[test]
fn nodes_go_one_by_one_as_far_as_all_resources_allow() {
    let two_on_each = |facts: &mut Facts| {
        let cpu = facts.nodes.last().map_or(0, |node| node.node.allocatable.cpu_milli);
        requests(facts, SERVE, "cpu", cpu * 2 / 5);
    };
    for nodes in [["n0", "n1", "n2", "n3"], ["n3", "n1", "n2", "n0"]] {
        assert_eq!(emptied(&nodes, &two_on_each).len(), 2, "{nodes:?}");
    }
    assert_eq!(emptied(&["n0", "n1", "n2", "n3"], &|_| {}).len(), 3);
}

/// A node whose pod cannot move takes the pods of the others, wherever it is in the order.
#[test]
fn one_pod_that_stays_keeps_one_node() {
    for pinned in ["n0", "n1", "n2"] {
        let gone = emptied(&["n0", "n1", "n2"], &|facts| {
            let mut other = facts.workloads[SERVE].clone();
            let stays = |pod: &Pod| pod.node.as_deref() == Some(pinned);
            facts.workloads[SERVE].pods.retain(|pod| !stays(pod));
            other.pods.retain(stays);
            other.owner.name = "pinned".into();
            other.template.has_lasting_volume = true;
            facts.workloads.push(other);
        });
        assert_eq!(gone.len(), 2, "{pinned}");
        assert!(!gone.contains(&pinned.to_owned()), "{gone:?}");
    }
}

/// Replicas and partitions have the name of whole GPUs, and labels of the model may be missing.
#[test]
fn a_pod_moves_only_to_units_that_are_the_same_part_of_a_gpu() {
    let (whole, tenth, eighth) = (None, Some("1/10 shared"), Some("cpx_nps1"));
    for model in [Some("H100"), None] {
        let gone = |parts: [Option<&str>; 2]| {
            let gone = emptied(&["n0", "n1"], &|facts| {
                let nodes = facts.nodes.iter_mut();
                let nodes = nodes.filter(|node| ["n0", "n1"].contains(&&*node.node.name));
                for (node, part) in nodes.zip(parts) {
                    let gpus = node.gpus.get_mut(GPU).expect("GPUs");
                    (gpus.part, gpus.model) = (part.map(str::to_owned), model.map(str::to_owned));
                }
            });
            gone.len()
        };
        for (one, other) in [(whole, tenth), (tenth, whole), (tenth, eighth)] {
            assert_eq!(gone([one, other]), 0, "{one:?} {other:?} {model:?}");
            assert_eq!(gone([one, one]), 1, "{one:?} {model:?}");
        }
    }
}

/// The node on demand costs more, and its pod then runs on capacity that can be reclaimed.
#[test]
fn a_move_from_on_demand_to_spot_states_the_risk() {
    let risks = |spot: &str| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        for node in facts.nodes.iter_mut().filter(|node| node.node.name.starts_with('g')) {
            node.is_spot = Some(&*node.node.name == spot);
        }
        let found = audit(&facts);
        let finding = found.iter().find(|finding| finding.check.id == "AUT-07").expect("one");
        let is_named = finding.evidence.iter().any(|of| of.value.contains("to spot capacity"));
        (finding.moves[0].from.clone(), is_named)
    };
    assert_eq!(risks(""), ("g2".to_owned(), false));
    assert_eq!(risks("g3"), ("g2".to_owned(), true));
    assert_eq!(risks("g2"), ("g3".to_owned(), true));
}

/// A node that was cordoned and forgotten is drained if its pods fit elsewhere.
#[test]
fn a_cordoned_node_whose_pods_fit_elsewhere_is_drained() {
    let found = |change: &dyn Fn(&mut Facts)| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        let node = facts.nodes.iter_mut().find(|node| &*node.node.name == "g3").expect("a node");
        (node.cordoned_since_ms, node.node.unschedulable) = (Some(0), true);
        node.pool = ObjectRef::new("Node", "", "g3");
        change(&mut facts);
        let found = audit(&facts);
        assert!(found.iter().all(|finding| finding.check.id != "AUT-07"), "{found:?}");
        found.into_iter().find(|finding| finding.check.id == "AUT-06").expect("a finding")
    };
    let finding = found(&|_| {});
    assert!(finding.fix_example().starts_with("kubectl drain g3"), "{}", finding.fix_example());
    assert_eq!((finding.remedies.len(), finding.claims.len(), finding.fills_milli), (0, 8, 1_000));
    assert_eq!((&*finding.moves[0].from, &*finding.moves[0].to), ("g3", "g2"));
    let stays = found(&|facts| facts.workloads[SERVE].template.has_lasting_volume = true);
    assert_eq!((stays.remedies.len(), stays.moves.len()), (1, 0));
}

/// What a pod has in memory is gone once it starts elsewhere.
#[test]
fn a_drain_names_what_the_pods_lose() {
    let risk = |change: &dyn Fn(&mut Workload)| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        facts.budgets.clear();
        facts.workloads[SERVE].template.shared_memory = None;
        change(&mut facts.workloads[SERVE]);
        let found = audit(&facts);
        let finding = found.iter().find(|finding| finding.check.id == "AUT-07").expect("one");
        let mut risks = finding.evidence.iter().filter(|of| of.what == "risk of the drain");
        risks.next().map(|of| of.value.clone()).unwrap_or_default()
    };
    // The other replica serves.
    assert_eq!(risk(&|_| {}), "");
    let one = risk(&|of| of.replicas = 1);
    assert!(one.starts_with("Deployment prod/serve: it has one replica, so no requests"), "{one}");
    let notebook = risk(&|of| {
        (of.owner.kind, of.class) = ("Notebook".into(), Some(WorkloadClass::Interactive));
    });
    let lost = "Notebook prod/serve: the state in memory is lost, and its files";
    assert!(notebook.starts_with(lost), "{notebook}");
    let ray = risk(&|of| {
        (of.owner.kind, of.class) = ("RayCluster".into(), None);
    });
    assert!(ray.contains("work without checkpoints loses its progress"), "{ray}");
    let in_memory = SharedMemory { limit_bytes: None };
    let mounted = risk(&|of| of.template.shared_memory = Some(in_memory));
    assert!(mounted.contains("only with --delete-emptydir-data"), "{mounted}");
}

/// By hand: two servers on the node that stays leave six of its GPUs free.
#[test]
fn an_autoscaler_that_may_need_the_node_is_a_risk_of_the_drain() {
    let risks = |most: Option<u32>, pool: &str| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        facts.workloads[SERVE].template.shared_memory = None;
        facts.autoscalers[0].most_replicas = most;
        let nodes = facts.nodes.iter_mut();
        nodes.for_each(|node| node.pool = ObjectRef::new(pool, "", "gpus"));
        let found = audit(&facts);
        let finding = found.iter().find(|finding| finding.check.id == "AUT-07").expect("one");
        let risks = finding.evidence.iter().filter(|of| of.what == "risk of the drain");
        risks.map(|of| of.value.clone()).collect::<Vec<_>>()
    };
    assert_eq!([None, Some(2), Some(8)].map(|most| risks(most, "EKSNodegroup").len()), [0; 3]);
    let named = risks(Some(9), "EKSNodegroup");
    let start = "HorizontalPodAutoscaler prod/serve can scale Deployment serve from 2 to 9 pods";
    assert!(named.len() == 1 && named[0].starts_with(start), "{named:?}");
    // Karpenter adds the node again.
    assert_eq!(risks(Some(9), "NodePool"), [""; 0]);
}

/// What keeps a pod where it is keeps its node.
#[test]
fn a_pod_does_not_move_against_a_taint_a_budget_or_other_pods() {
    let moves = |change: &dyn Fn(&mut Facts)| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        change(&mut facts);
        audit(&facts).iter().any(|finding| finding.check.id == "AUT-07")
    };
    assert!(moves(&|_| {}));
    // The servers stand on nodes without a taint and tolerate none: the tainted ones are closed.
    let open = |facts: &mut Facts, names: &[&str]| {
        let named = facts.nodes.iter_mut().filter(|node| names.contains(&&*node.node.name));
        named.for_each(|node| node.node.taints.clear());
    };
    assert!(moves(&|facts| open(facts, &["g2", "g3"])));
    assert!(!moves(&|facts| {
        open(facts, &["g2"]);
        facts.workloads[SERVE].pods[1].node = Some("g2".into());
    }));
    assert!(!moves(&|facts| facts.budgets[0].limit = BudgetLimit::MaxUnavailable(0)));
    assert!(!moves(&|facts| facts.workloads[SERVE].template.depends_on_pods = true));
    assert!(!moves(&|facts| facts.workloads[SERVE].is_bound_by_name = true));
    let two_budgets = |facts: &mut Facts, pods: usize| {
        for pod in facts.workloads[SERVE].pods.iter_mut().take(pods) {
            pod.unevictable_by = vec!["chart".into(), "platform".into()];
        }
    };
    assert!(!moves(&|facts| two_budgets(facts, 2)));
    // The pod of the other node moves beside the one that stays.
    assert!(moves(&|facts| two_budgets(facts, 1)));
    assert!(!moves(&|facts| {
        let mut keeper = facts.workloads[WEB].clone();
        keeper.owner.name = "keeper".into();
        keeper.template.keeps_others_off = BTreeSet::from(["kubernetes.io/hostname".to_owned()]);
        let on = |node: &str| Pod { name: node.into(), node: Some(node.into()), ..Pod::default() };
        keeper.pods = vec![on("g1"), on("g2"), on("g3")];
        facts.workloads.push(keeper);
    }));
    // From a node without GPUs in this zone, one keeps others off all nodes of the zone.
    let in_zone = |facts: &mut Facts, zone: &str| {
        for node in &mut facts.nodes {
            let zone = if &*node.node.name == "c1" { zone } else { "a" };
            node.node.labels.insert("zone".to_owned(), zone.to_owned());
        }
        let mut keeper = facts.workloads[WEB].clone();
        keeper.owner.name = "keeper".into();
        keeper.template.keeps_others_off = BTreeSet::from(["zone".to_owned()]);
        let name = "keeper-0".to_owned();
        keeper.pods = vec![Pod { name, node: Some("c1".to_owned()), ..Pod::default() }];
        facts.workloads.push(keeper);
    };
    assert!(!moves(&|facts| in_zone(facts, "a")));
    assert!(moves(&|facts| in_zone(facts, "b")));
}

/// By hand: a node has 96 CPU, of which its exporter uses 4: there is room for two pods of 46 CPU.
#[test]
fn what_a_pod_requests_beyond_its_containers_counts_for_a_move() {
    let moves = |cpu_milli: i64| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        // Overhead, or a request of the pod as a whole: no container has it.
        facts.workloads[SERVE].template.requests.cpu_milli = cpu_milli;
        audit(&facts).iter().any(|finding| finding.check.id == "AUT-07")
    };
    assert!(moves(46_000) && !moves(46_001));
}

/// Of two nodes with servers the first goes, unless the other is dedicated to another purpose.
#[test]
fn a_pod_that_tolerates_every_taint_does_not_move_to_a_dedicated_node() {
    let moves_there = |dedicated: &[&str], key: &str| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        let named = facts.nodes.iter_mut().filter(|node| dedicated.contains(&&*node.node.name));
        named.for_each(|node| node.node.taints.push(taint("dedicated")));
        facts.workloads[SERVE].template.tolerations = vec![toleration(key)];
        let findings = audit(&facts);
        let found = findings.iter().find(|finding| finding.check.id == "AUT-07");
        found.expect("a node goes").moves.iter().any(|of| of.to == "g3")
    };
    assert!(moves_there(&[], ""));
    // The other one goes: no taint keeps its pod from this node.
    assert!(!moves_there(&["g3"], ""));
    assert!(moves_there(&["g3"], "dedicated"));
    // Its own node has the taint, too.
    assert!(moves_there(&["g2", "g3"], ""));
}

/// Two servers on one node, and a node that no pod uses: that one goes (AUT-03).
#[test]
fn no_pod_moves_to_a_node_that_goes_itself() {
    let mut facts = healthy();
    one_server_on_each_node(&mut facts);
    facts.workloads[SERVE].pods[1].node = Some("g2".into());
    assert!(audit(&facts).iter().all(|finding| finding.check.id != "AUT-07"));
}

/// Six GPUs are free on the node that stays once both servers are there; more needs the other one.
#[test]
fn a_node_that_work_to_come_needs_is_not_emptied() {
    let moves = |gpus: i64| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        let mut later = workload(ObjectRef::new("CronJob", "research", "later"), gpus, 1, "");
        later.pods[0].node = None;
        later.template.tolerations = vec![toleration(GPU)];
        facts.to_come.push(ToCome { workload: later, last_ms: None });
        audit(&facts).iter().any(|finding| finding.check.id == "AUT-07")
    };
    assert!(moves(6) && !moves(7));
}

/// A node without GPU pods is removed only if its other pods find another node.
#[test]
fn an_empty_node_stays_with_a_pod_that_fits_nowhere_else() {
    let finding = |change: &dyn Fn(&mut Facts)| {
        let mut facts = healthy();
        let mut empty = gpu_node("g2", "H100");
        empty.devices = (8..16).collect();
        empty.node.taints.clear();
        empty.without_gpu_pods_since_ms = Some(NOW_MS - 9 * HOUR_MS);
        add_node(&mut facts, empty);
        facts.workloads[WEB].pods[0].node = Some("g2".into());
        change(&mut facts);
        let found = audit(&facts);
        found.into_iter().find(|finding| finding.check.id == "AUT-03").expect("it is found")
    };
    let stays = |change: &dyn Fn(&mut Facts)| {
        let finding = finding(change);
        let named = finding.evidence.iter().any(|of| of.what == "cannot be moved from it");
        assert_eq!(named, !finding.stays.is_empty());
        // What cannot be removed frees nothing.
        assert_eq!(named, finding.claims.is_empty());
        named
    };
    assert!(!stays(&|_| {}));
    assert!(stays(&|facts| requests(facts, WEB, "memory", 2_000 * GIB)));
    let dedicated = |facts: &mut Facts, key: &str| {
        facts.nodes[1].node.taints = vec![taint("dedicated")];
        facts.workloads[WEB].template.tolerations = vec![toleration(key)];
    };
    assert!(stays(&|facts| dedicated(facts, "")));
    assert!(!stays(&|facts| dedicated(facts, "dedicated")));
    assert!(stays(&|facts| {
        let term = SelectorTerm {
            key: dovetail_model::node::NAME_LABEL.into(),
            operator: requirement::Operator::In,
            values: vec!["g2".into()],
        };
        let pinned = NodeCondition::node_affinity(vec![vec![term]]);
        facts.workloads[WEB].template.node_conditions = vec![pinned];
    }));
    assert!(stays(&|facts| {
        facts.budgets.push(Budget {
            object: ObjectRef::new("PodDisruptionBudget", "prod", "web"),
            protects: facts.workloads[WEB].owner.clone(),
            limit: BudgetLimit::MaxUnavailable(0),
        });
    }));
}

/// A pending pod without the toleration was not given it.
#[test]
fn a_pending_pod_that_lacks_the_toleration_of_its_resource_is_found() {
    let found = |node: Option<&str>| {
        let mut facts = healthy();
        let pods = &mut facts.workloads[TRAIN].pods;
        pods.iter_mut().for_each(|pod| pod.node = node.map(str::to_owned));
        audit(&facts).iter().any(|finding| finding.check.id == "SCH-04")
    };
    assert!(found(None));
    assert!(!found(Some("g1")));
}
