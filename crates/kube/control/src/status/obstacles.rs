//! What keeps the pods of a waiting job off the nodes, as a table of numbers of nodes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use dovetail_model::{Job, NodeName};
use dovetail_plan::{Cause, Engine};
use dovetail_translate::Rules;
use serde::Serialize;

use super::reason::reason;
use super::waiting::look;

/// Nodes that one and the same thing keeps a pod off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    pub nodes: u32,
    /// What it is, in kube-scheduler's words.
    pub reason: String,
}

/// For each pod set of a job, nodes by the first thing that keeps one more such pod off them, the
/// most frequent first. Nodes that would take one are not counted.
pub fn obstacles(
    engine: &mut Engine,
    job: &Job,
    nodes: &[NodeName],
    rules: &Rules,
) -> Vec<Vec<Obstacle>> {
    let sets = job.pod_sets.iter();
    sets.map(|set| {
        let mut counted: BTreeMap<(Cause, String), u32> = BTreeMap::new();
        for node in look(engine, set, nodes) {
            // Causes are in the order in which placement looks at them.
            let first = node.refusals.iter().min_by_key(|refusal| refusal.cause);
            let Some(first) = first else { continue };
            let words = || reason(first, rules).into_owned();
            let key = (first.cause, node.outside.unwrap_or_else(words));
            *counted.entry(key).or_default() += 1;
        }
        let mut counted: Vec<((Cause, String), u32)> = counted.into_iter().collect();
        counted.sort_by_key(|(_, nodes)| Reverse(*nodes));
        counted.into_iter().map(|((_, reason), nodes)| Obstacle { nodes, reason }).collect()
    })
    .collect()
}
