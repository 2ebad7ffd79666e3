//! How many pods of a gang get devices on a node: a gang is decided as a whole, before any of its
//! devices are set aside, so that the engine must know for how many of its pods a node has some.
//!
//! Pods of a gang are alike if the claims that were made for each of them from templates ask for
//! the same. The engine counts those that it places on a node ([`counted_as`]), and
//! [`dovetail_model::RuleKind::AtMost`] bounds them: by those that have devices there, and those
//! for which devices are free.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use dovetail_model::node::NAME_LABEL;
use dovetail_model::{CounterRule, CounterScope, RuleCause, RuleKind};
use dovetail_objects::{Pod, ResourceClaim};
use rustc_hash::FxHasher;

use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use crate::world::objects::reported::Reported;
use crate::world::objects::surveys::ClaimSurvey;

/// The selector that counts the pods of a gang that are like this one; `None` for a pod that is in
/// no gang, or has no claims of its own.
pub(crate) fn counted_as(objects: &Objects, slot: Slot) -> Option<String> {
    let entry = objects.pods.get(slot);
    let gang = entry.gang.as_ref().filter(|_| !entry.pod.device_claims.is_empty())?;
    let mut hasher = FxHasher::default();
    let mut claims = own_claims(objects, &entry.pod).peekable();
    claims.peek()?;
    claims.for_each(|claim| format!("{:?}", claim.asked).hash(&mut hasher));
    Some(format!("claims:{gang}:{:016x}", hasher.finish()))
}

/// At most so many pods like this one on each node; `selector` counts them ([`counted_as`]).
pub(crate) fn at_most(
    objects: &Objects,
    slot: Slot,
    selector: &str,
    survey: &ClaimSurvey,
) -> Option<CounterRule> {
    let free = survey.fitting().map(|(node, pods)| (node.to_string(), pods));
    let mut most: BTreeMap<String, u32> = free.collect();
    let gang = objects.pods.get(slot).gang.as_ref()?;
    for other in objects.members.of(gang).filter(|other| *other != slot) {
        let entry = objects.pods.get(other);
        let (Reported::Assumed { node, .. }
        | Reported::Running { node, .. }
        | Reported::Foreign { node, .. }) = &entry.reported
        else {
            continue;
        };
        let is_served = own_claims(objects, &entry.pod).all(|claim| has_devices(objects, claim));
        if is_served && counted_as(objects, other).as_deref() == Some(selector) {
            *most.entry(node.to_string()).or_default() += 1;
        }
    }
    Some(CounterRule {
        selector: selector.to_owned(),
        label: NAME_LABEL.to_owned(),
        kind: RuleKind::AtMost { most: Arc::new(most) },
        scope: CounterScope::AllNodes,
        cause: RuleCause::DeviceClaims,
    })
}

/// The claims that were made for a pod alone.
pub(crate) fn own_claims<'o>(
    objects: &'o Objects,
    pod: &'o Pod,
) -> impl Iterator<Item = &'o ResourceClaim> {
    let of_templates = pod.device_claims.iter().filter(|named| named.is_from_template);
    let claim = |name: &str| objects.device_claims.get(&pod.meta.namespace, name);
    of_templates.filter_map(move |named| named.claim.as_deref().and_then(claim))
}

/// Whether a claim has devices, or some are set aside for it.
fn has_devices(objects: &Objects, claim: &ResourceClaim) -> bool {
    claim.allocation.is_some() || objects.device_claims.pledge(claim).is_some()
}
