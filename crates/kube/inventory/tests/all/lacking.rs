//! What a dump lacks is unknown, and no waste; GPUs that nobody offers are paid all the same.

use std::collections::BTreeSet;

use dovetail_inventory::dump::read_objects;
use dovetail_inventory::facts::Inventory;
use serde_json::{Value, json};

use crate::facts::{gathered, node, pod, states};

const GPU: &str = "nvidia.com/gpu";

/// A node whose provider says that it has eight GPUs, and whose device plugin offers none.
fn without_plugin(created: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "a3", "creationTimestamp": created,
            "labels": {"node.kubernetes.io/instance-type": "a3-highgpu-8g",
                "cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}},
        "status": {"allocatable": {"cpu": "200", "memory": "1800Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

#[test]
fn gpus_that_no_plugin_offers_are_unavailable_once_the_node_is_up() {
    let web = || pod("web", "", 0, "a3");
    let old = gathered(&[without_plugin("2026-11-01T00:00:00Z"), web()]);
    let findings = dovetail_audit::audit(&old.facts);
    assert!(findings.iter().any(|finding| finding.check.id == "CAP-05"), "{findings:?}");
    assert_eq!(states(old), [("unavailable".to_owned(), 8_000)].into());
    // The tests' time is 12:00.
    let new = gathered(&[without_plugin("2026-11-20T11:58:00Z"), web()]);
    assert_eq!(states(new), [("free_starting".to_owned(), 8_000)].into());
    // A label counts as well as the type, and a capacity of none is none.
    let mut labelled = without_plugin("2026-11-01T00:00:00Z");
    labelled["metadata"]["labels"] = json!({"cloud.google.com/gke-accelerator-count": "4"});
    labelled["status"]["capacity"] = json!({GPU: "0"});
    labelled["status"]["allocatable"][GPU] = json!("0");
    assert_eq!(states(gathered(&[labelled, web()])), [("unavailable".to_owned(), 4_000)].into());
}

#[test]
fn without_pods_no_gpu_is_free() {
    let mut inventory = Inventory::new(1_795_000_000_000);
    let nodes = json!({"kind": "List", "items": [node("g1", 8)]}).to_string();
    read_objects(nodes.as_bytes(), "dump.json", &mut inventory).expect("it is JSON");
    let found = inventory.facts(BTreeSet::new());
    assert_eq!(found.facts.nodes[0].without_gpu_pods_since_ms, None);
    assert_eq!(states(found), [("unknown".to_owned(), 8_000)].into());
    let with = gathered(&[node("g1", 8), pod("web", "", 0, "g1")]);
    assert_eq!(states(with), [("free_no_demand".to_owned(), 8_000)].into());
}

#[test]
fn without_resource_slices_gpus_that_claims_may_hold_are_unknown() {
    let labelled = || {
        let mut node = node("b200", 0);
        node["metadata"]["labels"]["nvidia.com/gpu.count"] = json!("4");
        for field in ["capacity", "allocatable"] {
            node["status"][field].as_object_mut().expect("a map").remove(GPU);
        }
        node
    };
    let mut claims = pod("train", "", 0, "b200");
    claims["spec"]["containers"][0]["resources"] = json!({});
    claims["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "gpu"}]);
    let found = states(gathered(&[labelled(), claims]));
    assert_eq!(found, [("unknown".to_owned(), 4_000)].into());
    let found = states(gathered(&[labelled(), pod("web", "", 0, "b200")]));
    assert_eq!(found, [("unavailable".to_owned(), 4_000)].into());
}
