//! Findings that offer no change where it could harm somebody who is not part of the finding.

use super::*;

/// How many changes the findings of a check offer.
fn offered(id: &str, change: impl FnOnce(&mut Facts)) -> usize {
    let mut facts = healthy();
    change(&mut facts);
    let found = audit(&facts);
    let mut of_check = found.iter().filter(|finding| finding.check.id == id);
    let finding = of_check.next().expect("a finding");
    finding.remedies.len()
}

/// Takes the work from the node with GPUs.
fn rest(facts: &mut Facts) {
    facts.workloads[TRAIN].pods.clear();
    facts.workloads[SERVE].pods.clear();
}

#[test]
fn a_quota_is_offered_only_where_no_more_pods_can_come() {
    let unlimited = |facts: &mut Facts, namespace: usize| {
        facts.namespaces[namespace].quota_resources = Some(BTreeSet::new());
    };
    // Servers that an autoscaler scales, then servers alone.
    assert_eq!(offered("GOV-01", |facts| unlimited(facts, 1)), 0);
    let fixed = |facts: &mut Facts| {
        facts.autoscalers.clear();
        unlimited(facts, 1);
    };
    assert_eq!(offered("GOV-01", fixed), 1);
    // The next job would be refused.
    assert_eq!(offered("GOV-01", |facts| unlimited(facts, 0)), 0);
    let reserves = |facts: &mut Facts| {
        fixed(facts);
        facts.workloads[SERVE].reserves_for_others = true;
    };
    assert_eq!(offered("GOV-01", reserves), 0);
}

#[test]
fn taints_of_unhealthy_nodes_are_not_tolerated() {
    let tainted = |key: &'static str, value: &'static str| {
        move |facts: &mut Facts| {
            let added = Taint { value: value.into(), ..taint(key) };
            facts.nodes[0].node.taints.push(added);
        }
    };
    assert_eq!(offered("SCH-04", tainted("team-b", "")), 1);
    assert_eq!(offered("SCH-04", tainted("gpu-health", "XID-79")), 0);
    assert_eq!(offered("SCH-04", tainted("example.com/out-of-service", "")), 0);
    // Another node is only reserved.
    let one_of_two = |facts: &mut Facts| {
        let mut other = gpu_node("g2", "H100");
        other.node.taints.push(taint("team-b"));
        add_node(facts, other);
        tainted("under-repair", "")(facts);
    };
    assert_eq!(offered("SCH-04", one_of_two), 1);
}

#[test]
fn a_node_is_drained_or_given_to_an_autoscaler_only_without_work() {
    let broken = |facts: &mut Facts| {
        facts.nodes[0].gpus.get_mut(GPU).expect("it has GPUs").allocatable = 7;
    };
    assert_eq!(offered("CAP-01", broken), 0);
    let broken_and_empty = |facts: &mut Facts| {
        broken(facts);
        rest(facts);
    };
    assert_eq!(offered("CAP-01", broken_and_empty), 1);
    let kept = |facts: &mut Facts| {
        facts.nodes[0].scale_down_held_by = Some("scale-down-disabled: \"true\"".into());
    };
    assert_eq!(offered("AUT-04", kept), 0);
    let kept_and_empty = |facts: &mut Facts| {
        kept(facts);
        rest(facts);
    };
    assert_eq!(offered("AUT-04", kept_and_empty), 1);
}

#[test]
fn a_node_that_is_being_removed_is_not_uncordoned() {
    let cordoned = |facts: &mut Facts| facts.nodes[0].cordoned_since_ms = Some(0);
    assert_eq!(offered("AUT-06", cordoned), 1);
    let removed = |facts: &mut Facts| {
        cordoned(facts);
        facts.nodes[0].is_being_removed = true;
    };
    assert_eq!(offered("AUT-06", removed), 0);
}

/// An open node without work costs what a cordoned one costs.
#[test]
fn a_cordoned_node_without_gpu_pods_is_named_as_one_that_can_be_removed() {
    let risk = |without_pods_since_ms: Option<u64>| {
        let mut facts = healthy();
        facts.nodes[0].cordoned_since_ms = Some(0);
        facts.nodes[0].without_gpu_pods_since_ms = without_pods_since_ms;
        let found = audit(&facts);
        let finding = found.iter().find(|finding| finding.check.id == "AUT-06").unwrap();
        let named = finding.evidence.iter().any(|of| of.what == "without GPU pods");
        (named, crate::patches(&facts, &[finding], None)[0].warnings.join(" "))
    };
    let (named, used) = risk(None);
    assert!(!named && !used.contains("removing"), "{used}");
    let (named, empty) = risk(Some(0));
    assert!(named && empty.contains("only removing it from its pool lowers the bill"), "{empty}");
}

/// HAMi chooses models by annotation: such a pod has made its choice, and gets no selector.
#[test]
fn a_pod_that_chooses_its_gpus_by_annotation_accepts_not_every_model() {
    let of = |choice: Option<&'static str>| {
        let mut facts = healthy();
        add_node(&mut facts, gpu_node("g2", "L4"));
        for workload in [TRAIN, SERVE] {
            facts.workloads[workload].template.chooses_gpus_by = choice;
        }
        audit(&facts).iter().filter(|finding| finding.check.id == "SCH-05").count()
    };
    assert_eq!((of(None), of(Some("nvidia.com/use-gputype"))), (2, 0));
}
