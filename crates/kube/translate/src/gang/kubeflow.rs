//! Training jobs of Kubeflow: their pods carry the job's name, the operator that made them, and
//! their role.

use dovetail_objects::{Pod, WorkloadKind};

use super::workload::Membership;

const JOB_NAME: &str = "training.kubeflow.org/job-name";
const OPERATOR_NAME: &str = dovetail_objects::labels::TRAINING_OPERATOR;
const REPLICA_TYPE: &str = dovetail_objects::labels::TRAINING_REPLICA_TYPE;
const JOB_ROLE: &str = dovetail_objects::labels::TRAINING_ROLE;

pub(super) fn membership(pod: &Pod) -> Option<Membership<'_>> {
    let labels = &pod.meta.labels;
    let kind = match labels.get(OPERATOR_NAME)? {
        "pytorchjob-controller" => WorkloadKind::PyTorchJob,
        "tfjob-controller" => WorkloadKind::TfJob,
        "mpijob-controller" => WorkloadKind::TrainingMpiJob,
        "mpi-operator" => WorkloadKind::MpiJob,
        "xgboostjob-controller" => WorkloadKind::XgBoostJob,
        "paddlejob-controller" => WorkloadKind::PaddleJob,
        "jaxjob-controller" => WorkloadKind::JaxJob,
        _ => return None,
    };
    Membership::whole(kind, labels.get(JOB_NAME))
}

pub(super) fn role_of(pod: &Pod) -> &str {
    let labels = &pod.meta.labels;
    labels.get(REPLICA_TYPE).or_else(|| labels.get(JOB_ROLE)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{pod, read_workload};
    use super::super::{GangSource, gang_of};
    use super::*;

    #[test]
    fn the_operator_says_the_kind() {
        let operators = [
            ("pytorchjob-controller", WorkloadKind::PyTorchJob),
            ("tfjob-controller", WorkloadKind::TfJob),
            ("mpijob-controller", WorkloadKind::TrainingMpiJob),
            ("mpi-operator", WorkloadKind::MpiJob),
            ("xgboostjob-controller", WorkloadKind::XgBoostJob),
            ("paddlejob-controller", WorkloadKind::PaddleJob),
            ("jaxjob-controller", WorkloadKind::JaxJob),
        ];
        for (operator, kind) in operators {
            let labels = json!({"training.kubeflow.org/job-name": "train",
                "training.kubeflow.org/operator-name": operator});
            let pod = pod("p", json!({"metadata": {"labels": labels}}));
            let source = gang_of(&pod).unwrap().map(|gang| gang.source);
            assert_eq!(source, Some(GangSource::Workload(kind)));
        }
    }

    #[test]
    fn a_launcher_that_waits_for_the_workers_follows_them() {
        let member = |role: &str| {
            let labels = json!({"training.kubeflow.org/job-name": "train",
                "training.kubeflow.org/operator-name": "mpi-operator",
                "training.kubeflow.org/job-role": role});
            pod(role, json!({"metadata": {"labels": labels}}))
        };
        let job = json!({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
            "metadata": {"name": "train", "namespace": "blue"},
            "spec": {"launcherCreationPolicy": "WaitForWorkersReady",
                "mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 4}}}});
        let min = |members: &[Pod]| {
            read_workload(WorkloadKind::MpiJob, Some(job.clone()), members).unwrap().min
        };
        assert_eq!(min(&[member("worker")]), 4);
        assert_eq!(min(&[member("worker"), member("launcher")]), 5);
    }
}
