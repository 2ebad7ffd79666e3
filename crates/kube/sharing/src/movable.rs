//! Which pods may be moved so that the layout of their node can change, and what that costs.

use std::collections::BTreeMap;

use dovetail_objects::{Pod, labels, owner_kind};
use dovetail_units::duration::parse_duration;
use serde::Deserialize;

use crate::object_name::ObjectName;

/// A replacement is ready so long after its pod was evicted, where the pod does not say more.
const RESTART_MS: u64 = 120_000;

/// Annotations by which people keep pods where they are, with the value that does.
const KEPT: [(&str, &str); 3] = [
    (labels::SAFE_TO_EVICT, "false"),
    (labels::KARPENTER_DO_NOT_DISRUPT, "true"),
    (labels::KARPENTER_DO_NOT_EVICT, "true"),
];

/// What a pod says about being moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveFacts {
    /// The object that controls it.
    pub owner: Option<ObjectName>,
    pub is_ready: bool,
    is_leaving: bool,
    annotations: BTreeMap<String, String>,
}

/// How a pod is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movable {
    /// It is one of several alike: another one must be ready meanwhile.
    Replica,
    /// It goes on from its last checkpoint.
    Checkpointed {
        /// Longest time between two of them.
        interval_ms: u64,
        /// When the last one was written, where it says so.
        last_ms: Option<u64>,
        /// How long it takes to write one when it is told to end, where it does that.
        saving_ms: Option<u64>,
    },
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    annotations: Option<BTreeMap<String, String>>,
    deletion_timestamp: Option<String>,
    namespace: String,
    owner_references: Option<Vec<Owner>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Owner {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    controller: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Option<Vec<Condition>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

impl<'de> Deserialize<'de> for MoveFacts {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let Object { metadata, status } = Object::deserialize(input)?;
        let owners = metadata.owner_references.unwrap_or_default().into_iter();
        let namespace = metadata.namespace;
        let owner = owners.into_iter().find(|owner| owner.controller == Some(true));
        let owner = owner.map(|Owner { api_version, kind, name, uid, .. }| ObjectName {
            api_version,
            kind,
            namespace,
            name,
            uid,
        });
        let is_leaving = metadata.deletion_timestamp.is_some();
        let mut conditions = status.conditions.unwrap_or_default().into_iter();
        let is_ready = conditions.any(|one| one.r#type == "Ready" && one.status == "True");
        let known = |key: &String| {
            key.starts_with("dovetail.dev/") || KEPT.iter().any(|(kept, _)| kept == key)
        };
        let annotations = metadata.annotations.unwrap_or_default().into_iter();
        let annotations = annotations.filter(|(key, _)| known(key)).collect();
        Ok(Self { owner, is_ready: is_ready && !is_leaving, is_leaving, annotations })
    }
}

impl MoveFacts {
    /// How a pod may be moved, or why it may not. `ready`: ready pods of its owner, itself among
    /// them.
    ///
    /// # Errors
    /// Why it stays, in words that follow “a pod may not be moved:”.
    pub fn movable(&self, pod: &Pod, ready: usize) -> Result<Movable, String> {
        let Some(owner) = &self.owner else {
            return Err("no controller would recreate it".to_owned());
        };
        if self.is_leaving {
            return Err("it is ending".to_owned());
        }
        if matches!(&*owner.kind, "DaemonSet" | "Node") {
            return Err(format!("it belongs to a {}", owner.kind));
        }
        if is_of_gang(pod, &owner.kind) {
            return Err("it belongs to a gang".to_owned());
        }
        if pod.has_resource_claims {
            return Err("it has resource claims".to_owned());
        }
        let is_kept =
            |(key, value): &&(&str, &str)| self.annotations.get(*key).is_some_and(|is| is == value);
        if let Some((key, value)) = KEPT.iter().find(is_kept) {
            return Err(format!("its annotation {key} is {value}"));
        }
        self.duration(labels::RESTART_COST)?;
        let saving_ms = self.duration(labels::SAVE_ON_NOTICE)?;
        if saving_ms.unwrap_or(0) > u64::from(pod.preemption.grace_s).saturating_mul(1_000) {
            let name = labels::SAVE_ON_NOTICE;
            return Err(format!(
                "the time in its annotation {name} exceeds its termination grace period"
            ));
        }
        if let Some(interval_ms) = self.duration(labels::CHECKPOINT_INTERVAL)? {
            let last = self.annotations.get(labels::LAST_CHECKPOINT);
            let last = last.and_then(|text| text.parse::<jiff::Timestamp>().ok());
            let last_ms = last.and_then(|at| u64::try_from(at.as_millisecond()).ok());
            return Ok(Movable::Checkpointed { interval_ms, last_ms, saving_ms });
        }
        if owner.kind != "ReplicaSet" {
            return Err(format!(
                "it belongs to a {} and has no annotation {}",
                owner.kind,
                labels::CHECKPOINT_INTERVAL
            ));
        }
        if ready < 2 {
            return Err("its owner has no second ready replica".to_owned());
        }
        Ok(Movable::Replica)
    }

    /// Time that a move costs a pod that started then: work since its last checkpoint, and until a
    /// replacement is ready.
    pub fn lost_ms(&self, movable: Movable, started_ms: u64, now_ms: u64) -> u64 {
        let restart_ms = self.duration(labels::RESTART_COST).ok().flatten().unwrap_or(RESTART_MS);
        let Movable::Checkpointed { interval_ms, last_ms, saving_ms } = movable else {
            return restart_ms;
        };
        let ran_ms = now_ms.saturating_sub(started_ms);
        let unsaved_ms = match last_ms.filter(|last_ms| *last_ms >= started_ms) {
            Some(last_ms) => now_ms.saturating_sub(last_ms),
            None => interval_ms,
        };
        restart_ms.saturating_add(unsaved_ms.min(ran_ms).min(saving_ms.unwrap_or(u64::MAX)))
    }

    fn duration(&self, key: &str) -> Result<Option<u64>, String> {
        let parsed = self.annotations.get(key).map(|text| parse_duration(text)).transpose();
        parsed.map_err(|problem| format!("its annotation {key}: {problem}"))
    }
}

/// A gang loses the work of all of its pods when it loses one.
fn is_of_gang(pod: &Pod, owner: &str) -> bool {
    let says =
        |key: &&str| pod.meta.labels.get(key).is_some() || pod.meta.annotations.get(key).is_some();
    owner_kind(owner).gangs
        || !pod.pod_group.is_empty()
        || says(&labels::GANG)
        || labels::OF_GANGS.iter().any(says)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(metadata: Value) -> (Pod, MoveFacts) {
        let object = json!({"metadata": metadata, "spec": {"nodeName": "n"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        let facts = serde_json::from_value(object.clone()).expect("facts");
        (serde_json::from_value(object).expect("a pod"), facts)
    }

    fn owned(kind: &str, annotations: Value) -> Value {
        json!({"name": "p", "namespace": "team", "annotations": annotations, "ownerReferences": [
            {"apiVersion": "x", "kind": kind, "name": "o", "uid": "u", "controller": true}]})
    }

    #[test]
    fn only_replicas_and_pods_with_checkpoints_may_move() {
        let told = |metadata: Value, ready: usize| {
            let (pod, facts) = read(metadata);
            facts.movable(&pod, ready)
        };
        assert_eq!(told(owned("ReplicaSet", json!({})), 2), Ok(Movable::Replica));
        let saves = json!({"dovetail.dev/checkpoint-interval": "10m"});
        let checkpointed =
            Movable::Checkpointed { interval_ms: 600_000, last_ms: None, saving_ms: None };
        assert_eq!(told(owned("Job", saves.clone()), 0), Ok(checkpointed));
        let mut ganged = owned("Job", saves.clone());
        ganged["labels"] = json!({"dovetail.dev/gang": "g"});
        for (metadata, why) in [
            (json!({"name": "p"}), "no controller would recreate it"),
            (owned("ReplicaSet", json!({})), "its owner has no second ready replica"),
            (owned("StatefulSet", json!({})), "it belongs to a StatefulSet and has no annotation"),
            (owned("DaemonSet", saves.clone()), "it belongs to a DaemonSet"),
            (owned("PyTorchJob", saves), "it belongs to a gang"),
            (ganged, "it belongs to a gang"),
            (
                owned("Job", json!({"dovetail.dev/checkpoint-interval": "often"})),
                "its annotation dovetail.dev/checkpoint-interval: `often` is not a duration",
            ),
            (
                owned("Job", json!({"dovetail.dev/save-on-notice": "31s"})),
                "the time in its annotation dovetail.dev/save-on-notice exceeds its termination",
            ),
            (
                owned("ReplicaSet", json!({"karpenter.sh/do-not-disrupt": "true"})),
                "its annotation karpenter.sh/do-not-disrupt is true",
            ),
        ] {
            let told = told(metadata, 1).expect_err(why);
            assert!(told.starts_with(why), "{told}");
        }
    }

    #[test]
    fn a_move_loses_the_work_since_the_last_checkpoint() {
        let lost = |annotations: Value, now_ms: u64| {
            let (pod, facts) = read(owned("Job", annotations));
            let movable = facts.movable(&pod, 0).expect("it may move");
            facts.lost_ms(movable, 1_000_000, now_ms)
        };
        let saves = json!({"dovetail.dev/checkpoint-interval": "10m"});
        assert_eq!(lost(saves.clone(), 1_060_000), RESTART_MS + 60_000);
        assert_eq!(lost(saves, 9_000_000), RESTART_MS + 600_000);
        let told = json!({"dovetail.dev/checkpoint-interval": "10m",
            "dovetail.dev/restart-cost": "30s",
            "dovetail.dev/last-checkpoint": "1970-01-01T02:00:00Z"});
        assert_eq!(lost(told, 7_205_000), 35_000);
        let noticed = json!({"dovetail.dev/checkpoint-interval": "10m",
            "dovetail.dev/save-on-notice": "20s"});
        assert_eq!(lost(noticed, 9_000_000), RESTART_MS + 20_000);
    }
}
