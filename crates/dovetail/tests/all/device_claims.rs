//! A cluster whose GPUs are offered by dynamic resource allocation: its bill, and that of the same
//! cluster with a device plugin.

use serde_json::{Value, json};

use crate::cost::{node, pod};
use crate::program::Folder;

const AT: &str = "--at 2026-11-20T12:00:00Z";
const DRIVER: &str = "gpu.nvidia.com";
const PART: &str = "nvidia.com/mig-3g.40gb";
/// An H100 of a p5.48xlarge, by thousandths of it, for a month.
const MILLI_MONTH: i64 = 6_880 * 720;

fn device(name: &str, attributes: &Value) -> Value {
    let mut device =
        json!({"name": name, "attributes": {"productName": {"string": "NVIDIA H100 80GB HBM3"}}});
    for (key, value) in attributes.as_object().expect("attributes") {
        device["attributes"][key] = json!({"string": value});
    }
    device
}

fn whole(place: u32) -> Value {
    device(&format!("gpu-{place}"), &json!({"type": "gpu", "uuid": format!("GPU-{place}")}))
}

fn part(name: &str) -> Value {
    device(name, &json!({"type": "mig", "parentUUID": "GPU-3", "profile": "3g.40gb"}))
}

fn slice(node: &str, devices: &[Value]) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node},
        "spec": {"driver": DRIVER, "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}})
}

/// A claim in a namespace with what it was given on a node, for these pods; nothing given: it waits
/// for two.
fn claim(namespace: &str, node: &str, given: &[&str], pods: &[&str]) -> Value {
    let results =
        given.iter().map(|device| json!({"driver": DRIVER, "pool": node, "device": device}));
    let results: Vec<Value> = results.collect();
    let pods: Vec<Value> =
        pods.iter().map(|pod| json!({"resource": "pods", "name": pod})).collect();
    let status = match given {
        [] => json!({}),
        _ => json!({"allocation": {"devices": {"results": results}}, "reservedFor": pods}),
    };
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "gpus", "namespace": namespace}, "status": status,
        "spec": {"devices": {"requests": [{"name": "r",
            "exactly": {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 2}}]}}})
}

/// The nodes, of which only their labels and their drivers know that they have GPUs, or those of a
/// plugin.
fn nodes(by_plugin: bool) -> Vec<Value> {
    let mut nodes = vec![node("n1", 4, "h100"), node("n2", 3, "h100")];
    for (node, label) in nodes.iter_mut().zip(["4", "4"]) {
        if by_plugin {
            node["metadata"]["labels"]["nvidia.com/gpu.count"] = json!(label);
            continue;
        }
        node["metadata"]["labels"]
            .as_object_mut()
            .expect("labels")
            .remove("nvidia.com/gpu.product");
        for amounts in ["capacity", "allocatable"] {
            node["status"][amounts]["nvidia.com/gpu"] = json!("0");
        }
    }
    if by_plugin {
        for amounts in ["capacity", "allocatable"] {
            nodes[1]["status"][amounts][PART] = json!("2");
        }
    }
    nodes
}

fn pod_with_claim(namespace: &str, name: &str, node: &str) -> Value {
    let mut pod = pod(namespace, name, 0, node);
    pod["spec"]["resourceClaims"] = json!([{"name": "gpus", "resourceClaimName": "gpus"}]);
    pod
}

fn slices() -> Vec<Value> {
    let cut = [whole(0), whole(1), whole(2), part("mig-0"), part("mig-1")];
    vec![slice("n1", &[whole(0), whole(1), whole(2), whole(3)]), slice("n2", &cut)]
}

fn write(folder: &Folder, file: &str, objects: &[Vec<Value>]) {
    let objects: Vec<&Value> = objects.iter().flatten().collect();
    folder.write(file, &json!({"kind": "List", "items": objects}).to_string());
}

fn amount(bill: &Value, key: &Value) -> i64 {
    let rows = bill["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["key"] == *key);
    let row = row.unwrap_or_else(|| panic!("{key}: {bill:#}"));
    row["cost_usd_micros"].as_i64().expect("an amount")
}

/// Two GPUs of a job, one that two pods have half of each, half of one that is
/// cut in two, and 4.5 of nobody.
#[test]
fn a_claim_of_gpus_costs_what_they_do_and_who_shares_one_pays_a_part() {
    let folder = Folder::new();
    let pods = vec![
        claim("vision", "n1", &["gpu-0", "gpu-1"], &["train-0"]),
        pod_with_claim("vision", "train-0", "n1"),
        claim("nlp", "n1", &["gpu-2"], &["a-0", "b-0"]),
        pod_with_claim("nlp", "a-0", "n1"),
        pod_with_claim("nlp", "b-0", "n1"),
        claim("ml", "n2", &["mig-1"], &["small-0"]),
        pod_with_claim("ml", "small-0", "n2"),
        claim("later", "", &[], &[]),
        pod_with_claim("later", "wait-0", ""),
    ];
    write(&folder, "dump.json", &[nodes(false), slices(), pods]);
    let bill = folder.json(&format!("cost --from dump.json {AT} --by job"));
    assert_eq!(bill["method"], "all-in/1");
    for (job, milli) in [
        ("Job vision/train", 2_000),
        ("Job nlp/a", 500),
        ("Job nlp/b", 500),
        ("Job ml/small", 500),
        ("(no owner)", 8_000 - 3_500),
    ] {
        assert_eq!(amount(&bill, &json!({"job": job})), milli * MILLI_MONTH, "{job}");
    }
    // What is kept for the pod that waits is no waste.
    let audit = folder.json(&format!("audit --from dump.json {AT} --fail-on never"));
    let told = audit.to_string();
    assert!(told.contains("reserved"), "{told}");
    assert!(!told.contains("dynamic resource allocation: "), "{told}");
}

/// The same machines and pods with the names of NVIDIA's plugin.
#[test]
fn a_device_plugin_would_make_the_same_bill_and_the_same_findings() {
    let folder = Folder::new();
    let by_claims = vec![
        claim("vision", "n1", &["gpu-0", "gpu-1"], &["train-0"]),
        pod_with_claim("vision", "train-0", "n1"),
        claim("ml", "n2", &["mig-1"], &["small-0"]),
        pod_with_claim("ml", "small-0", "n2"),
        claim("later", "", &[], &[]),
        pod_with_claim("later", "wait-0", ""),
    ];
    let mut small = pod("ml", "small-0", 0, "n2");
    for side in ["requests", "limits"] {
        small["spec"]["containers"][0]["resources"][side][PART] = json!(1);
    }
    let by_plugin = vec![pod("vision", "train-0", 2, "n1"), small, pod("later", "wait-0", 2, "")];
    write(&folder, "claims.json", &[nodes(false), slices(), by_claims]);
    write(&folder, "plugin.json", &[nodes(true), by_plugin]);
    let bill = |file: &str| {
        let bill = folder.json(&format!("cost --from {file} {AT} --by job,cause"));
        (bill["rows"].clone(), bill["headline"].clone())
    };
    assert_eq!(bill("claims.json"), bill("plugin.json"));
    let audit = |file: &str| {
        let audit = folder.json(&format!("audit --from {file} {AT} --fail-on never"));
        let findings = audit["findings"].as_array().expect("findings").iter();
        let ids: Vec<(Value, Value, Value)> = findings
            .map(|found| {
                let money = found["usd_micros_per_month"].clone();
                (found["id"].clone(), found["object"].clone(), money)
            })
            .collect();
        (audit["states"].clone(), ids)
    };
    let (states, ids) = audit("claims.json");
    assert_eq!((states, ids.clone()), audit("plugin.json"));
    assert!(ids.iter().any(|(id, ..)| id == "VIS-01"), "{ids:?}");
}
