//! `dovetail serve` where no server keeps series: it asks exporters itself.

use dovetail_testkit::{FakeApi, FakeExporter};
use serde_json::Value;

use crate::exporters::{gpu_operator, page};
use crate::live::connected;
use crate::program::Folder;
use crate::serve::{READ, Served};

const FLAGS: &str = "--store ledger.db --cluster west --gpu-price *=6 --step 1s";

/// GPU-seconds by pod and cause.
fn seconds(folder: &Folder) -> Vec<(String, String, f64)> {
    let cost = folder.json("cost --store ledger.db --period 2h --by pod,cause");
    let rows = cost["rows"].as_array().expect("rows").iter();
    let text = |row: &Value, key: &str| row["key"][key].as_str().expect("a text").to_owned();
    let seconds = |row: &Value| row["gpu_hours"].as_f64().expect("hours") * 3600.0;
    rows.map(|row| (text(row, "pod"), text(row, "cause"), seconds(row))).collect()
}

fn sum(rows: &[(String, String, f64)], pod: &str) -> f64 {
    rows.iter().filter(|row| row.0 == pod).map(|row| row.2).sum()
}

#[test]
fn what_exporters_say_is_kept_to_the_end_and_goes_on_after_a_restart() {
    let free = "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"2\",UUID=\"GPU-2\"} 0\n";
    let exporter = FakeExporter::start(vec![page(free)]);
    let folder = Folder::new();
    let flags = format!("{FLAGS} --every 1d --exporter http://{}/metrics", exporter.address);
    let mut before_s = 0.0;
    for _ in 0..2 {
        let served = Served::start(&folder, &flags);
        exporter.wait_for_scrapes(5);
        assert_eq!(served.end(), Some(0));
        let rows = seconds(&folder);
        let train_s = sum(&rows, "vision/train-0");
        assert!(train_s >= before_s + 3.0, "{rows:?}");
        before_s = train_s;
        // Of the time between the two programs each GPU has as much, too: a second is neither lost
        // nor doubled.
        for pod in ["vision/debug-0", "(no owner)"] {
            assert!((sum(&rows, pod) - train_s).abs() < 0.01, "{rows:?}");
        }
        let known = [
            ("vision/train-0", "active_not_separable"),
            ("vision/debug-0", "idle"),
            ("(no owner)", "free_of_unknown_cause"),
        ];
        for (pod, cause, _) in &rows {
            assert!(
                cause == "unknown" && pod != "(no owner)" || known.contains(&(pod, cause)),
                "{rows:?}"
            );
        }
    }
}

#[test]
fn exporters_of_a_namespace_are_found_and_those_that_are_silent_are_told() {
    let (api, truth, _lies): (FakeApi, FakeExporter, FakeExporter) = gpu_operator();
    let folder = connected(&api);
    let flags = "--kubeconfig kubeconfig --exporters-in gpu-operator --every 10s";
    let served = Served::start(&folder, &format!("{FLAGS} {flags}"));
    let told = served.waits_for("1 of 2 exporters did not answer");
    assert!(told.contains("exporter gpu-operator/dcgm-b on n1"), "{told}");
    served.waits_for(READ);
    served.waits_for(READ);
    for (state, count) in [("answering", 1.0), ("silent", 1.0)] {
        let series = format!("dovetail_exporters{{cluster=\"west\",state=\"{state}\"}} ");
        assert_eq!(served.metric(&series), count);
    }
    assert!(served.metric("dovetail_ledger_missing_seconds{cluster=\"west\"} ") <= 2.0);
    truth.wait_for_scrapes(1);
    assert_eq!(served.end(), Some(0));
    let rows = seconds(&folder);
    // A look that comes late on a busy machine leaves a second unknown.
    let known = || rows.iter().filter(|row| row.1 != "unknown");
    let causes = |pod: &str| -> Vec<&str> {
        known().filter(|row| row.0 == pod).map(|row| row.1.as_str()).collect()
    };
    // Nobody believes the pod of another namespace, which says that both work.
    assert_eq!(causes("vision/train-0"), ["active_not_separable"], "{rows:?}");
    assert_eq!(causes("vision/debug-0"), ["idle"], "{rows:?}");
    // Objects say whose pods they are.
    let jobs = folder.json("cost --store ledger.db --period 2h --by job");
    assert!(jobs["rows"].to_string().contains("Job vision/train"), "{jobs:#}");
}
