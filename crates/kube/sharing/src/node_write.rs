//! A write to a node: taint, label and record in one request, and the event that precedes it.

use dovetail_objects::json::timestamp;
use dovetail_objects::{harmless, shortened};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::names::{RECORD, TAINT};
use crate::node_state::Seen;
use crate::object_name::ObjectName;
use crate::record::Record;

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
    /// Whether it has the clearing taint of its component then; `None`: as now.
    pub(crate) clears: Option<bool>,
    /// The layout that is asked for.
    pub(crate) asked: Option<String>,
    /// Reason, message and whether it is a warning.
    pub(crate) event: Option<(&'static str, String, bool)>,
}

impl Write {
    pub(crate) fn new(seen: &Seen, mut record: Record, changed: Changed, now_ms: u64) -> Self {
        let mut taints = seen.taints.clone();
        taints.retain(|taint| taint["key"] != TAINT);
        if changed.is_tainted {
            taints.push(json!({"key": TAINT, "effect": "NoSchedule"}));
        }
        let did_evict = seen.record.as_ref().is_some_and(|record| record.evicts);
        if let Some((taint, evicts)) = record.by.clearing_taint().zip(changed.clears) {
            // What others set while dovetail did not is theirs.
            taints.retain(|one| !did_evict || one["key"] != *taint.key);
            if evicts {
                taints.push(json!({"key": taint.key, "value": taint.value, "effect": "NoExecute"}));
            }
            record.evicts = evicts;
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
            if let Some(state) = record.by.state_label() {
                // mig-manager writes `pending` itself when it sees the label, Device Config Manager
                // nothing before it is over. Written here with the label, the answer to an earlier
                // request cannot be taken for the one to this.
                labels[state] = json!("pending");
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
    let said = said(seen, record, reason);
    event_about(&seen.about(), (reason, &message, is_warning), &said, now_ms)
}

/// What an event is about: which step of which change. A process that dies before the first write
/// of a change leaves no time of its beginning: it is the change between these layouts that follows
/// the one before.
fn said(seen: &Seen, record: &Record, reason: &str) -> String {
    let Record { started_ms, attempt, step, from, to, .. } = record;
    let before_ms = seen.record.as_ref().map(|before| before.started_ms);
    let change = match before_ms {
        Some(before_ms) if before_ms == *started_ms => started_ms.to_string(),
        _ => format!("{} {} {}", before_ms.unwrap_or(0), from.words(), to.words()),
    };
    format!("{} {change} {reason} {attempt} {}", seen.uid, step.word())
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
    let name = subdomain(&about.name);
    let message = shortened(&harmless(message), MOST_LETTERS).into_owned();
    let at = timestamp(now_ms);
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
            "name": format!("{name}.{number}"),
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

/// A name that events can begin with: a DNS subdomain in lower case.
fn subdomain(name: &str) -> String {
    let plain = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '.') => letter,
        _ => '-',
    };
    let name: String = name.chars().take(MOST_NAME).map(plain).collect();
    let parts = name.split('.').map(|part| part.trim_matches('-')).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    if parts.is_empty() { "unnamed".to_owned() } else { parts.join(".") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_about_any_name_have_a_valid_one() {
        let long = "a".repeat(199) + ".b";
        for (name, start) in [
            ("chat", "chat"),
            ("Chat_Server:v1", "chat-server-v1"),
            ("-a..b-.-.c.", "a.b.c"),
            ("\u{e9}\u{e9}", "unnamed"),
            ("", "unnamed"),
            (&*long, &long[..199]),
        ] {
            let about = ObjectName {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                namespace: String::new(),
                name: name.to_owned(),
                uid: String::new(),
            };
            let event = event_about(&about, ("LatencySame", "", false), "", 0);
            let named = event["metadata"]["name"].as_str().expect("a name");
            let (first, number) = named.rsplit_once('.').expect("a number");
            assert_eq!((first, number.len()), (start, 16), "{name}");
            assert_eq!(event["involvedObject"]["name"], name);
        }
    }
}
