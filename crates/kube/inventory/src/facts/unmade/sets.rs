//! The kinds of pods that an object makes, with how many of each: Jobs, JobSets, the jobs of
//! training operators, Ray.

use dovetail_objects::json::nullable;
use dovetail_objects::{
    JobSetSpec, JobSpec, Pod, PodsMade, RaySpec, TrainingSpec, owner_kind, read,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::PodSet;
use super::scopes::ScopedPod;
use crate::dump::{RawObject, Skipped};
use crate::facts::detail::PodDetail;
use crate::facts::lenient::lenient;
use crate::facts::read_pod::claims;

/// A template as it is written.
type Template<'a> = Option<&'a RawValue>;

#[derive(Deserialize)]
struct Whole<S> {
    spec: S,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RayJobSpec<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    ray_cluster_spec: RaySpec<Template<'a>>,
}

/// The sets of a suspended object whose pods may need GPUs; none for kinds that nobody knows.
///
/// # Errors
/// If a field has another shape than it should.
pub(super) fn of(raw: &RawObject<'_>) -> Result<Vec<PodSet>, Skipped> {
    match raw.kind {
        "Job" => {
            let Whole::<JobSpec<Template<'_>>> { spec } = lenient(raw)?;
            sets(raw, |_| "spec.template".to_owned(), [spec.pods_made()].into_iter())
        }
        "JobSet" => {
            let Whole::<JobSetSpec<Template<'_>>> { spec } = lenient(raw)?;
            let field = "spec.replicatedJobs.template.spec.template";
            sets(raw, |_| field.to_owned(), spec.pods_made())
        }
        "RayCluster" => {
            let Whole::<RaySpec<Template<'_>>> { spec } = lenient(raw)?;
            ray(raw, &spec)
        }
        "RayJob" => {
            let Whole::<RayJobSpec<'_>> { spec } = lenient(raw)?;
            ray(raw, &spec.ray_cluster_spec)
        }
        kind if owner_kind(kind).has_replica_roles => {
            let Whole::<TrainingSpec<Template<'_>>> { spec } = lenient(raw)?;
            sets(raw, |role| format!("spec.replicas of {role}.template"), spec.pods_made())
        }
        _ => Ok(Vec::new()),
    }
}

fn ray(raw: &RawObject<'_>, spec: &RaySpec<Template<'_>>) -> Result<Vec<PodSet>, Skipped> {
    let field = |group: &str| match group {
        HEAD => "spec.headGroupSpec.template".to_owned(),
        _ => "spec.workerGroupSpecs.template".to_owned(),
    };
    let made = spec.pods_made().enumerate();
    // The first is the head.
    let made = made
        .map(|(place, made)| PodsMade { name: if place == 0 { HEAD } else { made.name }, ..made });
    sets(raw, field, made)
}

/// The head of a Ray cluster, as it is told.
const HEAD: &str = "head";

/// Sets of what a workload makes; `field` says where the template of a name stands.
fn sets<'s, 'a: 's>(
    raw: &RawObject<'_>,
    field: impl Fn(&str) -> String,
    made: impl Iterator<Item = PodsMade<'s, Template<'a>>>,
) -> Result<Vec<PodSet>, Skipped> {
    let of_one = |made: PodsMade<'s, Template<'a>>| {
        let count = (made.name, made.parts.into(), made.pods_each.into());
        set(raw, &field(made.name), count, *made.template).transpose()
    };
    made.filter_map(of_one).collect()
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
