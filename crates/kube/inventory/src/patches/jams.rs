//! Rolling updates that jam because pods keep each other off their nodes: the rule of a pod holds
//! until the pod is gone, against new pods without the rule, too.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_audit::{Json, Patch};
use dovetail_model::Node;
use dovetail_objects::Pod;
use dovetail_objects::labels::HOST_NAME;

use super::reach::PodGroup;
use super::room::is_left;
use super::trial::Trial;

/// A label of a node with its value; every node has a name.
fn domain<'n>(node: &'n Node, label: &'n str) -> Option<(&'n str, &'n str)> {
    let value = node.labels.get(label).map(String::as_str);
    let name = (label == HOST_NAME).then_some(&*node.name);
    Some((label, value.or(name)?))
}

/// A rolling update, in the numbers that its controller computes.
struct RollingUpdate {
    replicas: usize,
    /// How many of them may be unavailable.
    unavailable: usize,
    /// Whether all new pods have to run before the first old one is terminated.
    needs_all_at_once: bool,
}

impl RollingUpdate {
    /// That of a patched object; `None` for kinds without one, where all pods go first, and where a
    /// person deletes them.
    fn of(patch: &Patch) -> Option<Self> {
        let spec = patch.edited.as_ref()?.after.get("spec")?;
        let replicas = match spec.get("replicas") {
            Some(Json::Integer(count)) => usize::try_from(*count).unwrap_or(0),
            _ => 1,
        };
        let is_type =
            |field: &str, name: &str| spec.at(&[field, "type"]).and_then(Json::text) == Some(name);
        let (unavailable, needs_all_at_once) = match patch.object.kind.as_str() {
            "Deployment" if !is_type("strategy", "Recreate") => {
                (surging(spec.at(&["strategy", "rollingUpdate"]), replicas), false)
            }
            "StatefulSet" if !is_type("updateStrategy", "OnDelete") => {
                let most = spec.at(&["updateStrategy", "rollingUpdate", "maxUnavailable"]);
                // Rounded up; the default is 1. It starts no extra pod.
                let most = hundredths(most, replicas).unwrap_or(100);
                (most.div_ceil(100).max(1), false)
            }
            // Argo Rollouts. With a traffic router the old pods of a canary stay until the end.
            "Rollout" => {
                let is_given = |path: &[&str]| spec.at(path).is_some_and(|of| *of != Json::Null);
                let needs_all = is_given(&["strategy", "blueGreen"])
                    || is_given(&["strategy", "canary", "trafficRouting"]);
                (surging(spec.at(&["strategy", "canary"]), replicas), needs_all)
            }
            _ => return None,
        };
        Some(Self { replicas, unavailable, needs_all_at_once })
    }
}

/// An amount of pods in hundredths of them, as percentages of replicas are.
fn hundredths(amount: Option<&Json>, replicas: usize) -> Option<usize> {
    match amount? {
        Json::Integer(count) => Some(usize::try_from(*count).unwrap_or(0).saturating_mul(100)),
        Json::Text(text) => {
            let percent: usize = text.trim_end_matches('%').parse().unwrap_or(0);
            Some(percent.saturating_mul(replicas))
        }
        _ => None,
    }
}

/// How many replicas may be unavailable under a strategy with `maxUnavailable` and `maxSurge`, each
/// 25% by default.
fn surging(strategy: Option<&Json>, replicas: usize) -> usize {
    let amount = |field: &str| {
        let amount = strategy.and_then(|strategy| strategy.get(field));
        hundredths(amount, replicas).unwrap_or(replicas.saturating_mul(25))
    };
    match (amount("maxUnavailable") / 100, amount("maxSurge")) {
        // The controllers do not let both be zero.
        (0, 0) => 1,
        (unavailable, _) => unavailable,
    }
}

impl Trial<'_> {
    /// How many replicas do not run now, if the rolling update of a patch would not go on: it goes
    /// on where more than these may be unavailable. `pod` is a new pod of the group.
    ///
    /// New pods start on nodes of terminated pods and on free nodes. The controller terminates a
    /// running pod only while more pods are available than the strategy asks for.
    pub(super) fn jams(&mut self, patch: &Patch, group: &PodGroup, pod: &Pod) -> Option<usize> {
        let RollingUpdate { replicas, unavailable, needs_all_at_once } = RollingUpdate::of(patch)?;
        if group.apart.from(&group.apart).is_empty() {
            return None;
        }
        let places = self.groups_of.get(&patch.object).into_iter().flatten();
        let pods = places.flat_map(|place| &self.reach.groups[*place].pods);
        let running = pods.filter(|(_, node)| node.is_some()).count();
        let missing = replicas.saturating_sub(running);
        let needed = match needs_all_at_once {
            true => replicas,
            false => (missing + 1).saturating_sub(unavailable),
        };
        if replicas == 0 || running == 0 || needed == 0 {
            return None;
        }
        (self.free_nodes(group, pod, needed) < needed).then_some(missing)
    }

    /// Nodes that take a new pod of a group beside all pods that are there, up to so many.
    fn free_nodes(&mut self, group: &PodGroup, pod: &Pod, needed: usize) -> usize {
        let reach = self.reach;
        let own = group.apart.from(&group.apart);
        let mut labels = own.clone();
        let mut taken: BTreeSet<(&str, &str)> = BTreeSet::new();
        for other in &reach.groups {
            let between =
                group.apart.from(&other.apart).into_iter().chain(other.apart.from(&group.apart));
            let between: BTreeSet<&str> = between.collect();
            for node in other.pods.iter().filter_map(|(_, node)| *node) {
                let labels = between.iter().copied();
                taken.extend(labels.filter_map(|label| domain(&reach.nodes[node], label)));
            }
            labels.extend(between);
        }
        let requirement = Arc::new(self.requirement(pod));
        let mut free = 0;
        for (place, node) in reach.nodes.iter().enumerate() {
            if free == needed {
                break;
            }
            let mut domains = labels.iter().copied().filter_map(|label| domain(node, label));
            let is_free = !self.closed[place]
                && domains.all(|of_node| !taken.contains(&of_node))
                && is_left(&self.nodes[place].allocatable, &self.used[place], &pod.requests)
                && self.fits(&requirement, place);
            if is_free {
                free += 1;
                taken.extend(own.iter().copied().filter_map(|label| domain(node, label)));
            }
        }
        free
    }
}
