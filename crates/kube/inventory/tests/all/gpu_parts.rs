//! Pods move only to nodes whose units of a resource are the same part of a GPU as those that they
//! have, whichever label, count or instance type shows what the units are.

use dovetail_audit::audit;
use dovetail_facts::device_states;
use dovetail_inventory::dump::{Keeper, Pseudonyms};
use serde_json::{Value, json};

use crate::facts::{gathered_whole, node, pod};

const NVIDIA: &str = "nvidia.com/gpu";
const AMD: &str = "amd.com/gpu";

/// A node that offers so many units and has these labels alone.
fn node_of(name: &str, (resource, units): (&str, u32), labels: &Value) -> Value {
    let mut node = node(name, 0);
    node["metadata"]["labels"] = labels.clone();
    node["metadata"]["labels"]["kubernetes.io/hostname"] = json!(name);
    for amounts in ["capacity", "allocatable"] {
        let amounts = node["status"][amounts].as_object_mut().expect("amounts");
        amounts.remove(NVIDIA);
        amounts.insert(resource.to_owned(), json!(units.to_string()));
    }
    node
}

fn server(name: &str, resource: &str, on: &str) -> Value {
    let mut server = pod(name, "ReplicaSet/serve", 0, on);
    let amounts = json!({"cpu": "4", resource: "1"});
    server["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
    server
}

/// How many pods AUT-07 moves where each of two nodes with these units and labels has one server.
fn moves(resource: &str, nodes: [(u32, &Value); 2]) -> usize {
    let [one, other] = nodes;
    let objects = [
        node_of("one", (resource, one.0), one.1),
        node_of("other", (resource, other.0), other.1),
        server("serve-0", resource, "one"),
        server("serve-1", resource, "other"),
    ];
    let mut found = gathered_whole(&objects);
    device_states(&mut found.facts, &found.moment).expect("an engine that takes the cluster");
    let findings = audit(&found.facts);
    let emptied = findings.iter().filter(|finding| finding.check.id == "AUT-07");
    emptied.map(|finding| finding.moves.len()).sum()
}

/// Whole GPUs on one node, and parts of GPUs on another: no server moves between them, and one
/// does between nodes that are alike.
fn are_apart(resource: &str, whole: (u32, &Value), parts: (u32, &Value)) {
    assert_eq!(moves(resource, [whole, parts]), 0, "{parts:?}");
    assert_eq!(moves(resource, [parts, whole]), 0, "{parts:?}");
    assert_eq!(moves(resource, [whole, whole]), 1, "{whole:?}");
    assert_eq!(moves(resource, [parts, parts]), 1, "{parts:?}");
}

#[test]
fn replicas_that_only_the_instance_type_shows_take_no_pod_with_a_whole_gpu() {
    let named = json!({"node.kubernetes.io/instance-type": "p5.48xlarge",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"});
    are_apart(NVIDIA, (8, &named), (80, &named));
    // No label names the model, either.
    let plain = json!({"node.kubernetes.io/instance-type": "p5.48xlarge"});
    are_apart(NVIDIA, (8, &plain), (80, &plain));
}

#[test]
fn partitions_of_amd_gpus_take_no_pod_with_a_whole_gpu() {
    let labels = |partition: &str| {
        json!({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
            "amd.com/compute-memory-partition": partition})
    };
    are_apart(AMD, (8, &labels("spx_nps1")), (64, &labels("cpx_nps4")));
    are_apart(AMD, (8, &labels("spx_nps1")), (16, &labels("DPX_NPS2")));
    // Of the same number of units, some have more memory.
    let (one, other) = (labels("cpx_nps1"), labels("cpx_nps4"));
    assert_eq!(moves(AMD, [(64, &one), (64, &other)]), 0);
}

/// GKE sets these labels, and those of GPU Feature Discovery are missing.
#[test]
fn shared_and_partitioned_gpus_of_gke_take_no_pod_with_a_whole_gpu() {
    let labels = |more: &[(&str, &str)]| {
        let mut labels = json!({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"});
        for (key, value) in more {
            labels[*key] = json!(value);
        }
        labels
    };
    let sliced = labels(&[("cloud.google.com/gke-gpu-partition-size", "1g.10gb")]);
    are_apart(NVIDIA, (8, &labels(&[])), (56, &sliced));
    let strategy = ("cloud.google.com/gke-gpu-sharing-strategy", "time-sharing");
    let clients = ("cloud.google.com/gke-max-shared-clients-per-gpu", "4");
    are_apart(NVIDIA, (8, &labels(&[])), (32, &labels(&[strategy, clients])));
    are_apart(NVIDIA, (8, &labels(&[])), (8, &labels(&[strategy])));
}

/// A collection keeps what shows the parts, also where names are hidden.
#[test]
fn a_collection_keeps_how_gpus_are_shared_and_partitioned() {
    let labels = json!({"amd.com/compute-memory-partition": "cpx_nps4",
        "nvidia.com/gpu.sharing-strategy": "none",
        "cloud.google.com/gke-gpu-sharing-strategy": "mps"});
    let written = node_of("one", (AMD, 64), &labels);
    let kept = Keeper::default().keep("Node", "v1", &written).expect("a node");
    let hidden = Pseudonyms::new([7; 32]).replace(&kept);
    for (key, value) in labels.as_object().expect("labels") {
        assert_eq!(hidden["metadata"]["labels"][key], *value, "{key}");
    }
}
