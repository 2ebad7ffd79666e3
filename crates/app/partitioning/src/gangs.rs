//! Gangs that wait for instances: a plan serves all pending pods of a gang, or none.
//!
//! A gang of which a pod has a node, and did not fail there, has started: its further pods start one
//! by one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_objects::{Pod, PodPhase};
use dovetail_partition::PartitionPlan;
use dovetail_translate::gang::{GangName, gang_of};

use crate::eligible::is_mig;
use crate::fleet::Fleet;
use crate::objects::{Objects, is_pending};
use crate::waiting::WaitingGang;

/// Which gangs a plan is for.
#[derive(Clone, Debug, Default)]
pub(crate) struct GangChoice {
    /// Nothing is planned for them.
    pub(crate) left_out: BTreeSet<GangName>,
    /// Their pods are served before all others.
    pub(crate) first: BTreeSet<GangName>,
}

impl GangChoice {
    /// Whether it treats all gangs alike.
    pub(crate) fn is_none(&self) -> bool {
        self.left_out.is_empty() && self.first.is_empty()
    }
}

/// A gang of which a plan does not serve all pods.
pub(crate) struct GangInPart<'f> {
    pub(crate) name: &'f GangName,
    /// The plan serves some of them.
    pub(crate) has_some: bool,
}

/// Gangs that are part of the demand and of which a plan does not serve all pods, in the order in
/// which they are planned for.
pub(crate) fn in_part<'f>(fleet: &'f Fleet, planned: &PartitionPlan) -> Vec<GangInPart<'f>> {
    let mut counts = vec![(0u32, 0u32); fleet.gangs.len()];
    for ((pods, count), accepted) in fleet.waiting.iter().zip(&planned.accepted) {
        if let Some(gang) = pods.gang {
            let (asked, served) = &mut counts[gang];
            *asked = asked.saturating_add(*count);
            *served = served.saturating_add(*accepted);
        }
    }
    let gangs = fleet.gangs.iter().zip(counts);
    let in_part = gangs.filter(|(gang, (asked, served))| *asked > 0 && *served < gang.instances);
    let of = |(gang, (_, served)): (&'f WaitingGang, (u32, u32))| GangInPart {
        name: &gang.name,
        has_some: served > 0,
    };
    in_part.map(of).collect()
}

/// Whether a plan serves each gang as a whole or not at all.
pub(crate) fn are_whole(fleet: &Fleet, planned: &PartitionPlan) -> bool {
    in_part(fleet, planned).iter().all(|gang| !gang.has_some)
}

/// The gangs that ask for instances and have not started, by name, with their places in the order
/// in which they are planned for: by priority, then by age.
pub(crate) fn waiting_gangs(objects: &Objects) -> BTreeMap<GangName, usize> {
    let mut waiting: BTreeMap<GangName, (Reverse<i32>, u64)> = BTreeMap::new();
    let mut started: BTreeSet<GangName> = BTreeSet::new();
    for pod in objects.pods.values() {
        let Some(name) = gang_of(pod).ok().flatten() else { continue };
        if !pod.node.is_empty() && pod.phase != PodPhase::Failed {
            started.insert(name);
        } else if is_pending(pod) && asks_for_instances(pod) {
            let order = (Reverse(pod.priority), pod.meta.created_ms);
            let known = waiting.entry(name).or_insert(order);
            *known = order.min(*known);
        }
    }
    waiting.retain(|name, _| !started.contains(name));
    let mut in_order: Vec<_> = waiting.into_iter().map(|(name, order)| (order, name)).collect();
    in_order.sort();
    in_order.into_iter().zip(0..).map(|((_, name), place)| (name, place)).collect()
}

fn asks_for_instances(pod: &Pod) -> bool {
    pod.requests.extended.iter().any(|(name, count)| is_mig(name) && *count > 0)
}
