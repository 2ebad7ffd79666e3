//! A write to a node: taint, label and record in one request, and the event that precedes it.

use dovetail_model::labels::NVIDIA_MIG_STATE;
use dovetail_objects::harmless;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::component::Component;
use crate::names::{RECORD, TAINT};
use crate::node_state::Seen;
use crate::record::Record;
use crate::status::time;
use crate::workload::ObjectName;

/// Longest message of an event, in characters.
const MOST_LETTERS: usize = 900;
/// Longest part of an event's name that is the node's, in characters.
const MOST_NAME: usize = 200;

/// A merge patch of a node. The server refuses it if the node has changed since it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub record: Record,
    pub patch: Value,
    /// Created before the patch is sent. It has the same name whenever the same is reported, so a
    /// repetition is refused and does no harm.
    pub event: Option<Value>,
}

/// What a write changes besides the record.
pub(crate) struct Changed {
    /// Whether the node is tainted then.
    pub(crate) is_tainted: bool,
    /// The layout that is asked for.
    pub(crate) asked: Option<String>,
    /// Reason, message and whether it is a warning.
    pub(crate) event: Option<(&'static str, String, bool)>,
}

impl Write {
    pub(crate) fn new(seen: &Seen, record: Record, changed: Changed, now_ms: u64) -> Self {
        let mut taints = seen.taints.clone();
        taints.retain(|taint| taint["key"] != TAINT);
        if changed.is_tainted {
            taints.push(json!({"key": TAINT, "effect": "NoSchedule"}));
        }
        let mut patch = json!({
            "metadata": {
                "uid": seen.uid,
                "resourceVersion": seen.resource_version,
                "annotations": {RECORD: record.text()},
            },
            "spec": {"taints": taints},
        });
        if let Some(name) = changed.asked {
            let mut labels = json!({record.by.label(): name});
            if record.by == Component::MigManager {
                // mig-manager writes `pending` itself when it sees the label. Written here with
                // the label, the answer to an earlier request cannot be taken for the one to this.
                labels[NVIDIA_MIG_STATE] = json!("pending");
            }
            patch["metadata"]["labels"] = labels;
        }
        let event = changed.event.map(|event| self::event(seen, &record, event, now_ms));
        Self { record, patch, event }
    }
}

fn event(
    seen: &Seen,
    record: &Record,
    (reason, message, is_warning): (&'static str, String, bool),
    now_ms: u64,
) -> Value {
    let Record { started_ms, attempt, step, .. } = record;
    let said = format!("{} {started_ms} {reason} {attempt} {}", seen.uid, step.word());
    let node = ObjectName {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        namespace: String::new(),
        name: seen.node.clone(),
        uid: seen.uid.clone(),
    };
    event_about(&node, (reason, &message, is_warning), &said, now_ms)
}

/// An event about an object: reason, message and whether it is a warning. `said`: what makes it
/// another event than the last one; the same event has the same name.
pub fn event_about(
    about: &ObjectName,
    (reason, message, is_warning): (&'static str, &str, bool),
    said: &str,
    now_ms: u64,
) -> Value {
    let digest = Sha256::digest(said.as_bytes());
    let number: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let name: String = about.name.chars().take(MOST_NAME).collect();
    let message: String = harmless(message).to_string().chars().take(MOST_LETTERS).collect();
    let at = time(now_ms);
    let namespace = if about.namespace.is_empty() { "default" } else { &about.namespace };
    let mut object =
        json!({"apiVersion": about.api_version, "kind": about.kind, "name": about.name});
    for (key, value) in [("uid", &about.uid), ("namespace", &about.namespace)] {
        if !value.is_empty() {
            object[key] = json!(value);
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{}.{number}", name.trim_end_matches(['.', '-'])),
            "namespace": namespace,
        },
        "involvedObject": object,
        "reason": reason,
        "message": message,
        "type": if is_warning { "Warning" } else { "Normal" },
        "source": {"component": "dovetail"},
        "reportingComponent": "dovetail",
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    })
}
