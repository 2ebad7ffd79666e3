//! A gang as a job: members that need the same are a pod set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::requirement::Operator;
use dovetail_model::{
    ConditionCause, Job, JobId, NodeCondition, PodId, PodSet, Requirement, SelectorTerm,
    TopologyRequest,
};
use rustc_hash::FxHashMap;

use super::roll::Roll;
use crate::translate::NotYet;
use crate::translate::gang::{GangName, Terms};
use crate::world::World;
use crate::world::pods::Slot;
use crate::world::standing::Told;

/// The members of each pod set, by ordinal, with what they need.
pub(super) type Seats = Vec<(Arc<Requirement>, Vec<Slot>)>;

/// A gang whose pods need more different things than this is refused.
const MOST_POD_SETS: usize = 4_096;
/// Label of a pod: its role in the gang.
const POD_SET: &str = "dovetail.dev/pod-set";
/// The name of a node, where conditions ask for a label.
const NODE_NAME: &str = "metadata.name";

impl World {
    /// The job of the members that wish for a node, of whom `missing` must start.
    pub(super) fn describe(
        &mut self,
        name: &GangName,
        terms: &Terms,
        roll: &Roll,
        missing: u32,
        id: JobId,
    ) -> Result<(Job, Seats), NotYet> {
        let seats = self.seats(terms, roll);
        if seats.len() > MOST_POD_SETS {
            let problem = format!(
                "its pods ask for {} different things, and a gang may have {MOST_POD_SETS} kinds of \
                 pods: give equal ones equal specifications",
                seats.len()
            );
            return Err(NotYet::Gang { gang: name.to_string(), problem });
        }
        let smallest = smallest(&seats, missing);
        let names = self.names_of_sets(&seats);
        let sets = seats.iter().zip(smallest).zip(names);
        let pod_sets = sets
            .map(|(((requirement, slots), min), name)| PodSet {
                min,
                max: slots.len() as u32,
                ..PodSet::fixed(&name, Arc::clone(requirement), 0)
            })
            .collect();
        let pods = roll.wishing.iter().map(|slot| &self.pods.get(*slot).pod);
        let submit_ms = pods.clone().map(|pod| pod.meta.created_ms).min().unwrap_or(0);
        let priority = pods.map(|pod| pod.priority).next().unwrap_or(0);
        // What is missing follows those that are placed by conditions of its own.
        let required = terms.topology.required.clone().filter(|_| roll.placed.is_empty());
        let topology = TopologyRequest { required, ..terms.topology.clone() };
        let job = Job::single(id, &name.to_string(), submit_ms, Arc::default());
        Ok((Job { priority, pod_sets, topology, ..job }, seats))
    }

    fn seats(&mut self, terms: &Terms, roll: &Roll) -> Seats {
        let mut seats: Seats = Vec::new();
        // Equal requirements are one: their addresses tell them apart.
        let mut by_address: FxHashMap<usize, usize> = FxHashMap::default();
        for slot in &roll.wishing {
            let Some(wish) = self.pods.get(*slot).wish.clone() else { continue };
            let address = Arc::as_ptr(&wish).addr();
            let set = match by_address.get(&address) {
                Some(set) => *set,
                None => {
                    seats.push((self.near(wish, terms, roll), Vec::new()));
                    by_address.insert(address, seats.len() - 1);
                    seats.len() - 1
                }
            };
            seats[set].1.push(*slot);
        }
        seats
    }

    /// Each set by the role of its first pod, or by its number where that is not said or taken.
    fn names_of_sets(&self, seats: &Seats) -> Vec<String> {
        let mut taken = BTreeSet::new();
        let mut names = Vec::with_capacity(seats.len());
        for (number, (_, slots)) in seats.iter().enumerate() {
            let first = slots.first().map(|slot| &self.pods.get(*slot).pod.meta.labels);
            let role = first.and_then(|labels| labels.get(POD_SET)).unwrap_or("pods");
            let name = match taken.insert(role) {
                true => role.to_owned(),
                false => format!("{role}-{number}"),
            };
            names.push(name);
        }
        names
    }

    /// What a member needs that must go where those are that have a node.
    pub(super) fn near(
        &mut self,
        wish: Arc<Requirement>,
        terms: &Terms,
        roll: &Roll,
    ) -> Arc<Requirement> {
        let condition = match (&terms.topology.required, roll.placed.first()) {
            (Some(level), Some(slot)) => self.in_domain_of(*slot, level),
            _ => None,
        };
        let Some(condition) = condition else { return wish };
        let mut requirement = Requirement::clone(&wish);
        requirement.node_conditions.push(condition);
        self.intern(requirement)
    }

    /// That a node is in the domain of a pod that has one.
    fn in_domain_of(&self, slot: Slot, level: &str) -> Option<NodeCondition> {
        let (Told::Assumed { node, .. } | Told::Running { node, .. } | Told::Foreign { node, .. }) =
            &self.pods.get(slot).told
        else {
            return None;
        };
        let is = |key: &str, value: &str| SelectorTerm {
            key: key.to_owned(),
            operator: Operator::In,
            values: vec![value.to_owned()],
        };
        let levels = &self.settings.topology.levels;
        let terms = match levels.iter().position(|known| known.name == level) {
            None => vec![is(NODE_NAME, node)],
            Some(depth) => {
                let labels = &self.nodes.get(node)?.meta.labels;
                let above = levels.iter().take(depth + 1);
                let values = above.map(|known| Some(is(&known.label, labels.get(&known.label)?)));
                values.collect::<Option<Vec<_>>>()?
            }
        };
        Some(NodeCondition { any_of: vec![terms], cause: ConditionCause::NodeAffinity })
    }

    /// The job of pods of a gang that run by one job.
    pub(in crate::world) fn running_gang(
        &mut self,
        id: JobId,
        pods: &BTreeMap<PodId, Slot>,
        now_ms: u64,
    ) -> Job {
        let sets = pods.keys().last().map_or(0, |pod| usize::from(pod.pod_set) + 1);
        let number = |set: usize| PodSet::fixed(&set.to_string(), Arc::default(), 0);
        let mut pod_sets: Vec<PodSet> = (0..sets).map(number).collect();
        let mut start_ms = now_ms;
        for (pod, slot) in pods {
            let set = &mut pod_sets[usize::from(pod.pod_set)];
            if set.present == 0 {
                set.requirement = self.would_need(*slot);
            }
            set.present += 1;
            (set.min, set.max) = (set.present, set.present);
            start_ms = start_ms.min(self.pods.get(*slot).pod.meta.created_ms);
        }
        let first = pods.values().next().map(|slot| self.pods.get(*slot));
        let name = first.and_then(|entry| entry.gang.as_deref()).map(GangName::to_string);
        let priority = first.map_or(0, |entry| entry.pod.priority);
        let job = Job::single(id, &name.unwrap_or_default(), start_ms, Arc::default());
        Job { priority, pod_sets, start_ms: Some(start_ms), ..job }
    }
}

/// The smallest size of each set, if of all together `missing` must start: the largest can do without first.
fn smallest(seats: &Seats, missing: u32) -> Vec<u32> {
    let mut smallest: Vec<u32> = seats.iter().map(|(_, slots)| slots.len() as u32).collect();
    let mut surplus = smallest.iter().sum::<u32>().saturating_sub(missing);
    let mut largest_first: Vec<usize> = (0..smallest.len()).collect();
    largest_first.sort_by_key(|set| std::cmp::Reverse(smallest[*set]));
    for set in largest_first {
        let spared = surplus.min(smallest[set]);
        smallest[set] -= spared;
        surplus -= spared;
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_set_does_without_first() {
        let seats = |counts: &[u32]| -> Seats {
            counts.iter().map(|count| (Arc::default(), (0..*count).collect())).collect()
        };
        assert_eq!(smallest(&seats(&[1, 4, 2]), 7), [1, 4, 2]);
        assert_eq!(smallest(&seats(&[1, 4, 2]), 5), [1, 2, 2]);
        assert_eq!(smallest(&seats(&[1, 4, 2]), 2), [1, 0, 1]);
    }
}
