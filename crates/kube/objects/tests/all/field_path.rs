//! Which field of an object could not be read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use dovetail_objects::{HyperNode, Node, Pod, PodGroup, ResourceSlice, VolumeClaim, field_path};

/// The way as a reader notes it that goes along.
fn noted<T: DeserializeOwned>(text: &str) -> Option<String> {
    let mut input = serde_json::Deserializer::from_str(text);
    let error = serde_path_to_error::deserialize::<_, T>(&mut input).err()?;
    Some(error.path().to_string())
}

fn walked<T: DeserializeOwned>(text: &str) -> Option<String> {
    let error = serde_json::from_str::<T>(text).err()?;
    Some(field_path(text.as_bytes(), &error))
}

/// All values in which one part of this one is another.
fn spoiled(value: &Value) -> Vec<Value> {
    let others =
        [json!(true), json!(-1), json!(1e99), json!("a\"\\b"), json!([7]), json!({"a": 7})];
    let mut all = others.to_vec();
    match value {
        Value::Object(fields) => {
            for (key, part) in fields {
                all.extend(spoiled(part).into_iter().map(|part| {
                    let mut fields = fields.clone();
                    fields.insert(key.clone(), part);
                    Value::Object(fields)
                }));
            }
        }
        Value::Array(items) => {
            for (at, part) in items.iter().enumerate() {
                all.extend(spoiled(part).into_iter().map(|part| {
                    let mut items = items.clone();
                    items[at] = part;
                    Value::Array(items)
                }));
            }
        }
        _ => {}
    }
    all
}

fn judged<T: DeserializeOwned>(object: &Value) -> usize {
    let mut wrong = 0;
    for object in spoiled(object) {
        for text in [object.to_string(), format!("{object:#}")] {
            let (noted, walked) = (noted::<T>(&text), walked::<T>(&text));
            assert_eq!(noted, walked, "{text}");
            wrong += usize::from(noted.is_some());
        }
    }
    wrong
}

#[test]
fn the_way_to_a_field_is_that_of_a_reader_that_goes_along() {
    let term = json!({"labelSelector": {"matchExpressions": [
        {"key": "a", "operator": "In", "values": ["b"]}], "matchLabels": {"c": "d"}},
        "topologyKey": "zone", "namespaces": ["n"]});
    let container = json!({"name": "c", "image": "i", "ports": [{"hostPort": 1}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "1"}}});
    let pod = json!({"metadata": {"name": "p", "labels": {"a/b": "c"}, "uid": "u",
        "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [{"kind": "Job"}]},
        "spec": {"containers": [container, container], "nodeName": "n", "priority": 1,
        "affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "tolerations": [{"key": "k", "tolerationSeconds": 1}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let node = json!({"metadata": {"name": "n"}, "spec": {"taints": [{"key": "k"}]},
        "status": {"allocatable": {"pods": "1"},
        "images": [{"names": ["i"], "sizeBytes": 1}]}});
    let group = json!({"metadata": {"name": "g"}, "spec": {"minMember": 1,
        "minTaskMember": {"a": 1}, "subGroups": [{"name": "s", "minMember": 1}]}});
    let slice = json!({"spec": {"driver": "d", "pool": {"name": "p", "generation": 1},
        "devices": [{"name": "d", "attributes": {"a": {"int": 1}}, "capacity": {"m":
        {"value": "1"}}}]}});
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources":
        {"requests": {"storage": "1"}}, "volumeName": "v"}});
    let hyper = json!({"spec": {"tier": 1, "members": [{"type": "Node", "selector":
        {"exactMatch": {"name": "n"}}}]}});
    let found = [
        judged::<Pod>(&pod),
        judged::<Node>(&node),
        judged::<PodGroup>(&group),
        judged::<ResourceSlice>(&slice),
        judged::<VolumeClaim>(&claim),
        judged::<HyperNode>(&hyper),
    ];
    assert!(found.iter().all(|wrong| *wrong > 20), "{found:?}");
}

#[test]
fn what_lacks_a_field_is_named() {
    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "read and never used")]
    struct Part {
        needed: bool,
    }
    type Parts = BTreeMap<String, Vec<Part>>;
    for text in [r#"{"a": [{"needed": true}, {}], "b": []}"#, r#"{"a": [{}]}"#, "[", "7", ""] {
        assert_eq!(noted::<Parts>(text), walked::<Parts>(text), "{text}");
    }
}
