//! Workloads of every kind, read from their JSON.

mod job;
mod job_set;
mod kubeflow;
mod leader_worker_set;
mod ray;

use dovetail_objects::{Kind, Object, WorkloadKind, WorkloadObject};
use serde_json::Value;

fn read_value(kind: WorkloadKind, value: &Value) -> WorkloadObject {
    match Object::read(Kind::Workload(kind), value.to_string().as_bytes()) {
        Object::Workload(of, workload) if of == kind => *workload,
        other => panic!("{other:?}"),
    }
}

/// Each role with its pods and how many are needed.
fn roles(workload: &WorkloadObject) -> Vec<(&str, u32, u32)> {
    workload.roles.iter().map(|role| (&*role.name, role.pods, role.min)).collect()
}
