//! Where the API server has pods, held against what series say of them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::Span;
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_inventory::facts::Gathered;
use dovetail_metrics::exporter::{DeviceHolder, HolderDoubt, Misplaced};
use dovetail_metrics::kube_state::KubeState;

/// A pod that has just moved may be named on its old node a little longer.
const LATE_MS: u64 = 600_000;

/// Nodes of pods, by objects and by kube-state-metrics.
pub struct Placements<'p> {
    /// By namespace and name: the node, and since when.
    of_objects: BTreeMap<(&'p str, &'p str), (&'p str, u64)>,
    /// When the objects were read.
    until_ms: u64,
    /// Nodes that there are. A name that is none of them contradicts nothing: exporters have names
    /// of their own.
    nodes: BTreeSet<&'p str>,
    of_series: Option<&'p KubeState>,
}

impl<'p> Placements<'p> {
    /// Where pods are by objects, and by series.
    pub fn of(objects: Option<&'p Gathered>, of_series: Option<&'p KubeState>) -> Self {
        let workloads = objects.iter().flat_map(|objects| &objects.facts.workloads);
        let pods = workloads.flat_map(|workload| {
            let namespace = workload.owner.namespace.as_str();
            workload.pods.iter().filter_map(move |pod| {
                let since_ms = pod.placed_since_ms.unwrap_or(0);
                Some(((namespace, pod.name.as_str()), (pod.node.as_deref()?, since_ms)))
            })
        });
        let nodes = objects.iter().flat_map(|objects| &objects.facts.nodes);
        let nodes = nodes.map(|node| &*node.node.name);
        let of_kube = of_series.iter().flat_map(|kube| kube.nodes.keys().map(String::as_str));
        Self {
            of_objects: pods.collect(),
            until_ms: objects.map_or(0, |objects| objects.facts.now_ms),
            nodes: nodes.chain(of_kube).collect(),
            of_series,
        }
    }

    /// Why a pod cannot have held a device of a node for some time; `None` where nothing says so.
    pub fn doubt(&self, node: &str, holder: &DeviceHolder, held: Span) -> Option<HolderDoubt> {
        if self.contradicts(node, holder, held) {
            return Some(HolderDoubt::Elsewhere);
        }
        let kube = self.of_series?;
        let (namespace, pod) = (holder.namespace.as_str(), holder.pod.as_str());
        kube.asks_for_none(node, namespace, pod).then(|| {
            match kube.is_of_every_node(namespace, pod) {
                true => HolderDoubt::Scraped,
                false => HolderDoubt::AsksForNone,
            }
        })
    }

    /// Whether a pod was on another node when a device of this one was said to be its own. What
    /// objects say holds since the pod has its node, and until they were read.
    fn contradicts(&self, node: &str, holder: &DeviceHolder, held: Span) -> bool {
        if !self.nodes.contains(node) {
            return false;
        }
        let key = (holder.namespace.as_str(), holder.pod.as_str());
        if let Some((own, since_ms)) = self.of_objects.get(&key) {
            let together_ms =
                held.to_ms.min(self.until_ms).saturating_sub(held.from_ms.max(*since_ms));
            return *own != node && together_ms > LATE_MS;
        }
        let key = (holder.namespace.clone(), holder.pod.clone());
        let known = self.of_series.and_then(|kube| kube.pods.get(&key));
        known.is_some_and(|pod| !pod.nodes.is_empty() && !pod.nodes.contains(node))
    }
}

/// What was not believed, by reason.
pub fn misplaced_in_words(misplaced: &[Misplaced]) -> Vec<String> {
    let reasons = [
        (HolderDoubt::Elsewhere, "that the API server does not have on these nodes"),
        (HolderDoubt::AsksForNone, "that request no GPUs according to kube-state-metrics"),
    ];
    let words = |(doubt, reason): (HolderDoubt, &str)| {
        let of_reason = || misplaced.iter().filter(|one| one.doubt == doubt);
        let first = of_reason().next()?;
        let gpus: BTreeSet<(&str, &str)> =
            of_reason().map(|one| (one.node.as_str(), one.device.as_str())).collect();
        Some(plain(&format!(
            "GPU metrics in Prometheus attribute {} to pods {reason} (such as {}/{} on {}), so it is \
             unknown which pods used these GPUs: check the pod labels of the GPU exporter",
            counted(gpus.len(), "GPU"),
            first.holder.namespace,
            first.holder.pod,
            first.node
        )))
    };
    reasons.into_iter().filter_map(words).collect()
}
