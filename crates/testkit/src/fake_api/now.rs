//! The server's clock, in the form of object metadata.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// The present, in whole seconds.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default()
}

/// As in `creationTimestamp`.
pub(super) fn stamp(time: Timestamp) -> Value {
    json!(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Reads what [`stamp`] wrote, or a client's time; what is no time counts as the beginning of time.
pub(super) fn read(value: &Value) -> Timestamp {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

pub(super) fn after_s(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
