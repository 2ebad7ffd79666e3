//! Runs a table of steps against a server and writes down what it answers, without what differs
//! between any two runs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::session::Session;

/// One step: its name, its request, its body.
///
/// The request is a verb and a path. Verbs are HTTP methods, and `MERGE`, `STRATEGIC`, `JSON` for
/// kinds of patches, `WATCH:n` for the first n events of a watch (`WATCH:*` for all until its end),
/// `AWAIT` for a `GET` that is repeated until it finds something.
///
/// `{ns}` stands for the namespace; `{uid:NAME}`, `{rv:NAME}` for what the latest answer with an
/// object of this name said; `{rv:list}` and `{continue}` for what the latest list said.
pub(crate) struct Step {
    /// Says what is tried.
    pub(crate) name: &'static str,
    /// Verb and path.
    pub(crate) request: &'static str,
    /// JSON, or nothing.
    pub(crate) body: &'static str,
}

impl Step {
    /// The same step.
    pub(crate) fn copied(&self) -> Self {
        Self { ..*self }
    }
}

/// What a step was answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Name of the step.
    pub(crate) step: &'static str,
    /// HTTP code.
    pub(crate) code: u16,
    /// What is comparable of the body.
    pub(crate) body: Value,
}

impl Answer {
    /// Step, code and message, or the types of events.
    pub(crate) fn line(&self) -> String {
        let events = self.body.as_array().into_iter().flatten();
        let events: Vec<&str> = events.filter_map(|event| event["type"].as_str()).collect();
        let said = self.body["message"].as_str().map_or_else(|| events.join(" "), str::to_owned);
        format!("{}: {} {said}", self.step, self.code).trim_end().to_owned()
    }
}

/// Runs all steps in a namespace of their own.
pub(crate) async fn run(session: &Session, namespace: &str, steps: &[Step]) -> Vec<Answer> {
    let mut known = BTreeMap::from([("ns".to_owned(), namespace.to_owned())]);
    let mut answers = Vec::new();
    for step in steps {
        let request = filled(step.request, &known);
        let body = filled(step.body, &known);
        let (verb, path) = request.split_once(' ').expect("a verb and a path");
        let (code, body) = perform(session, step.name, verb, path, &body).await;
        learn(&body, &mut known);
        // How a definition comes to be established is nobody's concern here.
        let definition = path.ends_with("customresourcedefinitions");
        let definition = definition || path.contains("customresourcedefinitions/");
        let body = if definition { json!({}) } else { comparable(&body, &known) };
        answers.push(Answer { step: step.name, code, body });
    }
    answers
}

async fn perform(
    session: &Session,
    step: &str,
    verb: &str,
    path: &str,
    body: &str,
) -> (u16, Value) {
    let send = |method: &'static str, content_type: &'static str| async move {
        let answer = session.send(method, path, content_type, body).await;
        answer.unwrap_or_else(|error| panic!("{step}: {error}"))
    };
    match verb {
        "GET" => send("GET", "application/json").await,
        "POST" => send("POST", "application/json").await,
        "PUT" => send("PUT", "application/json").await,
        "DELETE" => send("DELETE", "application/json").await,
        "MERGE" => send("PATCH", "application/merge-patch+json").await,
        "STRATEGIC" => send("PATCH", "application/strategic-merge-patch+json").await,
        "JSON" => send("PATCH", "application/json-patch+json").await,
        "ODD" => send("PATCH", "application/x-nothing").await,
        "AWAIT" => await_there(session, path).await,
        watch => {
            let count = watch.strip_prefix("WATCH:").unwrap_or_else(|| panic!("{step}: {watch}?"));
            read_watch(session, path, count.parse().unwrap_or(usize::MAX)).await
        }
    }
}

/// Waits on a watch of the objects with this label until the path answers.
async fn await_there(session: &Session, path: &str) -> (u16, Value) {
    loop {
        let (code, body) =
            session.send("GET", path, "application/json", "").await.expect("an answer");
        if code == 200 {
            return (code, json!("there"));
        }
        drop(body);
        tokio::task::yield_now().await;
    }
}

async fn read_watch(session: &Session, path: &str, count: usize) -> (u16, Value) {
    let mut events = match session.watch(path).await {
        Ok(events) => events,
        Err(refused) => return refused,
    };
    let mut read = Vec::new();
    while read.len() < count {
        match events.next().await {
            Some(Ok(event)) => read.push(event),
            Some(Err(error)) => panic!("{path}: the watch broke: {error}"),
            None => break,
        }
    }
    (200, Value::Array(read))
}

fn filled(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (key, value) in known {
        text = text.replace(&format!("{{{key}}}"), value);
    }
    text
}

/// Notes names, UIDs and versions for later steps.
fn learn(body: &Value, known: &mut BTreeMap<String, String>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &body["metadata"];
    if let Some(name) = metadata["name"].as_str() {
        known.insert(format!("uid:{name}"), text(&metadata["uid"]));
        known.insert(format!("rv:{name}"), text(&metadata["resourceVersion"]));
    } else if body["items"].is_array() {
        known.insert("rv:list".to_owned(), text(&metadata["resourceVersion"]));
        known.insert("continue".to_owned(), text(&metadata["continue"]));
    }
}

/// What two servers must agree on. Left out are UIDs, versions, times, tokens and managed fields,
/// everything but the metadata of a bookmark, what is empty, and the taint of new nodes, which the
/// real test server is told not to add.
fn comparable(body: &Value, known: &BTreeMap<String, String>) -> Value {
    match body {
        Value::Object(fields) if fields.get("type") == Some(&json!("BOOKMARK")) => {
            let object = &fields["object"];
            let kept = json!({
                "kind": object["kind"], "annotations": object["metadata"]["annotations"],
            });
            json!({"type": "BOOKMARK", "object": kept})
        }
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| *key != "managedFields");
            let part = |key: &String, value: &Value| match key.as_str() {
                "uid" | "resourceVersion" | "continue" | "creationTimestamp"
                | "deletionTimestamp" | "lastTransitionTime" => match is_empty(value) {
                    true => Value::Null,
                    false => json!("<differs>"),
                },
                "taints" => {
                    let taints = value.as_array().into_iter().flatten();
                    let taints = taints.filter(|t| t["key"] != "node.kubernetes.io/not-ready");
                    let taints: Vec<Value> = taints.cloned().collect();
                    if taints.is_empty() { Value::Null } else { json!(taints) }
                }
                "disruptedPods" => {
                    let pods = value.as_object().into_iter().flatten();
                    pods.map(|(pod, _)| json!(pod)).collect()
                }
                _ => comparable(value, known),
            };
            let parts = kept.map(|(key, value)| (key.clone(), part(key, value)));
            parts.filter(|(_, value)| !is_empty(value)).collect()
        }
        Value::Array(items) => items.iter().map(|item| comparable(item, known)).collect(),
        Value::String(text) => json!(without_chance(text, known)),
        other => other.clone(),
    }
}

/// Whether a field says as much as one that is absent. An empty list of objects says more.
fn is_empty(value: &Value) -> bool {
    value.is_null() || value == "" || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// A message without the UIDs and versions in it, and without what only the real server's own
/// libraries can say: the rest of an error of decoding, and the differences of a change refused.
fn without_chance(text: &str, known: &BTreeMap<String, String>) -> String {
    let ends = ["continue key is not valid", "if it was previously negative)"];
    let end = ends.iter().filter_map(|end| Some(text.find(end)? + end.len())).min();
    let mut text = text[..end.unwrap_or(text.len())].to_owned();
    for (key, value) in known {
        let chance = key.starts_with("uid:") || key == "ns";
        if chance && !value.is_empty() {
            text = text.replace(value.as_str(), "<differs>");
        }
    }
    if text.to_lowercase().contains("resource version") || text.contains("ResourceVersion in") {
        let mut out = String::new();
        for letter in text.chars() {
            if !letter.is_ascii_digit() {
                out.push(letter);
            } else if !out.ends_with('#') {
                out.push('#');
            }
        }
        text = out;
    }
    text
}
