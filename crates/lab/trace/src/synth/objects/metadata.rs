//! What every object carries: names, identities, times.

use serde_json::{Map, Value, json};

use super::OBJECTS_AT_S;
use super::noise::mixed;
use super::plan::ClusterPlan;
use super::work::{Family, OwnedWork};

/// The identity of an object.
pub(super) fn uid(seed: u64, kind: &str, namespace: &str, name: &str) -> String {
    let mut number = mixed(seed);
    for byte in kind.bytes().chain(namespace.bytes()).chain(*b"/").chain(name.bytes()) {
        number = mixed(number ^ u64::from(byte));
    }
    let other = mixed(number);
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        number >> 32,
        number >> 16 & 0xffff,
        number & 0xfff,
        0x8000 | other >> 48 & 0x3fff,
        other & 0xffff_ffff_ffff
    )
}

/// So many minutes before the moment of the cluster, as Kubernetes writes times.
pub(super) fn ago(minutes: u64) -> String {
    written(OBJECTS_AT_S - 60 * minutes)
}

/// Seconds since 1970 as `2026-11-20T12:00:00Z`.
pub(super) fn written(at_s: u64) -> String {
    let (days, second) = (at_s / 86_400, at_s % 86_400);
    // Days to a date: Howard Hinnant, chrono-compatible low-level date algorithms.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Metadata of an object without a namespace.
pub(super) fn of_cluster(plan: &ClusterPlan, kind: &str, name: &str, labels: Value) -> Value {
    json!({
        "creationTimestamp": ago(60 * 24 * 40),
        "labels": labels,
        "name": name,
        "resourceVersion": version(plan, name),
        "uid": uid(plan.seed, kind, "", name)
    })
}

/// Metadata of an object in a namespace.
pub(super) fn of_namespace(
    plan: &ClusterPlan,
    kind: &str,
    (namespace, name): (&str, &str),
    age_minutes: u64,
    labels: Value,
) -> Map<String, Value> {
    let metadata = json!({
        "creationTimestamp": ago(age_minutes),
        "labels": labels,
        "name": name,
        "namespace": namespace,
        "resourceVersion": version(plan, name),
        "uid": uid(plan.seed, kind, namespace, name)
    });
    match metadata {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn version(plan: &ClusterPlan, name: &str) -> String {
    (1_000_000 + mixed(plan.seed ^ name.len() as u64) % 90_000_000).to_string()
}

/// A reference to the owner that controls an object.
pub(super) fn controlled_by(plan: &ClusterPlan, kind: &str, namespace: &str, name: &str) -> Value {
    let api_version = match kind {
        "PyTorchJob" | "Notebook" => "kubeflow.org/v1",
        "Job" => "batch/v1",
        _ => "apps/v1",
    };
    json!([{
        "apiVersion": api_version,
        "blockOwnerDeletion": true,
        "controller": true,
        "kind": kind,
        "name": name,
        "uid": uid(plan.seed, kind, namespace, name)
    }])
}

/// The nearest owner of the pods: its kind and name.
pub(super) fn nearest_owner(work: &OwnedWork) -> Option<(&'static str, String)> {
    match work.family {
        Family::Bare => None,
        Family::Serve | Family::Web => {
            Some(("ReplicaSet", format!("{}-{}", work.name, work.hash(10))))
        }
        Family::Notebook => Some(("StatefulSet", work.name.clone())),
        family => Some((family.kind(), work.name.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_kubernetes_writes_them() {
        assert_eq!(written(OBJECTS_AT_S), "2026-11-20T12:00:00Z");
        assert_eq!(written(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(written(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(written(1_709_251_200), "2024-03-01T00:00:00Z");
        assert_eq!(written(1_735_689_599), "2024-12-31T23:59:59Z");
    }
}
