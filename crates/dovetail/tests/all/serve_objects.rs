//! `dovetail serve` where nothing measures GPUs: objects alone fill the ledger with allocation.

use serde_json::{Value, json};

use crate::fake_prometheus::{FakePrometheus, two_gpus};
use crate::live::{cluster, connected, pod, with};
use crate::program::Folder;
use crate::serve::{READ, Served};

const FLAGS: &str =
    "--store ledger.db --cluster west --gpu-price H100=6 --every 1d --kubeconfig kubeconfig";

fn rows(folder: &Folder, by: &str) -> Vec<Value> {
    let cost = folder.json(&format!("cost --store ledger.db --period 2h --by {by}"));
    cost["rows"].as_array().expect("rows").clone()
}

/// As for `audit`, no flag has to select the cluster of the default kubeconfig.
#[test]
fn the_default_kubeconfig_is_read_if_no_flag_selects_a_cluster() {
    let api = cluster(&[with(pod("runs", 3), "nodeName", json!("n0"))]);
    let folder = connected(&api);
    folder.make_folder(".kube");
    folder.write(".kube/config", &folder.read("kubeconfig"));
    let served = Served::start(&folder, &FLAGS.replace(" --kubeconfig kubeconfig", ""));
    served.waits_for(READ);
    let (_, metrics) = served.ask("/metrics", "");
    assert!(metrics.contains("dovetail_gpus{"), "{metrics}");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn objects_alone_fill_the_ledger_with_allocation_and_series_do_not_count_it_twice() {
    let api = cluster(&[with(pod("runs", 3), "nodeName", json!("n0"))]);
    let runs = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    api.merge("pods", "team", "runs", "status", &runs).expect("a pod that runs");
    let folder = connected(&api);
    let served = Served::start(&folder, FLAGS);
    served.waits_for("no metrics: the ledger records from objects which pods have GPUs");
    served.waits_for(READ);
    assert_eq!(served.end(), Some(0));
    let found = rows(&folder, "pod,cause");
    let hours = |row: &Value| row["gpu_hours"].as_f64().expect("hours");
    let all: f64 = found.iter().map(hours).sum();
    assert!(all > 0.0, "{found:#?}");
    // Of 16 GPUs a pod has 3, and no pod wants the others.
    for (pod, cause, gpus) in
        [("team/runs", "unknown", 3.0), ("(no owner)", "free_no_demand", 13.0)]
    {
        let row = found.iter().find(|row| row["key"]["pod"] == pod);
        let row = row.unwrap_or_else(|| panic!("no {pod}: {found:#?}"));
        assert_eq!(row["key"]["cause"], cause, "{row:#}");
        let share = hours(row) / all;
        assert!((share - gpus / 16.0).abs() < 1e-6, "{share}: {found:#?}");
        let usd = row["cost_usd_micros"].as_f64().expect("a price") / 1e6;
        assert!((usd - 6.0 * hours(row)).abs() < 1e-5, "{row:#}");
    }
    // A server that is there later has series of the same time: they are not read.
    let server = FakePrometheus::start(two_gpus);
    let flags = format!("{FLAGS} --prometheus {} --back 2h", server.url);
    let served = Served::start(&folder, &flags);
    served.waits_for(READ);
    assert_eq!(served.end(), Some(0));
    let found = rows(&folder, "pod");
    let named = |row: &Value| row["key"]["pod"].as_str().expect("a name").to_owned();
    let mut named: Vec<String> = found.iter().map(named).collect();
    named.sort();
    assert_eq!(named, ["(no owner)", "team/runs"], "{found:#?}");
}
