//! Modes time-slicing and mps of a SharingPolicy on a real API server, beside a GPU Operator that
//! is played, under the rights of deploy/sharing.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::partition_apply::{Setting, policy, tainted};

fn pod(name: &str, class: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"dovetail.dev/class": class}},
        "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i",
            "resources": {"limits": {"nvidia.com/gpu.shared": "1"}}}]}})
}

fn spec(mode: &str, replicas: u32, node: &str) -> Value {
    json!({"mode": mode, "replicas": replicas, "apply": true,
        "nodeSelector": {"kubernetes.io/hostname": node}})
}

/// The node offers so many replicas, and feature discovery names the method.
fn offers(setting: &Setting, node: &str, replicas: &str, whole: &str, method: &str) {
    let node = setting.get(&["node", node]);
    assert!(!tainted(&node), "{node}");
    let offered = &node["status"]["allocatable"];
    assert_eq!(offered["nvidia.com/gpu.shared"], replicas, "{offered}");
    assert_eq!(offered["nvidia.com/gpu"], whole, "{offered}");
    assert_eq!(node["metadata"]["labels"]["nvidia.com/gpu.sharing-strategy"], method, "{node}");
}

#[test]
fn nodes_are_shared_by_replicas_and_returned_under_the_rights_of_the_manifest() {
    let setting = Setting::new(&["n0", "n1"]);
    keeps_settings_that_the_plugin_reads_already(&setting);
    setting.create(&policy("slices", spec("time-slicing", 4, "n0")));
    setting.create(&policy("mps", spec("mps", 8, "n1")));

    let applied = setting.apply("");
    let outcomes: Vec<&Value> =
        applied["nodes"].as_array().expect("nodes").iter().map(|node| &node["outcome"]).collect();
    assert_eq!(outcomes, ["Done", "Done"], "{applied}");
    offers(&setting, "n0", "8", "0", "time-slicing");
    offers(&setting, "n1", "16", "0", "mps");
    let of = setting.get(&["sharingpolicy", "mps"]);
    assert_eq!(of["status"]["layouts"], json!(["1 node: 2 × 8 replicas (mps)"]), "{of}");
    assert_eq!(of["status"]["receipts"][0]["outcome"], "Done", "{of}");

    // A service among replicas is reported, and keeps its node as it is.
    setting.create(&pod("service", "inference"));
    setting.bind("service", "n0");
    // Named, it may share, and the scheduler reads so from the node.
    let patch = ["patch", "sharingpolicy", "slices", "--type=merge", "-p"];
    let classes = |named: Value| json!({"spec": {"classes": named}}).to_string();
    setting.kubectl(&[&patch[..], &[&classes(json!(["inference", "batch"]))]].concat());
    setting.apply("");
    let named = |node: &str| {
        let node = setting.get(&["node", node]);
        node["metadata"]["annotations"]["dovetail.dev/shared-classes"].clone()
    };
    assert_eq!((named("n0"), named("n1")), (json!("batch,inference"), Value::Null));
    let of = setting.get(&["sharingpolicy", "slices"]);
    assert_eq!(of["status"]["warnings"], Value::Null, "{of}");
    setting.kubectl(&[&patch[..], &[&classes(Value::Null)]].concat());
    let whole = json!({"spec": {"mode": "whole", "replicas": null}});
    let again = setting.apply("");
    assert_eq!(again["nodes"], json!([]), "{again}");
    let of = setting.get(&["sharingpolicy", "slices"]);
    let warning = of["status"]["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.starts_with("node n0: pod default/service of class inference"), "{of}");
    setting.kubectl(&[&patch[..], &[&whole.to_string()]].concat());
    let stays = setting.apply("");
    let row = &stays["nodes"][0];
    assert_eq!((&row["node"], &row["outcome"]), (&json!("n0"), &json!("stays")), "{stays}");
    assert_eq!(named("n0"), Value::Null);
    setting.kubectl(&["delete", "pod", "service", "--force", "--grace-period=0"]);

    let returned = setting.call("rollback --node n0 --node n1 --settle 0s --config-delay 2s");
    assert_eq!(returned["nodes"][1]["outcome"], "Done", "{returned}");
    offers(&setting, "n0", "0", "2", "none");
    offers(&setting, "n1", "0", "2", "none");
    rolls_back_what_can_be_rolled_back(&setting);
    assert_eq!(setting.refused(), BTreeSet::new());
}

/// A node that is refused keeps no other, and each has a row.
fn rolls_back_what_can_be_rolled_back(setting: &Setting) {
    let both = "partition rollback --node nope --node n1 --dry-run --output json";
    let both = setting.folder.call(&format!("{both} --kubeconfig {}", setting.kubeconfig));
    assert!(both.code == Some(1) && both.err.contains("the cluster has no node nope"), "{both:?}");
    let told: Value = serde_json::from_str(&both.out).expect("JSON");
    let outcome = |place: usize| told["nodes"][place]["outcome"].clone();
    assert_eq!((outcome(0), outcome(1)), (json!("refused"), json!("planned")), "{told}");
}

/// Settings that the plugin reads now stay, and so do those of nodes without a label.
fn keeps_settings_that_the_plugin_reads_already(setting: &Setting) {
    let settings = "--from-literal=any=version: v1";
    setting.kubectl(&["create", "configmap", "ours", "-n", "gpu-operator", settings]);
    let config = json!({"spec": {"devicePlugin": {"config": {"name": "ours", "default": "any"}}}});
    let patch = ["patch", "clusterpolicies.nvidia.com/cluster-policy", "--type=merge", "-p"];
    setting.kubectl(&[&patch[..], &[&config.to_string()]].concat());
    let config = setting.setup()["patch"]["spec"]["devicePlugin"]["config"].clone();
    assert_eq!(config, json!({"name": "dovetail-sharing", "default": "any"}));
    setting.set_up();
    let map = setting.get(&["configmap", "dovetail-sharing", "-n", "gpu-operator"]);
    assert_eq!(map["data"]["any"], "version: v1", "{map}");
}
