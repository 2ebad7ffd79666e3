//! Pods that ask for several instances: all of them are on one node, or nothing is planned for the
//! pod.
//!
//! The planner serves one instance at a time. So the instances of such a pod are asked for on one
//! node, as if by as many pods that may go nowhere else and are served before all others. They stay
//! in the plan if all of them are served, and if that is worth more than what the plan served
//! without them: a planner that may serve a part of them would prefer that to all. Nodes on which
//! they are idle are tried first, for pods of higher priority and with more compute slices first,
//! and of the plans that serve a pod the best is kept. Then pods take each other's place: the names
//! of pods decide nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_partition::PartitionPlan;

use crate::batches::BatchRoom;
use crate::fleet::Fleet;
use crate::node_room::{NodeRoom, rule_out, slices_of};
use crate::together::{plan_largest_first, plan_together, set_demand};
use crate::waiting::{SeveralInstances, WaitingPods};
use crate::worth::Worth;

/// So many plans are made to find nodes for all of these pods.
const MOST_PLANS: usize = 32;

/// So many more are made in which pods take each other's place, if some have no node then.
const MOST_EXCHANGES: usize = 32;

/// Plans take longer on many nodes: as many nodes as these are planned in all, and so many plans at
/// least.
const MOST_PLANNED_NODES: usize = 4_096;
const LEAST_PLANS: usize = 12;

/// So many plans of one pod are compared, if there are plans enough for the other pods.
const MOST_COMPARED: usize = 4;

/// Nodes that are tried for a pod even if the plans are too few for all pods.
const LEAST_TRIED: usize = 8;

const NO_NODE: &str = "requests several instances, and dovetail found no plan that provides all of \
                       them on one node and serves more";

/// Plans for all pods of a fleet: for those with one instance, and beside them for those with
/// several. Answers with the fleet that the plan is for: the latter are part of its demand.
///
/// # Errors
/// A world whose instances cannot be on its GPUs.
pub(crate) fn plan_with_several(mut fleet: Fleet) -> Result<(Fleet, PartitionPlan)> {
    let mut pods = std::mem::take(&mut fleet.several);
    let offered = fleet.world.offered_compute_slices();
    let plan = plan_together(&mut fleet)?;
    if pods.is_empty() {
        return Ok((fleet, plan));
    }
    rule_out(&fleet, &mut pods);
    put_in_order(&fleet, &mut pods);
    // No plan serves more than all of them beside what it serves of the others, or than there is.
    let slices = pods.iter().map(|pod| slices_of(&fleet, pod));
    let bound = slices.fold(plan.upper_bound_compute_slices, i64::saturating_add).min(offered);
    let none = Trial::of(vec![None; pods.len()], fleet.clone(), plan);
    let plans_left = plans(&fleet, MOST_PLANS);
    let mut search = NodeSearch { base: &fleet, pods: &pods, plans_left };
    let all: Vec<usize> = (0..pods.len()).collect();
    let found = search.in_batches(none, &all)?;
    let rest: Vec<usize> = all.into_iter().filter(|pod| found.nodes[*pod].is_none()).collect();
    let found = search.with_each(found, &rest, None)?;
    search.plans_left = plans(&fleet, MOST_EXCHANGES);
    let Trial { nodes, mut fleet, mut plan, .. } = search.exchanged(found)?;
    let left = nodes.iter().filter(|node| node.is_none()).count();
    if left > 0 {
        *fleet.not_planned.entry(NO_NODE.to_owned()).or_default() += left;
    }
    plan.upper_bound_compute_slices = bound;
    plan.is_best = false;
    Ok((fleet, plan))
}

/// How many plans are made of a fleet, so many at most.
fn plans(fleet: &Fleet, most: usize) -> usize {
    (MOST_PLANNED_NODES / fleet.free.len().max(1)).clamp(LEAST_PLANS, most)
}

/// Pods of a higher priority first, then those with more compute slices. Pods that differ by their
/// names alone are equal.
fn put_in_order(fleet: &Fleet, pods: &mut [SeveralInstances]) {
    pods.sort_by(|one, other| {
        let of_one = (&one.each, &one.instances, &one.nodes);
        of_one.cmp(&(&other.each, &other.instances, &other.nodes))
    });
    // Pods that are alike in this keep the order from before.
    pods.sort_by_cached_key(|pod| (Reverse(pod.priority), Reverse(slices_of(fleet, pod))));
}

/// A plan in which some of the pods have all their instances.
struct Trial {
    /// The node of each of these pods; `None` if the plan does not serve it.
    nodes: Vec<Option<usize>>,
    worth: Worth,
    room: NodeRoom,
    fleet: Fleet,
    plan: PartitionPlan,
}

impl Trial {
    fn of(nodes: Vec<Option<usize>>, fleet: Fleet, plan: PartitionPlan) -> Self {
        let (worth, room) = (Worth::of(&fleet, &plan), NodeRoom::of(&fleet));
        Self { nodes, worth, room, fleet, plan }
    }
}

/// The search for a node of each pod with several instances.
struct NodeSearch<'a> {
    /// The fleet without these pods.
    base: &'a Fleet,
    /// In the order in which they are tried.
    pods: &'a [SeveralInstances],
    plans_left: usize,
}

impl NodeSearch<'_> {
    /// The plan in which pods have all their instances on these nodes; `None` if it does not serve
    /// all of them, or if no plan is left.
    fn trial(&mut self, nodes: Vec<Option<usize>>) -> Result<Option<Trial>> {
        let Some(left) = self.plans_left.checked_sub(1) else { return Ok(None) };
        self.plans_left = left;
        let mut fleet = with_pods(self.base, self.pods, &nodes);
        let plan = plan_largest_first(&mut fleet)?;
        if !serves_all(&fleet, &plan) {
            return Ok(None);
        }
        Ok(Some(Trial::of(nodes, fleet, plan)))
    }

    /// Pods in this order, if there are more of them than plans: as many as fit at once. At least
    /// half of the plans are left for those that do not.
    fn in_batches(&mut self, mut found: Trial, pods: &[usize]) -> Result<Trial> {
        if pods.len() <= self.plans_left {
            return Ok(found);
        }
        let kept = self.plans_left.div_ceil(2);
        let (mut rest, mut size) = (pods, pods.len());
        while self.plans_left > kept && !rest.is_empty() {
            let batch = &rest[..size.min(rest.len())];
            let (placed, next) = self.batch(&found, batch)?;
            match (next, placed.as_slice()) {
                (Some(next), _) => {
                    (found, rest) = (next, &rest[batch.len()..]);
                    size = batch.len() * 2;
                }
                // None of them surely has room.
                (None, []) => rest = &rest[batch.len()..],
                // Nor are those served that request the same.
                (None, [one]) => {
                    let pod = &self.pods[rest[*one]];
                    let alike = |of: &&usize| self.pods[**of] == *pod;
                    let passed = one + rest[*one..].iter().take_while(alike).count();
                    rest = &rest[passed..];
                }
                // Half of those that were placed.
                (None, _) => size = placed[placed.len() / 2 - 1] + 1,
            }
        }
        Ok(found)
    }

    /// Which of some pods surely have room beside each other, by their places, and the plan that
    /// serves these, too; `None` if there is none that takes nothing from the others.
    fn batch(&mut self, before: &Trial, pods: &[usize]) -> Result<(Vec<usize>, Option<Trial>)> {
        let mut room = BatchRoom::of(&before.fleet, &before.room);
        let mut nodes = before.nodes.clone();
        let (mut placed, mut first, mut slices) = (Vec::new(), 0, 0);
        for alike in pods.chunk_by(|one, other| self.pods[*one] == self.pods[*other]) {
            let pod = &self.pods[alike[0]];
            for (place, node) in (first..).zip(room.place(pod, alike.len())) {
                nodes[pods[place]] = Some(node);
                placed.push(place);
                slices += slices_of(self.base, pod);
            }
            first += alike.len();
        }
        if placed.is_empty() {
            return Ok((placed, None));
        }
        let all_slices = before.plan.accepted_compute_slices + slices;
        let trial = self.trial(nodes)?.filter(|trial| {
            trial.plan.accepted_compute_slices >= all_slices && trial.worth > before.worth
        });
        Ok((placed, trial))
    }

    /// Of the plans that serve one pod more the best, if it is worth more than that without the
    /// pod. `share`: how many plans there are for each pod.
    fn with(&mut self, before: &Trial, pod: usize, share: usize) -> Result<Option<Trial>> {
        if self.plans_left == 0 {
            return Ok(None);
        }
        let own_slices = slices_of(self.base, &self.pods[pod]);
        let all_slices = before.plan.accepted_compute_slices + own_slices;
        let compared = share.clamp(1, MOST_COMPARED);
        let pods = self.pods;
        let nodes = before.room.candidates(&before.fleet, &pods[pod]);
        let mut best: Option<Trial> = None;
        for (tried, node) in nodes.take(share.max(LEAST_TRIED)).enumerate() {
            if self.plans_left == 0 || best.is_some() && tried >= compared {
                break;
            }
            let mut nodes = before.nodes.clone();
            nodes[pod] = Some(node);
            let Some(trial) = self.trial(nodes)? else { continue };
            if trial.worth <= before.worth {
                continue;
            }
            // It starts beside all others, and nothing changes for it.
            let is_free = trial.worth.cost >= before.worth.cost
                && trial.plan.accepted_compute_slices >= all_slices;
            if best.as_ref().is_none_or(|best| best.worth < trial.worth) {
                best = Some(trial);
            }
            if is_free {
                break;
            }
        }
        Ok(best)
    }

    /// Pods in this order, each beside those before it. Of pods that request the same, those after
    /// one that no plan serves need no plan. `share`: how many plans there are for each pod;
    /// `None`: its share of those that are left.
    fn with_each(
        &mut self,
        mut found: Trial,
        pods: &[usize],
        share: Option<usize>,
    ) -> Result<Trial> {
        let mut unserved: Option<usize> = None;
        for (place, pod) in pods.iter().enumerate() {
            if unserved.is_some_and(|other| self.pods[other] == self.pods[*pod]) {
                continue;
            }
            let share = share.unwrap_or(self.plans_left / (pods.len() - place));
            match self.with(&found, *pod, share)? {
                Some(next) => (found, unserved) = (next, None),
                None => unserved = Some(*pod),
            }
        }
        Ok(found)
    }

    /// The best plan that is found by giving pods the place of others, if some have none: of all
    /// choices of nodes where they are few.
    fn exchanged(&mut self, mut best: Trial) -> Result<Trial> {
        if best.nodes.iter().all(Option::is_none) {
            return Ok(best);
        }
        let options = self.options();
        let mut first = 0;
        let is_one_left = options.iter().any(|(count, nodes)| {
            let of_these = &best.nodes[first..first + count];
            first += count;
            !nodes.is_empty() && of_these.iter().any(Option::is_none)
        });
        if !is_one_left {
            return Ok(best);
        }
        if let Some(all) = choices(&options, self.plans_left) {
            for nodes in all {
                let trial = self.trial(nodes)?;
                best = trial.filter(|trial| trial.worth > best.worth).unwrap_or(best);
            }
            return Ok(best);
        }
        while let Some(better) = self.exchange(&best)? {
            best = better;
        }
        Ok(best)
    }

    /// How many pods in a row request the same, and which nodes could provide their instances: if
    /// they are more than the plans that are left, only the first of them.
    fn options(&self) -> Vec<(usize, Vec<usize>)> {
        let room = NodeRoom::of(self.base);
        let nodes_of = |pod: &SeveralInstances| -> Vec<usize> {
            room.candidates(self.base, pod).take(self.plans_left + 1).collect()
        };
        let alike = self.pods.chunk_by(|one, other| one == other);
        alike.map(|pods| (pods.len(), nodes_of(&pods[0]))).collect()
    }

    /// A better plan in which one of the pods leaves its node: those that have none are tried
    /// before it.
    fn exchange(&mut self, best: &Trial) -> Result<Option<Trial>> {
        let pods = 0..self.pods.len();
        let (served, left): (Vec<usize>, Vec<usize>) =
            pods.partition(|pod| best.nodes[*pod].is_some());
        for leaves in served.into_iter().rev() {
            let mut nodes = best.nodes.clone();
            nodes[leaves] = None;
            let Some(next) = self.trial(nodes)? else { continue };
            let pods: Vec<usize> = left.iter().copied().chain([leaves]).collect();
            let next = self.with_each(next, &pods, Some(MOST_COMPARED))?;
            if next.worth > best.worth {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }
}

/// All choices of a node or none for each of some pods; `None` if there are more than so many
/// plans.
fn choices(options: &[(usize, Vec<usize>)], plans: usize) -> Option<Vec<Vec<Option<usize>>>> {
    let mut all: Vec<Vec<Option<usize>>> = vec![Vec::new()];
    for (count, nodes) in options {
        if nodes.is_empty() {
            all.iter_mut().for_each(|chosen| chosen.resize(chosen.len() + count, None));
            continue;
        }
        for _ in 0..*count {
            if all.len() * (nodes.len() + 1) > plans {
                return None;
            }
            all = longer(&all, nodes);
        }
    }
    Some(all)
}

/// Each of some choices with no node or one of these for one pod more.
fn longer(all: &[Vec<Option<usize>>], nodes: &[usize]) -> Vec<Vec<Option<usize>>> {
    let mut longer = Vec::new();
    for chosen in all {
        for node in std::iter::once(None).chain(nodes.iter().copied().map(Some)) {
            let mut chosen = chosen.clone();
            chosen.push(node);
            longer.push(chosen);
        }
    }
    longer
}

/// A fleet with pods that are to have all their instances on these nodes.
fn with_pods(base: &Fleet, pods: &[SeveralInstances], nodes: &[Option<usize>]) -> Fleet {
    let mut fleet = base.clone();
    let waiting = std::mem::take(&mut fleet.waiting);
    let mut waiting: BTreeMap<WaitingPods, u32> = waiting.into_iter().collect();
    for (pod, node) in pods.iter().zip(nodes) {
        let Some(node) = node else { continue };
        let instances = pod.on(*node);
        for (pods, count) in &instances {
            let known = waiting.entry(pods.clone()).or_default();
            *known = known.saturating_add(*count);
        }
        fleet.pinned.add(instances);
    }
    fleet.waiting = waiting.into_iter().collect();
    set_demand(&mut fleet);
    fleet
}

/// Whether the pods with several instances that are in a plan have all of them.
pub(crate) fn serves_all(fleet: &Fleet, planned: &PartitionPlan) -> bool {
    let waiting = fleet.waiting.iter().map(|(pods, _)| pods);
    let accepted: BTreeMap<&WaitingPods, u32> =
        waiting.zip(planned.accepted.iter().copied()).collect();
    let needed = fleet.pinned.needed();
    needed.iter().all(|(pods, needed)| accepted.get(pods).is_some_and(|count| count >= needed))
}
