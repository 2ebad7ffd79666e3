//! Taints of nodes, and who tolerates them.

use dovetail_model::{Taint, TaintEffect};

use crate::facts::{Node, Workload};

/// Taints that keep pods away and that a person put there; Kubernetes' own come and go with the
/// node's state.
pub(super) fn keeping_away(node: &Node) -> impl Iterator<Item = &Taint> {
    let ours = |taint: &&Taint| {
        let is_of_kubernetes = taint.key.starts_with("node.kubernetes.io/")
            || taint.key.starts_with("node.cloudprovider.kubernetes.io/");
        taint.effect != TaintEffect::PreferNoSchedule && !is_of_kubernetes
    };
    node.node.taints.iter().filter(ours)
}

pub(super) fn tolerates(workload: &Workload, taint: &Taint) -> bool {
    workload.template.tolerations.iter().any(|toleration| toleration.accepts(taint))
}

/// Whether a taint lets a workload have a resource.
pub(super) fn passes(workload: &Workload, resource: &str, taint: &Taint) -> bool {
    taint.key == resource && is_given_toleration(workload, resource) || tolerates(workload, taint)
}

/// Whether the pods of a workload tolerate a taint whose key is the name of a resource. Kubernetes
/// may add the toleration to pods whose containers ask for that; a pod without it that is there and
/// pending was not given it.
pub(super) fn is_given_toleration(workload: &Workload, resource: &str) -> bool {
    let is_claimed = workload.template.claimed_gpus.contains_key(resource);
    let is_placed =
        || workload.pods.is_empty() || workload.pods.iter().any(|pod| pod.node.is_some());
    !is_claimed && is_placed()
}
