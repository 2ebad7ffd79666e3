//! Jobs, and which of them are gangs.

use dovetail_objects::WorkloadKind;
use serde_json::json;

use super::{read_value, roles};

#[test]
fn an_indexed_job_whose_pods_all_run_at_once_is_a_gang() {
    let read = |parallelism: u32, completions: u32, mode: &str| {
        let spec = json!({"parallelism": parallelism, "completions": completions,
            "completionMode": mode, "template": {"spec": {"containers": []}}});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "train", "namespace": "blue"}, "spec": spec});
        read_value(WorkloadKind::Job, &job)
    };
    assert_eq!(roles(&read(4, 4, "Indexed")), [("", 4, 4)]);
    for (parallelism, completions, mode) in
        [(4, 4, "NonIndexed"), (4, 8, "Indexed"), (1, 1, "Indexed")]
    {
        assert_eq!(roles(&read(parallelism, completions, mode)), []);
    }
    assert!(read(1, 1, "NonIndexed").is_of_one_pod);
    assert!(!read(1, 8, "Indexed").is_of_one_pod && !read(4, 4, "Indexed").is_of_one_pod);
    let suspended = json!({"spec": {"suspend": true, "completions": null}});
    assert!(read_value(WorkloadKind::Job, &suspended).suspended);
}
