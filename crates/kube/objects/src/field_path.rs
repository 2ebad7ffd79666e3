//! Which field of an object could not be read.
//!
//! The error says where in the text reading ended: walking the text up to there gives the way to
//! the field, once for all types. Wrapping the reader of every type in one that notes the way gives
//! the same, and a second copy of each of them.

/// A step on the way: a key of an object, once it was read, or a place in a list.
enum PathStep {
    Key(Option<String>),
    Place(usize),
}

/// The way to the field at which an error arose, such as `spec.containers[0].image`; `.` for the
/// whole text.
pub fn field_path(json: &[u8], error: &serde_json::Error) -> String {
    let read = &json[..end_of(json, error)];
    let mut rest = read;
    let mut way = Vec::new();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'{' => way.push(PathStep::Key(None)),
            b'[' => way.push(PathStep::Place(0)),
            b'}' | b']' => _ = way.pop(),
            b',' => match way.last_mut() {
                Some(PathStep::Key(key)) => *key = None,
                Some(PathStep::Place(place)) => *place += 1,
                None => {}
            },
            b'"' => {
                let (text, behind) = text(rest);
                rest = behind;
                if let Some(PathStep::Key(key @ None)) = way.last_mut() {
                    *key = Some(text);
                }
            }
            _ => {}
        }
    }
    // A list where none may be, of which nothing was read; before one in a list it is that one.
    let is_in_list = read.trim_ascii_end().ends_with(b"[");
    let is_before_list = json[read.len()..].trim_ascii_start().starts_with(b"[");
    if is_in_list && !is_before_list && is_about_the_list(&error.to_string()) {
        way.pop();
    }
    in_words(&way)
}

/// Whether an error is about a list and not about something in it.
fn is_about_the_list(problem: &str) -> bool {
    ["invalid type: sequence", "expected value"].iter().any(|about| problem.starts_with(about))
}

/// How much of the text was read before the error arose.
fn end_of(json: &[u8], error: &serde_json::Error) -> usize {
    let lines = json.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    json.len().min(before + error.column())
}

/// The text behind a quotation mark, and what comes behind it.
fn text(json: &[u8]) -> (String, &[u8]) {
    let mut is_escaped = false;
    let end = json.iter().position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    let (text, behind) = json.split_at(end.unwrap_or(json.len()));
    let quoted = [b"\"", text, b"\""].concat();
    let text = serde_json::from_slice(&quoted);
    let text = text.unwrap_or_else(|_| String::from_utf8_lossy(&quoted).into_owned());
    (text, behind.get(1..).unwrap_or_default())
}

fn in_words(way: &[PathStep]) -> String {
    let mut path = String::new();
    for step in way {
        match step {
            PathStep::Key(None) => {}
            PathStep::Key(Some(key)) if path.is_empty() => path.push_str(key),
            PathStep::Key(Some(key)) => path.extend([".", key]),
            PathStep::Place(place) => path.push_str(&format!("[{place}]")),
        }
    }
    if path.is_empty() { ".".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::field_path;
    use crate::{HyperNode, Node, Pod, PodGroup, ResourceSlice, VolumeClaim};

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
}
