//! The pods that use GPUs of each node.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Node, Pod, Workload};

use super::View;
use crate::finding::Finding;
use crate::names::first_of;

/// Pods that one line names.
const MOST_NAMED: usize = 3;

/// The pods that use GPUs, by node; those of DaemonSets included: a drain leaves these.
pub(super) struct GpuPods<'f>(BTreeMap<&'f str, Vec<(&'f Workload, &'f Pod)>>);

impl<'f> GpuPods<'f> {
    pub(super) fn of(view: &View<'f>) -> Self {
        let mut of_nodes: BTreeMap<&str, Vec<(&Workload, &Pod)>> = BTreeMap::new();
        for workload in view.gpu_workloads() {
            for pod in &workload.pods {
                if let Some(node) = pod.node.as_deref() {
                    of_nodes.entry(node).or_default().push((workload, pod));
                }
            }
        }
        Self(of_nodes)
    }

    pub(super) fn count_on(&self, node: &Node) -> usize {
        self.0.get(&*node.node.name).map_or(0, Vec::len)
    }

    /// The finding with the pods that must leave a node before its layout changes, if there are
    /// any.
    pub(super) fn must_leave(&self, finding: Finding, node: &Node) -> Finding {
        let Some(pods) = self.0.get(&*node.node.name) else { return finding };
        let name = |(workload, pod): &(&Workload, &Pod)| {
            format!("{}/{}", workload.owner.namespace, pod.name)
        };
        let names: BTreeSet<String> = pods.iter().map(name).collect();
        let names = first_of(names.iter(), MOST_NAMED);
        finding.with("pods that must leave first", format!("{names} on {}", node.node.name))
    }
}
