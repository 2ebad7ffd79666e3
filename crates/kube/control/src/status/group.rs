//! The condition `PodGroupInitiallyScheduled` of native groups of pods.
//!
//! As kube-scheduler 1.37 writes it: true, for the reason `Scheduled`, once the group has its size,
//! and never false again from then on; before that false, with the word and the text that its pods
//! have.

use dovetail_objects::json::timestamp;
use dovetail_objects::{INITIALLY_SCHEDULED, PodGroup, harmless};
use dovetail_translate::NotYet;
use serde_json::{Value, json};

use super::WaitingReason;
use super::waiting::LEFT_UNTOUCHED;

/// What a group says that has its size.
pub fn group_is_scheduled() -> Value {
    json!({"status": "True", "reason": "Scheduled", "message": ""})
}

/// What a group says whose pods wait.
pub fn group_waits(waiting: &WaitingReason) -> Value {
    json!({"status": "False", "reason": waiting.word(), "message": harmless(&waiting.message)})
}

/// What a group says whose pods are left untouched, if it said something else before.
pub fn group_is_left_untouched(why: &NotYet) -> Value {
    group_waits(&WaitingReason::left_untouched(why))
}

/// The strategic merge patch that makes a group say so; `None` if it does, or if it was scheduled
/// before. The version makes the server refuse it for a group that has changed meanwhile.
pub fn group_patch(group: &PodGroup, wanted: &Value, now_ms: u64) -> Option<Value> {
    let says = &group.initially_scheduled;
    let same = ["status", "reason", "message"].iter().all(|key| says[*key] == wanted[*key]);
    // A group that is left untouched is written to only where its condition is out of date.
    let is_needless = wanted["reason"] == LEFT_UNTOUCHED && says["status"] != "False";
    if says["status"] == "True" || same || is_needless {
        return None;
    }
    let since = says["lastTransitionTime"].as_str().filter(|_| says["status"] == wanted["status"]);
    let now = timestamp(now_ms);
    let meta = &group.meta;
    Some(json!({
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "status": {"conditions": [{
            "type": INITIALLY_SCHEDULED,
            "status": wanted["status"],
            "reason": wanted["reason"],
            "message": wanted["message"],
            "lastTransitionTime": since.unwrap_or(&now),
        }]},
    }))
}

#[cfg(test)]
mod tests {
    use dovetail_model::PendingReason;

    use super::*;

    #[test]
    fn once_scheduled_a_group_says_so_for_ever() {
        let waiting = |message: &str| {
            group_waits(&WaitingReason::pending(PendingReason::Unschedulable, message.to_owned()))
        };
        let saying = |condition: Value| -> PodGroup {
            let conditions = json!([{"type": "DisruptionTarget", "status": "True"}, condition]);
            serde_json::from_value(json!({"metadata": {"uid": "u", "resourceVersion": "7"},
                "status": {"conditions": conditions}}))
            .unwrap()
        };
        let condition = |group: &PodGroup, wanted: &Value| {
            group_patch(group, wanted, 1_796_000_009_000)
                .map(|patch| patch["status"]["conditions"][0].clone())
        };
        let new = saying(json!({"type": "Other"}));
        let first = condition(&new, &waiting("no room")).unwrap();
        assert_eq!(first["lastTransitionTime"], "2026-11-30T00:53:29Z");
        assert_eq!(
            (&first["status"], &first["reason"]),
            (&json!("False"), &json!("Unschedulable"))
        );
        let mut old = first.clone();
        old["lastTransitionTime"] = json!("2026-11-30T00:00:00Z");
        let waits = saying(old.clone());
        assert_eq!(condition(&waits, &waiting("no room")), None);
        let other = condition(&waits, &waiting("less room")).unwrap();
        assert_eq!(other["lastTransitionTime"], "2026-11-30T00:00:00Z", "it is false as before");
        let done = condition(&waits, &group_is_scheduled()).unwrap();
        assert_eq!(
            (&done["reason"], &done["type"]),
            (&json!("Scheduled"), &json!(INITIALLY_SCHEDULED))
        );
        assert_eq!(condition(&saying(done), &waiting("no room")), None);
    }
}
