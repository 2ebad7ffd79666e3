//! Gangs that wait for instances: a plan serves all pending pods of a gang, or none.
//!
//! The planner serves one instance at a time. The first gang of which it does not serve all pods is
//! left out, and it is planned again without it, because its room may be enough for others. A gang
//! of which a pod has a node has started: its further pods start one by one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_objects::Pod;
use dovetail_partition::PartitionPlan;
use dovetail_translate::gang::{GangName, gang_of};

use crate::eligible::is_mig;
use crate::fleet::Fleet;
use crate::objects::{Objects, is_pending};

/// So many gangs are left out one by one, and at least a few; then all that are not whole.
const MOST_PLANS: usize = 32;
const LEAST_PLANS: usize = 4;

/// Plans take longer on many nodes: as many nodes as these are planned in all.
const MOST_PLANNED_NODES: usize = 4_096;

/// Gangs that are not planned for, because no plan was found that serves one of them as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOut {
    names: BTreeSet<GangName>,
    plans: usize,
}

impl LeftOut {
    pub(crate) fn contains(&self, name: &GangName) -> bool {
        self.names.contains(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Leaves out a gang of which a plan does not serve all pods; false if there is none.
    pub(crate) fn add(&mut self, fleet: &Fleet, planned: &PartitionPlan) -> bool {
        self.plans += 1;
        let nodes = fleet.free.len().max(1);
        let one_by_one = (MOST_PLANNED_NODES / nodes).clamp(LEAST_PLANS, MOST_PLANS);
        let count = if self.plans <= one_by_one { 1 } else { usize::MAX };
        let before = self.names.len();
        self.names.extend(in_part(fleet, planned).take(count).cloned());
        self.names.len() > before
    }
}

/// Whether a plan serves each gang as a whole.
pub(crate) fn are_whole(fleet: &Fleet, planned: &PartitionPlan) -> bool {
    in_part(fleet, planned).next().is_none()
}

/// Gangs of which a plan does not serve all pods, in the order in which they are planned for.
fn in_part<'f>(
    fleet: &'f Fleet,
    planned: &PartitionPlan,
) -> impl Iterator<Item = &'f GangName> + use<'f> {
    let mut served = vec![0u32; fleet.gangs.len()];
    for ((pods, _), accepted) in fleet.waiting.iter().zip(&planned.accepted) {
        if let Some(gang) = pods.gang {
            served[gang] = served[gang].saturating_add(*accepted);
        }
    }
    let gangs = fleet.gangs.iter().zip(served);
    gangs.filter(|(gang, served)| *served < gang.instances).map(|(gang, _)| &gang.name)
}

/// The gangs that ask for instances and have not started, by name, with their places in the order
/// in which they are planned for: by priority, then by age.
pub(crate) fn waiting_gangs(objects: &Objects) -> BTreeMap<GangName, usize> {
    let mut waiting: BTreeMap<GangName, (Reverse<i32>, u64)> = BTreeMap::new();
    let mut started: BTreeSet<GangName> = BTreeSet::new();
    for pod in objects.pods.values() {
        let Some(name) = gang_of(pod).ok().flatten() else { continue };
        if !pod.node.is_empty() {
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
