//! A node changes one GPU while a pod uses another, and a plan says so before: on a real API server
//! with kube-scheduler, and a real Prometheus that scrapes what DCGM would report.

use std::collections::BTreeSet;

use dovetail_testkit::cluster;
use dovetail_testkit::{FakeExporter, PrometheusServer};
use serde_json::json;

use crate::partition_apply::{Setting, policy, tainted};
use crate::partition_moves::requests;

/// What NVIDIA's exporter has of the devices of a node.
fn page(setting: &Setting, node: &str) -> String {
    let mut lines = String::new();
    for (gpu, devices) in setting.devices_of(node).into_iter().enumerate() {
        for (id, (resource, pod)) in devices.into_iter().enumerate() {
            let profile = resource.strip_prefix("nvidia.com/mig-").expect("an instance");
            let pod = pod.map_or_else(String::new, |pod| {
                let (namespace, name) = pod.split_once('/').expect("a name");
                format!(",namespace=\"{namespace}\",pod=\"{name}\",container=\"c\"")
            });
            lines += &format!(
                "DCGM_FI_DEV_FB_USED{{gpu=\"{gpu}\",UUID=\"GPU-{gpu}\",Hostname=\"{node}\",GPU_I_ID=\"{id}\",\
                 GPU_I_PROFILE=\"{profile}\"{pod}}} 512\n"
            );
        }
    }
    lines
}

#[test]
fn a_gpu_changes_while_a_pod_uses_another_one_of_its_node() {
    if !PrometheusServer::is_there() {
        return;
    }
    let options = cluster::Options { scheduler: true, ..Default::default() };
    let gpus = [vec![("1g.10gb", 7)], vec![("1g.10gb", 7)]];
    let setting = Setting::with(&["n0"], &gpus, ("nvidia\\.com/mig-1g\\.10gb", 14), options);
    setting.set_up();
    let slice = "nvidia.com/mig-1g.10gb";
    setting.create(&requests("busy", slice, &json!({})));
    setting.waits_for("pod/busy", "{.status.phase}=Running");
    setting.create(&requests("big", "nvidia.com/mig-7g.80gb", &json!({})));
    setting.create(&policy("shared", json!({"mode": "mig", "apply": true})));
    let blind = setting.plan("");
    let none = json!({"7g.80gb": 0});
    assert_eq!((&blind["accepted"], &blind["created"]), (&none, &json!(0)), "{blind}");
    let why = "pods use GPUs of the node, and the API does not show which";
    assert_eq!(blind["left_alone"], json!({why: 2}), "{blind}");
    let unknown = setting.apply("");
    let row = &unknown["nodes"][0];
    assert_eq!((&row["outcome"], &row["problem"]), (&json!("stays"), &json!(why)), "{unknown}");
    let shared = setting.get(&["sharingpolicy", "shared"]);
    assert_eq!(shared["status"]["stays"], json!([format!("n0: {why}")]), "{shared}");

    let of_busy = |devices: &[(String, Option<String>)]| {
        devices.iter().any(|(_, pod)| pod.as_deref() == Some("default/busy"))
    };
    let before = setting.devices_of("n0");
    let in_use = before.iter().position(|devices| of_busy(devices)).expect("a GPU in use");
    let exporter = FakeExporter::start(vec![page(&setting, "n0")]);
    let folder = setting.folder.path(".");
    let jobs = format!(
        "scrape_configs:\n- job_name: dcgm\n  scrape_interval: 1s\n  static_configs:\n  - targets: ['{}']\n",
        exporter.address
    );
    let server = PrometheusServer::start(&folder, &jobs);
    // What is scraped twice can be asked for.
    exporter.wait_for_scrapes(2);
    let planned = setting.plan(&format!("--prometheus {}", server.url));
    assert_eq!(planned["accepted"], json!({"7g.80gb": 1}), "{planned}");
    assert_eq!(planned["left_alone"], json!({"pods use the GPU": 1}), "{planned}");
    let rows = planned["gpus"].as_array().expect("GPUs").iter();
    let changed: Vec<_> = rows.filter(|row| row["from"] != row["to"]).collect();
    assert_eq!(changed.len(), 1, "{planned}");
    assert_eq!(changed[0]["index"], json!(1 - in_use), "{planned}");
    // A server without the metrics is no evidence.
    let unread = setting.plan("--prometheus http://127.0.0.1:1");
    assert_eq!(unread["accepted"], none, "{unread}");
    let whys: Vec<&String> = unread["left_alone"].as_object().expect("reasons").keys().collect();
    assert!(whys.len() == 1 && whys[0].contains("and DCGM does not show which: "), "{unread}");
    let done = setting.apply(&format!("--prometheus {}", server.url));
    let row = &done["nodes"][0];
    assert_eq!((&row["node"], &row["outcome"]), (&json!("n0"), &json!("Done")), "{done}");
    let after = setting.devices_of("n0");
    assert_eq!(after[in_use], before[in_use], "no instance of the GPU in use was touched");
    setting.waits_for("pod/big", "{.status.phase}=Running");
    assert!(!tainted(&setting.get(&["node", "n0"])));
    assert_eq!(setting.get(&["pod", "busy"])["status"]["phase"], "Running");
    assert_eq!(setting.refused(), BTreeSet::new());
}
