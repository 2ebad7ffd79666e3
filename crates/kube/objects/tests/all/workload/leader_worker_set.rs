//! LeaderWorkerSets (`leaderworkerset.x-k8s.io/v1`).

use dovetail_objects::WorkloadKind;
use serde_json::{Value, json};

use super::{read_value, roles};

fn set(annotations: Value, startup_policy: &str) -> Value {
    let template = json!({"size": 4, "workerTemplate": {"spec": {"containers": []}}});
    json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve", "namespace": "blue", "annotations": annotations},
        "spec": {"replicas": 2, "leaderWorkerTemplate": template,
            "startupPolicy": startup_policy}})
}

#[test]
fn a_group_is_a_leader_and_its_workers() {
    let read = read_value(WorkloadKind::LeaderWorkerSet, &set(json!({}), "LeaderCreated"));
    assert_eq!(roles(&read), [("leader", 1, 1), ("workers", 3, 3)]);
    assert!(!read.in_stages);
    let ready = set(json!({}), "LeaderReady");
    assert!(read_value(WorkloadKind::LeaderWorkerSet, &ready).in_stages);
    let topology = json!({"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"});
    let exclusive = set(topology, "LeaderCreated");
    assert!(read_value(WorkloadKind::LeaderWorkerSet, &exclusive).in_stages);
}
