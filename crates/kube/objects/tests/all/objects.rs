//! Reading objects: what follows from one alone, and strange ones.

use std::sync::Arc;

use dovetail_model::Resources;
use dovetail_objects::{Kind, Object, Pod, Strange};
use serde_json::{Value, json};

fn pod(value: &Value) -> Arc<Pod> {
    match Object::read(Kind::Pod, value.to_string().as_bytes()) {
        Object::Pod(pod) => pod,
        other => panic!("{other:?}"),
    }
}

fn strange(kind: Kind, value: &Value) -> Box<Strange> {
    match Object::read(kind, value.to_string().as_bytes()) {
        Object::Strange(of, strange) if of == kind => strange,
        other => panic!("{other:?}"),
    }
}

fn container(name: &str, cpu: &str, memory: &str) -> Value {
    json!({"name": name, "resources": {"requests": {"cpu": cpu, "memory": memory}}})
}

fn with(mut value: Value, key: &str, more: Value) -> Value {
    value[key] = more;
    value
}

const GIB: i64 = 1 << 30;

/// The examples of the documentation of init containers and of sidecars (KEP-753), worked by hand.
#[test]
fn a_pod_asks_for_the_most_it_needs_at_any_time() {
    let sidecar =
        |name, cpu, memory| with(container(name, cpu, memory), "restartPolicy", json!("Always"));
    let table = [
        // One after the other: the largest init container against the sum of the others.
        (
            vec![container("i1", "2", "1Gi"), container("i2", "2", "3Gi")],
            vec![container("c1", "2", "1Gi"), container("c2", "1", "1Gi")],
            (3000, 3 * GIB),
        ),
        // A sidecar runs beside every later init container and beside the containers.
        (
            vec![sidecar("s", "1", "1Gi"), container("i", "3", "1Gi")],
            vec![container("c", "2", "1Gi")],
            (4000, 2 * GIB),
        ),
        // An init container before the sidecar does not meet it.
        (
            vec![container("i", "3", "1Gi"), sidecar("s", "1", "1Gi")],
            vec![container("c", "500m", "1Gi")],
            (3000, 2 * GIB),
        ),
        // Fractions add up before they are rounded.
        (vec![], vec![container("a", "0.5m", "1"), container("b", "500u", "1")], (1, 2)),
    ];
    for (init, containers, (cpu_milli, memory_bytes)) in table {
        let value = json!({"spec": {"initContainers": init, "containers": containers}});
        let expected = Resources::pod(cpu_milli, memory_bytes);
        assert_eq!(pod(&value).requests, expected, "{value}");
    }
}

#[test]
fn amounts_for_the_whole_pod_replace_the_sum_and_overhead_comes_on_top() {
    let gpu = json!({"name": "c", "resources": {"requests":
        {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 2, "hugepages-2Mi": "4Mi", "odd": "7"}}});
    let value = json!({"spec": {"containers": [gpu], "overhead": {"cpu": "250m"},
        "resources": {"requests": {"cpu": "3", "nvidia.com/gpu": "9"}}}});
    let requests = pod(&value).requests.clone();
    assert_eq!((requests.cpu_milli, requests.memory_bytes), (3250, GIB));
    let extended: Vec<_> = requests.extended.iter().map(|(n, a)| (n.as_str(), *a)).collect();
    assert_eq!(extended, [("hugepages-2Mi", 4 << 20), ("nvidia.com/gpu", 2)]);
}

#[test]
fn a_pod_that_is_resized_holds_the_greatest_of_asked_allocated_and_in_force() {
    let resized = |asked: &str, allocated: &str, actual: &str, conditions: Value| {
        let status = json!({"name": "c", "allocatedResources": {"cpu": allocated, "memory": "1Gi"},
            "resources": {"requests": {"cpu": actual, "memory": "1Gi"}}});
        let value = json!({"spec": {"nodeName": "n", "containers": [container("c", asked, "1Gi")]},
            "status": {"containerStatuses": [status], "conditions": conditions}});
        let pod = pod(&value);
        (pod.requests.cpu_milli, pod.holds().cpu_milli)
    };
    let infeasible = json!([{"type": "PodResizePending", "reason": "Infeasible"}]);
    let deferred = json!([{"type": "PodResizePending", "reason": "Deferred"}]);
    assert_eq!(resized("1", "1", "1", json!(null)), (1000, 1000));
    assert_eq!(resized("1", "2", "3", json!([])), (1000, 3000), "scaled down, not yet in force");
    assert_eq!(resized("4", "1", "1", deferred), (4000, 4000), "waits for room");
    assert_eq!(resized("4", "2", "1", infeasible), (4000, 2000), "never granted");
}

#[test]
fn a_field_of_the_wrong_shape_is_named_with_its_object() {
    let meta = json!({"namespace": "team", "name": "odd", "uid": "u", "resourceVersion": "7"});
    let table = [
        (Kind::Pod, json!({"priority": "high", "nodeName": "n1"}), "spec.priority"),
        (
            Kind::Pod,
            json!({"containers": [{"resources": {"requests": {"cpu": "many"}}}]}),
            "spec.containers[0].resources.requests.cpu",
        ),
        (Kind::Pod, json!({"tolerations": {"key": "a"}}), "spec.tolerations"),
        (Kind::Node, json!({"unschedulable": "no"}), "spec.unschedulable"),
        (Kind::Claim, json!({"accessModes": "all"}), "spec.accessModes"),
        (Kind::CsiNode, json!({"drivers": [{"name": 5}]}), "spec.drivers[0].name"),
    ];
    for (kind, spec, field) in table {
        let strange = strange(kind, &json!({"metadata": meta, "spec": spec}));
        assert_eq!(strange.field, field);
        assert_eq!((&*strange.meta.name, &*strange.meta.uid), ("odd", "u"));
        let text = strange.to_string();
        let start = format!("{} team/odd: field `{field}`: ", kind.name());
        assert!(text.starts_with(&start), "{text}");
        assert!(!text.contains("column"), "nobody sees the line that the server sends: {text}");
    }
    let bound = strange(Kind::Pod, &json!({"spec": {"nodeName": "n1", "priority": []}}));
    assert_eq!(&*bound.node, "n1");
}

#[test]
fn absent_null_and_unknown_fields_are_no_trouble() {
    let value = json!({"metadata": {"name": "p", "labels": null, "creationTimestamp": null},
        "spec": {"containers": null, "volumes": null, "affinity": null, "resources": null,
            "overhead": null, "newField": {"deep": [1]}},
        "status": null, "kind": "Pod"});
    assert_eq!(pod(&value).requests, Resources::pod(0, 0));
    for kind in Kind::ALL {
        let read = Object::read(kind, br#"{"metadata":{"name":"x"},"spec":null,"status":null}"#);
        assert!(!matches!(read, Object::Strange(..)), "{read:?}");
        assert_eq!((read.kind(), &*read.meta().name), (kind, "x"));
        assert!(matches!(Object::read(kind, b"[1, 2"), Object::Strange(..)));
        assert!(matches!(Object::read(kind, b"\"text\""), Object::Strange(..)));
    }
}
