//! Conditions in the status of an object.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::now::stamp;

/// Puts a condition in the place of the one of its type; the time of its last transition moves only
/// with its status.
pub(crate) fn put_condition(status: &mut Value, mut condition: Value, now: Timestamp) {
    condition["lastTransitionTime"] = stamp(now);
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|one| one["type"] == condition["type"]) {
        Some(old) => {
            if old["status"] == condition["status"] {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}
