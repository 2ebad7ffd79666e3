//! AUT-03: nodes without GPU pods, and what speaks against removing one.
//!
//! Pods that cannot move block the removal, and so does work that needs the node. Such a node
//! claims nothing, and no command removes it.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Facts, Node};
use dovetail_units::duration::duration;

use super::autoscaling::free_since;
use super::needed::{KEEP_FOR_PENDING, needs};
use super::pool_removal::removed_by_pool;
use super::resource_cluster::stay_on;
use super::{UNWANTED, View, node_ref};
use crate::catalogue::Check;
use crate::finding::Finding;

const MINUTE_MS: u64 = 60_000;

/// Pods and workloads of a node that evidence names.
const MOST_NAMED: usize = 3;

/// What to do instead of a removal, where no pool removes and adds nodes by itself.
const KEEP_FOR_LATER: &str = "an autoscaled node pool with minimum size 0, which adds the node only while it is needed; \
                              or, if these workloads are no longer needed, delete them";
/// The same where a pool does: its settings would remove the node before the work comes.
const KEEP_IN_POOL: &str = "keep the node until no workload needs it; or, if these workloads are no longer needed, delete them";
const KEEP_FOR_UNREAD: &str = "keep the node until an audit has read all pods";
const KEEP_FOR_STAYING: &str = "keep the node until these pods can run on another node";

/// The autoscaler does not remove such a node, and a person can.
const REMOVE_HELD: &str = "kubectl drain NODES --ignore-daemonsets  # then delete the machine: the annotation prevents \
                           the autoscaler from removing it";

/// No snapshot shows how long the runs of a CronJob take.
const AT_MOST: &str =
    "at most its idle time extrapolated to a month; the time in which workloads use it is no waste";

pub(super) fn empty_for_long(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let since = |node: &Node| empty_since(view.facts, node);
    let empty = view.gpu_nodes().filter_map(|node| Some((&*node.node.name, since(node)?)));
    let empty: BTreeMap<&str, u64> = empty.collect();
    let names: BTreeSet<&str> = empty.keys().copied().collect();
    let stays = stay_on(&view.gpu_cluster(), &names);
    let mut needs = needs(view, &names);
    for node in view.gpu_nodes() {
        let name = &*node.node.name;
        let Some(since_ms) = empty.get(name) else { continue };
        let needed = needs.remove(name).unwrap_or_default();
        // Its pods may have run here, and be deleted.
        let since_ms = needed.last_ms.unwrap_or(0).max(*since_ms);
        if !is_long(view.facts, since_ms) {
            continue;
        }
        let length_ms = view.facts.now_ms.saturating_sub(since_ms);
        let mut finding = Finding::new(check, &node.pool)
            // Pods that were deleted are not listed, so it may be less.
            .with("without GPU pods", format!("{name} for up to {}", duration(length_ms)))
            .affecting([node_ref(node)]);
        // An autoscaler keeps it, whatever its pool allows.
        if let Some(annotation) = &node.scale_down_held_by {
            let value = format!("{annotation} on {name}");
            finding = finding.with("annotation that prevents removal", value);
        }
        if !needed.to_come.is_empty() {
            finding = finding.with("waste of this node", AT_MOST);
        }
        let staying: Vec<String> = stays.get(name).into_iter().flatten().cloned().collect();
        let unread = view.facts.lacks_pods.then(|| "they may run on it or need it".to_owned());
        let for_later = if node.pool.kind == "Node" { KEEP_FOR_LATER } else { KEEP_IN_POOL };
        let kept = [
            (unread.into_iter().collect(), "pods that were not read", KEEP_FOR_UNREAD),
            (staying, "cannot be moved from it", KEEP_FOR_STAYING),
            (needed.pods.into_iter().collect(), "pending pods that may need it", KEEP_FOR_PENDING),
            (needed.to_come.into_iter().collect(), "workloads that will need it", for_later),
        ];
        let kept = kept.into_iter().filter(|(names, ..)| !names.is_empty());
        for (place, (names, what, instead)) in kept.enumerate() {
            for name in names.into_iter().take(MOST_NAMED) {
                finding = finding.with(what, name);
            }
            if place == 0 {
                finding = finding.for_example(instead);
            }
            finding.stays.insert(name.to_owned());
        }
        if finding.stays.is_empty() {
            finding.claims = free_since(node, since_ms, view.facts.period, &UNWANTED);
            finding = match &node.scale_down_held_by {
                Some(_) => finding.for_example(REMOVE_HELD),
                None => removed_by_pool(view, node, length_ms, finding),
            };
        }
        found.push(finding);
    }
}

/// Since when a node has no GPU pods, if that is long.
fn empty_since(facts: &Facts, node: &Node) -> Option<u64> {
    // A cordoned node has a finding of its own, and stays until somebody decides.
    let since_ms = node.without_gpu_pods_since_ms.filter(|_| node.cordoned_since_ms.is_none())?;
    (is_long(facts, since_ms) && !node.may_be_held).then_some(since_ms)
}

fn is_long(facts: &Facts, since_ms: u64) -> bool {
    let length_ms = facts.now_ms.saturating_sub(since_ms);
    length_ms > facts.thresholds.empty_node_minutes * MINUTE_MS
}
