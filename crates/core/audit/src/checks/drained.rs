//! What is lost when a node is drained: the pods on it start again elsewhere, and what they have in
//! memory or in an emptyDir volume is gone.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Facts, Workload};
use crate::finding::{Evidence, Finding, Move};
use crate::patch::{PatchChange, lost_by_drain};

/// Checks whose fix drains nodes.
const DRAINING: [&str; 3] = ["AUT-03", "AUT-06", "AUT-07"];

/// Workloads that one line names.
const MOST_NAMED: usize = 3;

const ON_SPOT: &str =
    "moves from on-demand to spot capacity, which the provider can reclaim at any time";

/// Adds to the findings that drain a node what its pods lose by that.
pub(super) fn name_losses(facts: &Facts, found: &mut [Finding]) {
    let mut drained: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for finding in found.iter().filter(|finding| drains(finding)) {
        let names = finding.affected.iter().map(|object| object.name.clone());
        drained.extend(names.map(|name| (name, BTreeMap::new())));
    }
    if drained.is_empty() {
        return;
    }
    name_spot(facts, found);
    for workload in facts.workloads.iter().filter(|workload| is_evicted(workload)) {
        let Some(lost) = lost_by_drain(workload) else { continue };
        for node in workload.pods.iter().filter_map(|pod| pod.node.as_deref()) {
            if let Some(losses) = drained.get_mut(node) {
                let owner = &workload.owner;
                let name = format!("{} {}/{}", owner.kind, owner.namespace, owner.name);
                losses.entry(lost.clone()).or_default().insert(name);
            }
        }
    }
    for finding in found.iter_mut().filter(|finding| drains(finding)) {
        let losses = finding.affected.iter().filter_map(|object| drained.get(&object.name));
        let lines = losses.flatten().map(|(lost, owners)| Evidence {
            what: "risk of the drain",
            value: format!("{}: {lost}", first_of(owners)),
        });
        let lines: Vec<Evidence> = lines.collect();
        // Before the moves, of which there may be many.
        let place = finding.evidence.len().min(1);
        drop(finding.evidence.splice(place..place, lines));
    }
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
            let value = format!("{}: {ON_SPOT}", first_of(&pods));
            let place = finding.evidence.len().min(1);
            finding.evidence.insert(place, Evidence { what: "risk of the drain", value });
        }
    }
}

/// Whether the fix of a finding drains its node.
pub(super) fn drains(finding: &Finding) -> bool {
    let mut changes = finding.changes();
    DRAINING.contains(&finding.check.id)
        && finding.stays.is_empty()
        && !changes.any(|change| matches!(change, PatchChange::Uncordon { .. }))
}

/// Whether a drain evicts the pods: those of a DaemonSet and static pods stay.
fn is_evicted(workload: &Workload) -> bool {
    !workload.belongs_to_nodes()
}

fn first_of(owners: &BTreeSet<String>) -> String {
    let first: Vec<&str> = owners.iter().take(MOST_NAMED).map(String::as_str).collect();
    match owners.len().saturating_sub(MOST_NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
