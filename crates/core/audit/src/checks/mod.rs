//! The checks: each looks at the facts and says what it found.

mod advised;
mod autoscaling;
mod capacity;
mod consolidation;
mod governance;
mod idle;
mod measured;
mod mend;
mod models;
mod pending;
mod request;
mod scheduling;
mod shapes;
mod sharing;
mod spare;
mod spot;
mod taints;
#[cfg(test)]
mod tests;
mod view;
mod visibility;

use std::collections::BTreeSet;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::catalogue::{check, example};
use crate::facts::{Facts, ObjectRef};
use crate::finding::{Finding, group};
use crate::moment::Moment;
pub use scheduling::PLAIN_TAINT_VALUES;
use view::{Run, UNWANTED, View, claims_on, node_ref, percent_of, pod_ref, pods_of};

/// Runs every check on facts alone; findings are grouped by the object that a person edits, worst
/// first.
pub fn audit(facts: &Facts) -> Vec<Finding> {
    audit_at(facts, &Moment::default())
}

/// The same with pending pods, which some checks try on the engine.
pub(crate) fn audit_at(facts: &Facts, moment: &Moment) -> Vec<Finding> {
    let view = View::of(facts, moment);
    // Some checks ask the engine about the whole cluster, so they run side by side; their findings
    // come in the order of the catalogue all the same.
    let runs: Vec<Run> = FAMILIES.into_iter().flatten().copied().collect();
    let found = runs.into_par_iter().map(|(id, run)| {
        let check = check(id).expect("every check that runs is in the catalogue");
        let mut findings = Vec::new();
        run(&view, check, &mut findings);
        findings
    });
    let found: Vec<Vec<Finding>> = found.collect();
    let mut findings: Vec<Finding> = found.into_iter().flatten().collect();
    // What a scheduler made for itself no person edits.
    let reserves = facts.workloads.iter().filter(|workload| workload.reserves_for_others);
    let reserves: BTreeSet<&ObjectRef> = reserves.map(|workload| &workload.owner).collect();
    findings.retain(|finding| !reserves.contains(&finding.object));
    let mut findings = group(findings);
    for finding in findings.iter_mut().filter(|finding| finding.examples.is_empty()) {
        let pool = view.pool_kind(finding);
        let example = pool.and_then(|pool| example(finding.check.id, pool));
        finding.examples.extend(example.map(str::to_owned));
    }
    findings
}

/// The checks in the order of the catalogue.
const FAMILIES: [&[Run]; 10] = [
    request::RUNS,
    scheduling::RUNS,
    sharing::RUNS,
    idle::RUNS,
    governance::RUNS,
    autoscaling::RUNS,
    spot::RUNS,
    capacity::RUNS,
    visibility::RUNS,
    models::RUNS,
];
