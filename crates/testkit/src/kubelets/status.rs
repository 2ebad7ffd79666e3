//! What a kubelet writes into a pod: bodies of strategic merge patches of its status.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::admission::Rejection;

/// What of a pod its status repeats.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) uid: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// Name and image of each container.
    containers: Vec<(String, String)>,
}

/// How containers ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: i32,
}

/// Containers that ended because they were asked to: 128 + SIGTERM.
pub(super) const TERMINATED: Exit = Exit { code: 143 };

impl Identity {
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let metadata = &pod.metadata;
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let containers = containers
            .map(|container| (container.name.clone(), container.image.clone().unwrap_or_default()));
        Some(Self {
            uid: metadata.uid.clone()?,
            namespace: metadata.namespace.clone()?,
            name: metadata.name.clone()?,
            containers: containers.collect(),
        })
    }

    /// The node did not take the pod.
    pub(super) fn rejected(&self, rejection: &Rejection) -> Value {
        let Rejection { reason, message } = rejection;
        let message = format!("Pod was rejected: {message}");
        self.patch(json!({ "phase": "Failed", "reason": reason, "message": message }))
    }

    /// All containers run.
    pub(super) fn running(&self) -> Value {
        let now = now();
        let state = json!({ "running": { "startedAt": now } });
        self.patch(json!({
            "phase": "Running",
            "startTime": now,
            "conditions": conditions("True", None, &now),
            "containerStatuses": self.containers(true, &state),
        }))
    }

    /// All containers ended.
    pub(super) fn ended(&self, exit: Exit) -> Value {
        let now = now();
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

/// The present second, as Kubernetes writes times.
fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}
