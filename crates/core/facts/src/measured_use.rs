//! What GPUs did while pods held them, noted on those pods.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::Facts;
use crate::moment::{HeldState, Moment};
use crate::usage::{GpuUse, UsagePeriod, UsesOfPods};

/// What became of the uses that were handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Pods that hold GPUs and were measured.
    pub pods: usize,
    /// Measured pods that hold no GPUs now: they are gone, or are others.
    pub others: usize,
}

/// Notes what was measured on the pods that hold GPUs now.
pub fn measure(
    facts: &mut Facts,
    moment: &mut Moment,
    period: UsagePeriod,
    uses: &UsesOfPods,
) -> Matched {
    let mut matched = BTreeSet::new();
    let uses = &of_each_pod(facts, moment, &of_sharers(moment, uses));
    facts.usage = Some(period);
    for workload in &mut facts.workloads {
        let namespace = workload.owner.namespace.clone();
        for pod in &mut workload.pods {
            let key = (namespace.clone(), pod.name.clone());
            if let Some(uses) = uses.get(&key) {
                pod.uses.clone_from(uses);
            }
        }
    }
    for held in &mut moment.held {
        let namespace = &facts.workloads[held.workload].owner.namespace;
        let key = (namespace.clone(), held.pod.clone());
        if let Some((key, uses)) = uses.get_key_value(&key) {
            matched.insert(key);
            // What never was ready does not compute, whatever its GPU shows.
            if held.state != HeldState::Starting {
                held.uses.clone_from(uses);
            }
        }
    }
    Matched { pods: matched.len(), others: uses.len() - matched.len() }
}

/// The same with what a reserved GPU did under the names of those who share it.
fn of_sharers(moment: &Moment, uses: &UsesOfPods) -> UsesOfPods {
    let mut found = uses.clone();
    for (reserves, sharers) in &moment.sharers {
        let Some(uses) = found.remove(reserves) else { continue };
        let is_alone = sharers.len() == 1;
        let of_each =
            |used: &GpuUse| if is_alone { used.clone() } else { used.clone().of_each_holder() };
        for sharer in sharers {
            found.entry(sharer.clone()).or_insert_with(|| uses.iter().map(of_each).collect());
        }
    }
    found
}

/// What each pod did. Pods that hold shares of devices on one node have one together where both
/// were measured on the same, or where nobody says which one the other has.
fn of_each_pod(facts: &Facts, moment: &Moment, uses: &UsesOfPods) -> UsesOfPods {
    let units = moment.nodes.iter().flat_map(|node| {
        let shared = node.units.iter().filter(|units| units.is_shared);
        shared.map(|units| (&*node.node, &*units.resource))
    });
    let shared: BTreeSet<(&str, &str)> = units.collect();
    let mut sharers: BTreeMap<(&str, &str), BTreeSet<(String, String)>> = BTreeMap::new();
    for held in &moment.held {
        let place = (&*held.node, &*held.resource);
        if shared.contains(&place) {
            let namespace = facts.workloads[held.workload].owner.namespace.clone();
            sharers.entry(place).or_default().insert((namespace, held.pod.clone()));
        }
    }
    let mut found = uses.clone();
    for pods in sharers.values().filter(|pods| pods.len() > 1) {
        let unmeasured = pods.iter().filter(|pod| uses.get(*pod).is_none_or(Vec::is_empty)).count();
        let mut pods_of: BTreeMap<&str, BTreeSet<&(String, String)>> = BTreeMap::new();
        for pod in pods {
            for used in uses.get(pod).into_iter().flatten() {
                pods_of.entry(&used.gpu).or_default().insert(pod);
            }
        }
        for pod in pods {
            for used in found.get_mut(pod).into_iter().flatten() {
                let together = pods_of.get(&*used.gpu).map_or(0, BTreeSet::len);
                if unmeasured > 0 || together > 1 {
                    *used = std::mem::take(used).of_each_holder();
                }
            }
        }
    }
    found
}
