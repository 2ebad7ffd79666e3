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
