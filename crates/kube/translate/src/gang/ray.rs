//! Ray clusters of KubeRay: their pods carry the cluster's name and that of their group.

use dovetail_objects::{HEAD_GROUP, Pod, WorkloadKind};

use super::workload::Membership;

const CLUSTER: &str = "ray.io/cluster";
const NODE_TYPE: &str = dovetail_objects::labels::RAY_NODE_TYPE;
const GROUP: &str = "ray.io/group";

pub(super) fn membership(pod: &Pod) -> Option<Membership<'_>> {
    let labels = &pod.meta.labels;
    // Other pods, such as the one that cleans up, are no part of what starts together.
    if !matches!(labels.get(NODE_TYPE), Some("head" | "worker")) {
        return None;
    }
    Membership::whole(WorkloadKind::RayCluster, labels.get(CLUSTER))
}

pub(super) fn role_of(pod: &Pod) -> &str {
    let labels = &pod.meta.labels;
    match labels.get(NODE_TYPE) {
        Some("head") => HEAD_GROUP,
        _ => labels.get(GROUP).unwrap_or(""),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::gang_of;
    use super::super::tests::{pod, read_workload};
    use super::*;

    fn member(name: &str, node_type: &str, group: &str) -> Pod {
        let labels = json!({"ray.io/cluster": "tune", "ray.io/node-type": node_type,
            "ray.io/group": group, "ray.io/is-ray-node": "yes"});
        pod(name, json!({"metadata": {"labels": labels}}))
    }

    #[test]
    fn the_head_and_its_workers_start_together() {
        let members = [member("h", "head", "headgroup"), member("w", "worker", "gpu")];
        let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "tune", "namespace": "blue"},
            "spec": {"enableInTreeAutoscaling": true, "workerGroupSpecs":
                [{"groupName": "gpu", "replicas": 4, "minReplicas": 2}]}});
        let terms = read_workload(WorkloadKind::RayCluster, Some(cluster), &members).unwrap();
        let roles: Vec<(&str, u32)> =
            terms.roles.iter().map(|role| (&*role.name, role.min)).collect();
        assert_eq!((terms.min, terms.expected, roles), (3, 5, vec![("headgroup", 1), ("gpu", 2)]));
        assert_eq!(gang_of(&member("c", "redis-cleanup", "headgroup")), Ok(None));
    }
}
