//! The nodes of a policy: those that it selects, those that changed under it, and whether more of
//! them may change.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_sharing::watch::{Gate, Outcome, RollOut, Subject, gate, roll_out};
use dovetail_sharing::{PolicySpec, Record, SharingPolicy, gate_of_workloads, stopped_by};

use crate::amd_gpus::has_gpus;
use crate::objects::{Objects, SeenNode};

/// Nodes with GPUs that a policy selects.
pub(super) fn selected<'o>(
    objects: &'o Objects,
    policy: &PolicySpec,
) -> Vec<(&'o String, &'o SeenNode)> {
    let nodes = objects.nodes.iter();
    let is_selected = |(_, seen): &(&String, &SeenNode)| {
        policy.selects(|key| seen.node.meta.labels.get(key)) && has_gpus(seen)
    };
    nodes.filter(is_selected).collect()
}

/// Nodes that changed under a policy, whether or not it selects them still.
pub(super) fn changed_under<'o>(
    policy: &SharingPolicy,
    objects: &'o Objects,
) -> impl Iterator<Item = (&'o String, &'o SeenNode, Record)> {
    let records =
        objects.nodes.iter().filter_map(|(node, seen)| Some((node, seen, seen.record()?)));
    records.filter(|(_, _, record)| {
        record.watch.as_ref().is_some_and(|watch| watch.policy == policy.name)
    })
}

/// Whether nodes of a policy may change. `mine`: nodes of the present step, which wait for the
/// next one only.
pub(super) fn gate_of(policy: &SharingPolicy, objects: &Objects, mine: &BTreeSet<String>) -> Gate {
    let of_others = changed_under(policy, objects).filter(|(node, ..)| !mine.contains(*node));
    let records: Vec<(&str, Record)> =
        of_others.map(|(node, _, record)| (&**node, record)).collect();
    let of_nodes = gate(policy, records.iter().map(|(node, record)| (*node, record)));
    of_nodes.and(gate_of_workloads(policy, objects.owners.iter(), true))
}

/// What came of the layouts of a policy.
pub(super) fn roll_out_of(policy: &SharingPolicy, objects: &Objects) -> Option<RollOut> {
    let records: Vec<(&str, Record)> =
        changed_under(policy, objects).map(|(node, _, record)| (&**node, record)).collect();
    roll_out(
        policy,
        records.iter().map(|(node, record)| (*node, record)),
        stopped_by(policy, objects.owners.iter()),
    )
}

/// Why no more nodes change in this step.
pub(super) fn why_no_more(gate: &Gate) -> Option<String> {
    const GO_ON: &str = "to continue, change the layouts in the policy, or remove its guard";
    match gate {
        Gate::Open => None,
        Gate::Canary => {
            let why = "one node changes first; the others wait for its latency verdict";
            Some(why.to_owned())
        }
        Gate::Changes { node } => Some(format!("waiting for the change of node {node} to finish")),
        Gate::Waits(subject) => Some(format!("waiting for the latency check of {subject}")),
        Gate::Stopped { by, outcome: Outcome::RolledBack, why } => {
            Some(format!("{by} was rolled back ({why}): {GO_ON}"))
        }
        Gate::Stopped { by, outcome, why } => {
            let on = if matches!(by, Subject::Node(_)) { "on" } else { "of" };
            Some(format!("latency {on} {by} is {} ({why}): {GO_ON}", outcome.word()))
        }
    }
}

/// So many nodes are named with a reason.
const MOST_NAMED: usize = 5;

/// Why nodes stay as they are, each reason with its nodes.
pub(super) fn stays_words(stays: &[(String, String)]) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (node, why) in stays {
        by_reason.entry(why).or_default().push(node);
    }
    let words = |(why, nodes): (&str, Vec<&str>)| {
        let named = nodes[..nodes.len().min(MOST_NAMED)].join(", ");
        match nodes.len().saturating_sub(MOST_NAMED) {
            0 => format!("{named}: {why}"),
            more => format!("{named} and {more} more: {why}"),
        }
    };
    by_reason.into_iter().map(words).collect()
}

/// What happens under a policy now, in a word.
pub(super) fn step_word(policy: &SharingPolicy, objects: &Objects) -> &'static str {
    match gate_of(policy, objects, &BTreeSet::new()) {
        Gate::Changes { .. } => "Changing",
        Gate::Waits(_) => "Watching",
        Gate::Stopped { .. } => "Stopped",
        Gate::Open | Gate::Canary => "Idle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_once_with_its_first_nodes() {
        let because = |node: usize, why: &str| (format!("n{node}"), why.to_owned());
        let mut stays: Vec<(String, String)> = (0..7).map(|node| because(node, "busy")).collect();
        stays.push(because(7, "HAMi"));
        assert_eq!(stays_words(&stays), ["n7: HAMi", "n0, n1, n2, n3, n4 and 2 more: busy"]);
        assert!(stays_words(&[]).is_empty());
    }
}
