//! Training jobs of Kubeflow.

use dovetail_objects::WorkloadKind;
use serde_json::{Value, json};

use super::{read_value, roles};

fn job(kind: &str, spec: Value) -> Value {
    json!({"apiVersion": "kubeflow.org/v1", "kind": kind, "spec": spec,
        "metadata": {"name": "train", "namespace": "blue"}})
}

#[test]
fn the_replicas_of_every_kind_are_read() {
    let replica = json!({"replicas": 2, "restartPolicy": "OnFailure", "template": {}});
    let kinds = [
        (WorkloadKind::PyTorchJob, "pytorchReplicaSpecs", "Master"),
        (WorkloadKind::TfJob, "tfReplicaSpecs", "PS"),
        (WorkloadKind::TrainingMpiJob, "mpiReplicaSpecs", "Launcher"),
        (WorkloadKind::MpiJob, "mpiReplicaSpecs", "Launcher"),
        (WorkloadKind::XgBoostJob, "xgbReplicaSpecs", "Master"),
        (WorkloadKind::PaddleJob, "paddleReplicaSpecs", "Master"),
        (WorkloadKind::JaxJob, "jaxReplicaSpecs", "Worker"),
    ];
    for (kind, field, first) in kinds {
        let mut replicas = json!({"Worker": replica});
        replicas[first] = json!({"replicas": 1});
        let read = read_value(kind, &job(kind.name(), json!({field: replicas})));
        let pods: u32 = read.roles.iter().map(|role| role.min).sum();
        assert_eq!(pods, if first == "Worker" { 1 } else { 3 }, "{kind:?}");
        let name = first.to_ascii_lowercase();
        assert!(read.roles.iter().any(|role| *role.name == *name && role.pods == 1));
    }
}

#[test]
fn fewer_may_do_and_the_launcher_may_follow() {
    let replicas = json!({"Master": {"replicas": 1}, "Worker": {"replicas": 4}});
    let spec = json!({"pytorchReplicaSpecs": replicas, "elasticPolicy": {"minReplicas": 2},
        "runPolicy": {"schedulingPolicy": {"minAvailable": 3}, "suspend": true}});
    let read = read_value(WorkloadKind::PyTorchJob, &job("PyTorchJob", spec));
    assert_eq!(roles(&read), [("master", 1, 1), ("worker", 4, 2)]);
    assert_eq!((read.min, read.suspended, read.in_stages), (Some(3), true, false));
    let spec = json!({"mpiReplicaSpecs": {}, "launcherCreationPolicy": "WaitForWorkersReady"});
    assert!(read_value(WorkloadKind::MpiJob, &job("MPIJob", spec)).in_stages);
}
