//! Who shares GPUs with whom: one class on a time-sliced node, one namespace on a node with MPS.

use dovetail_objects::Kind;
use serde_json::{Value, json};

use crate::gangs::{Cluster, names, pod};

/// One node whose GPUs are shared by a method, with the classes that its policy names.
fn shared(method: &str, classes: &str) -> Cluster {
    let mut cluster = Cluster::of(1);
    let key = (Kind::Node, String::new(), "n0".to_owned());
    cluster.server.change(&key, |node| {
        node["metadata"]["labels"]["nvidia.com/gpu.sharing-strategy"] = json!(method);
        if !classes.is_empty() {
            node["metadata"]["annotations"] = json!({"dovetail.dev/shared-classes": classes});
        }
        let offered = json!({"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "0",
            "nvidia.com/gpu.shared": "8"});
        node["status"]["allocatable"] = offered.clone();
        node["status"]["capacity"] = offered;
    });
    cluster
}

/// One node whose GPUs are offered four times each under the name of whole GPUs.
fn replicas_as_gpus(method: &str, classes: &str) -> Cluster {
    let mut cluster = Cluster::of(1);
    let key = (Kind::Node, String::new(), "n0".to_owned());
    cluster.server.change(&key, |node| {
        node["metadata"]["labels"]["nvidia.com/gpu.sharing-strategy"] = json!(method);
        node["metadata"]["labels"]["nvidia.com/gpu.replicas"] = json!("4");
        if !classes.is_empty() {
            node["metadata"]["annotations"] = json!({"dovetail.dev/shared-classes": classes});
        }
    });
    cluster
}

/// A pod that requests one of these.
fn on_a_gpu(class: &str) -> Value {
    let mut pod = pod(1);
    pod["metadata"]["labels"]["dovetail.dev/class"] = json!(class);
    pod
}

fn shares(class: &str) -> Value {
    let mut pod = pod(0);
    let requests = &mut pod["spec"]["containers"][0]["resources"];
    for amounts in ["requests", "limits"] {
        requests[amounts]["nvidia.com/gpu.shared"] = json!("1");
    }
    if !class.is_empty() {
        pod["metadata"]["labels"]["dovetail.dev/class"] = json!(class);
    }
    pod
}

#[test]
fn a_time_sliced_node_takes_pods_of_one_class() {
    let mut cluster = shared("time-slicing", "");
    cluster.create("a", shares("batch"));
    assert_eq!(cluster.run(), names(&["a"]));
    // Without a class a pod keeps nobody away; a class that does not share is none.
    cluster.create("none", shares(""));
    let mut other = pod(0);
    other["metadata"]["labels"]["dovetail.dev/class"] = json!("interactive");
    cluster.create("no-gpu", other);
    cluster.create("b", shares("interactive"));
    cluster.create("c", shares("batch"));
    assert_eq!(cluster.run(), names(&["c", "no-gpu", "none"]));
    let told = "0/1 nodes are available: 1 node(s) had shared GPUs that did not admit the pod's \
                class or namespace.";
    assert!(cluster.says("b").starts_with(told), "{}", cluster.says("b"));
    cluster.end("a", "Succeeded");
    assert_eq!(cluster.run(), names(&[]), "another pod of its class is there");
    cluster.end("c", "Succeeded");
    assert_eq!(cluster.run(), names(&["b"]));
}

/// Pods of a decision count, too: two classes in one cycle do not meet.
#[test]
fn classes_that_arrive_together_do_not_share_a_node() {
    let mut cluster = shared("time-slicing", "");
    cluster.create("a", shares("batch"));
    cluster.create("b", shares("interactive"));
    assert_eq!(cluster.run().len(), 1);
}

/// How GPUs are shared, the classes that the policy of the node names, and whether a pod of the
/// class `inference` starts there.
const INFERENCE: [(&str, &str, bool); 5] = [
    ("time-slicing", "", false),
    ("time-slicing", "batch", false),
    ("time-slicing", "batch,inference", true),
    ("mps", "", true),
    ("mps", "batch", false),
];

#[test]
fn inference_shares_time_sliced_gpus_only_where_a_policy_names_it() {
    for (method, classes, bound) in INFERENCE {
        let mut cluster = shared(method, classes);
        cluster.create("p", shares("inference"));
        assert_eq!(cluster.run().len(), usize::from(bound), "{method}, {classes}");
        if !bound && classes.is_empty() {
            // The policy of the node names the class now.
            let key = (Kind::Node, String::new(), "n0".to_owned());
            cluster.server.change(&key, |node| {
                node["metadata"]["annotations"] =
                    json!({"dovetail.dev/shared-classes": "inference"});
            });
            assert_eq!(cluster.run(), names(&["p"]));
        }
    }
}

#[test]
fn a_node_with_mps_takes_pods_of_one_namespace() {
    let mut cluster = shared("mps", "");
    cluster.create("a", shares("batch"));
    assert_eq!(cluster.run(), names(&["a"]));
    let mut red = shares("batch");
    red["metadata"]["namespace"] = json!("red");
    cluster.server.apply(Kind::Pod, "red", "b", red);
    cluster.create("c", shares("interactive"));
    assert_eq!(cluster.run(), names(&["c"]), "two classes of one namespace may meet");
    cluster.end("a", "Succeeded");
    cluster.delete(Kind::Pod, "blue", "c");
    assert_eq!(cluster.run(), names(&["b"]));
}

#[test]
fn replicas_under_the_name_of_whole_gpus_take_pods_of_one_class() {
    let mut cluster = replicas_as_gpus("time-slicing", "");
    cluster.create("a", on_a_gpu("batch"));
    assert_eq!(cluster.run(), names(&["a"]));
    cluster.create("b", on_a_gpu("interactive"));
    cluster.create("c", on_a_gpu("batch"));
    assert_eq!(cluster.run(), names(&["c"]));
    let told = "0/1 nodes are available: 1 node(s) had shared GPUs that did not admit the pod's \
                class or namespace.";
    assert!(cluster.says("b").starts_with(told), "{}", cluster.says("b"));
    // Its GPUs are whole again, and those of no node are shared.
    let key = (Kind::Node, String::new(), "n0".to_owned());
    cluster.server.change(&key, |node| {
        node["metadata"]["labels"]["nvidia.com/gpu.replicas"] = json!("1");
    });
    assert_eq!(cluster.run(), names(&["b"]));
    // They are shared again, by pods that are there already.
    cluster.server.change(&key, |node| {
        node["metadata"]["labels"]["nvidia.com/gpu.replicas"] = json!("2");
    });
    cluster.create("d", on_a_gpu("batch"));
    assert_eq!(cluster.run(), names(&[]));
    cluster.end("b", "Succeeded");
    assert_eq!(cluster.run(), names(&["d"]));
}

#[test]
fn policies_and_namespaces_hold_for_replicas_under_the_name_of_whole_gpus() {
    for (method, classes, bound) in INFERENCE {
        let mut cluster = replicas_as_gpus(method, classes);
        cluster.create("p", on_a_gpu("inference"));
        assert_eq!(cluster.run().len(), usize::from(bound), "{method}, {classes}");
    }
    let mut cluster = replicas_as_gpus("mps", "");
    cluster.create("a", on_a_gpu("batch"));
    assert_eq!(cluster.run(), names(&["a"]));
    cluster.server.apply(Kind::Pod, "red", "b", on_a_gpu("batch"));
    cluster.create("c", on_a_gpu("interactive"));
    assert_eq!(cluster.run(), names(&["c"]), "two classes of one namespace may meet");
    cluster.delete(Kind::Pod, "blue", "a");
    cluster.delete(Kind::Pod, "blue", "c");
    assert_eq!(cluster.run(), names(&["b"]));
}
