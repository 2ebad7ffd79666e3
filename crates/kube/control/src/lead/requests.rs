//! The requests about a Lease of `coordination.k8s.io/v1`, and what their answers say.

use serde_json::{Value, json};

use super::trouble::Trouble;
use super::{Lease, LeaseName, LeaseRecord};
use crate::announce::timestamp;
use crate::answer::{Answered, message};
use crate::request::{ApiRequest, JSON, Method, RequestClass};

/// What a request about the lease came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    Lease(Lease),
    /// There is none.
    Missing,
    /// It has changed since it was read.
    Changed,
    /// Nothing that says anything about the lease.
    Nothing(Trouble),
}

impl LeaseName {
    /// Reads the lease.
    pub fn read(&self) -> ApiRequest {
        ApiRequest::new(RequestClass::Lease, Method::Get, self.path(), ("", Vec::new()))
    }

    /// Writes the lease: in place of a version, or a new one. The time is for people: no process
    /// of ours decides by it, but other clients of the lease may.
    pub fn write(&self, record: &LeaseRecord, version: Option<&str>, wall_ms: u64) -> ApiRequest {
        let (method, path) = match version {
            Some(_) => (Method::Put, self.path()),
            None => (Method::Post, self.folder()),
        };
        let body = self.body(record, version, wall_ms).to_string().into_bytes();
        ApiRequest::new(RequestClass::Lease, method, path, (JSON, body))
    }

    /// What the answer to [`LeaseName::read`] says.
    pub fn of_read(&self, answered: &Answered) -> LeaseAnswer {
        judge(answered)
    }

    /// What the answer to [`LeaseName::write`] says; `is_new`: it was to be created.
    pub fn of_write(&self, is_new: bool, answered: &Answered) -> LeaseAnswer {
        match judge(answered) {
            LeaseAnswer::Missing if is_new => LeaseAnswer::Nothing(Trouble::NoNamespace),
            answer => answer,
        }
    }

    fn folder(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.folder(), self.name)
    }

    fn body(&self, record: &LeaseRecord, version: Option<&str>, wall_ms: u64) -> Value {
        let now = format!("{:.6}", timestamp(wall_ms));
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": self.name, "namespace": self.namespace},
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
}

fn judge(answered: &Answered) -> LeaseAnswer {
    match answered {
        Ok((200 | 201, _, body)) => match serde_json::from_slice(body) {
            Ok(lease) => LeaseAnswer::Lease(from_json(&lease)),
            Err(_) => LeaseAnswer::Nothing(Trouble::Unreadable),
        },
        Ok((404, ..)) => LeaseAnswer::Missing,
        Ok((409, ..)) => LeaseAnswer::Changed,
        Ok((code, _, body)) => {
            LeaseAnswer::Nothing(Trouble::Refused { code: *code, message: message(body) })
        }
        Err(none) => LeaseAnswer::Nothing(Trouble::NoAnswer(none.error.clone())),
    }
}

/// Reads a lease. What is missing counts as held by nobody, once, for no time.
fn from_json(lease: &Value) -> Lease {
    let spec = &lease["spec"];
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let record = LeaseRecord {
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
        let record = LeaseRecord { holder: "a".to_owned(), lease_ms: 15_000, transitions: 3 };
        let lease = Lease { record: record.clone(), version: "7".to_owned() };
        let name = LeaseName { namespace: "n".to_owned(), name: "l".to_owned() };
        let body = name.body(&record, Some("7"), 1_500);
        assert_eq!(body["spec"]["renewTime"], "1970-01-01T00:00:01.500000Z");
        assert_eq!(from_json(&body), lease);
        let nobody = from_json(&json!({"metadata": {"resourceVersion": "1"}, "spec": {}}));
        assert_eq!(
            nobody.record,
            LeaseRecord { holder: String::new(), lease_ms: 0, transitions: 0 }
        );
    }
}
