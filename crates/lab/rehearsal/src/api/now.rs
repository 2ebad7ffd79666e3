//! Times in the form of object metadata. Nothing here reads a clock.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A time in milliseconds since 1970, in whole seconds.
pub(crate) fn whole_seconds(now_ms: u64) -> Timestamp {
    let seconds = i64::try_from(now_ms / 1_000).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// As in `creationTimestamp`.
pub(crate) fn stamp(time: Timestamp) -> Value {
    json!(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Reads what [`stamp`] wrote, or a client's time; what is no time counts as the beginning of time.
pub(crate) fn read(value: &Value) -> Timestamp {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

pub(crate) fn after_s(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
