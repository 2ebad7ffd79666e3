//! What is left of a finding after its patch.

use super::*;
use crate::patch::{FactsByOwner, Json, SourceObject, patches};

const HELD_BY: [(&str, &str); 3] = [
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    ("karpenter.sh/do-not-disrupt", "true"),
    ("karpenter.sh/do-not-evict", "true"),
];

#[test]
fn one_patch_takes_away_all_annotations_that_hold_a_pod() {
    let mut facts = healthy();
    held(&mut facts, 1);
    let told = HELD_BY.map(|(key, value)| format!("{key}: {value}"));
    facts.workloads[SERVE].template.eviction_held_by = told.to_vec();
    let found = audit(&facts);
    assert_eq!(found.len(), 1, "{found:#?}");
    let shown = found[0].evidence.iter().filter(|evidence| evidence.what == "annotation");
    assert_eq!(shown.map(|evidence| evidence.value.clone()).collect::<Vec<_>>(), told);

    let annotations = HELD_BY.into_iter().chain([("note", "stays")]);
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.into())).collect();
    let limits = Json::object([("limits", Json::object([(GPU, "1".into())]))]);
    let main = Json::object([("name", "main".into()), ("resources", limits)]);
    let template = Json::object([
        ("metadata", Json::object([("annotations", Json::Object(annotations))])),
        ("spec", Json::object([("containers", Json::List(vec![main]))])),
    ]);
    let source = SourceObject {
        object: found[0].object.clone(),
        api_version: "apps/v1".into(),
        content: Json::object([("spec", Json::object([("template", template)]))]),
        ..SourceObject::default()
    };
    let all = patches(&FactsByOwner::of(&facts), &[&found[0]], Some(&source));
    let bodies: Vec<_> = all.iter().filter_map(|patch| Some(patch.body()?.to_line())).collect();
    assert_eq!(
        bodies,
        [[
            r#"{"spec":{"template":{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":null,"#,
            r#""karpenter.sh/do-not-disrupt":null,"karpenter.sh/do-not-evict":null}}}}}"#,
        ]
        .concat()]
    );
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
