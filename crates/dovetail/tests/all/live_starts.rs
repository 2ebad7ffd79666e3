//! When pending pods are expected to start, as `why` and `queue` tell it.

use serde_json::{Value, json};

use crate::live::{cluster, connected, pod, with};

#[test]
fn expected_starts_are_told_with_what_a_pod_waits_for() {
    let says = |mut pod: Value, runtime: &str| {
        pod["metadata"]["annotations"] = json!({"dovetail.dev/runtime": runtime});
        pod
    };
    let placed = |name: &str, at: &str, runtime: &str| {
        says(with(pod(name, 8), "nodeName", json!(at)), runtime)
    };
    let foreign = |pod| with(pod, "schedulerName", json!("default-scheduler"));
    let api = cluster(&[
        placed("long", "n0", "10h"),
        foreign(placed("short", "n1", "4h")),
        says(pod("next", 8), "1h"),
        pod("then", 8),
        pod("whole", 16),
    ]);
    // What has no deadline comes in the order of names if it was created in one second.
    for (name, minute) in [("next", 1), ("then", 2), ("whole", 3)] {
        api.overwrite("pods", "team", name, |pod| {
            pod["metadata"]["creationTimestamp"] = json!(format!("2020-01-01T00:0{minute}:00Z"));
        });
    }
    let folder = connected(&api);
    let hours =
        |start: &Value, key: &str| start[key].as_u64().map(|ms| (ms + 1_800_000) / 3_600_000);
    let start = |name: &str| {
        folder.json(&format!("why {name} --kubeconfig kubeconfig"))["in_line"]["expected_start"]
            .clone()
    };
    let next = start("next");
    assert_eq!((hours(&next, "within_p50_ms"), hours(&next, "within_p90_ms")), (Some(4), Some(4)));
    assert_eq!((&next["after"], &next["nodes"]), (&json!([]), &json!(["n1"])));
    let then = start("then");
    assert_eq!(hours(&then, "within_p50_ms"), Some(5));
    assert_eq!((&then["after"], &then["nodes"]), (&json!(["team/next"]), &json!(["n1"])));
    assert_eq!(start("whole")["within_p50_ms"], Value::Null);

    let queue = folder.json("queue --start --kubeconfig kubeconfig");
    assert_eq!(queue["waiting"][1]["expected_start"]["after"], json!(["team/next"]));
    assert_eq!(
        folder.json("queue --kubeconfig kubeconfig")["waiting"][1].get("expected_start"),
        None
    );
    let table = folder.call("queue --start --kubeconfig kubeconfig").out;
    let starts = table.lines().skip_while(|line| !line.contains("in (50%)"));
    insta::assert_snapshot!("queue_start", starts.collect::<Vec<_>>().join("\n"));
    let told = folder.call("why then --kubeconfig kubeconfig").out;
    for line in [
        "expected start  in 5 h, from the run times that pods declare",
        "would start     after job team/next, on node n1",
    ] {
        assert!(told.lines().any(|one| one == line), "{line} is not in\n{told}");
    }
    assert_eq!(queue.get("reserved"), None, "nothing is reserved by default");
    let csv = folder.call("queue --start -o csv --kubeconfig kubeconfig");
    assert_eq!(csv.code, Some(2), "{}", csv.err);
}

#[test]
fn the_queue_shows_what_is_reserved_for_the_head_of_the_line_and_what_that_costs() {
    let runs = |name: &str, at: &str, runtime: &str| {
        let mut pod = with(pod(name, 4), "nodeName", json!(at));
        pod["metadata"]["annotations"] = json!({"dovetail.dev/runtime": runtime});
        pod
    };
    let api = cluster(&[runs("long", "n0", "10h"), runs("short", "n1", "4h"), pod("next", 8)]);
    let folder = connected(&api);
    folder.write("dovetail.toml", "[scheduler]\norder = \"fifo-skip\"\nreserve_heads = 8\n");
    let call = "queue --kubeconfig kubeconfig --gpu-price";
    let node = json!({"node": "n1", "gpu_milli": 4_000, "gpu_model": "NVIDIA-H100-80GB-HBM3"});
    for (price, cost) in [("H100=2.50", json!(10_000_000)), ("A100=2.50", Value::Null)] {
        assert_eq!(
            folder.json(&format!("{call} {price}"))["reserved"],
            json!([{"job": "team/next", "queue": "default", "nodes": [node], "gpu_milli": 4_000,
                "usd_micros_per_hour": cost}])
        );
    }
    let told = folder.call(&format!("{call} H100=2.50")).out;
    let reserved = told.lines().skip_while(|line| !line.contains("reserved and not in use"));
    insta::assert_snapshot!("queue_reserved", reserved.collect::<Vec<_>>().join("\n"));
}

#[test]
fn why_names_an_annotation_that_is_ignored() {
    let says = |name: &str, key: &str, value: &str| {
        let mut pod = pod(name, 8);
        pod["metadata"]["annotations"] = json!({ key: value });
        pod
    };
    let (runtime, limit) = ("dovetail.dev/runtime", "slurmjob.slinky.slurm.net/timelimit");
    let api = cluster(&[
        with(pod("runs", 8), "nodeName", json!("n0")),
        with(pod("runs-too", 8), "nodeName", json!("n1")),
        says("wrong", runtime, "eight hours"),
        says("limited", limit, "1-00:00:00"),
        says("right", runtime, "8h"),
    ]);
    let folder = connected(&api);
    let ignored = |name: &str| {
        let why = folder.json(&format!("why {name} --kubeconfig kubeconfig"));
        assert_eq!(why["state"], "waits", "{why}");
        why.get("ignored_annotation").and_then(Value::as_str).map(str::to_owned)
    };
    let wrong = ignored("wrong").expect("it cannot be read");
    assert!(wrong.starts_with("dovetail.dev/runtime: `eight hours` is not a duration"), "{wrong}");
    let problem = format!("{limit}: `1-00:00:00` is not a whole number of minutes");
    assert_eq!(ignored("limited"), Some(problem));
    assert_eq!(ignored("right"), None);
    let told = folder.call("why wrong --kubeconfig kubeconfig").out;
    let line = "\nignored: dovetail.dev/runtime: `eight hours` is not a duration";
    assert!(told.contains(line), "{told}");
}
