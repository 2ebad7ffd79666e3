//! What KWOK does: nodes become ready, pods run, those of Jobs end (but for those with the label
//! `stays`), deleted ones go. Without a stage for nodes it looks after no node, and so after no
//! pod.

use serde_json::{Value, json};

/// The stages as one YAML file: JSON documents with a line between them.
pub(super) fn stages() -> String {
    let is_there = json!({ "key": ".metadata.deletionTimestamp", "operator": "DoesNotExist" });
    let in_phase = |phase| json!({ "key": ".status.phase", "operator": "In", "values": [phase] });
    let of_a_job =
        json!({ "key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"] });
    let does_not_stay = json!({ "key": ".metadata.labels.stays", "operator": "DoesNotExist" });
    let deleted = json!({ "key": ".metadata.deletionTimestamp", "operator": "Exists" });
    let not_ready = json!({
        "key": ".status.conditions.[] | select( .type == \"Ready\" ) | .status",
        "operator": "NotIn",
        "values": ["True"],
    });
    let stages = [
        stage("ready", "Node", json!([not_ready]), json!({ "statusTemplate": READY })),
        stage(
            "run",
            "Pod",
            json!([is_there, in_phase("Pending")]),
            json!({ "statusTemplate": RUNNING }),
        ),
        stage(
            "end",
            "Pod",
            json!([is_there, in_phase("Running"), of_a_job, does_not_stay]),
            json!({ "statusTemplate": "phase: Succeeded\n" }),
        ),
        stage("go", "Pod", json!([deleted]), json!({ "delete": true })),
    ];
    stages.map(|stage| format!("---\n{stage}\n")).concat()
}

/// In KWOK's template language, as the next one.
const READY: &str = r#"{{ $now := Now }}
conditions:
- type: Ready
  status: "True"
  reason: KubeletReady
  message: ""
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
"#;

const RUNNING: &str = r#"{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
{{ range $kind := list "Initialized" "ContainersReady" "Ready" }}
- type: {{ $kind | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
"#;

fn stage(name: &str, kind: &str, expressions: Value, next: Value) -> Value {
    json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": { "name": name },
        "spec": {
            "resourceRef": { "apiGroup": "v1", "kind": kind },
            "selector": { "matchExpressions": expressions },
            "next": next,
        },
    })
}
