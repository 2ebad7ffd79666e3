//! Make before break: a Deployment gets one replica more, and when that is ready a pod of it is
//! evicted and the number of replicas is as before.
//!
//! The number of replicas and an annotation that names the pod change in one write, so that a
//! process that dies in between leaves no replica that another one cannot take back. Whoever else
//! changes the number of replicas meanwhile decides it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::names::REPLACING;
use crate::pod_move::PodMove;

/// A replacement that is not ready by then is taken back, in milliseconds.
const LIMIT_MS: u64 = 600_000;

/// The value of the annotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Replacing {
    /// UID of the pod that moves.
    pod: String,
    /// The number of replicas without the added one.
    replicas: u64,
    /// When it was added, in milliseconds since 1970.
    since_ms: u64,
}

/// What comes next for a pod that is to be replaced before it is evicted.
#[derive(Clone, Debug, PartialEq)]
pub enum Replacement {
    /// No replica can be added, with the reason: the pod is evicted first.
    Impossible(String),
    /// This merge patch of the Deployment adds a replica.
    Add(Value),
    /// The added replica is not ready yet.
    Wait(String),
    /// The pod can be evicted: enough others are ready.
    Ready,
}

/// What comes next for a pod of a Deployment. `ready`: its pods that are ready, without this one;
/// `others`: what besides people decides the number of its replicas, if anything does.
pub fn replacement(
    deployment: &Value,
    one: &PodMove,
    ready: u64,
    others: Option<&str>,
    now_ms: u64,
) -> Replacement {
    let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
    let replicas = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    match replacing(deployment) {
        Some(Replacing { pod, .. }) if pod != one.uid => {
            Replacement::Wait(format!("another pod of Deployment {name} is being moved"))
        }
        Some(added) if replicas != added.replicas + 1 => {
            Replacement::Impossible(format!("the replicas of Deployment {name} were changed"))
        }
        Some(added) if ready >= added.replicas => Replacement::Ready,
        Some(added) if now_ms >= added.since_ms + LIMIT_MS => Replacement::Impossible(format!(
            "its replacement was not ready within {} minutes",
            LIMIT_MS / 60_000
        )),
        Some(_) => Replacement::Wait(format!("the replacement of {} is not ready", one.pod)),
        None => match others.map(str::to_owned).or_else(|| unsettled(deployment, replicas)) {
            Some(why) => Replacement::Impossible(why),
            None => {
                let added = Replacing { pod: one.uid.clone(), replicas, since_ms: now_ms };
                let added = serde_json::to_string(&added).unwrap_or_default();
                Replacement::Add(patch(deployment, &json!(added), Some(replicas + 1)))
            }
        },
    }
}

/// The merge patch that takes the added replica back, or leaves it where others have changed the
/// number since; `None` if none was added for this pod.
pub fn without_added(deployment: &Value, uid: &str) -> Option<Value> {
    let added = replacing(deployment).filter(|added| added.pod == uid)?;
    let is_ours = deployment["spec"]["replicas"].as_u64() == Some(added.replicas + 1);
    Some(patch(deployment, &Value::Null, is_ours.then_some(added.replicas)))
}

fn replacing(deployment: &Value) -> Option<Replacing> {
    let text = deployment["metadata"]["annotations"][REPLACING].as_str()?;
    serde_json::from_str(text).ok()
}

/// Why the pods of a Deployment are changing already, or are another controller's.
fn unsettled(deployment: &Value, replicas: u64) -> Option<String> {
    let (metadata, status) = (&deployment["metadata"], &deployment["status"]);
    let count = |field: &str| status[field].as_u64().unwrap_or(0);
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    if let Some(owner) = owners.into_iter().find(|owner| owner["controller"] == true) {
        let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
        return Some(format!("{} {} manages its Deployment", text("kind"), text("name")));
    }
    let is_observed = metadata["generation"].as_u64() == status["observedGeneration"].as_u64();
    let counts = ["replicas", "updatedReplicas", "readyReplicas"];
    let has_rolled = is_observed && counts.iter().all(|field| count(field) == replicas);
    let is_paused = deployment["spec"]["paused"] == true;
    (is_paused || !has_rolled)
        .then(|| "its Deployment is paused, is rolling out, or has pods that are not ready".into())
}

/// Only if nobody has written it since it was read.
fn patch(deployment: &Value, annotation: &Value, replicas: Option<u64>) -> Value {
    let version = &deployment["metadata"]["resourceVersion"];
    let mut patch = json!({"metadata":
        {"resourceVersion": version, "annotations": {REPLACING: annotation}}});
    if let Some(replicas) = replicas {
        patch["spec"] = json!({"replicas": replicas});
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_name::ObjectName;

    fn deployment(replicas: u64, annotation: &Value) -> Value {
        json!({"metadata": {"name": "chat", "resourceVersion": "7", "generation": 3,
                "annotations": {REPLACING: annotation}},
            "spec": {"replicas": replicas},
            "status": {"observedGeneration": 3, "replicas": replicas,
                "updatedReplicas": replicas, "readyReplicas": replicas}})
    }

    fn moved() -> PodMove {
        PodMove {
            pod: "team/chat-1".to_owned(),
            uid: "u1".to_owned(),
            owner: ObjectName {
                api_version: "apps/v1".to_owned(),
                kind: "ReplicaSet".to_owned(),
                namespace: "team".to_owned(),
                name: "chat".to_owned(),
                uid: "rs".to_owned(),
            },
            is_replica: true,
            to: "n1".to_owned(),
            lost_gpu_ms: 0,
            adds_replica: true,
            evicted_ms: None,
            waits_until_ms: None,
        }
    }

    #[test]
    fn a_replica_is_added_once_and_taken_back_once() {
        let one = moved();
        let mut object = deployment(2, &Value::Null);
        let Replacement::Add(patch) = replacement(&object, &one, 1, None, 5_000) else {
            panic!("it is settled")
        };
        assert_eq!(
            (&patch["spec"]["replicas"], &patch["metadata"]["resourceVersion"]),
            (&json!(3), &json!("7"))
        );
        object = deployment(3, &patch["metadata"]["annotations"][REPLACING]);
        let next = |ready, now_ms| replacement(&object, &one, ready, None, now_ms);
        assert!(matches!(next(1, 6_000), Replacement::Wait(_)));
        assert_eq!(next(2, 6_000), Replacement::Ready);
        assert!(matches!(next(1, 5_000 + LIMIT_MS), Replacement::Impossible(_)));
        let other = PodMove { uid: "u2".to_owned(), ..moved() };
        assert!(matches!(replacement(&object, &other, 2, None, 6_000), Replacement::Wait(_)));
        assert_eq!(without_added(&object, "u2"), None);
        let back = without_added(&object, "u1").expect("it was added");
        assert_eq!(
            (&back["spec"]["replicas"], &back["metadata"]["annotations"][REPLACING]),
            (&json!(2), &Value::Null)
        );
        // Others have scaled it since: their number stays.
        object["spec"]["replicas"] = json!(5);
        assert!(matches!(replacement(&object, &one, 4, None, 6_000), Replacement::Impossible(_)));
        assert_eq!(without_added(&object, "u1").expect("it was added").get("spec"), None);
    }

    #[test]
    fn nothing_is_added_where_others_decide_or_pods_change() {
        let refused = |object: &Value, others: Option<&str>| {
            matches!(replacement(object, &moved(), 1, others, 0), Replacement::Impossible(_))
        };
        let settled = deployment(2, &Value::Null);
        assert!(!refused(&settled, None) && refused(&settled, Some("an autoscaler scales it")));
        for (path, value) in [
            ("/metadata/generation", json!(4)),
            ("/status/readyReplicas", json!(1)),
            ("/status/updatedReplicas", json!(1)),
            ("/status/replicas", json!(3)),
        ] {
            let mut object = settled.clone();
            *object.pointer_mut(path).expect("a field") = value;
            assert!(refused(&object, None), "{path}");
        }
        let mut object = settled.clone();
        object["spec"]["paused"] = json!(true);
        assert!(refused(&object, None));
        object = settled;
        object["metadata"]["ownerReferences"] =
            json!([{"kind": "Revision", "name": "r", "controller": true}]);
        assert!(refused(&object, None));
    }
}
