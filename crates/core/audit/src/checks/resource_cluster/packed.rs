//! Pending pods that start once others have moved, beside what was decided on before.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_facts::{ObjectRef, Pod, Workload};
use dovetail_model::{HoldingId, Job, JobId, Snapshot};
use rustc_hash::FxHashMap;

use super::{ResourceCluster, RunningPod, Staying};
use crate::checks::kept_off::KeptOff;
use crate::checks::pod_rules::{PodRules, started_owner};
use crate::finding::Move;
use crate::trial::placed;

/// What was decided on before, with which what is asked next has to be possible.
#[derive(Clone)]
pub(in crate::checks) struct Arranged<'f> {
    /// Nodes that go.
    pub(in crate::checks) gone: BTreeSet<String>,
    /// The nodes of pods that move, by `namespace/name` of the pod.
    pub(in crate::checks) moved: BTreeMap<String, String>,
    /// Pending pods that start, with their nodes.
    pub(in crate::checks) started: Vec<(&'f Workload, String)>,
}

/// Pending pods that start once others have moved.
pub(in crate::checks) struct Packed {
    pub(in crate::checks) moves: Vec<Move>,
    /// The nodes of those that start.
    pub(in crate::checks) starts: Vec<String>,
}

impl<'f> ResourceCluster<'f> {
    /// The moves with which so many pods that wait, each with so many GPUs, would all start: the
    /// pods of these nodes that can move are placed again, everybody else where he is or where an
    /// earlier decision has put him. `rules`: what other pods mean for those that wait, which is
    /// asked again once all have moved. `None` if the engine finds none.
    pub(in crate::checks) fn packed(
        &self,
        nodes: &BTreeSet<&'f str>,
        (workload, gpus): (&'f Workload, i64),
        pods: usize,
        arranged: &Arranged<'f>,
        rules: Option<&PodRules<'_>>,
    ) -> Option<Packed> {
        let first: &'f str = nodes.first().copied()?;
        let mut world = counted_world(self, arranged, rules);
        let (mut movable, mut moved) = (Vec::new(), BTreeSet::new());
        for (place, of) in self.standing.iter().enumerate() {
            let may_move = of.gpus > 0 && nodes.contains(of.node) && self.can_move(of);
            if may_move && !arranged.moved.contains_key(&of.full_name()) {
                movable.push(place);
                moved.insert(HoldingId(place as u64 + 1));
                let id = JobId(place as u64);
                let mut requirement = self.requirement(of);
                if let Some(rules) = rules {
                    rules.count_pod(&of.full_name(), &mut requirement.counts_into);
                }
                world.jobs.push(Job::single(id, &of.pod.name, 0, Arc::new(requirement)));
            }
        }
        world.holdings.retain(|holding| !moved.contains(&holding.id));
        let waiting = waiting_jobs(self, (workload, gpus), (first, pods), rules);
        world.jobs.extend(waiting.iter().cloned());
        // The largest first, as people would pack them.
        let gpus_of = |job: &Job| job.min_gpu_milli();
        world.jobs.sort_by_key(|job| (Reverse(gpus_of(job)), job.id));
        for (place, job) in world.jobs.iter_mut().enumerate() {
            job.submit_ms = place as u64;
        }
        let first_id = JobId(self.standing.len() as u64);
        let mut found = placed(&world);
        if found.len() < world.jobs.len() {
            return None;
        }
        let moves = self.moves(&movable, &found);
        if rules.is_some() {
            let mut after = arranged.clone();
            let name = |pod: &ObjectRef| format!("{}/{}", pod.namespace, pod.name);
            after.moved.extend(moves.iter().map(|of| (name(&of.pod), of.to.clone())));
            let world = Snapshot { jobs: waiting, ..counted_world(self, &after, rules) };
            found = placed(&world);
            if found.len() < world.jobs.len() {
                return None;
            }
        }
        let starts = found.range(first_id..).map(|(_, node)| node.clone()).collect();
        Some(Packed { moves, starts })
    }

    /// Which pods of these places are on another node then. Pods of one template are alike, so
    /// none moves to a node that another one of them leaves.
    fn moves(&self, places: &[usize], placed: &BTreeMap<JobId, String>) -> Vec<Move> {
        let is_alike = |one: &usize, other: &usize| {
            std::ptr::eq(self.standing[*one].workload, self.standing[*other].workload)
        };
        let mut moves = Vec::new();
        for alike in places.chunk_by(is_alike) {
            let to = alike.iter().filter_map(|place| placed.get(&JobId(*place as u64)));
            let to: Vec<&str> = to.map(String::as_str).collect();
            let from: Vec<&str> = alike.iter().map(|place| self.standing[*place].node).collect();
            moves.extend(exchanges(&from, &to).into_iter().map(|(number, to)| {
                let of = &self.standing[alike[number]];
                Move {
                    pod: ObjectRef::new("Pod", &of.workload.owner.namespace, &of.pod.name),
                    from: of.node.to_owned(),
                    to: to.to_owned(),
                }
            }));
        }
        moves
    }
}

/// Which of some pods that are alike leave their nodes so that they are on other nodes, each with
/// its new one. A pod stays where a node of both has a place for it.
fn exchanges<'n>(from: &[&'n str], to: &[&'n str]) -> Vec<(usize, &'n str)> {
    // Places on each node that nobody has taken, and that are taken.
    let mut places: FxHashMap<&str, (usize, usize)> = FxHashMap::default();
    for node in to.iter().copied() {
        places.entry(node).or_default().0 += 1;
    }
    let mut leaving = Vec::new();
    for (number, node) in from.iter().copied().enumerate() {
        match places.get_mut(node) {
            Some((left, taken)) if *left > 0 => {
                *left -= 1;
                *taken += 1;
            }
            _ => leaving.push(number),
        }
    }
    // Of the places on a node, the first are taken.
    let is_left = |node: &&str| match places.get_mut(*node) {
        Some((_, taken)) if *taken > 0 => {
            *taken -= 1;
            false
        }
        _ => true,
    };
    leaving.into_iter().zip(to.iter().copied().filter(is_left)).collect()
}

/// All pods on their nodes, as earlier decisions have it, counted for some rules. Nodes that are
/// alike are used in their order: those that AUT-03 removes come last.
fn counted_world(
    cluster: &ResourceCluster<'_>,
    arranged: &Arranged<'_>,
    rules: Option<&PodRules<'_>>,
) -> Snapshot {
    let mut world = arranged_world(cluster, arranged);
    if let Some(rules) = rules {
        rules.count_all(&mut world, &arranged.started);
    }
    let unused: BTreeSet<&str> = cluster.unused().collect();
    world.nodes.sort_by_key(|node| unused.contains(&*node.name));
    world
}

/// So many pending pods of a workload as jobs of their own, after those of pods that stand, for
/// GPUs like those of a node.
fn waiting_jobs<'f>(
    cluster: &ResourceCluster<'f>,
    (workload, gpus): (&'f Workload, i64),
    (node, pods): (&'f str, usize),
    rules: Option<&PodRules<'_>>,
) -> Vec<Job> {
    let waiting = workload.pods.iter().filter(|pod| pod.node.is_none()).take(pods);
    let job = |(pod, place): (&'f Pod, u64)| {
        let mut requirement = cluster.requirement(&RunningPod { workload, pod, node, gpus });
        if let Some(rules) = rules {
            rules.add_to(&mut requirement);
        }
        Job::single(JobId(place), &pod.name, 0, Arc::new(requirement))
    };
    waiting.zip(cluster.standing.len() as u64..).map(job).collect()
}

/// All pods on their nodes, as earlier decisions have it.
pub(in crate::checks) fn arranged_world(
    cluster: &ResourceCluster<'_>,
    arranged: &Arranged<'_>,
) -> Snapshot {
    let gone: BTreeSet<&str> = arranged.gone.iter().map(String::as_str).collect();
    let (mut world, mut next) = cluster.world_of(&gone, true, &arranged.moved);
    // After those of pods that stand, and of what stays on each node.
    let first_id = cluster.standing.len() + cluster.facts.nodes.len() + 1;
    let places = world.nodes.iter().enumerate().map(|(place, node)| (&*node.name, place));
    let places: BTreeMap<&str, usize> = places.collect();
    for (number, (workload, name)) in arranged.started.iter().enumerate() {
        let Some(place) = places.get(name.as_str()).copied() else { continue };
        let gpus = workload.gpus_per_pod().get(cluster.resource).copied().unwrap_or(0);
        let id = HoldingId((first_id + number) as u64);
        let owner = started_owner(number);
        let uses = Staying::of(workload, cluster.resource, gpus);
        let (holding, count) = uses.held_on(&world.nodes[place], (id, owner), next[place]);
        world.holdings.push(holding);
        next[place] += count;
    }
    close_kept_off(cluster, arranged, &mut world);
    cluster.with_staying(world, &next)
}

/// Closes nodes that pending pods keep others off once they start.
fn close_kept_off(cluster: &ResourceCluster<'_>, arranged: &Arranged<'_>, world: &mut Snapshot) {
    let mut kept_off = KeptOff::default();
    for (workload, name) in &arranged.started {
        if let Some(node) = cluster.node(name) {
            kept_off.add(workload, node);
        }
    }
    for node in &mut world.nodes {
        node.unschedulable |= kept_off.has(node);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// By one search of all places for each pod.
    fn by_search<'n>(from: &[&'n str], to: &[&'n str]) -> Vec<(usize, &'n str)> {
        let mut to = to.to_vec();
        let mut leaving = Vec::new();
        for (number, node) in from.iter().enumerate() {
            match to.iter().position(|one| one == node) {
                Some(stays) => _ = to.remove(stays),
                None => leaving.push(number),
            }
        }
        leaving.into_iter().zip(to).collect()
    }

    proptest! {
        #[test]
        fn pods_that_are_alike_exchange_as_few_places_as_a_search_finds(
            from in vec(0..5_usize, 0..12),
            to in vec(0..5_usize, 0..12),
        ) {
            let named = |nodes: &[usize]| -> Vec<&'static str> {
                nodes.iter().map(|node| ["a", "b", "c", "d", "e"][*node]).collect()
            };
            let (from, to) = (named(&from), named(&to));
            prop_assert_eq!(exchanges(&from, &to), by_search(&from, &to));
        }
    }
}
