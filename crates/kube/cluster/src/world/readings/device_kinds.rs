//! What pods of a gang whose claims differ leave each other of a node's devices.
//!
//! Pods that are alike have a bound of their own ([`super::device_copies`]), which knows nothing of
//! the others. So those of each two kinds that are decided together are bounded as well, and those
//! of all kinds: a pod counts as often as it asks for devices, and a node takes no more than the
//! most that any mix of them gets there. For claims of one device each, of two kinds, that is
//! exact; else a mix may pass whose devices are not free together, and is refused when they are set
//! aside.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use dovetail_model::CounterRule;
use dovetail_objects::{AskedCount, ResourceClaim};
use dovetail_translate::gang::GangName;
use rustc_hash::FxHasher;

use super::device_claims::together;
use super::device_copies::{
    CountedClaims, MOST_DEVICES, counted_as, has_devices, most_on_each, own_claims,
};
use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use crate::world::objects::surveys::PodKind;

/// The pods of more kinds are only bounded each by itself.
const MOST_KINDS: usize = 8;

/// A bound, and how often a pod counts for it.
pub(crate) type JointBound = (CounterRule, u32);

/// Pod sets whose pods are alike.
struct AlikeSets {
    selector: String,
    kind: PodKind,
    /// Their numbers, with the units of a pod.
    sets: Vec<(usize, u32)>,
}

/// For each of these pod sets of a gang, which are decided together, what bounds it beside the
/// others. A pod counts for it until devices are set aside for it: what it has is not free then.
pub(crate) fn joint_bounds(
    objects: &Objects,
    gang: &GangName,
    sets: &[&[Slot]],
) -> Vec<Vec<JointBound>> {
    let mut bounds = vec![Vec::new(); sets.len()];
    if sets.len() < 2 {
        return bounds;
    }
    let kinds = kinds(objects, sets);
    let is_open = |slot: &Slot| {
        let mut own = own_claims(objects, &objects.pods.get(*slot).pod);
        own.all(|claim| !has_devices(objects, claim))
    };
    let are_bounded = (2..=MOST_KINDS).contains(&kinds.len());
    if !are_bounded || !sets.iter().flat_map(|slots| slots.iter()).all(is_open) {
        return bounds;
    }
    for group in groups(kinds.len()) {
        let group: Vec<&AlikeSets> = group.into_iter().map(|kind| &kinds[kind]).collect();
        let rule = joint_rule(objects, gang, &group);
        for alike in group {
            for (set, units) in &alike.sets {
                let times = units.saturating_mul(alike.kind.devices);
                bounds[*set].push((rule.clone(), times));
            }
        }
    }
    bounds
}

/// The pod sets with claims, those together whose pods are alike.
fn kinds(objects: &Objects, sets: &[&[Slot]]) -> Vec<AlikeSets> {
    let mut kinds: BTreeMap<String, AlikeSets> = BTreeMap::new();
    for (set, slots) in sets.iter().enumerate() {
        let counted_as = slots.first().and_then(|first| counted_as(objects, *first));
        let Some(CountedClaims { selector, units, unit }) = counted_as else { continue };
        let alike = kinds.entry(selector.clone()).or_insert_with(|| AlikeSets {
            selector,
            kind: PodKind { devices: devices(&unit), unit, most: 0 },
            sets: Vec::new(),
        });
        let pods = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        alike.kind.most = alike.kind.most.saturating_add(units.saturating_mul(pods));
        alike.sets.push((set, units));
    }
    kinds.into_values().collect()
}

/// Devices that some claims ask for, by the first alternatives; all that there are count as one.
fn devices(claims: &[ResourceClaim]) -> u32 {
    let requests = claims.iter().flat_map(|claim| &claim.asked.requests);
    let first = requests.filter_map(|request| request.alternatives.first());
    let devices: u32 = first
        .map(|asked| match asked.count {
            AskedCount::Exactly(count) => u32::try_from(count.clamp(1, MOST_DEVICES)).unwrap_or(1),
            AskedCount::All | AskedCount::Other(_) => 1,
        })
        .sum();
    devices.max(1)
}

/// Each two of so many kinds, and all of them.
fn groups(kinds: usize) -> Vec<Vec<usize>> {
    let pairs = (0..kinds).flat_map(|one| (one + 1..kinds).map(move |other| vec![one, other]));
    let all = (kinds > 2).then(|| (0..kinds).collect());
    pairs.chain(all).collect()
}

/// Pods of these kinds get at most so many devices together on each node.
fn joint_rule(objects: &Objects, gang: &GangName, group: &[&AlikeSets]) -> CounterRule {
    let survey = together(objects, group.iter().map(|alike| alike.kind.clone()).collect());
    let most = survey.fitting().map(|(node, devices)| (node.to_string(), devices)).collect();
    let mut hasher = FxHasher::default();
    group.iter().for_each(|alike| alike.selector.hash(&mut hasher));
    most_on_each(format!("claims:{gang}:together:{:016x}", hasher.finish()), most)
}
