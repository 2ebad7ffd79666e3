//! Owners: what people edit, and what stands between that and the pods.

use serde_json::{Value, json};

use super::ObjectKind;
use super::metadata::{controlled_by, of_namespace};
use super::plan::ClusterPlan;
use super::template::{labels, template};
use super::work::{Family, OwnedWork};

/// The owners of a kind; none for kinds that own no pods.
pub(super) fn owners(plan: &ClusterPlan, kind: ObjectKind) -> impl Iterator<Item = Value> + '_ {
    let owns = move |work: &&OwnedWork| match kind {
        ObjectKind::DaemonSet => work.family == Family::Agent,
        ObjectKind::Deployment | ObjectKind::ReplicaSet => {
            matches!(work.family, Family::Serve | Family::Web)
        }
        ObjectKind::Job => work.family == Family::Batch,
        ObjectKind::Notebook => work.family == Family::Notebook,
        ObjectKind::PyTorchJob => work.family == Family::Train,
        ObjectKind::StatefulSet => matches!(work.family, Family::Notebook | Family::Store),
        _ => false,
    };
    plan.work.iter().filter(owns).map(move |work| owner(plan, kind, work))
}

fn owner(plan: &ClusterPlan, kind: ObjectKind, work: &OwnedWork) -> Value {
    let namespace = plan.namespace(work.namespace);
    let of_deployment = kind == ObjectKind::ReplicaSet;
    let name = match of_deployment {
        true => format!("{}-{}", work.name, work.hash(10)),
        false => work.name.clone(),
    };
    let kind_name = format!("{kind:?}");
    let key = (&*namespace, &*name);
    let mut metadata = of_namespace(plan, &kind_name, key, work.age_minutes + 5, labels(work));
    metadata.insert("generation".to_owned(), json!(1));
    let above = match (kind, work.family) {
        (ObjectKind::ReplicaSet, _) => Some("Deployment"),
        (ObjectKind::StatefulSet, Family::Notebook) => Some("Notebook"),
        _ => None,
    };
    if let Some(above) = above {
        let owners = controlled_by(plan, above, &namespace, &work.name);
        metadata.insert("ownerReferences".to_owned(), owners);
    }
    json!({
        "apiVersion": api_version(kind),
        "kind": kind_name,
        "metadata": metadata,
        "spec": spec(plan, kind, work),
        "status": status(kind, work)
    })
}

fn api_version(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Job => "batch/v1",
        ObjectKind::Notebook | ObjectKind::PyTorchJob => "kubeflow.org/v1",
        _ => "apps/v1",
    }
}

fn spec(plan: &ClusterPlan, kind: ObjectKind, work: &OwnedWork) -> Value {
    let selector = json!({"matchLabels": {"app": work.name}});
    let template = template(plan, work);
    match kind {
        ObjectKind::Job => json!({
            "backoffLimit": 6,
            "completionMode": "Indexed",
            "completions": work.pods,
            "parallelism": work.pods,
            "suspend": false,
            "template": template
        }),
        ObjectKind::PyTorchJob => json!({
            "pytorchReplicaSpecs": {"Worker": {
                "replicas": work.pods, "restartPolicy": "OnFailure", "template": template
            }},
            "runPolicy": {"cleanPodPolicy": "None", "suspend": false}
        }),
        ObjectKind::Notebook => json!({"template": template}),
        ObjectKind::DaemonSet => json!({"selector": selector, "template": template}),
        ObjectKind::StatefulSet => json!({
            "replicas": work.pods, "selector": selector, "serviceName": work.name, "template": template
        }),
        _ => json!({"replicas": work.pods, "selector": selector, "template": template}),
    }
}

fn status(kind: ObjectKind, work: &OwnedWork) -> Value {
    match kind {
        ObjectKind::Job => json!({"active": work.pods, "ready": work.pods}),
        ObjectKind::DaemonSet => json!({
            "currentNumberScheduled": work.pods, "desiredNumberScheduled": work.pods
        }),
        ObjectKind::PyTorchJob => json!({"replicaStatuses": {"Worker": {"active": work.pods}}}),
        ObjectKind::Notebook => json!({"readyReplicas": work.pods}),
        _ => json!({"readyReplicas": work.pods, "replicas": work.pods}),
    }
}
