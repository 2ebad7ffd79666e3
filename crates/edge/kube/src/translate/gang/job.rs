//! Indexed Jobs (`batch/v1`): their pods carry the Job's name and a number.

use super::workload::Membership;
use crate::object::{Pod, WorkloadKind};

const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The number of a pod in an indexed Job.
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub(super) fn membership(pod: &Pod) -> Option<Membership<'_>> {
    let labels = &pod.meta.labels;
    labels.get(COMPLETION_INDEX)?;
    Membership::whole(WorkloadKind::Job, labels.get(JOB_NAME))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::gang_of;
    use super::super::tests::{pod, read_workload};
    use super::*;

    fn member(index: usize) -> Pod {
        let labels = json!({"batch.kubernetes.io/job-name": "train", "job-name": "train",
            "batch.kubernetes.io/controller-uid": "6b0c", "controller-uid": "6b0c",
            "batch.kubernetes.io/job-completion-index": index.to_string()});
        pod(&format!("train-{index}-x7k2p"), json!({"metadata": {"labels": labels}}))
    }

    fn job(completions: u32) -> Option<Value> {
        Some(json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "train", "namespace": "blue"},
            "spec": {"parallelism": 3, "completions": completions, "completionMode": "Indexed"}}))
    }

    #[test]
    fn the_pods_of_an_indexed_job_start_together_if_all_run_at_once() {
        let members: Vec<Pod> = (0..3).map(member).collect();
        let name = gang_of(&members[0]).unwrap().expect("a gang");
        assert_eq!(name.to_string(), "job blue/train");
        let together = read_workload(WorkloadKind::Job, job(3), &members).unwrap();
        assert_eq!((together.min, together.expected), (3, 3));
        let alone = read_workload(WorkloadKind::Job, job(9), &members).unwrap();
        assert_eq!(alone.min, 0);
    }

    #[test]
    fn a_pod_of_a_job_without_numbers_is_in_no_gang() {
        let labels = json!({"batch.kubernetes.io/job-name": "sweep"});
        assert_eq!(gang_of(&pod("p", json!({"metadata": {"labels": labels}}))), Ok(None));
    }
}
