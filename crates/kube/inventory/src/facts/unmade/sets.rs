//! The kinds of pods that an object makes, with how many of each: Jobs, JobSets, the jobs of
//! training operators, Ray.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dovetail_objects::json::nullable;
use dovetail_objects::{Pod, owner_kind, read};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::PodSet;
use super::scopes::ScopedPod;
use crate::dump::{RawObject, Skipped};
use crate::facts::detail::PodDetail;
use crate::facts::inventory::lenient;
use crate::facts::read_pod::claims;

#[derive(Deserialize)]
struct Whole<S> {
    spec: S,
}

/// The sets of a suspended object whose pods may need GPUs; none for kinds that nobody knows.
///
/// # Errors
/// If a field has another shape than it should.
pub(super) fn of(raw: &RawObject<'_>) -> Result<Vec<PodSet>, Skipped> {
    match raw.kind {
        "Job" => {
            let Whole::<JobSpec<'_>> { spec } = lenient(raw)?;
            Ok(spec.set(raw, ("", "spec"), 1)?.into_iter().collect())
        }
        "JobSet" => {
            let Whole::<JobSetSpec<'_>> { spec } = lenient(raw)?;
            spec.sets(raw)
        }
        "RayCluster" => {
            let Whole::<RaySpec<'_>> { spec } = lenient(raw)?;
            spec.sets(raw)
        }
        "RayJob" => {
            let Whole::<RayJobSpec<'_>> { spec } = lenient(raw)?;
            spec.ray_cluster_spec.sets(raw)
        }
        kind if owner_kind(kind).has_replica_roles => {
            let Whole::<TrainingSpec<'_>> { spec } = lenient(raw)?;
            spec.sets(raw)
        }
        _ => Ok(Vec::new()),
    }
}

/// A set of one template, unless nothing that its pods need can be of a GPU.
///
/// # Errors
/// If the template, which stands in `field`, is none of a pod.
pub(super) fn set(
    raw: &RawObject<'_>,
    field: &str,
    (name, parts, pods_each): (&str, u64, u64),
    template: Option<&RawValue>,
) -> Result<Option<PodSet>, Skipped> {
    let Some(template) = template.filter(|_| parts > 0 && pods_each > 0) else { return Ok(None) };
    let strange = |inner: &str, problem: &str| raw.skipped(&format!("{field}.{inner}"), problem);
    let pod: Pod = read("Pod", template.get().as_bytes())
        .map_err(|problem| strange(&problem.field, &problem.problem))?;
    // Extended resources can be served by device classes, which may be read later.
    if pod.requests.extended.is_empty() && !pod.has_resource_claims {
        return Ok(None);
    }
    let bad = |problem: serde_json::Error| strange("spec", &problem.to_string());
    let detail: PodDetail<'_> = serde_json::from_str(template.get()).map_err(bad)?;
    let scoped = ScopedPod::of(&pod, template).map_err(bad)?;
    Ok(Some(PodSet {
        name: name.to_owned(),
        parts,
        pods_each,
        pod,
        claims: claims(&detail),
        scoped,
    }))
}

/// A Job, also as part of a JobSet.
#[derive(Default, Deserialize)]
#[serde(default)]
struct JobSpec<'a> {
    parallelism: Option<u64>,
    completions: Option<u64>,
    #[serde(borrow)]
    template: Option<&'a RawValue>,
}

impl JobSpec<'_> {
    /// Its pods: no more at a time than are to complete.
    fn set(
        &self,
        raw: &RawObject<'_>,
        (name, field): (&str, &str),
        jobs: u64,
    ) -> Result<Option<PodSet>, Skipped> {
        let parallel = self.parallelism.unwrap_or(1);
        let pods = self.completions.map_or(parallel, |all| all.min(parallel));
        set(raw, &format!("{field}.template"), (name, jobs, pods), self.template)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JobSetSpec<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    replicated_jobs: Vec<ReplicatedJob<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReplicatedJob<'a> {
    #[serde(deserialize_with = "nullable")]
    name: String,
    replicas: Option<u64>,
    #[serde(borrow, deserialize_with = "nullable")]
    template: JobTemplate<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobTemplate<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    spec: JobSpec<'a>,
}

impl JobSetSpec<'_> {
    fn sets(&self, raw: &RawObject<'_>) -> Result<Vec<PodSet>, Skipped> {
        let of_job = |job: &ReplicatedJob<'_>| {
            let field = "spec.replicatedJobs.template.spec";
            job.template.spec.set(raw, (&job.name, field), job.replicas.unwrap_or(1)).transpose()
        };
        self.replicated_jobs.iter().filter_map(of_job).collect()
    }
}

type Replicas<'a> = BTreeMap<Cow<'a, str>, Replica<'a>>;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TrainingSpec<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    jax_replica_specs: Replicas<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    mpi_replica_specs: Replicas<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    paddle_replica_specs: Replicas<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pytorch_replica_specs: Replicas<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    tf_replica_specs: Replicas<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    xgb_replica_specs: Replicas<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Replica<'a> {
    replicas: Option<u64>,
    #[serde(borrow)]
    template: Option<&'a RawValue>,
}

impl TrainingSpec<'_> {
    fn sets(&self, raw: &RawObject<'_>) -> Result<Vec<PodSet>, Skipped> {
        let all = [
            &self.jax_replica_specs,
            &self.mpi_replica_specs,
            &self.paddle_replica_specs,
            &self.pytorch_replica_specs,
            &self.tf_replica_specs,
            &self.xgb_replica_specs,
        ];
        let of_role = |(role, replica): (&Cow<'_, str>, &Replica<'_>)| {
            let count = (&**role, replica.replicas.unwrap_or(1), 1);
            set(raw, &format!("spec.replicas of {role}.template"), count, replica.template)
                .transpose()
        };
        all.into_iter().flatten().filter_map(of_role).collect()
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RayJobSpec<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    ray_cluster_spec: RaySpec<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RaySpec<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    head_group_spec: RayGroup<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    worker_group_specs: Vec<RayGroup<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RayGroup<'a> {
    #[serde(deserialize_with = "nullable")]
    group_name: String,
    #[serde(deserialize_with = "nullable")]
    replicas: u64,
    #[serde(deserialize_with = "nullable")]
    min_replicas: u64,
    num_of_hosts: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    suspend: bool,
    #[serde(borrow)]
    template: Option<&'a RawValue>,
}

impl RaySpec<'_> {
    fn sets(&self, raw: &RawObject<'_>) -> Result<Vec<PodSet>, Skipped> {
        let head = self.head_group_spec.template;
        let head = set(raw, "spec.headGroupSpec.template", ("head", 1, 1), head)?;
        let of_group = |group: &RayGroup<'_>| {
            let replicas = group.replicas.max(group.min_replicas);
            let count = (&*group.group_name, replicas, group.num_of_hosts.unwrap_or(1));
            set(raw, "spec.workerGroupSpecs.template", count, group.template).transpose()
        };
        let groups = self.worker_group_specs.iter().filter(|group| !group.suspend);
        head.map(Ok).into_iter().chain(groups.filter_map(of_group)).collect()
    }
}
