//! The pods that use GPUs of each node.

use std::collections::{BTreeMap, BTreeSet};

use super::View;
use crate::facts::{Node, Pod, Workload};

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

    pub(super) fn names_on(&self, node: &Node) -> BTreeSet<String> {
        let pods = self.0.get(&*node.node.name).into_iter().flatten();
        pods.map(|(workload, pod)| format!("{}/{}", workload.owner.namespace, pod.name)).collect()
    }
}
