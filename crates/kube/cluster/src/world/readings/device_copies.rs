//! How many pods of a gang get devices on a node: a gang is decided as a whole, before any of its
//! devices are set aside, so that the engine must know for how many of its pods a node has some.
//!
//! Pods of a gang are alike if the claims that were made for each of them from templates ask for
//! the same, or for other numbers of the same devices. The engine counts those that it places on a
//! node ([`counted_as`]), each as often as it needs what one unit is of, and
//! [`dovetail_model::RuleKind::AtMost`] bounds them: by those that have devices there, and those
//! for which devices are free. What pods that are not alike leave each other is bounded by
//! `device_kinds`.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::mem;
use std::sync::Arc;

use dovetail_model::node::NAME_LABEL;
use dovetail_model::{CounterRule, CounterScope, RuleCause, RuleKind};
use dovetail_objects::{AskedCount, DeviceAsked, Pod, ResourceClaim};
use rustc_hash::FxHasher;

use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use crate::world::objects::reported::Reported;
use crate::world::objects::surveys::ClaimSurvey;

/// Most devices that a claim can get (`AllocationResultsMaxSize` of the API).
pub(crate) const MOST_DEVICES: i64 = 32;

/// What counts the pods of a gang that are alike.
pub(crate) struct CountedClaims {
    pub(crate) selector: String,
    /// Units that the pod needs.
    pub(crate) units: u32,
    /// The claims of one unit: for one device if the claims are for nothing but a number of equal
    /// devices, else all that were made for the pod.
    pub(crate) unit: Vec<ResourceClaim>,
}

/// What counts a pod and those of its gang that are like it; `None` for a pod that is in no gang,
/// or has no claims of its own.
pub(crate) fn counted_as(objects: &Objects, slot: Slot) -> Option<CountedClaims> {
    let entry = objects.pods.get(slot);
    let gang = entry.gang.as_ref().filter(|_| !entry.pod.device_claims.is_empty())?;
    let mut unit: Vec<ResourceClaim> = own_claims(objects, &entry.pod).cloned().collect();
    let units = match &mut unit[..] {
        [] => return None,
        [claim] => number_of_devices(claim).map_or(1, |count| mem::replace(count, 1)),
        _ => 1,
    };
    let mut hasher = FxHasher::default();
    unit.iter().for_each(|claim| format!("{:?}", claim.asked).hash(&mut hasher));
    let selector = format!("claims:{gang}:{:016x}", hasher.finish());
    Some(CountedClaims { selector, units: u32::try_from(units).unwrap_or(u32::MAX), unit })
}

/// How many devices a claim is for, if it is for nothing but so many that are not compared with
/// each other.
fn number_of_devices(claim: &mut ResourceClaim) -> Option<&mut i64> {
    let ([request], true) = (&mut claim.asked.requests[..], claim.asked.constraints.is_empty())
    else {
        return None;
    };
    match &mut request.alternatives[..] {
        [DeviceAsked { count: AskedCount::Exactly(count), .. }]
            if (1..=MOST_DEVICES).contains(count) =>
        {
            // Neither is asked of devices.
            request.name = Box::default();
            claim.asked.config.clear();
            Some(count)
        }
        _ => None,
    }
}

/// At most so many units of pods like this one on each node ([`counted_as`]).
pub(crate) fn at_most(
    objects: &Objects,
    slot: Slot,
    selector: &str,
    survey: &ClaimSurvey,
) -> Option<CounterRule> {
    let free = survey.fitting().map(|(node, units)| (node.to_string(), units));
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
        let alike = counted_as(objects, other).filter(|other| other.selector == selector);
        if let Some(alike) = alike.filter(|_| is_served) {
            *most.entry(node.to_string()).or_default() += alike.units;
        }
    }
    Some(most_on_each(selector.to_owned(), most))
}

/// What a selector counts is at most so much on each node, and nothing on others.
pub(crate) fn most_on_each(selector: String, most: BTreeMap<String, u32>) -> CounterRule {
    CounterRule {
        selector,
        label: NAME_LABEL.to_owned(),
        kind: RuleKind::AtMost { most: Arc::new(most) },
        scope: CounterScope::AllNodes,
        cause: RuleCause::DeviceClaims,
    }
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
pub(crate) fn has_devices(objects: &Objects, claim: &ResourceClaim) -> bool {
    claim.allocation.is_some() || objects.device_claims.pledge(claim).is_some()
}
