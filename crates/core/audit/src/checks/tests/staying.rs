//! What pods that belong to their node, and host ports, leave of other nodes.

use dovetail_model::{CounterRule, CounterScope, RuleCause, RuleKind};

use super::consolidated::one_server_on_each_node;
use super::*;
use crate::checks::packing::how_to_move;
use crate::finding::Move;

fn finding(facts: &Facts, id: &str) -> Option<Finding> {
    audit(facts).into_iter().find(|finding| finding.check.id == id)
}

/// Each of its pods takes one port of its node.
fn with_host_port(facts: &mut Facts, workload: usize) {
    let rule = CounterRule {
        selector: "port:TCP/80".into(),
        label: dovetail_model::node::NAME_LABEL.into(),
        kind: RuleKind::AntiAffinity,
        scope: CounterScope::AllNodes,
        cause: RuleCause::HostPort,
    };
    let taken = BTreeSet::from([rule.selector.clone()]);
    facts.workloads[workload].template.host_ports = HostPorts { taken, rules: vec![rule] };
}

/// A node without GPU pods on which one of the web servers runs.
fn empty_node_with_a_server() -> Facts {
    let mut facts = healthy();
    let mut empty = gpu_node("g2", "H100");
    empty.node.taints.clear();
    empty.without_gpu_pods_since_ms = Some(NOW_MS - 9 * HOUR_MS);
    add_node(&mut facts, empty);
    facts.workloads[WEB].pods[0].node = Some("g2".into());
    facts
}

/// By hand: 96 CPU on each node, 4 for each server; the other node has room for a second one if its
/// DaemonSet takes at most 88.
#[test]
fn a_pod_moves_to_no_node_that_daemon_sets_fill() {
    let moves = |cpu_milli: i64| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        requests(&mut facts, EXPORTER, "cpu", cpu_milli);
        finding(&facts, "AUT-07").is_some()
    };
    assert!(moves(88_000) && !moves(88_001));
    // Nor to one whose pods are as many as it takes: a server, an exporter.
    let at_most = |pods: i64| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        for node in &mut facts.nodes {
            node.node.allocatable.pod_slots = pods;
        }
        finding(&facts, "AUT-07").is_some()
    };
    assert!(at_most(3) && !at_most(2));
}

#[test]
fn a_node_stays_whose_pods_have_no_room_beside_daemon_sets() {
    let stays = |cpu_milli: i64| {
        let mut facts = empty_node_with_a_server();
        let on = |name: &str| Pod { node: Some(name.into()), ..Pod::default() };
        facts.workloads[EXPORTER].pods.push(on("c1"));
        requests(&mut facts, EXPORTER, "cpu", cpu_milli);
        !finding(&facts, "AUT-03").expect("it is found").stays.is_empty()
    };
    // Three servers of 4 on the other node.
    assert!(!stays(84_000) && stays(84_001));
}

/// Four GPUs are in use on each of two nodes, and a pod waits for eight.
#[test]
fn pods_are_packed_only_beside_daemon_sets_and_host_ports() {
    let starts = |change: &dyn Fn(&mut Facts)| {
        let mut facts = healthy();
        let mut part = workload(ObjectRef::new("Deployment", "prod", "part"), 4, 2, "g2");
        part.pods[1].node = Some("g3".into());
        let mut big = workload(ObjectRef::new("Deployment", "prod", "big"), 8, 1, "");
        big.pods[0].node = None;
        big.template.tolerations = vec![toleration(GPU)];
        for name in ["g2", "g3"] {
            add_node(&mut facts, gpu_node(name, "H100"));
        }
        facts.workloads.extend([part, big]);
        change(&mut facts);
        let found = finding(&facts, "SCH-08").expect("it is found");
        // One of the two moves to the other; nothing is claimed without the moves.
        let moves: Vec<_> = found.moves.iter().map(|of| (&*of.from, &*of.to)).collect();
        let is_one = moves == [("g2", "g3")] || moves == [("g3", "g2")];
        assert_eq!(found.most_milli.is_some(), is_one, "{moves:?}");
        assert_eq!(found.claims.is_empty(), moves.is_empty(), "{moves:?}");
        found.most_milli == Some(8_000)
    };
    assert!(starts(&|_| {}));
    assert!(!starts(&|facts| requests(facts, EXPORTER, "cpu", 70_000)));
    let part = healthy().workloads.len();
    assert!(!starts(&|facts| with_host_port(facts, part)));
}

/// A pod that comes to a cordoned node would wait for the end of the cordon, and that for the pod.
#[test]
fn no_node_is_cordoned_to_which_pods_move() {
    let of = |name: &str, from: &str, to: &str| {
        let pod = ObjectRef::new("Pod", "prod", name);
        Move { pod, from: from.to_owned(), to: to.to_owned() }
    };
    let apart = [of("a", "g1", "g3"), of("b", "g2", "g3")];
    assert!(how_to_move(&apart).starts_with("cordon the nodes that the listed pods leave"));
    for to in ["g1", "g3"] {
        let chain = [of("a", "g1", "g2"), of("b", "g2", to)];
        assert!(how_to_move(&chain).contains("cordon none of these nodes"), "{to}");
    }
}

/// A drain deletes what is in an emptyDir volume, and a directory of the node stays there.
#[test]
fn an_empty_dir_keeps_no_node_and_a_host_path_does() {
    let mut facts = empty_node_with_a_server();
    facts.workloads[WEB].template.has_local_data = true;
    let goes = finding(&facts, "AUT-03").expect("it is found");
    assert!(goes.stays.is_empty() && !goes.claims.is_empty(), "{goes:?}");
    let mut risks = goes.evidence.iter().filter(|of| of.what == "risk of the drain");
    assert!(risks.any(|of| of.value.contains("--delete-emptydir-data")), "{:?}", goes.evidence);
    facts.workloads[WEB].template.has_host_path = true;
    let stays = finding(&facts, "AUT-03").expect("it is found");
    assert!(!stays.stays.is_empty() && stays.claims.is_empty(), "{stays:?}");
    // A server loads what it had there again; other work with GPUs may miss it.
    let moves = |class: Option<WorkloadClass>| {
        let mut facts = healthy();
        one_server_on_each_node(&mut facts);
        let serve = &mut facts.workloads[SERVE];
        (serve.class, serve.template.has_local_data) = (class, true);
        finding(&facts, "AUT-07").is_some()
    };
    assert!(moves(Some(WorkloadClass::Inference)));
    assert!(!moves(Some(WorkloadClass::Interactive)) && !moves(None));
}

#[test]
fn no_pod_moves_to_a_node_where_its_host_port_is_taken() {
    let mut facts = healthy();
    one_server_on_each_node(&mut facts);
    assert!(finding(&facts, "AUT-07").is_some());
    with_host_port(&mut facts, SERVE);
    assert!(finding(&facts, "AUT-07").is_none());
    let stays = |facts: &Facts| !finding(facts, "AUT-03").expect("it is found").stays.is_empty();
    let mut facts = empty_node_with_a_server();
    assert!(!stays(&facts));
    with_host_port(&mut facts, WEB);
    assert!(stays(&facts));
    // So it does where a DaemonSet takes the port.
    let mut facts = empty_node_with_a_server();
    facts.workloads[WEB].pods.truncate(1);
    with_host_port(&mut facts, WEB);
    assert!(!stays(&facts));
    with_host_port(&mut facts, EXPORTER);
    facts.workloads[EXPORTER].pods.push(Pod { node: Some("c1".into()), ..Pod::default() });
    assert!(stays(&facts));
}

/// The kubelet runs it, whatever taints, labels and drains say.
#[test]
fn a_static_pod_keeps_no_node_and_is_no_finding() {
    let of_node = |name: &str| {
        let mut proxy = workload(ObjectRef::new("Node", "kube-system", name), 0, 1, name);
        proxy.template.requests.cpu_milli = 90_000;
        proxy.template.tolerations = vec![toleration("")];
        proxy
    };
    let mut facts = empty_node_with_a_server();
    facts.workloads.push(of_node("g2"));
    let found = audit(&facts);
    let empty = found.iter().find(|finding| finding.check.id == "AUT-03").expect("it is found");
    assert!(empty.stays.is_empty(), "{empty:?}");
    let of_pod = |finding: &&Finding| finding.object.namespace == "kube-system";
    assert_eq!(found.iter().filter(of_pod).count(), 0, "{found:?}");
    // It uses what it uses: beside 90 CPU and a server, the other node has no room.
    let mut facts = healthy();
    one_server_on_each_node(&mut facts);
    facts.workloads.extend(["g2", "g3"].map(of_node));
    assert!(finding(&facts, "AUT-07").is_none());
}

#[test]
fn no_node_is_removed_while_pods_were_not_read() {
    let mut facts = empty_node_with_a_server();
    facts.lacks_pods = true;
    let empty = finding(&facts, "AUT-03").expect("it is found");
    assert_eq!((empty.stays.len(), empty.claims.len()), (1, 0));
    assert!(empty.evidence.iter().any(|of| of.what == "pods that were not read"), "{empty:?}");
    let mut facts = healthy();
    one_server_on_each_node(&mut facts);
    facts.lacks_pods = true;
    assert!(finding(&facts, "AUT-07").is_none());
}

/// The web server runs on a node without GPU pods, and a LimitRange is younger than it is.
#[test]
fn a_node_stays_whose_pods_the_api_server_would_reject() {
    let mut facts = empty_node_with_a_server();
    assert!(finding(&facts, "AUT-03").expect("it is found").stays.is_empty());
    facts.workloads[WEB].rejected_by = Some("LimitRange bounds requires more".into());
    let kept = finding(&facts, "AUT-03").expect("it is found");
    assert!(kept.claims.is_empty() && !kept.stays.is_empty());
    let named = kept.evidence.iter().find(|of| of.what == "cannot be moved from it");
    let named = &named.expect("the pod").value;
    let reason = "(the API server would reject a new pod: LimitRange bounds requires more)";
    assert!(named.starts_with("prod/web-0 ") && named.ends_with(reason), "{named}");
    // The same of a server with a GPU.
    let mut facts = healthy();
    one_server_on_each_node(&mut facts);
    assert!(finding(&facts, "AUT-07").is_some());
    facts.workloads[SERVE].rejected_by = Some("LimitRange bounds requires more".into());
    assert!(finding(&facts, "AUT-07").is_none());
}

/// The web server runs on a node without GPU pods, and a drain does not move it.
#[test]
fn a_node_stays_whose_pods_cannot_be_evicted_or_return_to_it() {
    let named = |change: &dyn Fn(&mut Workload)| {
        let mut facts = empty_node_with_a_server();
        change(&mut facts.workloads[WEB]);
        let kept = finding(&facts, "AUT-03").expect("it is found");
        assert!(kept.claims.is_empty() && !kept.stays.is_empty());
        let named = kept.evidence.iter().find(|of| of.what == "cannot be moved from it");
        named.expect("the pod").value.clone()
    };
    let budgets = |of: &mut Workload| of.pods[0].unevictable_by = vec!["a".into(), "b".into()];
    let several = "several PodDisruptionBudgets select it, which blocks its eviction: a, b";
    assert_eq!(named(&budgets), format!("prod/web-0 ({several})"));
    let by_name = named(&|of| of.is_bound_by_name = true);
    assert_eq!(by_name, "prod/web-0 (spec.nodeName in its template names a node)");
}

/// Whatever each of the budgets allows.
#[test]
fn a_pod_of_several_budgets_is_a_finding_of_its_budgets() {
    let mut facts = healthy();
    facts.workloads[SERVE].pods[1].unevictable_by = vec!["platform".into(), "serve".into()];
    let found = audit(&facts);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.check.id, &*finding.object.name), ("AUT-02", "platform"));
    assert_eq!(finding.affected, [ObjectRef::new("Pod", "prod", "serve-1")]);
    assert_eq!(finding.evidence[0].value, "platform, serve");
    // Which of them is wrong only a person knows.
    assert!(finding.remedies.is_empty());
    facts.workloads[SERVE].pods[1].node = None;
    assert!(audit(&facts).iter().all(|finding| finding.check.id != "AUT-02"));
}

/// Nodes of eight GPUs in seven parts each: of both nodes with a server three parts move, and 7571
/// of each node and 429 are all of it.
#[test]
fn a_node_of_parts_is_all_of_its_gpus() {
    let mut facts = healthy();
    one_server_on_each_node(&mut facts);
    for node in &mut facts.nodes {
        if let Some(gpus) = node.gpus.get_mut(GPU) {
            (gpus.built_in, gpus.allocatable) = (56, 56);
        }
    }
    facts.workloads[SERVE].template.containers[0].limits = map(&[(GPU, 3)]);
    let found = finding(&facts, "AUT-07").expect("it is found");
    assert_eq!(found.fills_milli, 2 * 429);
}

/// Servers on two nodes, a web server on a third that no pod with GPUs uses. No other node has room
/// for the web server if it takes more than 88 CPU.
fn servers_beside_an_empty_node(cpu_milli: i64) -> Facts {
    let mut facts = healthy();
    one_server_on_each_node(&mut facts);
    let mut empty = gpu_node("g4", "H100");
    empty.devices = (24..32).collect();
    empty.node.taints.clear();
    empty.without_gpu_pods_since_ms = Some(NOW_MS - 9 * HOUR_MS);
    add_node(&mut facts, empty);
    facts.nodes[1].node.allocatable.cpu_milli = 1_000;
    facts.workloads[WEB].pods.truncate(1);
    facts.workloads[WEB].pods[0].node = Some("g4".into());
    facts.workloads[WEB].template.tolerations = vec![toleration(GPU)];
    requests(&mut facts, WEB, "cpu", cpu_milli);
    requests(&mut facts, EXPORTER, "cpu", 0);
    facts
}

/// By hand: 96 CPU on each node, 4 for each server, and both servers and the web server need 96.
#[test]
fn no_node_is_emptied_on_which_pods_of_an_empty_node_are_to_run() {
    assert!(finding(&servers_beside_an_empty_node(88_000), "AUT-07").is_some());
    let facts = servers_beside_an_empty_node(88_001);
    assert!(finding(&facts, "AUT-07").is_none());
    assert!(finding(&facts, "AUT-03").expect("it is found").stays.is_empty());
}

/// The web server is beside a server, and the empty node has GPUs of another vendor: it goes, too.
#[test]
fn no_pod_moves_to_an_empty_node_with_gpus_of_another_vendor() {
    let mut facts = servers_beside_an_empty_node(90_000);
    let amd = facts.nodes.last_mut().expect("the empty node");
    let gpus = amd.gpus.remove(GPU).expect("its GPUs");
    amd.gpus.insert("amd.com/gpu".into(), gpus);
    facts.workloads[WEB].pods[0].node = Some("g2".into());
    assert!(finding(&facts, "AUT-07").is_none());
}

#[test]
fn an_empty_node_stays_for_pending_pods_without_gpus_that_could_use_it() {
    let found = |change: &dyn Fn(&mut Facts)| {
        let mut facts = healthy();
        facts.nodes[0].without_gpu_pods_since_ms = Some(NOW_MS - HOUR_MS);
        facts.nodes[0].node.taints.clear();
        facts.workloads[WEB].pods[0].node = None;
        change(&mut facts);
        let found = audit(&facts).into_iter().find(|finding| finding.check.id == "AUT-03");
        let finding = found.expect("an empty node");
        finding.evidence.iter().any(|of| of.what == "pending pods that may need it")
    };
    assert!(found(&|_| {}));
    let runs = |facts: &mut Facts| facts.workloads[WEB].pods[0].node = Some("c1".into());
    assert!(!found(&runs));
    let is_kept_off = |facts: &mut Facts| facts.nodes[0].node.taints.push(taint("nvidia.com/gpu"));
    assert!(!found(&is_kept_off));
    let is_larger = |facts: &mut Facts| {
        facts.workloads[WEB].template.requests.cpu_milli = i64::MAX;
    };
    assert!(!found(&is_larger));
}

#[test]
fn taints_of_nodes_that_start_or_go_are_no_obstacle_to_tolerate() {
    let finds = |key: &str| {
        let mut facts = healthy();
        facts.nodes[0].node.taints.push(taint(key));
        audit(&facts).iter().any(|finding| finding.check.id == "SCH-04")
    };
    for key in [
        "node.kubernetes.io/not-ready",
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/unregistered",
        "cloud.google.com/impending-node-termination",
        "aws-node-termination-handler/spot-itn",
        "kubevirt.io/drain",
        "ebs.csi.aws.com/agent-not-ready",
    ] {
        assert!(!finds(key), "{key}");
    }
    assert!(finds("team-b"));
}
