//! What a kubelet writes into a pod: bodies of strategic merge patches of its status.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::admission::Rejection;

/// What of a pod its status repeats.
#[derive(Clone, Debug)]
pub struct Identity {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    /// Name and image of each container.
    containers: Vec<(String, String)>,
}

/// How containers ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// 0 if they did what they were to do.
    pub code: i32,
}

/// Containers that ended because they were asked to: 128 + SIGTERM.
pub(crate) const TERMINATED: Exit = Exit { code: 143 };

impl Identity {
    pub(crate) fn of(pod: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let metadata = &pod["metadata"];
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        let containers = containers.map(|container| {
            let part = |key: &str| text(&container[key]).unwrap_or_default();
            (part("name"), part("image"))
        });
        Some(Self {
            uid: text(&metadata["uid"])?,
            namespace: text(&metadata["namespace"])?,
            name: text(&metadata["name"])?,
            containers: containers.collect(),
        })
    }

    /// The node did not take the pod.
    pub(crate) fn rejected(&self, rejection: &Rejection) -> Value {
        let Rejection { reason, message } = rejection;
        let message = format!("Pod was rejected: {message}");
        self.patch(json!({ "phase": "Failed", "reason": reason, "message": message }))
    }

    /// All containers run.
    pub(crate) fn running(&self, now_ms: u64) -> Value {
        let now = stamp(now_ms);
        let state = json!({ "running": { "startedAt": now } });
        self.patch(json!({
            "phase": "Running",
            "startTime": now,
            "conditions": conditions("True", None, &now),
            "containerStatuses": self.containers(true, &state),
        }))
    }

    /// All containers ended.
    pub(crate) fn ended(&self, exit: Exit, now_ms: u64) -> Value {
        let now = stamp(now_ms);
        let (phase, reason) = match exit.code {
            0 => ("Succeeded", "Completed"),
            _ => ("Failed", "Error"),
        };
        let ended = json!({ "exitCode": exit.code, "reason": reason, "finishedAt": now });
        let why = if exit.code == 0 { "PodCompleted" } else { "PodFailed" };
        self.patch(json!({
            "phase": phase,
            "conditions": conditions("False", Some(why), &now),
            "containerStatuses": self.containers(false, &json!({ "terminated": ended })),
        }))
    }

    /// With the UID, so that a pod of the same name that came later is left alone.
    fn patch(&self, status: Value) -> Value {
        json!({ "metadata": { "uid": self.uid }, "status": status })
    }

    fn containers(&self, ready: bool, state: &Value) -> Vec<Value> {
        let container = |(name, image): &(String, String)| {
            json!({
                "name": name,
                "image": image,
                "imageID": "",
                "ready": ready,
                "started": ready,
                "restartCount": 0,
                "state": state,
            })
        };
        self.containers.iter().map(container).collect()
    }
}

/// The conditions that follow the containers; others stay as they are.
fn conditions(ready: &str, reason: Option<&str>, now: &str) -> Vec<Value> {
    let condition = |(kind, status): (&str, &str)| {
        let mut condition = json!({ "type": kind, "status": status, "lastTransitionTime": now });
        if let (Some(reason), "False") = (reason, status) {
            condition["reason"] = json!(reason);
        }
        condition
    };
    let kinds = [
        ("PodReadyToStartContainers", ready),
        ("Initialized", "True"),
        ("ContainersReady", ready),
        ("Ready", ready),
    ];
    kinds.map(condition).to_vec()
}

/// A time in milliseconds since 1970 in whole seconds, as Kubernetes writes times.
fn stamp(now_ms: u64) -> String {
    let seconds = i64::try_from(now_ms / 1_000).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string()
}
