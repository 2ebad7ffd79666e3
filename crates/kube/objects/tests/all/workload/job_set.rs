//! JobSets (`jobset.x-k8s.io/v1alpha2`).

use dovetail_objects::WorkloadKind;
use serde_json::{Value, json};

use super::{read_value, roles};

fn replicated(name: &str, replicas: u32, parallelism: u32) -> Value {
    let spec = json!({"parallelism": parallelism, "completions": parallelism,
        "completionMode": "Indexed", "backoffLimit": 0});
    json!({"name": name, "replicas": replicas, "template": {"spec": spec}})
}

fn job_set(annotations: Value, spec: Value) -> Value {
    json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": spec,
        "metadata": {"name": "train", "namespace": "blue", "annotations": annotations}})
}

#[test]
fn all_pods_of_all_jobs_start_together() {
    let jobs = [replicated("driver", 1, 1), replicated("workers", 2, 8)];
    let spec = json!({"replicatedJobs": jobs, "suspend": false,
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"}});
    let read = read_value(WorkloadKind::JobSet, &job_set(json!({}), spec));
    assert_eq!(roles(&read), [("driver", 1, 1), ("workers", 16, 16)]);
    assert!(!read.in_stages && !read.suspended);
}

#[test]
fn jobs_that_follow_each_other_start_in_stages() {
    let mut depends = replicated("workers", 1, 4);
    depends["dependsOn"] = json!([{"name": "driver", "status": "Ready"}]);
    let jobs = json!([replicated("driver", 1, 1), depends]);
    let spec = json!({"replicatedJobs": jobs});
    assert!(read_value(WorkloadKind::JobSet, &job_set(json!({}), spec)).in_stages);
    let jobs = json!([replicated("driver", 1, 1), replicated("workers", 1, 4)]);
    let order = json!({"startupPolicyOrder": "InOrder"});
    let spec = json!({"replicatedJobs": jobs, "startupPolicy": order, "suspend": true});
    let read = read_value(WorkloadKind::JobSet, &job_set(json!({}), spec));
    assert!(read.in_stages && read.suspended);
}

#[test]
fn the_first_pods_of_exclusive_jobs_go_first() {
    let topology = "alpha.jobset.sigs.k8s.io/exclusive-topology";
    let spec = json!({"replicatedJobs": [replicated("workers", 2, 8)]});
    let marked = json!({topology: "example.com/rack"});
    let read = read_value(WorkloadKind::JobSet, &job_set(marked, spec.clone()));
    assert_eq!(roles(&read), [("workers/first", 2, 2), ("workers", 14, 14)]);
    assert!(read.in_stages);
    // By node selectors it needs no first pods.
    let selected =
        json!({topology: "example.com/rack", "alpha.jobset.sigs.k8s.io/node-selector": ""});
    let read = read_value(WorkloadKind::JobSet, &job_set(selected, spec));
    assert_eq!(roles(&read), [("workers", 16, 16)]);
    assert!(!read.in_stages);
}
