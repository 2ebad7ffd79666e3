//! Indexed Jobs (`batch/v1`): their pods carry the Job's name and a number.

use dovetail_objects::{Pod, WorkloadKind};

use super::workload::Membership;

/// Label of a pod: the Job that made it.
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
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
    fn sizes_that_go_against_the_jobs_are_told_with_it() {
        let read = |completions: u32, annotation: &str, size: &str| {
            let mut members: Vec<Pod> = (0..3).map(member).collect();
            for pod in &mut members {
                pod.meta.annotations = serde_json::from_value(json!({annotation: size})).unwrap();
            }
            read_workload(WorkloadKind::Job, job(completions), &members)
        };
        let (min, max) = ("dovetail.dev/min-members", "dovetail.dev/max-members");
        let apart = "its pods do not start together, because its spec.completions (4) differs from its \
                     spec.parallelism (3)";
        assert_eq!(
            read(4, min, "2").unwrap_err(),
            format!("job blue/train: annotation {min} is 2, and {apart}")
        );
        assert_eq!(read(4, min, "1").unwrap().min, 0);
        assert_eq!(
            read(3, min, "4").unwrap_err(),
            format!("job blue/train: annotation {min} is 4, and its spec.parallelism is 3")
        );
        assert_eq!(
            read(3, max, "2").unwrap_err(),
            format!(
                "job blue/train: annotation {max} is 2, and its spec.parallelism is 3: raise it to \
                 the number of pods that start together, or remove it"
            )
        );
        assert_eq!(read(3, max, "3").unwrap().min, 3);
    }

    #[test]
    fn a_pod_of_a_job_without_numbers_is_in_no_gang() {
        let labels = json!({"batch.kubernetes.io/job-name": "sweep"});
        assert_eq!(gang_of(&pod("p", json!({"metadata": {"labels": labels}}))), Ok(None));
    }
}
