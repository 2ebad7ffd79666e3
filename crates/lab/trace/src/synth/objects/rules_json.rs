//! Namespaces, and what limits or scales the work in them.

use serde_json::{Value, json};

use super::metadata::{of_cluster, of_namespace};
use super::plan::{ClusterPlan, TEAMS};
use super::pools::POOLS;
use super::work::{Family, OwnedWork, Slip};

/// Every so many a namespace has no quota, and every so many none that names the team.
const WITHOUT_QUOTA: usize = 4;
const WITHOUT_TEAM: usize = 5;

pub(super) fn namespaces(plan: &ClusterPlan) -> impl Iterator<Item = Value> + '_ {
    (0..plan.teams + 2).map(move |place| {
        let name = plan.namespace(place);
        let mut labels = json!({"kubernetes.io/metadata.name": name});
        if place < plan.teams && place % WITHOUT_TEAM != WITHOUT_TEAM - 1 {
            labels["team"] = json!(TEAMS[place % TEAMS.len()]);
        }
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": of_cluster(plan, "Namespace", &name, labels),
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"}
        })
    })
}

pub(super) fn quotas(plan: &ClusterPlan) -> impl Iterator<Item = Value> + '_ {
    let places = (0..plan.teams).filter(|place| place % WITHOUT_QUOTA != WITHOUT_QUOTA - 1);
    places.map(move |place| {
        let namespace = plan.namespace(place);
        let mut hard = json!({"requests.cpu": "4000", "requests.memory": "32Ti"});
        for pool in POOLS.iter().filter(|pool| pool.gpus > 0) {
            hard[format!("requests.{}", pool.resource)] = json!("512");
        }
        let key = (&*namespace, "compute");
        json!({
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": of_namespace(plan, "ResourceQuota", key, 60 * 24 * 40, json!({})),
            "spec": {"hard": hard},
            "status": {"hard": hard}
        })
    })
}

pub(super) fn budgets(plan: &ClusterPlan) -> impl Iterator<Item = Value> + '_ {
    let servers = plan.work.iter().filter(|work| work.family == Family::Serve && work.pods > 1);
    servers.map(move |work| {
        let namespace = plan.namespace(work.namespace);
        let least = if work.has(Slip::BudgetBlocks) { work.pods } else { work.pods - 1 };
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata(plan, "PodDisruptionBudget", &namespace, work),
            "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": work.name}}},
            "status": {
                "currentHealthy": work.pods,
                "desiredHealthy": least,
                "disruptionsAllowed": work.pods - least,
                "expectedPods": work.pods
            }
        })
    })
}

pub(super) fn autoscalers(plan: &ClusterPlan) -> impl Iterator<Item = Value> + '_ {
    let scaled = plan.work.iter().filter(|work| {
        let by_queue = work.family == Family::Serve && work.slip.is_none();
        work.has(Slip::ScaledByCpu) || by_queue
    });
    scaled.map(move |work| {
        let namespace = plan.namespace(work.namespace);
        let metric = match work.has(Slip::ScaledByCpu) {
            true => json!({
                "resource": {"name": "cpu", "target": {"averageUtilization": 70, "type": "Utilization"}},
                "type": "Resource"
            }),
            false => json!({
                "external": {
                    "metric": {"name": "requests_waiting"},
                    "target": {"averageValue": "5", "type": "AverageValue"}
                },
                "type": "External"
            }),
        };
        json!({
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata(plan, "HorizontalPodAutoscaler", &namespace, work),
            "spec": {
                "maxReplicas": work.pods * 2,
                "metrics": [metric],
                "minReplicas": work.pods,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": work.name}
            },
            "status": {"currentReplicas": work.pods, "desiredReplicas": work.pods}
        })
    })
}

fn metadata(plan: &ClusterPlan, kind: &str, namespace: &str, work: &OwnedWork) -> Value {
    let labels = json!({"app": work.name});
    let fields = of_namespace(plan, kind, (namespace, &work.name), work.age_minutes, labels);
    Value::Object(fields)
}
