//! Taints of nodes, and who tolerates them.

use dovetail_facts::{Node, Workload};
use dovetail_model::{Taint, TaintEffect};

/// Prefixes of taints that controllers put on nodes that start, are not ready, or are about to be
/// removed: they come and go with the state of the node.
const OF_STATES: [&str; 13] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
    "karpenter.k8s.aws/",
    "aws-node-termination-handler/",
    "cloud.google.com/impending-node-termination",
    "readiness.k8s.io/",
    "kubevirt.io/drain",
    "node.cilium.io/",
];

/// How keys of other such taints end, after the name of the agent that is not there yet.
const OF_AGENTS: [&str; 3] = ["/agent-not-ready", "/not-ready", "/startup"];

/// Whether a taint comes and goes with the state of its node: no person put it there.
pub fn comes_and_goes(taint: &Taint) -> bool {
    OF_STATES.iter().any(|prefix| taint.key.starts_with(prefix))
        || OF_AGENTS.iter().any(|suffix| taint.key.ends_with(suffix))
}

/// Taints that keep pods away and that a person put there.
pub(super) fn keeping_away(node: &Node) -> impl Iterator<Item = &Taint> {
    let ours =
        |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule && !comes_and_goes(taint);
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
