//! AUT: what keeps nodes from going.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::{DeviceState, Span};
use dovetail_facts::{BudgetLimit, Node, ObjectRef};
use dovetail_model::FreeCause;

use super::{Run, View, claims_on, consolidation, cordoned, empty, node_ref, pod_ref, pods_of};
use crate::catalogue::Check;
use crate::finding::{Attribution, Finding};
use crate::remedy::PatchChange;

pub(super) const RUNS: &[Run] = &[
    ("AUT-01", held_on_half_empty_node),
    ("AUT-02", budgets_block_evictions),
    ("AUT-03", empty::empty_for_long),
    ("AUT-04", scale_down_held),
    ("AUT-05", pod_without_controller),
    ("AUT-06", cordoned::cordoned_for_long),
    ("AUT-07", consolidation::nearly_empty),
];

fn held_on_half_empty_node(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let mut requested: BTreeMap<&str, i64> = BTreeMap::new();
    for workload in view.gpu_workloads() {
        let per_pod = workload.gpus_per_pod().into_values().fold(0, i64::saturating_add);
        for (_, node) in view.pods_on_gpu_nodes(workload) {
            let sum = requested.entry(&node.node.name).or_default();
            *sum = sum.saturating_add(per_pod);
        }
    }
    for workload in view.facts.workloads.iter().filter(|workload| !workload.belongs_to_nodes()) {
        let annotations = &workload.template.eviction_held_by;
        if annotations.is_empty() {
            continue;
        }
        // As long as one of them stays, the pods do.
        let dropped = |annotation: &String| PatchChange::DropAnnotation { key: key_of(annotation) };
        for (pod, node) in view.pods_on_gpu_nodes(workload) {
            let used = requested.get(&*node.node.name).copied().unwrap_or(0);
            let all: i64 = node.gpus.values().map(|gpus| gpus.allocatable).sum();
            let half = i128::from(view.facts.thresholds.half_empty_percent);
            if i128::from(used) * 100 < i128::from(all) * half {
                let finding = annotations
                    .iter()
                    .fold(Finding::new(check, &workload.owner), |finding, annotation| {
                        finding.with("annotation", annotation)
                    })
                    .mended_in(workload, annotations.iter().map(dropped))
                    .with(
                        "GPUs requested on the node",
                        format!("{used} of {all} on {}", node.node.name),
                    )
                    .affecting([pod]);
                found.push(finding);
            }
        }
    }
}

/// The key of an annotation that stands as `key: value`.
fn key_of(annotation: &str) -> String {
    annotation.split_once(": ").map_or(annotation, |(key, _)| key).to_owned()
}

/// What to do about pods that several budgets select.
const ONE_BUDGET: &str = "change the selectors so that only one PodDisruptionBudget selects each \
                          pod, or delete the others";

fn budgets_block_evictions(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    budget_lets_nothing_go(view, check, found);
    pods_of_several_budgets(view, check, found);
}

/// The eviction API refuses a pod that several budgets select, whatever these allow.
fn pods_of_several_budgets(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in view.gpu_workloads() {
        // A pod without a node is evicted whatever its budgets say.
        for pod in workload.pods.iter().filter(|pod| pod.node.is_some()) {
            let Some(first) = pod.unevictable_by.first() else { continue };
            let budget = ObjectRef::new("PodDisruptionBudget", &workload.owner.namespace, first);
            let finding = Finding::new(check, &budget)
                .with("budgets that select the same pods", pod.unevictable_by.join(", "))
                .for_example(ONE_BUDGET)
                .affecting([pod_ref(workload, pod)]);
            found.push(finding);
        }
    }
}

fn budget_lets_nothing_go(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for budget in &view.facts.budgets {
        let protects = view.gpu_workload_of(&budget.protects);
        let Some(workload) = protects.filter(|workload| workload.replicas > 0) else { continue };
        let replicas = workload.replicas;
        let limit = match budget.limit {
            BudgetLimit::MinAvailable(pods) => format!("minAvailable {pods}"),
            BudgetLimit::MinAvailablePercent(percent) => format!("minAvailable {percent}%"),
            BudgetLimit::MaxUnavailable(pods) => format!("maxUnavailable {pods}"),
            BudgetLimit::MaxUnavailablePercent(percent) => format!("maxUnavailable {percent}%"),
        };
        if budget.limit.lets_nothing_go(replicas) {
            let finding = Finding::new(check, &budget.object)
                .with("limit", limit)
                .mended_by(PatchChange::LetOneGo)
                .with("replicas", replicas)
                .affecting(pods_of(workload));
            found.push(finding);
        }
    }
}

fn scale_down_held(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let busy = view.nodes_of_gpu_pods();
    let pools = view.gpu_nodes().filter(|node| busy.contains(&*node.node.name));
    let busy_pools: BTreeSet<&ObjectRef> = pools.map(|node| &node.pool).collect();
    for node in view.gpu_nodes() {
        if let Some(annotation) = &node.scale_down_held_by {
            let mut finding = Finding::new(check, &node.pool).with("annotation", annotation);
            // An autoscaler evicts what runs on a node that it finds little used.
            if !busy_pools.contains(&node.pool) {
                let change = PatchChange::LetNodesGo { annotation: key_of(annotation) };
                finding = finding.mended_by(change);
            }
            found.push(finding.affecting([node_ref(node)]));
        }
    }
}

fn pod_without_controller(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in view.facts.workloads.iter().filter(|workload| workload.owner.kind == "Pod") {
        for (pod, node) in view.pods_on_gpu_nodes(workload) {
            let local = if workload.template.has_local_data { "yes" } else { "no" };
            let finding = Finding::new(check, &workload.owner)
                .with("node", &node.node.name)
                .with("local data", local);
            found.push(finding.affecting([pod]));
        }
    }
}

/// What stood free on a node since then, for some causes.
pub(super) fn free_since(
    node: &Node,
    since_ms: u64,
    period: Span,
    causes: &[FreeCause],
) -> Vec<Attribution> {
    let span = Span { from_ms: period.from_ms.max(since_ms), to_ms: period.to_ms };
    let states: Vec<_> = causes.iter().map(|cause| DeviceState::Free(Some(*cause))).collect();
    claims_on(node, None, &states, span)
}
