//! Who owns pods: Pod → ReplicaSet → Deployment, Job → CronJob, and whatever operators put on top.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_audit::ObjectRef;

use super::claims::ClaimOf;
use super::detail::{OwnerDetail, PodDetail};
use super::inventory::lenient;
use super::read_pod::claims;
use crate::dump::{RawObject, Skipped};
use crate::object::{Pod, read};

/// Longer chains are circles.
const LONGEST_CHAIN: usize = 16;

/// Pods that one suspended job waits with; more change no cause.
const MOST_WAITING: u64 = 1000;

/// Owners by what they are called.
#[derive(Default)]
pub(super) struct Owners {
    known: BTreeMap<ObjectRef, Owner>,
    /// Pods that suspended jobs would start.
    pub(super) suspended: Vec<SuspendedPod>,
}

/// A pod that a suspended job would start.
pub(super) struct SuspendedPod {
    pub(super) pod: Pod,
    /// Resource claims that it would refer to.
    pub(super) claims: Vec<ClaimOf>,
}

struct Owner {
    controller: Option<ObjectRef>,
    controller_uid: Option<String>,
    created_ms: Option<u64>,
    /// Pods it wants.
    desired: Option<u32>,
    ignores: BTreeSet<String>,
}

impl Owners {
    /// Takes an object that may own others. One that is controlled by nothing and wants no pods is one
    /// too: somebody may name it. Answers whether nothing controls it.
    pub(super) fn add(&mut self, raw: &RawObject<'_>) -> Result<bool, Skipped> {
        let detail: OwnerDetail<'_> = lenient(raw)?;
        let controller = detail.metadata.controller();
        let number = |value: &Option<serde_json::Value>| {
            let number = value.as_ref().and_then(serde_json::Value::as_u64)?;
            u32::try_from(number).ok()
        };
        let of_job = number(&detail.spec.parallelism);
        let default = matches!(raw.kind, "Job" | "Deployment" | "StatefulSet").then_some(1);
        let desired = number(&detail.spec.replicas).or(of_job).or(default);
        let is_suspended = detail.spec.suspend == Some(serde_json::Value::Bool(true));
        if raw.kind == "Job" && is_suspended {
            let count = u64::from(desired.unwrap_or(1)).min(MOST_WAITING);
            self.suspended.extend(waiting(raw, &detail, count)?);
        }
        let object = ObjectRef::new(raw.kind, raw.namespace, raw.name);
        let owner = Owner {
            controller_uid: controller.map(|owner| owner.uid.clone()),
            created_ms: detail.metadata.creation_timestamp.0,
            controller: controller
                .map(|owner| ObjectRef::new(&owner.kind, raw.namespace, &owner.name)),
            desired: desired.filter(|_| !is_suspended),
            ignores: ignores(detail.metadata.annotation("dovetail.dev/ignore")),
        };
        let is_top = owner.controller.is_none();
        self.known.insert(object, owner);
        Ok(is_top)
    }

    /// From the nearest owner up to the top, both included.
    pub(super) fn chain(&self, nearest: &ObjectRef, template_hash: Option<&str>) -> Vec<ObjectRef> {
        let mut chain = vec![nearest.clone()];
        while let Some(last) = chain.last() {
            let next = match self.known.get(last) {
                Some(owner) => owner.controller.clone(),
                None => deployment_of(last, template_hash),
            };
            match next {
                Some(next) if chain.len() < LONGEST_CHAIN && !chain.contains(&next) => {
                    chain.push(next);
                }
                _ => break,
            }
        }
        chain
    }

    /// Identity of what controls an object; `None` if it was not read.
    pub(super) fn controller_uid(&self, object: &ObjectRef) -> Option<String> {
        self.known.get(object)?.controller_uid.clone()
    }

    /// When an object was made; `None` if it was not read.
    pub(super) fn created_ms(&self, object: &ObjectRef) -> Option<u64> {
        self.known.get(object)?.created_ms
    }

    /// How many pods an owner wants.
    pub(super) fn desired(&self, owner: &ObjectRef) -> Option<u32> {
        self.known.get(owner)?.desired
    }

    /// Checks that any of the owners asks to ignore.
    pub(super) fn ignores(&self, chain: &[ObjectRef]) -> BTreeSet<String> {
        let known = chain.iter().filter_map(|owner| self.known.get(owner));
        known.flat_map(|owner| owner.ignores.iter().cloned()).collect()
    }
}

/// Ids in an annotation, separated by commas or blanks.
pub(super) fn ignores(annotation: Option<&str>) -> BTreeSet<String> {
    let words = annotation.unwrap_or_default().split([',', ' ']);
    words.map(str::trim).filter(|word| !word.is_empty()).map(str::to_uppercase).collect()
}

/// The Deployment of a ReplicaSet that was not handed over: its pods carry the hash that its name ends in.
fn deployment_of(owner: &ObjectRef, template_hash: Option<&str>) -> Option<ObjectRef> {
    if owner.kind != "ReplicaSet" {
        return None;
    }
    let name = owner.name.strip_suffix(template_hash?)?.strip_suffix('-')?;
    (!name.is_empty()).then(|| ObjectRef::new("Deployment", &owner.namespace, name))
}

/// The pods that a suspended job would start, unless nothing that they need can be of a GPU.
fn waiting(
    raw: &RawObject<'_>,
    detail: &OwnerDetail<'_>,
    count: u64,
) -> Result<Vec<SuspendedPod>, Skipped> {
    let Some(template) = detail.spec.template else { return Ok(Vec::new()) };
    let strange =
        |field: &str, problem: &str| raw.skipped(&format!("spec.template.{field}"), problem);
    let pod: Pod = read("Pod", template.get().as_bytes())
        .map_err(|problem| strange(&problem.field, &problem.problem))?;
    // Extended resources can be served by device classes, which may be read later.
    if pod.requests.extended.is_empty() && !pod.has_resource_claims {
        return Ok(Vec::new());
    }
    let detail: PodDetail<'_> = serde_json::from_str(template.get())
        .map_err(|problem| strange("spec", &problem.to_string()))?;
    let claims = claims(&detail);
    let numbered = |number| {
        let mut pod = pod.clone();
        pod.meta.namespace = raw.namespace.into();
        pod.meta.name = format!("{}-{number} (suspended)", raw.name).into();
        SuspendedPod { pod, claims: claims.clone() }
    };
    Ok((0..count).map(numbered).collect())
}
