//! What removes empty nodes of pools, and never those that work needs.

use dovetail_facts::{RemovalRule, ZeroBudget};

use super::*;
use crate::remedy::PatchChange;

/// So many nodes without GPU pods in the pool of the busy one; a pod may wait for one of them.
fn with_empty(kind: &str, count: u32, is_pending: bool) -> Facts {
    let mut facts = healthy();
    for number in 0..count {
        let mut empty = gpu_node(&format!("e{number}"), "H100");
        empty.devices = (8 * (number + 1)..8 * (number + 2)).collect();
        empty.without_gpu_pods_since_ms = Some(NOW_MS - 9 * HOUR_MS);
        add_node(&mut facts, empty);
    }
    for node in facts.nodes.iter_mut().filter(|node| node.has_gpus()) {
        node.pool = ObjectRef::new(kind, "", "gpus");
    }
    if is_pending {
        let mut waiting = workload(ObjectRef::new("Job", "research", "later"), 8, 1, "");
        waiting.pods[0].node = None;
        waiting.template.tolerations = vec![toleration(GPU)];
        facts.workloads.push(waiting);
    }
    facts
}

fn empty(facts: &Facts) -> Finding {
    let mut found = audit(facts).into_iter();
    found.find(|finding| finding.check.id == "AUT-03").expect("it is found")
}

#[test]
fn a_pool_whose_empty_node_is_needed_is_not_changed() {
    for kind in ["NodePool", "EKSNodegroup", "GKENodePool", "AKSNodePool"] {
        let mut facts = with_empty(kind, 1, false);
        facts.has_cluster_autoscaler = true;
        assert_eq!((empty(&facts).remedies.len(), empty(&facts).claims.len()), (1, 8), "{kind}");
        let mut facts = with_empty(kind, 1, true);
        facts.has_cluster_autoscaler = true;
        let kept = empty(&facts);
        assert_eq!((kept.remedies.len(), kept.claims.len()), (0, 0), "{kind}");
        assert_eq!(kept.fix_example(), "keep the node until the pending pods run or are deleted");
        // The same of work to come.
        let later = facts.workloads.pop().expect("the pod");
        facts.to_come.push(ToCome { workload: later, last_ms: None });
        let kept = empty(&facts);
        assert_eq!((kept.remedies.len(), kept.claims.len()), (0, 0), "{kind}");
        let until = "keep the node until no workload needs it; or, if these workloads are no longer \
                     needed, delete them";
        assert_eq!(kept.fix_example(), until, "{kind}");
    }
}

/// By hand: a busy node, one that the pod needs, one that can go.
#[test]
fn a_pool_shrinks_only_by_the_nodes_that_no_work_needs() {
    let shrunk = |kind: &str, is_pending: bool| {
        let mut facts = with_empty(kind, 2, is_pending);
        facts.has_cluster_autoscaler = true;
        let found = empty(&facts);
        let changes: Vec<&PatchChange> = found.changes().collect();
        assert_eq!(changes, [&PatchChange::RemoveEmptyNodes], "{kind}");
        (found.affected.len(), found.stays.len())
    };
    for kind in ["EKSNodegroup", "GKENodePool", "AKSNodePool"] {
        assert_eq!(shrunk(kind, false), (2, 0), "{kind}");
        assert_eq!(shrunk(kind, true), (2, 1), "{kind}");
    }
    // Karpenter would remove both, so one is removed by its name.
    let partly = empty(&with_empty("NodePool", 2, true));
    assert_eq!((partly.remedies.len(), partly.claims.len(), partly.stays.len()), (0, 8, 1));
    let goes = if partly.stays.contains("e0") { "e1" } else { "e0" };
    let expected = format!("kubectl delete node {goes}  #");
    assert!(partly.fix_example().starts_with(&expected), "{}", partly.fix_example());
}

#[test]
fn a_node_group_without_cluster_autoscaler_loses_a_node_by_name() {
    let facts = with_empty("EKSNodegroup", 1, false);
    let found = empty(&facts);
    assert_eq!((found.claims.len(), found.remedies.len()), (8, 0));
    let example = found.fix_example();
    assert!(example.starts_with("kubectl drain e0 --ignore-daemonsets  #"), "{example}");
    assert!(example.contains("minSize of the node group to 1 if"), "{example}");
    assert!(example.contains("--should-decrement-desired-capacity"), "{example}");
    // Of two, the pod needs one.
    let partly = empty(&with_empty("EKSNodegroup", 2, true));
    assert!(partly.fix_example().contains("minSize of the node group to 2 if"));
    assert!(!partly.fix_example().contains(" e0 ") || !partly.fix_example().contains(" e1 "));
    // Other providers run theirs outside the cluster.
    assert_eq!(empty(&with_empty("GKENodePool", 1, false)).remedies.len(), 1);
}

#[test]
fn settings_that_a_pool_has_are_no_advice() {
    let minute_ms = 60_000;
    let of = |after_ms: Option<u64>, budgets: &[bool]| {
        let mut facts = with_empty("NodePool", 1, false);
        let budget =
            |is_always: &bool| ZeroBudget { words: "nodes: \"0\"".into(), is_always: *is_always };
        let zero_budgets = budgets.iter().map(budget).collect();
        let rule = RemovalRule { removes_empty_after_ms: after_ms, zero_budgets };
        facts.removal_rules.insert(ObjectRef::new("NodePool", "", "gpus"), rule);
        let found = empty(&facts);
        let names = found.evidence.iter().any(|of| of.value == "nodes: \"0\"");
        let is_unknown = found.fix_example().starts_with("kubectl describe node e0");
        assert_eq!(is_unknown, !found.stays.is_empty(), "{found:?}");
        assert_eq!(found.claims.len(), 8, "{found:?}");
        let fix = found.fix_example();
        let allows = fix.contains("remove Empty from the reasons of {nodes: \"0\"}: delete");
        // A list would replace all budgets of the pool.
        assert!(!fix.contains("budgets: ["), "{fix}");
        assert_eq!(allows, fix.ends_with("and keep the other budgets"), "{fix}");
        (found.remedies.len(), is_unknown, names, allows)
    };
    assert_eq!(of(None, &[]), (1, false, false, false));
    // The node has been empty for nine hours.
    assert_eq!(of(Some(10 * HOUR_MS), &[]), (1, false, false, false));
    assert_eq!(of(Some(minute_ms), &[]), (0, true, false, false));
    assert_eq!(of(Some(minute_ms), &[false]), (0, true, true, false));
    assert_eq!(of(Some(minute_ms), &[false, true]), (0, false, true, true));
    assert_eq!(of(None, &[true]), (0, false, true, true));
}
