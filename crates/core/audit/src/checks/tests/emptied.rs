//! What speaks against removing a node without GPU pods.

use super::*;

/// What AUT-03 says of an empty node that is its own pool, once something is changed.
fn finding(change: impl FnOnce(&mut Facts)) -> Option<Finding> {
    let mut facts = healthy();
    let mut empty = gpu_node("g2", "H100");
    empty.devices = (8..16).collect();
    empty.pool = ObjectRef::new("Node", "", "g2");
    empty.without_gpu_pods_since_ms = Some(NOW_MS - 9 * HOUR_MS);
    add_node(&mut facts, empty);
    change(&mut facts);
    audit(&facts).into_iter().find(|finding| finding.check.id == "AUT-03")
}

/// One pod without a node that requests so many GPUs.
fn waiting(gpus: i64) -> Workload {
    let mut waiting = workload(ObjectRef::new("Job", "research", "later"), gpus, 1, "");
    waiting.pods[0].node = None;
    waiting
}

/// What is named of pods or work that may need the node; then nothing is claimed, and no command
/// removes it.
fn needed_by(change: impl FnOnce(&mut Facts)) -> Vec<String> {
    let finding = finding(change).expect("it is found");
    let whats = ["pending pods that may need it", "workloads that will need it"];
    let named = finding.evidence.iter().filter(|of| whats.contains(&of.what));
    let named: Vec<String> = named.map(|of| of.value.clone()).collect();
    let is_removed = finding.fix_example().starts_with("kubectl drain g2 --ignore-daemonsets");
    assert_eq!(is_removed, named.is_empty(), "{}", finding.fix_example());
    assert_eq!(finding.claims.len(), if is_removed { 8 } else { 0 });
    assert_eq!(finding.stays.is_empty(), is_removed);
    named
}

#[test]
fn a_node_that_a_pending_pod_could_use_is_not_removed() {
    let pending = |change: &dyn Fn(&mut Workload)| {
        needed_by(|facts| {
            let mut waiting = waiting(8);
            change(&mut waiting);
            facts.workloads.push(waiting);
        })
    };
    assert_eq!(needed_by(|_| {}), [""; 0]);
    // It lacks the toleration, which is a finding of its own.
    let named = ["research/later-0"];
    assert_eq!(pending(&|_| {}), named);
    let gpus = |of: &mut Workload, count| {
        of.template.containers[0].limits.insert(GPU.into(), count);
    };
    assert_eq!(pending(&|of| gpus(of, 16)), [""; 0]);
    assert_eq!(pending(&|of| of.template.requests.cpu_milli = 96_001), [""; 0]);
    assert_eq!(pending(&|of| of.template.requests.memory_bytes = 1024 * GIB + 1), [""; 0]);
    let repaired = needed_by(|facts| {
        facts.workloads.push(waiting(8));
        for node in &mut facts.nodes {
            node.gpus.values_mut().for_each(|gpus| gpus.allocatable = 7);
        }
    });
    assert_eq!(repaired, named);
    assert_eq!(pending(&|of| of.template.node_conditions = vec![model_is("L4")]), [""; 0]);
    assert_eq!(pending(&|of| of.pods[0].should_be_gone_ms = Some(NOW_MS)), [""; 0]);
}

/// Of two nodes one goes, and neither does where the pod has room on a node that stays.
#[test]
fn no_more_nodes_are_kept_than_pending_pods_need() {
    let pending = |facts: &mut Facts| {
        let mut waiting = waiting(8);
        waiting.template.tolerations = vec![toleration(GPU)];
        facts.workloads.push(waiting);
    };
    let kept = finding(|facts| {
        pending(facts);
        let mut other = Node { node: gpu_node("g3", "H100").node, ..facts.nodes[2].clone() };
        other.devices = (16..24).collect();
        add_node(facts, other);
    });
    let kept = kept.expect("both are found");
    assert_eq!((kept.stays.len(), kept.claims.len(), kept.affected.len()), (1, 8, 2));
    let with_room = needed_by(|facts| {
        pending(facts);
        let mut free = gpu_node("g3", "H100");
        free.devices = (16..24).collect();
        add_node(facts, free);
    });
    assert_eq!(with_room, [""; 0]);
}

#[test]
fn a_node_that_work_to_come_could_use_is_not_removed() {
    let to_come = |last_ms: Option<u64>| {
        move |facts: &mut Facts| {
            let mut workload = waiting(4);
            workload.owner.kind = "CronJob".into();
            facts.to_come.push(ToCome { workload, last_ms });
        }
    };
    assert_eq!(needed_by(to_come(None)), ["CronJob research/later"]);
    // Its pods may have been there, and be deleted.
    assert!(finding(to_come(Some(NOW_MS - HOUR_MS / 6))).is_none());
    let since = finding(to_come(Some(NOW_MS - HOUR_MS))).expect("it is found");
    let never = finding(to_come(None)).expect("it is found");
    assert_ne!(since.evidence[0], never.evidence[0]);
}

#[test]
fn a_node_whose_gpus_pods_may_hold_that_were_not_read_is_not_empty() {
    assert!(finding(|facts| facts.nodes[2].may_be_held = true).is_none());
    // And no pod moves to it, or away.
    let moves = |may_be_held: bool| {
        let mut facts = healthy();
        consolidated::one_server_on_each_node(&mut facts);
        facts.nodes[2].may_be_held = may_be_held;
        audit(&facts).iter().any(|finding| finding.check.id == "AUT-07")
    };
    assert!(moves(false) && !moves(true));
}
