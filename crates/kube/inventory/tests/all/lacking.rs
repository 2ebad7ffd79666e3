//! What a dump lacks is unknown, and no waste; GPUs that nobody offers are paid all the same.

use std::collections::BTreeSet;

use dovetail_inventory::dump::read_objects;
use dovetail_inventory::facts::Inventory;
use serde_json::{Value, json};

use crate::facts::{gathered, gathered_alone, node, pod, states};

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

/// Pods of other namespaces may hold whatever the pods that were read leave.
#[test]
fn without_pods_of_other_namespaces_no_gpu_is_free() {
    let objects = [node("g1", 8), node("g2", 8), pod("p", "Job/j", 1, "g1")];
    let mut inventory = Inventory::new(1_795_000_000_000);
    let list = json!({"kind": "List", "items": objects}).to_string();
    read_objects(list.as_bytes(), "dump.json", &mut inventory).expect("it is JSON");
    assert_eq!(inventory.only_namespace(), Some("research"));
    let found = inventory.facts(BTreeSet::new());
    let nodes = || found.facts.nodes.iter();
    assert!(nodes().all(|node| node.may_be_held && node.without_gpu_pods_since_ms.is_none()));
    let findings = dovetail_audit::audit(&found.facts);
    assert!(findings.iter().all(|finding| finding.check.id != "AUT-03"), "{findings:?}");
    assert_eq!(states(found), [("unknown".to_owned(), 16_000)].into());
    // One pod of another namespace shows that these were read, even if it is over.
    let with = states(gathered(&objects));
    let expected = [("free_no_demand", 15_000), ("unknown", 1_000)];
    assert_eq!(with, expected.map(|(state, milli)| (state.to_owned(), milli)).into());
    // So does what every namespace has, where no other one has pods.
    let account = |namespace: &str| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": namespace}})
    };
    let with = |namespace: &str| {
        let objects = [&objects[..], &[account("research"), account(namespace)]].concat();
        let found = gathered_alone(&objects);
        (found.may_lack_pods(), states(found).contains_key("free_no_demand"))
    };
    assert_eq!(with("research"), (true, false));
    assert_eq!(with("kube-public"), (false, true));
}

/// A CronJob uses its node between times at which nobody sees a pod of it.
#[test]
fn a_node_that_a_cron_job_needs_is_not_removed() {
    let found_if = |suspend: bool, last: &str, model: &str| {
        let template = json!({"spec": {
            "nodeSelector": {"nvidia.com/gpu.product": model},
            "tolerations": [{"key": GPU, "operator": "Exists"}],
            "containers": [{"name": "main", "image": "python:3.13",
                "resources": {"limits": {GPU: "8"}}}]}});
        let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": "nightly", "namespace": "research"},
            "spec": {"schedule": "0 3 * * *", "suspend": suspend,
                "jobTemplate": {"spec": {"template": template}}},
            "status": {"lastScheduleTime": last}});
        let found = gathered(&[node("g1", 8), cron]);
        let pods = found.facts.to_come.iter().map(|of| of.workload.pods.len());
        assert_eq!(pods.collect::<Vec<_>>(), vec![1; usize::from(!suspend)]);
        let findings = dovetail_audit::audit(&found.facts).into_iter();
        let mut empty = findings.filter(|finding| finding.check.id == "AUT-03");
        empty.next().map(|finding| {
            let named = finding.evidence.iter().find(|of| of.what == "workloads that will need it");
            // How long its runs take is not known.
            let is_at_most = finding.evidence.iter().any(|of| of.what == "waste of this node");
            assert_eq!(is_at_most, named.is_some(), "{finding:?}");
            (named.map(|of| of.value.clone()), finding.stays.len())
        })
    };
    let found = |last: &str, model: &str| found_if(false, last, model);
    let own = "NVIDIA-H100-80GB-HBM3";
    let needed = Some((Some("CronJob research/nightly".to_owned()), 1));
    assert_eq!(found("2026-11-20T03:00:00Z", own), needed);
    // It may have ended a minute ago. Another model needs another node.
    assert_eq!(found("2026-11-20T11:55:00Z", own), None);
    assert_eq!(found("2026-11-20T11:55:00Z", "NVIDIA-L4"), Some((None, 0)));
    // Only a person resumes a CronJob that is suspended.
    assert_eq!(found_if(true, "2026-11-20T03:00:00Z", own), Some((None, 0)));
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
