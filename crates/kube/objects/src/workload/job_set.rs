//! JobSets (`jobset.x-k8s.io/v1alpha2`): every replicated Job with all its pods starts together,
//! unless the JobSet says that they follow each other.
//!
//! With exclusive placement JobSet lets the other pods of a Job be created only when its first pod
//! has a node, and ties them to that pod's domain: the first pods are a role of their own then, and
//! go first.

use serde::Deserialize;

use super::job::JobSpec;
use super::pods_made::{PodsMade, Unread};
use super::{WorkloadObject, WorkloadRole};
use crate::json::nullable;
use crate::labels::{JOB_SET_BY_NODE_SELECTOR, JOB_SET_EXCLUSIVE_TOPOLOGY};
use crate::meta::Meta;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct JobSetJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: JobSetSpec<Unread>,
}

/// What a JobSet says of its pods; `T` is their template.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de> + Default"))]
pub struct JobSetSpec<T> {
    #[serde(deserialize_with = "nullable")]
    replicated_jobs: Vec<ReplicatedJobJson<T>>,
    #[serde(deserialize_with = "nullable")]
    startup_policy: StartupPolicyJson,
    #[serde(deserialize_with = "nullable")]
    suspend: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de> + Default"))]
struct ReplicatedJobJson<T> {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    replicas: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    depends_on: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "nullable")]
    template: TemplateJson<T>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "T: Deserialize<'de> + Default"))]
struct TemplateJson<T> {
    #[serde(deserialize_with = "nullable")]
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: JobSpec<T>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StartupPolicyJson {
    #[serde(deserialize_with = "nullable")]
    startup_policy_order: Box<str>,
}

impl<T> JobSetSpec<T> {
    /// The pods that it makes, by replicated Job.
    pub fn pods_made(&self) -> impl Iterator<Item = PodsMade<'_, T>> {
        self.replicated_jobs.iter().map(|job| PodsMade {
            name: &job.name,
            parts: job.replicas.unwrap_or(1),
            ..job.template.spec.pods_made()
        })
    }
}

impl<T> ReplicatedJobJson<T> {
    /// Its roles: one, or two with exclusive domains.
    fn roles(&self, set: &Meta) -> Vec<WorkloadRole> {
        let jobs = self.replicas.unwrap_or(1);
        let pods = jobs.saturating_mul(self.template.spec.pods());
        let own = &self.template.metadata;
        let is_exclusive = has_exclusive_domains(set) || has_exclusive_domains(own);
        let leaders = if is_exclusive { jobs.min(pods) } else { 0 };
        let all = [(leaders_of(&self.name), leaders), (self.name.clone(), pods - leaders)];
        let there = all.into_iter().filter(|(_, pods)| *pods > 0);
        there.map(|(name, pods)| WorkloadRole::fixed(&name, pods)).collect()
    }
}

impl From<JobSetJson> for WorkloadObject {
    fn from(JobSetJson { metadata, spec }: JobSetJson) -> Self {
        let jobs = &spec.replicated_jobs;
        let follow = &*spec.startup_policy.startup_policy_order == "InOrder"
            || jobs.iter().any(|job| !job.depends_on.is_empty());
        let has_leaders = has_exclusive_domains(&metadata)
            || jobs.iter().any(|job| has_exclusive_domains(&job.template.metadata));
        Self {
            roles: jobs.iter().flat_map(|job| job.roles(&metadata)).collect(),
            in_stages: follow || has_leaders,
            suspended: spec.suspend,
            is_of_one_pod: false,
            // Its Jobs say it.
            active_deadline_s: None,
            meta: metadata,
            min: None,
            apart: Box::default(),
        }
    }
}

/// Whether the first pod of each Job goes first, and the others follow it into its domain.
pub fn has_exclusive_domains(meta: &Meta) -> bool {
    let has = |annotation| meta.annotations.get(annotation).is_some();
    has(JOB_SET_EXCLUSIVE_TOPOLOGY) && !has(JOB_SET_BY_NODE_SELECTOR)
}

/// The role of the first pods of the Jobs of a replicated Job.
pub fn leaders_of(replicated_job: &str) -> Box<str> {
    format!("{replicated_job}/first").into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::WorkloadKind;
    use super::super::tests::{read_value, roles};

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
}
