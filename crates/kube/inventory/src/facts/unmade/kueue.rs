//! Workloads of Kueue (`kueue.x-k8s.io`, v1beta1 and v1beta2): what waits until it is admitted, and
//! whether it is quota that it waits for.

use std::borrow::Cow;

use dovetail_facts::ObjectRef;
use dovetail_objects::json::nullable;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::quota::{QUOTA_RESERVED, speaks_of_quota};
use super::{PodSet, sets};
use crate::dump::{RawObject, Skipped};
use crate::facts::detail::{MetaDetail, OwnerConditionDetail};
use crate::facts::lenient::lenient;

pub(super) const GROUP: &str = "kueue.x-k8s.io/";

/// What Kueue says of what it will not look at until somebody mends it: its queue is missing or
/// stopped.
const INADMISSIBLE: &str = "Inadmissible";

/// Whether an object is one of Kueue's workloads.
pub(super) fn is_workload(kind: &str, api_version: &str) -> bool {
    kind == "Workload" && api_version.starts_with(GROUP)
}

/// A workload that is not admitted.
pub(super) struct KueueWorkload {
    /// What it is about: the objects that own it.
    pub(super) owners: Vec<ObjectRef>,
    pub(super) sets: Vec<PodSet>,
    pub(super) waits_for_quota: bool,
    /// Since when there is no quota for it, if it waits for that; `None` if nobody knows.
    pub(super) since_ms: Option<u64>,
    /// Somebody switched it off: nobody waits for what it is about.
    pub(super) is_off: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Whole<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    metadata: MetaDetail<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    spec: Spec<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    status: Status<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    active: Option<bool>,
    #[serde(borrow, deserialize_with = "nullable")]
    pod_sets: Vec<SetOfPods<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SetOfPods<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    name: Cow<'a, str>,
    count: Option<u64>,
    #[serde(borrow)]
    template: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    conditions: Vec<OwnerConditionDetail<'a>>,
}

/// A workload that waits or is switched off; `None` for one that is admitted or over.
///
/// # Errors
/// If a field has another shape than it should.
pub(super) fn read(raw: &RawObject<'_>) -> Result<Option<KueueWorkload>, Skipped> {
    let Whole { metadata, spec, status } = lenient(raw)?;
    let is = |kind: &str| status.conditions.iter().any(|c| c.kind == kind && c.status == "True");
    if metadata.deletion_timestamp.0.is_some() || is("Admitted") || is("Finished") {
        return Ok(None);
    }
    let is_off = spec.active == Some(false);
    let set = |set: &SetOfPods<'_>| {
        let count = (&*set.name, set.count.unwrap_or(1), 1);
        sets::set(raw, "spec.podSets.template", count, set.template).transpose()
    };
    let refused =
        status.conditions.iter().find(|c| c.kind == QUOTA_RESERVED && c.status == "False");
    let owners = metadata.owner_references.iter();
    let since_ms = refused.and_then(|condition| condition.last_transition_time.0);
    Ok(Some(KueueWorkload {
        owners: owners.map(|of| ObjectRef::new(&of.kind, raw.namespace, &of.name)).collect(),
        sets: spec.pod_sets.iter().filter_map(set).collect::<Result<_, _>>()?,
        waits_for_quota: !is_off && refused.is_some_and(for_lack_of_quota),
        since_ms: since_ms.or(metadata.creation_timestamp.0),
        is_off,
    }))
}

/// Whether quota is not reserved because there is too little of it. Kueue writes the same condition
/// where it finds no node of the topology, or no queue.
fn for_lack_of_quota(condition: &OwnerConditionDetail<'_>) -> bool {
    match (&*condition.about, &*condition.message) {
        ("", "") => condition.reason != INADMISSIBLE,
        ("", message) => speaks_of_quota(QUOTA_RESERVED, message),
        (about, _) => about == "quota",
    }
}
