//! A gang as a job: members that need the same are a pod set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::requirement::Operator;
use dovetail_model::{
    ConditionCause, Job, JobId, NodeCondition, PodId, PodSet, Requirement, SelectorTerm,
    TopologyRequest,
};
use rustc_hash::FxHashMap;

use super::roll::{Lack, Roll};
use crate::translate::gang::topology::of_set;
use crate::translate::gang::{GangName, Terms};
use crate::translate::levels::level_label;
use crate::translate::{NotYet, preemption_rules};
use crate::world::World;
use crate::world::pods::Slot;
use crate::world::standing::Told;

/// The members of a pod set, by ordinal.
pub(super) struct Seating {
    pub(super) requirement: Arc<Requirement>,
    /// Their role, of those that the terms of the gang name.
    role: Option<usize>,
    /// Where they must and should be, by themselves.
    topology: TopologyRequest,
    pub(super) slots: Vec<Slot>,
}

/// All pod sets of a job.
pub(super) type Seats = Vec<Seating>;

/// A gang whose pods need more different things than this is refused.
pub(super) const MOST_POD_SETS: usize = 4_096;
/// Label of a pod: its role in the gang.
const POD_SET: &str = "dovetail.dev/pod-set";
/// The name of a node, where conditions ask for a label.
const NODE_NAME: &str = "metadata.name";

impl World {
    /// The job of the members that wish for a node, of whom those must start that the gang lacks.
    pub(super) fn describe(
        &mut self,
        name: &GangName,
        terms: &Terms,
        roll: &Roll,
        lack: &Lack,
        id: JobId,
    ) -> Result<(Job, Seats), NotYet> {
        let seats = self.seats(name, terms, roll);
        if seats.len() > MOST_POD_SETS {
            let problem = format!(
                "its pods ask for {} different things, and a gang may have {MOST_POD_SETS} kinds of \
                 pods: give equal ones equal specifications",
                seats.len()
            );
            return Err(NotYet::Gang { gang: name.to_string(), problem });
        }
        one_place_for_each_part(name, terms, &seats)?;
        let counts: Vec<(Option<usize>, u32)> =
            seats.iter().map(|set| (set.role, set.slots.len() as u32)).collect();
        let smallest = smallest(&counts, lack);
        let names = self.names_of_sets(terms, &seats);
        let sets = seats.iter().zip(smallest).zip(names);
        let pod_sets = sets
            .map(|((set, min), name)| PodSet {
                min,
                max: set.slots.len() as u32,
                topology: set.topology.clone(),
                ..PodSet::fixed(&name, Arc::clone(&set.requirement), 0)
            })
            .collect();
        let pods = roll.wishing.iter().map(|slot| &self.pods.get(*slot).pod);
        let submit_ms = pods.clone().map(|pod| pod.meta.created_ms).min().unwrap_or(0);
        let mut preemption = preemption_rules(pods.clone().map(|pod| &**pod));
        preemption.never_preempts |= self.patient.contains(&id);
        let priority = pods.map(|pod| pod.priority).next().unwrap_or(0);
        // What is missing follows those that are placed by conditions of its own.
        let required = terms.topology.required.clone().filter(|_| roll.placed.is_empty());
        let topology = TopologyRequest { required, ..terms.topology.clone() };
        let job = Job::single(id, &name.to_string(), submit_ms, Arc::default());
        let queue = roll.wishing.first().map(|slot| self.queue_of(*slot)).unwrap_or_default();
        let kept_room = self.room_for_all(name);
        Ok((Job { priority, queue, pod_sets, topology, preemption, kept_room, ..job }, seats))
    }

    fn seats(&mut self, name: &GangName, terms: &Terms, roll: &Roll) -> Seats {
        let mut seats: Seats = Vec::new();
        // Equal requirements are one: their addresses tell them apart.
        let mut known: FxHashMap<(usize, Option<usize>, TopologyRequest), usize> =
            FxHashMap::default();
        for slot in roll.wishing.iter().copied() {
            let Some(wish) = self.pods.get(slot).wish.clone() else { continue };
            let role = self.role_in(name, terms, slot);
            let own = self.own_topology(slot, role, terms);
            let kind = (Arc::as_ptr(&wish).addr(), role, own.clone());
            let set = match known.get(&kind) {
                Some(set) => *set,
                None => {
                    let follows = self.placed_of_set(slot, name, terms, roll).is_some();
                    let required = own.required.filter(|_| !follows);
                    let topology = TopologyRequest { required, ..own };
                    let requirement = self.near(slot, wish, name, terms, roll);
                    seats.push(Seating { requirement, role, topology, slots: Vec::new() });
                    known.insert(kind, seats.len() - 1);
                    seats.len() - 1
                }
            };
            seats[set].slots.push(slot);
        }
        seats
    }

    /// Each set by the role of its first pod, or by its number where that is not said or taken.
    fn names_of_sets(&self, terms: &Terms, seats: &Seats) -> Vec<String> {
        let mut taken = BTreeSet::new();
        let mut names = Vec::with_capacity(seats.len());
        for (number, set) in seats.iter().enumerate() {
            let first = set.slots.first().map(|slot| &self.pods.get(*slot).pod.meta.labels);
            let of_terms = set.role.map(|role| &*terms.roles[role].name);
            let role = first.and_then(|labels| labels.get(POD_SET)).or(of_terms);
            let role = role.filter(|role| !role.is_empty()).unwrap_or("pods");
            let name = match taken.insert(role) {
                true => role.to_owned(),
                false => format!("{role}-{number}"),
            };
            names.push(name);
        }
        names
    }

    /// What a member needs that must go where those are that have a node: those of its gang, and
    /// those of its set.
    pub(super) fn near(
        &mut self,
        slot: Slot,
        wish: Arc<Requirement>,
        name: &GangName,
        terms: &Terms,
        roll: &Roll,
    ) -> Arc<Requirement> {
        let mut conditions = Vec::new();
        if let (Some(level), Some(placed)) = (&terms.topology.required, roll.placed.first()) {
            conditions.extend(self.in_domain_of(*placed, level));
        }
        let role = self.role_in(name, terms, slot);
        let own = self.own_topology(slot, role, terms).required;
        if let (Some(level), Some(placed)) = (own, self.placed_of_set(slot, name, terms, roll)) {
            conditions.extend(self.in_domain_of(placed, &level));
        }
        if conditions.is_empty() {
            return wish;
        }
        let mut requirement = Requirement::clone(&wish);
        requirement.node_conditions.extend(conditions);
        self.intern(requirement)
    }

    /// Where the pods of a member's set must and should be. Whether there are these levels was
    /// looked at before.
    pub(super) fn own_topology(
        &self,
        slot: Slot,
        role: Option<usize>,
        terms: &Terms,
    ) -> TopologyRequest {
        if let Some(role) = role.filter(|_| terms.parts.have_places()) {
            return terms.roles[role].topology.clone();
        }
        of_set(&self.pods.get(slot).pod, self.network.known()).unwrap_or_default()
    }

    /// A member of the same set as this one that has a node, if their set is to share a domain.
    fn placed_of_set(
        &self,
        slot: Slot,
        name: &GangName,
        terms: &Terms,
        roll: &Roll,
    ) -> Option<Slot> {
        let role = self.role_in(name, terms, slot);
        let own = self.own_topology(slot, role, terms);
        own.required.as_ref()?;
        let is_of_set = |other: &Slot| {
            self.role_in(name, terms, *other) == role
                && self.own_topology(*other, role, terms) == own
        };
        roll.placed.iter().copied().find(is_of_set)
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
        let levels = &self.network.topology.levels;
        let terms = match levels.iter().position(|known| known.name == level) {
            // The second term holds on every node, and says what the first one is about.
            None => {
                let (key, operator) = (level_label(level), Operator::DoesNotExist);
                let marked = SelectorTerm { key, operator, values: Vec::new() };
                vec![is(NODE_NAME, node), marked]
            }
            Some(depth) => {
                let labels = &self.nodes.told_of(node)?.labels;
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
            start_ms = start_ms.min(self.pods.get(*slot).pod.meta.created_ms);
        }
        let smallest = self.smallest_of_running(&pod_sets, pods);
        for (set, smallest) in pod_sets.iter_mut().zip(smallest) {
            (set.min, set.max) = (smallest, set.present);
        }
        let first = pods.values().next().map(|slot| self.pods.get(*slot));
        let name = first.and_then(|entry| entry.gang.as_deref()).map(GangName::to_string);
        let priority = first.map_or(0, |entry| entry.pod.priority);
        let mut preemption = preemption_rules(pods.values().map(|slot| &*self.pods.get(*slot).pod));
        preemption.is_protected |= self.any_is_spared(pods.values().copied());
        let job = Job::single(id, &name.unwrap_or_default(), start_ms, Arc::default());
        let queue = self.queues.counted_for(id).to_owned();
        Job { priority, queue, pod_sets, start_ms: Some(start_ms), preemption, ..job }
    }

    /// How many pods of each set of a gang that runs must stay, beside its pods that are no pods of
    /// this job; all of them where nobody says.
    fn smallest_of_running(&self, sets: &[PodSet], pods: &BTreeMap<PodId, Slot>) -> Vec<u32> {
        let all = || sets.iter().map(|set| set.present).collect();
        let first = pods.values().next();
        let Some(name) = first.and_then(|slot| self.pods.get(*slot).gang.as_ref()) else {
            return all();
        };
        let (Some(Ok(terms)), Some(gang)) = (self.terms_of(name), self.gangs.get(name)) else {
            return all();
        };
        let inside: BTreeSet<Slot> = pods.values().copied().collect();
        let roll = self.roll(gang);
        let beside = roll.settled().filter(|slot| !inside.contains(slot));
        let lack = self.lack(name, &terms, beside);
        let role_of_set = |set: usize| {
            let slot = pods.iter().find(|(pod, _)| usize::from(pod.pod_set) == set)?.1;
            self.role_in(name, &terms, *slot)
        };
        let counts: Vec<(Option<usize>, u32)> =
            sets.iter().enumerate().map(|(set, of)| (role_of_set(set), of.present)).collect();
        smallest(&counts, &lack)
    }
}

/// The pods of a part that must be in one place must ask for the same: the place is asked for pod
/// set by pod set.
fn one_place_for_each_part(name: &GangName, terms: &Terms, seats: &Seats) -> Result<(), NotYet> {
    let mut placed = BTreeSet::new();
    for role in seats.iter().filter(|set| set.topology.required.is_some()).filter_map(|s| s.role) {
        if terms.parts.have_places() && !placed.insert(role) {
            let problem = format!(
                "the pods of its part {} ask for different things and for one domain, which dovetail does not place \
                 yet: give them equal specifications",
                terms.roles[role].name
            );
            return Err(NotYet::Gang { gang: name.to_string(), problem });
        }
    }
    Ok(())
}

/// The smallest size of each set, of which the role and the number of pods are given: the largest
/// can do without first, but no role falls below what it needs.
fn smallest(sets: &[(Option<usize>, u32)], lack: &Lack) -> Vec<u32> {
    let mut smallest: Vec<u32> = sets.iter().map(|(_, pods)| *pods).collect();
    let mut surplus = smallest.iter().sum::<u32>().saturating_sub(lack.pods);
    let of_role = |role: usize| {
        let sets = sets.iter().filter(|(of, _)| *of == Some(role));
        sets.map(|(_, pods)| *pods).sum::<u32>()
    };
    let needed = lack.of_roles.iter().enumerate();
    let mut spare: Vec<u32> =
        needed.map(|(role, needed)| of_role(role).saturating_sub(*needed)).collect();
    let mut largest_first: Vec<usize> = (0..smallest.len()).collect();
    largest_first.sort_by_key(|set| std::cmp::Reverse(smallest[*set]));
    for set in largest_first {
        let of_role = sets[set].0.map(|role| &mut spare[role]);
        let spared = surplus.min(smallest[set]);
        let spared = of_role.as_ref().map_or(spared, |spare| spared.min(**spare));
        if let Some(spare) = of_role {
            *spare -= spared;
        }
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
        let of = |counts: &[u32], pods: u32| {
            let sets: Vec<_> = counts.iter().map(|count| (None, *count)).collect();
            smallest(&sets, &Lack { pods, of_roles: Vec::new() })
        };
        assert_eq!(of(&[1, 4, 2], 7), [1, 4, 2]);
        assert_eq!(of(&[1, 4, 2], 5), [1, 2, 2]);
        assert_eq!(of(&[1, 4, 2], 2), [1, 0, 1]);
    }

    #[test]
    fn no_role_falls_below_what_it_needs() {
        let sets = [(Some(0), 1), (Some(1), 3), (Some(1), 2), (None, 2)];
        let lack = |pods: u32, of_roles: &[u32]| Lack { pods, of_roles: of_roles.to_vec() };
        assert_eq!(smallest(&sets, &lack(3, &[1, 2])), [1, 0, 2, 0]);
        assert_eq!(smallest(&sets, &lack(5, &[1, 4])), [1, 2, 2, 0]);
        assert_eq!(smallest(&sets, &lack(6, &[0, 0])), [1, 1, 2, 2]);
    }
}
