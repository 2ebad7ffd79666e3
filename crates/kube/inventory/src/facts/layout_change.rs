//! What the record of a layout change on a node (annotation `dovetail.dev/partition`) tells the
//! checks: its step, and since when. The rest of it names pods and repeats messages.

use dovetail_sharing::Step;
use serde::{Deserialize, Serialize};

pub(crate) use dovetail_sharing::names::RECORD;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    step: Step,
    since_ms: u64,
}

/// Since when the change is stuck, if it is.
pub(super) fn stuck_since(record: &str) -> Option<u64> {
    let told: Told = serde_json::from_str(record).ok()?;
    (told.step == Step::Stuck).then_some(told.since_ms)
}

/// A record with what is told alone; nothing of one that cannot be read.
pub(crate) fn told_alone(record: &str) -> String {
    let told = serde_json::from_str::<Told>(record).ok();
    told.and_then(|told| serde_json::to_string(&told).ok()).unwrap_or_default()
}
