//! How long changes take, by the records of those that were made.

use dovetail_sharing::{Component, Record, change_seconds};
use serde_json::json;

fn record(step: &str, by: &str, seconds: u64) -> Record {
    let side = json!({"config": "all-1g.10gb", "layout": []});
    let record = json!({"step": step, "sinceMs": 1_000_000 + seconds * 1_000, "by": by,
        "startedMs": 1_000_000, "asked": null, "attempt": 1, "from": side, "to": side});
    Record::read(&record.to_string()).expect("a record")
}

#[test]
fn the_slowest_tenth_of_completed_changes_says_how_long_the_next_takes() {
    let of = |records: &[Record]| change_seconds(records, Component::MigManager);
    let mut records: Vec<Record> =
        [60, 240, 90, 70].map(|seconds| record("Done", "mig-manager", seconds)).into();
    records.push(record("Undone", "mig-manager", 900));
    records.push(record("Stuck", "mig-manager", 1_900));
    records.push(record("Done", "device-plugin", 10));
    assert_eq!(of(&records), None, "four are too few");
    records.push(record("Done", "mig-manager", 80));
    assert_eq!(of(&records), Some(240));
    // Of twenty, the two slowest are left out.
    records.extend((0..15).map(|more| record("Done", "mig-manager", 100 + more)));
    records.push(record("Done", "mig-manager", 300));
    assert_eq!(of(&records), Some(114));
}
