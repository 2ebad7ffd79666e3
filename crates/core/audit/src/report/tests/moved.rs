//! A node to which pods move is not returned by what else is fixed there.

use super::*;
use crate::catalogue::check;
use crate::finding::Move;

/// A server on one of the nodes: its name, its GPUs, the node, and whether it ever computes.
type Server = (&'static str, i64, usize, bool);

/// So many nodes of eight GPUs with these servers, of which one without a controller cannot move:
/// how many GPUs leave the bill.
fn removed(nodes: usize, servers: &[Server], stays: Option<&str>) -> i128 {
    removed_beside(Vec::new(), nodes, servers, stays)
}

/// The same with more findings.
fn removed_beside(
    more: Vec<Finding>,
    nodes: usize,
    servers: &[Server],
    stays: Option<&str>,
) -> i128 {
    let (mut facts, mut moment) = cluster(&vec![(8, NodeAvailability::Ready, 0); nodes]);
    for node in &mut facts.nodes {
        node.free_since_ms = Some(NOW_MS - 100 * HOUR_MS);
    }
    (facts.workloads, moment.held) = Default::default();
    let mut uses = BTreeMap::new();
    for (number, (name, gpus, node, is_busy)) in servers.iter().enumerate() {
        let kind = if stays == Some(*name) { "Pod" } else { "Deployment" };
        let node = format!("g{node}");
        let pod = Pod { name: (*name).to_owned(), node: Some(node.clone()), ..Pod::default() };
        let owner = ObjectRef::new(kind, "prod", name);
        let mut workload = Workload { owner, pods: vec![pod], replicas: 1, ..Workload::default() };
        let limits = BTreeMap::from([(GPU.to_owned(), *gpus)]);
        let main = Container { name: "main".into(), limits, ..Container::default() };
        workload.template.containers.push(main);
        facts.workloads.push(workload);
        moment.held.push(HeldGpus {
            node,
            resource: GPU.into(),
            workload: number,
            pod: (*name).to_owned(),
            units: *gpus,
            gpu_milli: None,
            state: HeldState::Ready,
            gang: None,
            uses: Vec::new(),
        });
        let active_h = if *is_busy { 24 } else { 0 };
        let used = |gpu: i64| GpuUse {
            gpu: format!("{name}-{gpu}"),
            active_ms: active_h * HOUR_MS,
            idle_ms: (24 - active_h) * HOUR_MS,
            ..GpuUse::default()
        };
        let of_pod: Vec<GpuUse> = (0..*gpus).map(used).collect();
        uses.insert(("prod".to_owned(), (*name).to_owned()), of_pod);
    }
    let span = Span { from_ms: NOW_MS - 24 * HOUR_MS, to_ms: NOW_MS };
    measure(&mut facts, &mut moment, UsagePeriod { span, step_ms: 60_000 }, &uses);
    let states = device_states(&mut facts, &moment).unwrap();
    let prices = vec![NodePrice { usd_micros_per_gpu_hour: Some(1_000_000) }; nodes];
    let mut found = audit_at(&facts, &moment);
    found.extend(more);
    let policy = SuppressionPolicy::default();
    let report = report_of(found, (&facts, &moment), states, &prices, &policy);
    // Nothing waits: what comes back leaves the bill.
    assert_eq!(report.returned.time.gpu_milli_ms, report.removed.gpu_milli_ms);
    report.removed.gpu_milli_ms / (1000 * i128::from(720 * HOUR_MS))
}

/// By hand: the GPUs of the nodes that the servers which compute do not need.
#[test]
fn a_node_to_which_pods_move_is_not_removed_as_well() {
    let idle = |name, gpus, node| (name, gpus, node, false);
    let busy = |name, gpus, node| (name, gpus, node, true);
    assert_eq!(removed(2, &[idle("a", 2, 0), busy("b", 1, 1)], None), 8);
    assert_eq!(removed(2, &[idle("a", 4, 0), busy("b", 3, 1)], None), 8);
    assert_eq!(removed(3, &[idle("a", 2, 0), busy("b", 1, 1), busy("c", 1, 2)], None), 16);
    // The one that computes is on the node of the other.
    assert_eq!(removed(2, &[idle("a", 2, 0), busy("b", 1, 0), busy("c", 1, 1)], None), 8);
    // Without moves: the node has no other pod.
    assert_eq!(removed(2, &[idle("a", 2, 0), busy("b", 8, 1)], None), 8);
}

/// What an idle server uses on the node that it leaves is returned as what it takes elsewhere.
#[test]
fn a_pod_that_moves_and_ends_is_returned_once() {
    let idle = |name, gpus, node| (name, gpus, node, false);
    let busy = |name, gpus, node| (name, gpus, node, true);
    assert_eq!(removed(2, &[idle("a", 2, 0), busy("b", 3, 1)], Some("b")), 8);
    // Three nodes with an idle server of two, three with a busy one of three: nine GPUs compute.
    let servers = [
        idle("a", 2, 0),
        idle("b", 2, 1),
        idle("c", 2, 2),
        busy("d", 3, 3),
        busy("e", 3, 4),
        busy("f", 3, 5),
    ];
    assert_eq!(removed(6, &servers, None), 32);
    // Neither is needed: what moves goes together with the node that it moves to.
    assert_eq!(removed(2, &[idle("a", 4, 0), idle("b", 4, 1)], None), 16);
}

/// What SCH-08 would move may come to a node or not: the bill does not fall by that node.
#[test]
fn a_node_to_which_a_pod_may_move_stays_on_the_bill() {
    let servers = [("a", 2, 0, false), ("b", 8, 1, true)];
    let with = |pod: &str, from: &str, to: &str| {
        let owner = ObjectRef::new("Deployment", "prod", "pending");
        let mut pieces = Finding::new(check("SCH-08").unwrap(), &owner);
        let pod = ObjectRef::new("Pod", "prod", pod);
        pieces.moves.push(Move { pod, from: from.to_owned(), to: to.to_owned() });
        removed_beside(vec![pieces], 2, &servers, None)
    };
    assert_eq!(with("b", "g1", "g0"), 0);
    // Another fix ends the pod that would come, and the move empties no node.
    assert_eq!(with("a", "g0", "g1"), 8);
}
