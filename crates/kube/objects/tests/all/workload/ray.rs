//! Ray clusters (`ray.io/v1`).

use dovetail_objects::WorkloadKind;
use serde_json::json;

use super::{read_value, roles};

#[test]
fn a_cluster_is_a_head_and_the_workers_that_it_needs() {
    let cluster = |autoscales: bool| {
        let groups = json!([
            {"groupName": "small", "replicas": 3, "minReplicas": 1, "maxReplicas": 9},
            {"groupName": "slices", "replicas": 2, "minReplicas": 2, "numOfHosts": 4},
            {"groupName": "off", "replicas": 5, "suspend": true}]);
        let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "tune", "namespace": "blue"},
            "spec": {"headGroupSpec": {"rayStartParams": {}}, "workerGroupSpecs": groups,
                "enableInTreeAutoscaling": autoscales}});
        read_value(WorkloadKind::RayCluster, &cluster)
    };
    let fixed = cluster(false);
    assert_eq!(roles(&fixed), [("headgroup", 1, 1), ("small", 3, 3), ("slices", 8, 8)]);
    let scaled = cluster(true);
    assert_eq!(roles(&scaled), [("headgroup", 1, 1), ("small", 3, 1), ("slices", 8, 8)]);
}
