//! Pods that a drain does not move: the eviction API refuses them for good, or their successor runs
//! on the same node.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{ObjectRef, Workload};
use serde_json::Value;

use super::cluster::BudgetObject;
use super::inventory::Inventory;
use super::owners_by_text::owners_that_say;
use super::pods::Pods;
use super::to_come::templates;

/// Notes for each pod the budgets that select it, if they are several: then the eviction API
/// refuses the pod, whatever these allow.
pub(super) fn note_several_budgets(budgets: &[BudgetObject], pods: &mut Pods) {
    let mut of_namespace: BTreeMap<&str, Vec<&BudgetObject>> = BTreeMap::new();
    for budget in budgets {
        of_namespace.entry(&budget.object.namespace).or_default().push(budget);
    }
    of_namespace.retain(|_, budgets| budgets.len() > 1);
    if of_namespace.is_empty() {
        return;
    }
    for (record, fact) in pods.list.iter().zip(&mut pods.facts) {
        let meta = &record.pod.meta;
        // The eviction API looks for no budget of a pod without labels.
        let budgets = of_namespace.get(&*meta.namespace).filter(|_| !meta.labels.is_empty());
        let budgets = budgets.into_iter().flatten();
        let selecting = budgets.filter(|of| of.budget.selector.matches(&meta.labels));
        // A dump may have a budget twice.
        let names: BTreeSet<&str> = selecting.map(|of| &*of.object.name).collect();
        if names.len() > 1 {
            fact.unevictable_by = names.into_iter().map(str::to_owned).collect();
        }
    }
}

/// Notes which workloads have an owner whose template names a node: new pods of it run there past
/// the scheduler. Every pod on a node has the same field, so only owners show it.
pub(super) fn note_bound_by_name(inventory: &Inventory, workloads: &mut [Workload]) {
    let may_name = |_: &ObjectRef, text: &str| text.contains("\"nodeName\"");
    let names = |object: &ObjectRef, value: &Value| {
        templates(object, value).iter().any(|template| !template.pod.node.is_empty())
    };
    let owners = owners_that_say(inventory, may_name, names);
    for workload in workloads {
        workload.is_bound_by_name = owners.contains(&workload.owner);
    }
}
