//! Who owns pods: Pod → ReplicaSet → Deployment, Job → CronJob, and whatever operators put on top.

use dovetail_objects::labels;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::ObjectRef;

use super::api_group::group_of;
use super::detail::OwnerDetail;
use super::ignored::ignores;
use super::lenient::lenient;
use super::unmade::Unmade;
use crate::dump::{RawObject, Skipped};

/// Longer chains are circles.
const LONGEST_CHAIN: usize = 16;

/// Owners by what they are called.
#[derive(Default)]
pub(super) struct Owners {
    known: BTreeMap<ObjectRef, OwnerFacts>,
    /// Those that make pods which are not there.
    pub(super) unmade: Unmade,
}

#[derive(Default)]
struct OwnerFacts {
    controller: Option<ObjectRef>,
    controller_uid: Option<String>,
    created_ms: Option<u64>,
    /// Pods it wants.
    desired: Option<u32>,
    ignores: BTreeSet<String>,
    /// Groups of the objects of this kind and name.
    groups: Vec<Box<str>>,
}

impl Owners {
    /// Takes an object that may own others. One that is controlled by nothing and wants no pods is
    /// one too: somebody may name it. Answers whether nothing controls it.
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
        self.unmade.add(raw, &detail)?;
        let object = ObjectRef::new(raw.kind, raw.namespace, raw.name);
        let owner = OwnerFacts {
            controller_uid: controller.map(|owner| (*owner.uid).to_owned()),
            created_ms: detail.metadata.creation_timestamp.0,
            controller: controller
                .map(|owner| ObjectRef::new(&owner.kind, raw.namespace, &owner.name)),
            desired: desired.filter(|_| !detail.spec.is_suspended()),
            ignores: ignores(detail.metadata.annotation(labels::IGNORE)),
            groups: self.groups_with(&object, group_of(raw.api_version)),
        };
        let is_top = owner.controller.is_none();
        self.known.insert(object, owner);
        Ok(is_top)
    }

    /// The groups of an object with one more.
    fn groups_with(&self, object: &ObjectRef, group: &str) -> Vec<Box<str>> {
        let known = self.known.get(object).map(|owner| owner.groups.iter());
        let others = known.into_iter().flatten().filter(|of| &***of != group).cloned();
        others.chain([group.into()]).collect()
    }

    /// Whether an object is of a group, as far as anybody knows: one that was not read may be.
    pub(super) fn may_be_of_group(&self, object: &ObjectRef, group: &str) -> bool {
        let Some(owner) = self.known.get(object) else { return true };
        owner.groups.is_empty() || owner.groups.iter().any(|of| **of == *group)
    }

    /// Pods that control owners.
    pub(super) fn leaders(&self) -> BTreeSet<ObjectRef> {
        let controllers = self.known.values().filter_map(|owner| owner.controller.as_ref());
        controllers.filter(|controller| controller.kind == "Pod").cloned().collect()
    }

    /// Takes what controls a pod that controls others, and the identity of that.
    pub(super) fn add_leader(&mut self, pod: ObjectRef, by: ObjectRef, by_uid: Option<String>) {
        let owner =
            OwnerFacts { controller: Some(by), controller_uid: by_uid, ..OwnerFacts::default() };
        self.known.insert(pod, owner);
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

    /// Leaves out of what is not made what others have made of it.
    pub(super) fn leave_out_what_is_made(&mut self) {
        let mut unmade = std::mem::take(&mut self.unmade);
        unmade.leave_out_what_is_made(self);
        self.unmade = unmade;
    }

    /// What controls an object; `None` if nothing does, or if it was not read.
    pub(super) fn controller(&self, object: &ObjectRef) -> Option<&ObjectRef> {
        self.known.get(object)?.controller.as_ref()
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

/// The Deployment of a ReplicaSet that was not handed over: its pods carry the hash that its name
/// ends in.
fn deployment_of(owner: &ObjectRef, template_hash: Option<&str>) -> Option<ObjectRef> {
    if owner.kind != "ReplicaSet" {
        return None;
    }
    let name = owner.name.strip_suffix(template_hash?)?.strip_suffix('-')?;
    (!name.is_empty()).then(|| ObjectRef::new("Deployment", &owner.namespace, name))
}
