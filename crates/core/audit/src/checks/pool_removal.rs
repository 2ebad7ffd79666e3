//! AUT-03 of node pools: what removes a node without GPU pods whose pool adds and removes nodes,
//! without removing those that work needs. A change of a pool is for all its empty nodes, so where
//! some are needed, it is for none, or for as many as are not.

use std::collections::BTreeMap;

use dovetail_facts::{Node, ObjectRef};
use dovetail_units::duration::duration;

use super::View;
use crate::example::Example;
use crate::finding::Finding;
use crate::names::is_name;
use crate::remedy::PatchChange;

/// Nodes that one command names.
const MOST_NAMED: usize = 20;

const ZERO_BUDGET: &str =
    "disruption budget of the node pool that allows no removal of empty nodes";

const REMOVE_EMPTY: &str =
    "disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5m}  # of the node pool; and ";

const ASK_KARPENTER: &str =
    "kubectl describe node NODE  # the events of Karpenter state why it does not remove the node";

/// Adds what removes a node that has been empty for so long and that no work needs. Where the
/// settings of its pool should have removed it, nothing is known to remove it: it stays on the
/// bill, and its free time is worth only what other work makes of it.
pub(super) fn removed_by_pool(
    view: &View<'_>,
    node: &Node,
    length_ms: u64,
    mut finding: Finding,
) -> Finding {
    let Some(rule) = view.facts.removal_rules.get(&node.pool) else {
        return finding.mended_by(PatchChange::RemoveEmptyNodes);
    };
    for budget in &rule.zero_budgets {
        finding = finding.with(ZERO_BUDGET, &budget.words);
    }
    let always = rule.zero_budgets.iter().filter(|budget| budget.is_always);
    let always: Vec<&str> = always.map(|budget| &*budget.words).collect();
    if !always.is_empty() {
        let settings = if rule.removes_empty_after_ms.is_none() { REMOVE_EMPTY } else { "" };
        return finding.for_example(format!("{settings}{}", allow_empty(&always)));
    }
    let Some(after_ms) = rule.removes_empty_after_ms.filter(|after_ms| length_ms > *after_ms)
    else {
        return finding.mended_by(PatchChange::RemoveEmptyNodes);
    };
    if rule.zero_budgets.is_empty() {
        let words = format!(
            "Karpenter removes empty nodes after {}: nothing in the node pool prevents it",
            duration(after_ms)
        );
        finding = finding.with("settings of the node pool", words);
    }
    finding.stays.insert(node.node.name.to_string());
    finding.for_example(ASK_KARPENTER)
}

/// Lets empty nodes go in spite of budgets, which still hold for other disruptions. In words: a
/// list of budgets to copy would replace those that the pool has.
fn allow_empty(budgets: &[&str]) -> String {
    let named: Vec<String> = budgets.iter().map(|words| format!("{{{words}}}")).collect();
    format!(
        "in disruption.budgets, remove Empty from the reasons of {}: delete a budget that has no other \
         reason, add reasons: [Drifted, Underutilized] to one without reasons, and keep the other budgets",
        named.join(" and ")
    )
}

/// The nodes without GPU pods of one pool.
#[derive(Default)]
struct OfPool {
    /// Those that no work needs, by name.
    goes: Vec<String>,
    has_kept: bool,
}

/// What is done to a pool of which not all empty nodes can go by its own settings.
struct Plan {
    example: String,
    /// Whether the pool is still changed.
    changes_pool: bool,
}

/// Takes changes of pools from the findings that would remove nodes that work needs, and those
/// that remove nothing because no autoscaler runs.
pub(super) fn settle_pools(view: &View<'_>, found: &mut [Finding]) {
    let mut pools: BTreeMap<ObjectRef, OfPool> = BTreeMap::new();
    for finding in found.iter().filter(|finding| is_of_pool(finding)) {
        let of = pools.entry(finding.object.clone()).or_default();
        of.has_kept |= !finding.stays.is_empty();
        if goes(view, finding) {
            let named = finding.affected.iter().filter(|object| is_name(object));
            of.goes.extend(named.map(|object| object.name.clone()));
        }
    }
    let plans: BTreeMap<ObjectRef, Plan> = pools
        .into_iter()
        .filter_map(|(pool, of)| {
            let plan = of.plan(view, &pool)?;
            Some((pool, plan))
        })
        .collect();
    for finding in found.iter_mut().filter(|finding| is_of_pool(finding)) {
        let plan = plans.get(&finding.object);
        let is_kept = !finding.stays.is_empty();
        if is_kept || plan.is_some_and(|plan| !plan.changes_pool) {
            finding.remedies.clear();
        }
        if let Some(plan) = plan.filter(|_| is_kept || goes(view, finding)) {
            finding.examples = vec![Example::new(&plan.example)];
        }
    }
}

fn is_of_pool(finding: &Finding) -> bool {
    finding.check.id == "AUT-03" && finding.object.kind != "Node"
}

/// Whether its node can be removed, and no annotation leaves that to a person.
fn goes(view: &View<'_>, finding: &Finding) -> bool {
    let mut nodes = finding.affected.iter().filter_map(|of| view.node_of.get(&*of.name));
    finding.stays.is_empty() && nodes.all(|node| node.scale_down_held_by.is_none())
}

impl OfPool {
    /// `None` if the change of its pool does what is meant, or if none of its nodes can go.
    fn plan(&self, view: &View<'_>, pool: &ObjectRef) -> Option<Plan> {
        let (named, more) = self.goes.split_at(self.goes.len().min(MOST_NAMED));
        let names = named.join(" ");
        let more = match more.len() {
            0 => String::new(),
            count => format!(" the same for {count} more nodes;"),
        };
        let size = view.facts.pool_size_without(pool, self.goes.len());
        let lacks_autoscaler = !view.facts.has_cluster_autoscaler;
        let (example, changes_pool) = match &*pool.kind {
            _ if self.goes.is_empty() => return None,
            // A smaller desired size alone would leave the choice of the node to AWS.
            "EKSNodegroup" if lacks_autoscaler => (
                format!(
                    "kubectl drain {names} --ignore-daemonsets  #{more} then, because no Cluster Autoscaler \
                     runs: lower minSize of the node group to {size} if it is higher, and terminate these \
                     instances: aws autoscaling terminate-instance-in-auto-scaling-group --instance-id \
                     INSTANCE --should-decrement-desired-capacity"
                ),
                false,
            ),
            _ if !self.has_kept => return None,
            "NodePool" | "Provisioner" => (
                format!(
                    "kubectl delete node {names}  #{more} Karpenter drains these nodes and terminates their \
                     instances, and the other nodes stay for the work that needs them"
                ),
                false,
            ),
            _ => (
                format!(
                    "{size} as the minimum size, so that an autoscaler leaves as many nodes as are needed"
                ),
                true,
            ),
        };
        Some(Plan { example, changes_pool })
    }
}
