//! The checks: each looks at the facts and says what it found.

mod advised;
mod autoscaling;
mod capacity;
mod claim_bound;
mod consolidation;
mod cordoned;
mod cut_gpus;
mod drained;
mod empty;
mod emptying;
mod fewer_pods;
mod governance;
mod gpu_pods;
mod growing;
mod idle;
mod instance_request;
mod instance_supply;
mod kept_off;
mod layout_advice;
mod measured;
mod mend;
mod missing_instances;
mod models;
mod needed;
mod node_room;
mod ordinals;
mod oversize;
mod packing;
mod pending;
mod pod_request;
mod pod_rules;
mod pool_removal;
mod profile_names;
mod removal;
mod request;
mod request_classes;
mod resource_cluster;
mod scheduling;
mod shapes;
mod sharing;
mod spare;
mod spot;
mod supply_node;
mod taints;
#[cfg(test)]
mod tests;
mod view;
mod visibility;

use std::collections::BTreeSet;
use std::sync::Mutex;

use dovetail_facts::{Facts, Moment, ObjectRef};

use crate::catalogue::{check, example};
use crate::example::Example;
use crate::finding::{Finding, group};
pub use claim_bound::{ClaimBoundNode, claim_bound_nodes};
pub use missing_instances::nodes_without_memory_size;
pub use oversize::jobs_without_node;
pub use scheduling::PLAIN_TAINT_VALUES;
pub use taints::comes_and_goes;
use view::{Run, UNWANTED, View, claims_on, node_ref, percent_of, pod_ref, pods_of};

/// Runs every check on facts alone; findings are grouped by the object that a person edits, worst
/// first.
pub fn audit(facts: &Facts) -> Vec<Finding> {
    audit_at(facts, &Moment::default())
}

/// The same with pending pods, which some checks try on the engine.
pub(crate) fn audit_at(facts: &Facts, moment: &Moment) -> Vec<Finding> {
    findings(facts, moment, |count, run| (0..count).for_each(run))
}

/// Calls a function with every number below a count, in any order, also several at once.
pub type ForEach = fn(usize, &(dyn Fn(usize) + Sync));

/// Runs every check on facts and pending pods; `for_each` decides which run at once. The findings
/// do not depend on it.
pub fn findings(facts: &Facts, moment: &Moment, for_each: ForEach) -> Vec<Finding> {
    let view = View::of(facts, moment);
    let runs: Vec<Run> = FAMILIES.into_iter().flatten().copied().collect();
    // In the order of the catalogue, whichever ends first.
    let found: Vec<Mutex<Vec<Finding>>> = runs.iter().map(|_| Mutex::default()).collect();
    for_each(runs.len(), &|place| {
        let (id, run) = runs[place];
        let check = check(id).expect("every check that runs is in the catalogue");
        let mut findings = found[place].lock().expect("no check has panicked");
        run(&view, check, &mut findings);
    });
    let found = found.into_iter().map(|found| found.into_inner().expect("no check has panicked"));
    let mut found: Vec<Finding> = found.flatten().collect();
    needed::keep_given(&mut found);
    pool_removal::settle_pools(&view, &mut found);
    drained::name_losses(&view, &mut found);
    growing::name_growth(&view, &mut found);
    grouped(found, &view)
}

/// One finding for each object that a person edits, each with an example.
fn grouped(mut findings: Vec<Finding>, view: &View<'_>) -> Vec<Finding> {
    let facts = view.facts;
    // What a scheduler made for itself no person edits.
    let reserves = facts.workloads.iter().filter(|workload| workload.reserves_for_others);
    let reserves: BTreeSet<&ObjectRef> = reserves.map(|workload| &workload.owner).collect();
    findings.retain(|finding| !reserves.contains(&finding.object));
    let mut findings = group(findings);
    for finding in findings.iter_mut().filter(|finding| finding.examples.is_empty()) {
        let pool = view.pool_kind(finding);
        let example = pool.and_then(|pool| example(finding.check.id, pool));
        finding.examples.extend(example.map(Example::new));
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
