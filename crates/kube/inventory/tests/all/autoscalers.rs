//! Autoscalers of every kind, and the pods that they scale.

use dovetail_facts::Autoscaler;
use dovetail_inventory::dump::{Keeper, Pseudonyms};
use serde_json::{Value, json};

use crate::facts::{gathered, node, pod};

fn owned(api_version: &str, kind: &str, name: &str, by: (&str, &str)) -> Value {
    let (of, owner) = by;
    json!({
        "apiVersion": api_version, "kind": kind, "spec": {"replicas": 1},
        "metadata": {"name": name, "namespace": "research", "uid": name, "ownerReferences": [
            {"apiVersion": "x/v1", "kind": of, "name": owner, "uid": owner, "controller": true}]}
    })
}

/// A server of KServe with a predictor that has GPUs, and these autoscalers.
fn served(autoscalers: &[Value]) -> Vec<Value> {
    let mut objects = vec![
        node("g1", 8),
        pod("chat-0", "ReplicaSet/chat-predictor-1", 1, "g1"),
        owned("apps/v1", "ReplicaSet", "chat-predictor-1", ("Deployment", "chat-predictor")),
        owned("apps/v1", "Deployment", "chat-predictor", ("InferenceService", "chat")),
        json!({"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "spec": {},
            "metadata": {"name": "chat", "namespace": "research", "uid": "chat"}}),
    ];
    objects.extend(autoscalers.iter().cloned());
    objects
}

fn horizontal(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "namespace": "research", "uid": "a"},
        "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": name}}})
}

#[test]
fn an_autoscaler_may_scale_any_owner_of_pods() {
    let scales = |api_version: &str, kind: &str, name: &str| {
        let found = gathered(&served(&[horizontal(api_version, kind, name)])).facts;
        let workload = &found.workloads[0];
        assert_eq!(workload.owner.kind, "InferenceService");
        found.autoscalers.iter().any(|of| workload.is_made_by(&of.scales))
    };
    assert!(scales("apps/v1", "Deployment", "chat-predictor"));
    assert!(scales("serving.kserve.io/v1beta1", "InferenceService", "chat"));
    assert!(scales("serving.kserve.io/v1", "InferenceService", "chat"));
    assert!(scales("", "Deployment", "chat-predictor"));
    assert!(!scales("apps/v1", "Deployment", "chat-transformer"));
    // Another object of that kind and name.
    assert!(!scales("example.com/v1", "Deployment", "chat-predictor"));
}

fn scaled_object(target: Value, triggers: Value) -> Value {
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": "chat", "namespace": "research", "uid": "so"},
        "spec": {"scaleTargetRef": target, "maxReplicaCount": 5, "triggers": triggers}})
}

/// The autoscaler that counts, which a dump, a collection and an anonymized one say alike but for
/// names.
fn autoscaler(autoscalers: &[Value]) -> Autoscaler {
    let dump = served(autoscalers);
    let keeper = Keeper::default();
    let keep = |object: &Value| {
        let text = |field: &str| object[field].as_str().expect("text");
        keeper.keep(text("kind"), text("apiVersion"), object)
    };
    let kept: Vec<Value> = dump.iter().filter_map(keep).collect();
    let mut names = Pseudonyms::new([7; 32]);
    let anonymous: Vec<Value> = kept.iter().map(|object| names.replace(object)).collect();
    let of = |objects: &[Value]| {
        let found = gathered(objects).facts;
        let [autoscaler] = &found.autoscalers[..] else { panic!("{:?}", found.autoscalers) };
        assert!(found.workloads[0].is_made_by(&autoscaler.scales), "{autoscaler:?}");
        autoscaler.clone()
    };
    let (read, hidden) = (of(&dump), of(&anonymous));
    assert_eq!(of(&kept), read);
    assert_eq!(hidden.by_utilization, read.by_utilization);
    assert_eq!(hidden.metrics.contains("cpu"), read.metrics.contains("cpu"));
    assert_eq!(hidden.most_replicas, read.most_replicas);
    read
}

#[test]
fn scaled_objects_are_autoscalers() {
    let queue = json!({"type": "prometheus", "metadata": {"query": "q", "threshold": "5"}});
    let cpu =
        |metric: &str| json!({"type": "cpu", "metricType": metric, "metadata": {"value": "60"}});
    let target = json!({"name": "chat-predictor"});
    let read = autoscaler(&[scaled_object(target.clone(), json!([queue, cpu("Utilization")]))]);
    assert_eq!((&*read.object.kind, read.most_replicas), ("ScaledObject", Some(5)));
    assert_eq!(read.metrics.iter().collect::<Vec<_>>(), ["cpu", "prometheus"]);
    assert_eq!(read.by_utilization.iter().collect::<Vec<_>>(), ["cpu"]);
    let by_amount = autoscaler(&[scaled_object(target, json!([cpu("AverageValue")]))]);
    assert!(by_amount.by_utilization.is_empty());
    let service = json!({"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
        "name": "chat"});
    assert_eq!(autoscaler(&[scaled_object(service, json!([queue]))]).scales.name, "chat");
}

/// KEDA makes a HorizontalPodAutoscaler of each ScaledObject: a person edits the latter.
#[test]
fn an_autoscaler_that_another_one_has_made_does_not_count() {
    let triggers = json!([{"type": "cpu", "metadata": {"value": "60"}}]);
    let scaled = scaled_object(json!({"name": "chat-predictor"}), triggers);
    let mut made = horizontal("apps/v1", "Deployment", "chat-predictor");
    made["metadata"]["ownerReferences"] = json!([{"apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject", "name": "chat", "uid": "so", "controller": true}]);
    assert_eq!(autoscaler(&[made.clone(), scaled]).object.kind, "ScaledObject");
    // The ScaledObject was not read.
    assert_eq!(autoscaler(&[made]).object.kind, "HorizontalPodAutoscaler");
}
