//! Leases of `coordination.k8s.io/v1` as JSON.

use jiff::Timestamp;
use serde_json::{Value, json};

use dovetail_control::lead::{Lease, Record};

/// The body that writes a record. The times in it are for people; nobody decides by them here, but
/// other clients of the lease may.
pub(super) fn to_json(
    name: &str,
    namespace: &str,
    record: &Record,
    version: Option<&str>,
) -> Value {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    let mut lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "holderIdentity": record.holder,
            // Whole seconds, and never less than is meant.
            "leaseDurationSeconds": record.lease_ms.div_ceil(1_000).max(1),
            "leaseTransitions": record.transitions,
            "acquireTime": now, "renewTime": now,
        },
    });
    if let Some(version) = version {
        lease["metadata"]["resourceVersion"] = json!(version);
    }
    lease
}

/// Reads a lease. What is missing counts as held by nobody, once, for no time.
pub(super) fn from_json(lease: &Value) -> Lease {
    let spec = &lease["spec"];
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let record = Record {
        holder: text(&spec["holderIdentity"]),
        lease_ms: number(&spec["leaseDurationSeconds"]).saturating_mul(1_000),
        transitions: number(&spec["leaseTransitions"]),
    };
    Lease { record, version: text(&lease["metadata"]["resourceVersion"]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_way_through_json() {
        let record = Record { holder: "a".to_owned(), lease_ms: 15_000, transitions: 3 };
        let lease = Lease { record: record.clone(), version: "7".to_owned() };
        assert_eq!(from_json(&to_json("l", "n", &record, Some("7"))), lease);
        let nobody = from_json(&json!({"metadata": {"resourceVersion": "1"}, "spec": {}}));
        assert_eq!(nobody.record, Record { holder: String::new(), lease_ms: 0, transitions: 0 });
    }
}
