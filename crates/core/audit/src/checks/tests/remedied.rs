//! What would fix a finding: as a change, and by example.

use super::*;
use crate::remedy::PatchChange;

const HELD_BY: [(&str, &str); 3] = [
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    ("karpenter.sh/do-not-disrupt", "true"),
    ("karpenter.sh/do-not-evict", "true"),
];

#[test]
fn all_annotations_that_hold_a_pod_are_dropped() {
    let mut facts = healthy();
    held(&mut facts, 1);
    let told = HELD_BY.map(|(key, value)| format!("{key}: {value}"));
    facts.workloads[SERVE].template.eviction_held_by = told.to_vec();
    let found = audit(&facts);
    assert_eq!(found.len(), 1, "{found:#?}");
    let shown = found[0].evidence.iter().filter(|evidence| evidence.what == "annotation");
    assert_eq!(shown.map(|evidence| evidence.value.clone()).collect::<Vec<_>>(), told);

    let dropped = found[0].changes().map(|change| match change {
        PatchChange::DropAnnotation { key } => key.as_str(),
        change => panic!("{change:?}"),
    });
    assert_eq!(dropped.collect::<Vec<_>>(), HELD_BY.map(|(key, _)| key));
}

/// By hand: 96 cores and 1 TiB for eight GPUs.
#[test]
fn the_example_of_a_smaller_request_is_the_share_of_the_node() {
    let example = |resource: &str, amount: i64| {
        let mut facts = healthy();
        requests(&mut facts, SERVE, resource, amount);
        let found = audit(&facts);
        let finding = found.iter().find(|finding| finding.check.id == "REQ-08");
        finding.expect("it requests more than its share").fix_example()
    };
    let cpu = r#"resources: {requests: {cpu: "12"}} of container main"#;
    assert_eq!(example("cpu", 90_000), cpu);
    let memory = "resources: {requests: {memory: 128Gi}} of container main";
    assert_eq!(example("memory", 500 * GIB), memory);
}
