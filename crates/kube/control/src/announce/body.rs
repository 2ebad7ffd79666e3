//! What is announced, as the server takes it.

use std::hash::{DefaultHasher, Hash, Hasher};

use dovetail_objects::harmless;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{EventSource, Note, PodCondition};

/// Longest text of an event that API servers take, in bytes.
const NOTE_LIMIT_BYTES: usize = 1_024;
/// Longest name of an object, in bytes.
const NAME_LIMIT_BYTES: usize = 253;

/// What makes a pod say why it waits. The UID and the version make the server refuse it for another
/// pod, and for one that has changed.
pub(crate) fn condition_patch(condition: &PodCondition) -> Value {
    let PodCondition { pod, resource_version, waiting, since_ms } = condition;
    let mut scheduled = json!({
        "type": "PodScheduled", "status": "False",
        "reason": waiting.word(), "message": harmless(&waiting.message),
    });
    if let Some(since_ms) = since_ms {
        scheduled["lastTransitionTime"] = json!(format!("{:.0}", timestamp(*since_ms)));
    }
    json!({
        "metadata": {"uid": pod.uid, "resourceVersion": resource_version},
        "status": {"conditions": [scheduled]},
    })
}

/// As kube-scheduler's recorder writes it, under a name that follows from what it says.
pub(super) fn event(note: &Note, source: &EventSource) -> Value {
    let (kind, about) = (note.kind, &note.about);
    let api_version = match kind.group() {
        "" => kind.version().to_owned(),
        group => format!("{group}/{}", kind.version()),
    };
    // Kinds of one name are told apart by their group behind it.
    let kind = kind.name().split('.').next().unwrap_or_default();
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": event_name(note), "namespace": about.namespace},
        "eventTime": format!("{:.6}", timestamp(note.at_ms)),
        "reportingController": source.controller,
        "reportingInstance": within(&source.instance, 128, ""),
        "action": note.action,
        "reason": note.reason,
        "regarding": {
            "apiVersion": api_version, "kind": kind,
            "namespace": about.namespace, "name": about.name, "uid": about.uid,
        },
        "note": within(&harmless(&note.text), NOTE_LIMIT_BYTES, " ..."),
        "type": if note.is_warning { "Warning" } else { "Normal" },
    })
}

/// The object's name and a number that is the same whenever the same is said of the same object.
fn event_name(note: &Note) -> String {
    let mut hasher = DefaultHasher::new();
    (&note.about.uid, note.reason, &note.tag).hash(&mut hasher);
    let number = format!(".{:016x}", hasher.finish());
    let name = within(&note.about.name, NAME_LIMIT_BYTES - number.len(), "");
    format!("{}{number}", name.trim_end_matches(['.', '-']))
}

/// The text, or as much of it as fits with an ending that says so.
fn within(text: &str, limit_bytes: usize, ending: &str) -> String {
    if text.len() <= limit_bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit_bytes - ending.len());
    format!("{}{ending}", &text[..end])
}

/// A time for people; what cannot be one is the beginning of 1970.
pub(crate) fn timestamp(at_ms: u64) -> Timestamp {
    i64::try_from(at_ms)
        .ok()
        .and_then(|at| Timestamp::from_millisecond(at).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use dovetail_cluster::world::PodKey;
    use dovetail_model::PendingReason;
    use dovetail_objects::Kind;

    use super::*;
    use crate::status::WaitingReason;

    fn pod(name: &str) -> PodKey {
        PodKey { namespace: "n".into(), name: name.into(), uid: "u".into() }
    }

    #[test]
    fn an_event_is_kube_schedulers_and_never_longer_than_servers_take() {
        let source = EventSource { controller: "dovetail".to_owned(), instance: "i".repeat(200) };
        let event = |note: &Note| event(note, &source);
        let placed = Note::scheduled(pod("p"), "node-1", "3-7", 1_796_000_000_123);
        let placed = event(&placed);
        assert_eq!(placed["note"], "Successfully assigned n/p to node-1");
        assert_eq!(placed["eventTime"], "2026-11-30T00:53:20.123000Z");
        assert_eq!(placed["reportingInstance"].as_str().map(str::len), Some(128));
        let regarding = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "n", "name": "p",
            "uid": "u"});
        assert_eq!(placed["regarding"], regarding);
        let wrong = event(&Note::contradiction(Kind::VolcanoGroup, pod("g"), "both", 0));
        let regarding = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "namespace": "n", "name": "g", "uid": "u"});
        assert_eq!((&wrong["regarding"], &wrong["type"]), (&regarding, &json!("Warning")));
        let long = Note::left_untouched(pod(&"a.".repeat(126)), &"é".repeat(600), 0);
        let long = event(&long);
        let (note, name) = (long["note"].as_str().unwrap(), long["metadata"]["name"].as_str());
        assert!(note.len() <= 1_024 && note.ends_with("é ..."), "{}", note.len());
        assert!(name.is_some_and(|name| name.len() <= 253 && !name.contains("..")), "{name:?}");
    }

    #[test]
    fn what_was_quoted_from_an_object_is_escaped() {
        let source = EventSource { controller: "dovetail".to_owned(), instance: "i".to_owned() };
        let note = Note::left_untouched(pod("p"), "annotation is `3\u{1b}[31m\n`", 0);
        assert_eq!(event(&note, &source)["note"], r"annotation is `3\u{1b}[31m\n`");
    }

    #[test]
    fn the_same_said_again_has_the_same_name() {
        let waits = |message: &str, at_ms| {
            let waiting = WaitingReason::pending(PendingReason::Unschedulable, message.to_owned());
            event_name(&Note::waits(pod("p"), &waiting, at_ms))
        };
        assert_eq!(waits("a", 1), waits("a", 2));
        assert_ne!(waits("a", 1), waits("b", 1));
    }
}
