//! What is lost when a node is drained, to remove or to repair it, or when some of its pods move:
//! they start again elsewhere, and what they have in memory or in an emptyDir volume is gone.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::Facts;

use super::View;
use crate::catalogue::{DRAIN, example};
use crate::finding::{Evidence, Finding, Move};
use crate::losses::{lost_by_drain, lost_by_move};
use crate::names::first_of;
use crate::remedy::PatchChange;

/// Checks whose fix drains nodes and removes them.
const REMOVING: [&str; 3] = ["AUT-03", "AUT-06", "AUT-07"];

/// Workloads that one line names.
const MOST_NAMED: usize = 3;

/// The names of these lines.
const OF_DRAIN: &str = "risk of the drain";
const OF_MOVES: &str = "risk of the moves";

const ON_SPOT: &str =
    "moves from on-demand to spot capacity, which the provider can reclaim at any time";

/// Adds to the findings that drain a node, or move pods, what the pods lose by that.
pub(super) fn name_losses(view: &View<'_>, found: &mut [Finding]) {
    let facts = view.facts;
    name_losses_of_moves(facts, found);
    name_spot(facts, found);
    let nodes = nodes_of(found.iter().filter(|finding| drains(view, finding))).into_iter();
    let mut drained: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> =
        nodes.map(|name| (name, BTreeMap::new())).collect();
    if drained.is_empty() {
        return;
    }
    // A drain leaves the pods of DaemonSets, and static ones.
    for workload in facts.workloads.iter().filter(|workload| !workload.belongs_to_nodes()) {
        let nodes = workload.pods.iter().filter_map(|pod| pod.node.as_deref());
        let nodes: BTreeSet<&str> = nodes.filter(|node| drained.contains_key(*node)).collect();
        if nodes.is_empty() {
            continue;
        }
        let Some(lost) = lost_by_drain(workload) else { continue };
        let name = workload.owner.in_words();
        for node in nodes {
            if let Some(losses) = drained.get_mut(node) {
                losses.entry(lost.clone()).or_default().insert(name.clone());
            }
        }
    }
    for finding in found.iter_mut().filter(|finding| drains(view, finding)) {
        let losses = finding.affected.iter().filter_map(|object| drained.get(&object.name));
        let lines = losses.flatten();
        let lines = lines.map(|(lost, owners)| format!("{}: {lost}", names(owners)));
        add_risks(finding, lines.collect());
    }
}

/// The same for findings that drain no node and move some of its pods.
fn name_losses_of_moves(facts: &Facts, found: &mut [Finding]) {
    for finding in found.iter_mut().filter(|of| !of.moves.is_empty() && !removes(of)) {
        let moved = finding.moves.iter().map(|of| (&*of.pod.namespace, &*of.pod.name));
        let moved: BTreeSet<(&str, &str)> = moved.collect();
        let mut losses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for workload in &facts.workloads {
            let namespace = workload.owner.namespace.as_str();
            let mut pods = workload.pods.iter();
            if pods.any(|pod| moved.contains(&(namespace, pod.name.as_str())))
                && let Some(lost) = lost_by_move(workload)
            {
                losses.entry(lost).or_default().insert(workload.owner.in_words());
            }
        }
        let lines = losses.iter().map(|(lost, owners)| format!("{}: {lost}", names(owners)));
        add_risks(finding, lines.collect());
    }
}

/// Adds what a drain or moves put at risk, before the moves, of which there may be many.
pub(super) fn add_risks(finding: &mut Finding, risks: Vec<String>) {
    let is_drain = finding.moves.is_empty() || removes(finding);
    let what = if is_drain { OF_DRAIN } else { OF_MOVES };
    let first_move = finding.evidence.iter().position(|of| of.what == "moves");
    let place = first_move.filter(|_| !is_drain).unwrap_or(finding.evidence.len().min(1));
    let lines = risks.into_iter().map(|value| Evidence { what, value });
    drop(finding.evidence.splice(place..place, lines));
}

/// The nodes that the fixes of findings remove.
pub(super) fn removed_nodes(found: &[Finding]) -> BTreeSet<String> {
    nodes_of(found.iter().filter(|finding| removes(finding)))
}

fn nodes_of<'f>(findings: impl Iterator<Item = &'f Finding>) -> BTreeSet<String> {
    let objects = findings.flat_map(|finding| &finding.affected);
    objects.map(|object| object.name.clone()).collect()
}

fn names(owners: &BTreeSet<String>) -> String {
    first_of(owners.iter(), MOST_NAMED)
}

/// Adds which pods come to capacity that its provider may take back, and leave other capacity.
fn name_spot(facts: &Facts, found: &mut [Finding]) {
    let spot = facts.nodes.iter().filter(|node| node.is_spot == Some(true));
    let spot: BTreeSet<&str> = spot.map(|node| &*node.node.name).collect();
    for finding in found.iter_mut().filter(|finding| !finding.moves.is_empty()) {
        let comes = |of: &&Move| spot.contains(&*of.to) && !spot.contains(&*of.from);
        let pods = finding.moves.iter().filter(comes);
        let pods: BTreeSet<String> =
            pods.map(|of| format!("Pod {}/{}", of.pod.namespace, of.pod.name)).collect();
        if !pods.is_empty() {
            add_risks(finding, vec![format!("{}: {ON_SPOT}", names(&pods))]);
        }
    }
}

/// Whether the fix of a finding removes its node.
pub(super) fn removes(finding: &Finding) -> bool {
    let mut changes = finding.changes();
    REMOVING.contains(&finding.check.id)
        && finding.stays.is_empty()
        && !changes.any(|change| matches!(change, PatchChange::Uncordon { .. }))
}

/// Whether the fix of a finding drains its node, to remove it or for a repair.
fn drains(view: &View<'_>, finding: &Finding) -> bool {
    removes(finding) || drains_for_repair(view, finding)
}

/// Whether the example of a finding drains a node that stays.
fn drains_for_repair(view: &View<'_>, finding: &Finding) -> bool {
    let check = finding.check;
    if REMOVING.contains(&check.id) {
        return false;
    }
    if !finding.examples.is_empty() {
        return finding.examples.iter().any(|example| example.edit.starts_with(DRAIN));
    }
    // Most findings end here: the kind of a pool takes longer to see.
    if !check.fix_example.starts_with(DRAIN) {
        return false;
    }
    let of_pool = view.pool_kind(finding).and_then(|pool| example(check.id, pool));
    of_pool.is_none_or(|edit| edit.starts_with(DRAIN))
}
