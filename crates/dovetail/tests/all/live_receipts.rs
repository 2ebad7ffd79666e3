//! What preemptions cost a pending job, as `why` and `queue` tell it.

use serde_json::{Value, json};

use crate::live::{cluster, connected, pod, with};

/// Of Job `train` two pods were preempted before the one that is pending; of the other nothing is
/// said.
#[test]
fn receipts_of_pending_jobs_are_told() {
    let mut again = pod("train-y", 16);
    again["metadata"]["labels"] = json!({"batch.kubernetes.io/job-name": "train"});
    let api = cluster(&[with(pod("large", 8), "nodeName", json!("n0")), again, pod("new", 16)]);
    let says = |preemptions: &str| {
        json!({"dovetail.dev/preemptions": preemptions,
            "dovetail.dev/attained-gpu-seconds": "86400",
            "dovetail.dev/lost-gpu-seconds": "11520",
            "dovetail.dev/last-preempted": "2026-11-01T12:00:00Z"})
    };
    let job = json!({"metadata": {"name": "train", "annotations": says("2")},
        "spec": {"completions": 1}});
    api.create("jobs", "team", &job).expect("a new Job");
    let folder = connected(&api);
    let why = |name: &str| folder.json(&format!("why {name} --kubeconfig kubeconfig"));
    let expected = json!({"count": 2, "last": "2026-11-01T12:00:00Z", "lost_gpu_s": 11_520});
    assert_eq!(why("train-y")["in_line"]["preemptions"], expected);
    assert_eq!(why("new")["in_line"].get("preemptions"), None);
    let queue = folder.json("queue --kubeconfig kubeconfig");
    let waiting = queue["waiting"].as_array().expect("a list").iter();
    let told: Vec<&Value> = waiting.filter_map(|job| job.get("preemptions")).collect();
    assert_eq!(told, [&expected]);

    let row = |name: &str| {
        let told = folder.call(&format!("why {name} --kubeconfig kubeconfig")).out;
        told.lines().find(|line| line.starts_with("preempted ")).map(str::to_owned)
    };
    let two = "preempted       2 times, last at 2026-11-01T12:00:00Z; lost 3.2 GPU-hours";
    assert_eq!((row("train-y").as_deref(), row("new")), (Some(two), None));
    let once = json!({"metadata": {"annotations": says("1")}});
    api.merge("jobs", "team", "train", "", &once).expect("a Job");
    let one = "preempted       1 time, last at 2026-11-01T12:00:00Z; lost 3.2 GPU-hours";
    assert_eq!(row("train-y").as_deref(), Some(one));
}
