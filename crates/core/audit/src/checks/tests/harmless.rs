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
