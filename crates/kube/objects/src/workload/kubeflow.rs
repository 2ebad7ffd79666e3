//! Training jobs of Kubeflow: the kinds of the training operator (`kubeflow.org/v1`) and the MPIJob
//! of the MPI operator (`kubeflow.org/v2beta1`). TrainJobs of Kubeflow Trainer make JobSets and are
//! known by those.
//!
//! All replicas start together; `runPolicy.schedulingPolicy.minAvailable` says if fewer will do,
//! and so does `elasticPolicy.minReplicas` for the workers of a PyTorchJob. With
//! `launcherCreationPolicy: WaitForWorkersReady` the launcher follows.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::pods_made::{PodsMade, Unread};
use super::{WorkloadObject, WorkloadRole};
use crate::json::{deadline_s, nullable};
use crate::meta::Meta;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct JobJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: TrainingSpec<Unread>,
}

type Replicas<T> = BTreeMap<Box<str>, ReplicaJson<T>>;

/// What a training job says of its pods; `T` is their template.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de> + Default"))]
pub struct TrainingSpec<T> {
    #[serde(deserialize_with = "nullable")]
    pytorch_replica_specs: Replicas<T>,
    #[serde(deserialize_with = "nullable")]
    tf_replica_specs: Replicas<T>,
    #[serde(deserialize_with = "nullable")]
    mpi_replica_specs: Replicas<T>,
    #[serde(deserialize_with = "nullable")]
    xgb_replica_specs: Replicas<T>,
    #[serde(deserialize_with = "nullable")]
    paddle_replica_specs: Replicas<T>,
    #[serde(deserialize_with = "nullable")]
    jax_replica_specs: Replicas<T>,
    #[serde(deserialize_with = "nullable")]
    elastic_policy: ElasticPolicyJson,
    #[serde(deserialize_with = "nullable")]
    run_policy: RunPolicyJson,
    #[serde(deserialize_with = "nullable")]
    launcher_creation_policy: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "T: Deserialize<'de> + Default"))]
struct ReplicaJson<T> {
    replicas: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    template: T,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ElasticPolicyJson {
    min_replicas: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RunPolicyJson {
    #[serde(deserialize_with = "nullable")]
    scheduling_policy: SchedulingPolicyJson,
    #[serde(deserialize_with = "nullable")]
    suspend: bool,
    active_deadline_seconds: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SchedulingPolicyJson {
    min_available: Option<u32>,
}

impl<T> TrainingSpec<T> {
    /// The pods that it makes, by role.
    pub fn pods_made(&self) -> impl Iterator<Item = PodsMade<'_, T>> {
        let all = [
            &self.jax_replica_specs,
            &self.mpi_replica_specs,
            &self.paddle_replica_specs,
            &self.pytorch_replica_specs,
            &self.tf_replica_specs,
            &self.xgb_replica_specs,
        ];
        all.into_iter().flatten().map(|(name, replica)| PodsMade {
            name,
            parts: replica.replicas.unwrap_or(1),
            pods_each: 1,
            template: &replica.template,
        })
    }
}

impl From<JobJson> for WorkloadObject {
    fn from(JobJson { metadata, spec }: JobJson) -> Self {
        let TrainingSpec { elastic_policy, run_policy, .. } = &spec;
        let role = |made: PodsMade<'_, Unread>| {
            // The label of its pods is in small letters.
            let name = made.name.to_ascii_lowercase();
            let pods = made.parts;
            let elastic = elastic_policy.min_replicas.filter(|_| name == "worker");
            let min = elastic.map_or(pods, |min| min.min(pods));
            WorkloadRole { name: name.into(), pods, min }
        };
        let roles = spec.pods_made().map(role);
        Self {
            roles: roles.filter(|role| role.pods > 0).collect(),
            min: run_policy.scheduling_policy.min_available,
            in_stages: &*spec.launcher_creation_policy == "WaitForWorkersReady",
            suspended: run_policy.suspend,
            is_of_one_pod: false,
            active_deadline_s: deadline_s(run_policy.active_deadline_seconds),
            meta: metadata,
            apart: Box::default(),
        }
    }
}
