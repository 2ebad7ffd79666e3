//! All or nothing: whether a job that started has the pods it may start with, where it may have
//! them.

use std::collections::BTreeSet;

use dovetail_model::{JobId, PodId};

use crate::violation::Violation;
use crate::world::{BookedJob, ClusterBooks};

/// Judges a job all of whose pods of this plan are in the books.
pub(crate) fn judge_gang(world: &ClusterBooks, job: JobId, found: &mut Vec<Violation>) {
    let booked = &world.jobs[&job];
    for (index, set) in booked.job.pod_sets.iter().enumerate() {
        let ordinals = ordinals(booked, index);
        let pods = ordinals.len();
        if pods < set.min as usize || pods > set.max.max(set.min) as usize {
            let (min, max) = (set.min, set.max);
            found.push(Violation::GangSize { job, pod_set: index, pods, min, max });
        }
        if ordinals.iter().enumerate().any(|(place, ordinal)| place != *ordinal as usize) {
            found.push(Violation::Ordinals { job, pod_set: index, ordinals });
        }
        if let Some(level) = &set.topology.required {
            judge_level(world, job, level, Some(index), found);
        }
    }
    if let Some(level) = &booked.job.topology.required {
        judge_level(world, job, level, None, found);
    }
}

fn judge_level(
    world: &ClusterBooks,
    job: JobId,
    level: &str,
    pod_set: Option<usize>,
    found: &mut Vec<Violation>,
) {
    let Some(depth) = world.topology.depth(level) else { return };
    let pods = world.jobs[&job].pods.iter();
    let meant = pods.filter(|((set, _), _)| pod_set.is_none_or(|only| only == usize::from(*set)));
    let domains: BTreeSet<Vec<String>> = meant
        .filter_map(|(_, node)| world.nodes.get(node))
        .map(|books| world.domain_of(&books.node, depth).unwrap_or_default())
        .collect();
    if domains.len() > 1 || domains.iter().any(Vec::is_empty) {
        let domains = domains.into_iter().collect();
        found.push(Violation::Level { job, level: level.to_owned(), domains });
    }
}

/// Whether the plan may still add the pod to its job.
pub(crate) fn judge_pod(world: &ClusterBooks, pod: PodId) -> Option<Violation> {
    let Some(booked) = world.jobs.get(&pod.job) else {
        return Some(Violation::UnknownJob { job: pod.job });
    };
    let pod_sets = booked.job.pod_sets.len();
    if usize::from(pod.pod_set) >= pod_sets {
        return Some(Violation::UnknownPodSet { pod, pod_sets });
    }
    if booked.runs() {
        return Some(Violation::NotWaiting { job: pod.job });
    }
    let at = booked.pods.get(&(pod.pod_set, pod.ordinal));
    at.map(|node| Violation::HeldTwice { pod, node: node.clone() })
}

fn ordinals(booked: &BookedJob, set: usize) -> Vec<u32> {
    let of_set = booked.pods.keys().filter(|(pod_set, _)| usize::from(*pod_set) == set);
    of_set.map(|(_, ordinal)| *ordinal).collect()
}
