//! Why the GPUs of a node stay as they are.

use dovetail_objects::Pod;
use dovetail_sharing::guard::{foreign_taint, other_master, rests};
use dovetail_sharing::{PolicySpec, uses_gpus};

use crate::objects::{Objects, SeenNode};

/// Why a node on which pods use GPUs stays as it is.
pub(crate) const IN_USE: &str = "pods use GPUs of the node, and the API does not show which";

/// Why the GPUs of a node stay as they are now, if they do. `pods`: those on the node.
pub(crate) fn stays(
    name: &str,
    seen: &SeenNode,
    pods: &[&Pod],
    objects: &Objects,
    policy: &PolicySpec,
    now_ms: u64,
) -> Option<String> {
    let why = stays_without_pods(name, seen, objects, policy, now_ms);
    why.or_else(|| is_in_use(pods).then(|| IN_USE.to_owned()))
}

pub(crate) fn is_in_use(pods: &[&Pod]) -> bool {
    pods.iter().any(|pod| uses_gpus(pod))
}

/// Whether HAMi or Volcano allocates GPUs of a node, or has allocated some to a pod there: then
/// nobody else knows which are free.
pub(crate) fn has_vgpus(seen: &SeenNode, pods: &[&Pod]) -> bool {
    seen.node.vgpu_register().is_some() || pods.iter().any(|pod| pod.vgpu().is_some())
}

/// Why they stay as they are whatever pods use them.
pub(crate) fn stays_without_pods(
    name: &str,
    seen: &SeenNode,
    objects: &Objects,
    policy: &PolicySpec,
    now_ms: u64,
) -> Option<String> {
    let label = |key: &str| seen.node.meta.labels.get(key);
    if let Some(why) = seen.unreadable_record() {
        return Some(why);
    }
    let record = seen.record();
    if let Some(master) = other_master(&seen.annotations, label, record.as_ref()) {
        return Some(master);
    }
    let may_change = record.as_ref().is_none_or(|record| record.step.is_over());
    let owner = seen.label_owners.get(&policy.mode.component()).filter(|_| may_change);
    if let Some(owner) = owner {
        return Some(owner.clone());
    }
    if let Some(driver) = objects.dra_nodes.get(name) {
        return Some(format!("the DRA driver {driver} allocates its GPUs"));
    }
    if !policy.selects(label) {
        return Some("the policy's nodeSelector does not select the node".to_owned());
    }
    if seen.node.unschedulable {
        return Some("the node is cordoned".to_owned());
    }
    if let Some(reservation) = objects.reservation_on(name, now_ms) {
        return Some(format!("the Reservation {reservation} reserves capacity of the node"));
    }
    let taints = seen.node.taints.iter().map(|taint| &*taint.key);
    rests(label, record.as_ref(), now_ms).or_else(|| foreign_taint(taints, record.as_ref()))
}

#[cfg(test)]
mod tests {
    use dovetail_sharing::Mode;
    use serde_json::json;

    use super::*;

    /// Two clients that set the same label would undo each other's changes.
    #[test]
    fn a_node_whose_label_a_gitops_tool_sets_stays_under_policies_that_change_this_label() {
        for (label, modes) in [
            ("nvidia.com/device-plugin.config", &[Mode::TimeSlicing, Mode::Mps, Mode::Whole][..]),
            ("dcm.amd.com/gpu-config-profile", &[Mode::AmdPartition][..]),
        ] {
            let stays = |manager: &str, mode: Mode| {
                let field = format!("f:{label}");
                let object = json!({"metadata": {"name": "n", "labels": {label: "any"},
                    "managedFields": [{"manager": manager, "operation": "Apply",
                        "fieldsV1": {"f:metadata": {"f:labels": {field: {}}}}}]}});
                let seen = SeenNode::read(&object).expect("a node");
                let policy = PolicySpec { mode, ..PolicySpec::default() };
                stays_without_pods("n", &seen, &Objects::default(), &policy, 0)
            };
            for mode in modes {
                let why = stays("argocd-controller", *mode).expect("it stays");
                let told = format!("another client, argocd-controller, sets {label} (metadata.");
                assert!(why.starts_with(&told), "{why}");
                assert_eq!(stays("dovetail", *mode), None);
                assert_eq!(stays("kubectl-label", *mode), None);
            }
            assert_eq!(stays("argocd-controller", Mode::Mig), None);
        }
    }
}
