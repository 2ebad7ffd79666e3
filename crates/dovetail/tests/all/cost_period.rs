//! `dovetail cost` over a period: exporters say who held what, kube-state-metrics who that was.

use serde_json::{Value, json};

use crate::fake_prometheus::{FakePrometheus, Made, Query};
use crate::program::Folder;

/// Two GPUs of one node for two hours: one held by a pod that computes for an hour, one free.
pub(crate) fn series(query: &Query) -> Vec<Made> {
    let gpu = |uuid: &str, pod: Option<&str>| {
        let mut labels = json!({"UUID": uuid, "Hostname": "n1", "modelName": "NVIDIA H100"});
        if let Some(pod) = pod {
            labels["pod"] = json!(pod);
            labels["namespace"] = json!("vision");
        }
        labels
    };
    let text = query.text.as_str();
    if text.contains("GR_ENGINE_ACTIVE[") {
        let busy = |place: usize| Some(if place < 60 { 0.9 } else { 0.0 });
        return vec![
            (gpu("a", Some("train-0")), Box::new(busy)),
            (gpu("b", None), Box::new(|_| Some(0.0))),
        ];
    }
    let pod = json!({"namespace": "vision", "pod": "train-0", "node": "n1"});
    let one =
        |labels: Value, value: f64| -> Vec<Made> { vec![(labels, Box::new(move |_| Some(value)))] };
    // Sums of one value for each of the steps of the window.
    let steps = || {
        let (_, window) = text.rsplit_once("))[").expect("a subquery");
        let (ms, _) = window.split_once("ms:").expect("a window");
        ms.parse::<f64>().expect("ms") / 60_000.0
    };
    match () {
        () if text.contains("requests{resource=\"cpu\"") => one(pod, 50.0 * steps()),
        () if text.contains("requests{resource=\"memory\"") => {
            one(pod, 100.0 * f64::from(1 << 30) * steps())
        }
        () if text.contains("kube_pod_info[") => {
            let mut info = pod;
            info["created_by_kind"] = json!("Job");
            info["created_by_name"] = json!("train-28371");
            one(info, 1.0)
        }
        () if text.contains("kube_job_owner[") => one(
            json!({"namespace": "vision", "job_name": "train-28371", "owner_kind": "CronJob", "owner_name": "train"}),
            1.0,
        ),
        () if text.contains("kube_namespace_labels[") => {
            one(json!({"namespace": "vision", "label_team": "eyes"}), 1.0)
        }
        () if text.contains("kube_pod_labels[") => one(
            json!({"namespace": "vision", "pod": "train-0", "label_kueue_x_k8s_io_queue_name": "batch"}),
            1.0,
        ),
        () if text.contains("kube_node_labels[") => {
            one(json!({"node": "n1", "label_karpenter_sh_nodepool": "h100"}), 1.0)
        }
        () if text.contains("kube_node_status_allocatable[") => {
            let of = |resource: &str, value: f64| {
                one(json!({"node": "n1", "resource": resource}), value)
            };
            [of("cpu", 100.0), of("memory", 400.0 * f64::from(1 << 30))]
                .into_iter()
                .flatten()
                .collect()
        }
        () => Vec::new(),
    }
}

fn near(value: &Value, usd: f64) {
    let found = value.as_i64().expect("an amount") as f64 / 1e6;
    assert!((found - usd).abs() < 1e-4, "{found}, not {usd}");
}

/// Two GPUs at $6 are $12 an hour, of which 100 vCPUs at $0.04 are $4, 400 GiB at $0.005 are $2,
/// and each GPU is $3. The pod has half of the CPU and a quarter of the memory: $5.50 an hour, of
/// it half an idle GPU.
#[test]
fn a_period_is_split_with_names_from_kube_state_metrics() {
    let server = FakePrometheus::start(series);
    let folder = Folder::new();
    let call = format!("cost --prometheus {} --period 2h --gpu-price H100=6", server.url);
    let found = folder.json(&format!("{call} --by team,job,queue,node-pool,cause"));
    assert_eq!((&found["method"], &found["basis"]), (&json!("all-in/1"), &json!("sampled")));
    assert_eq!(found["resolution_s"], 60.0);
    // The pod was there all the time.
    assert_eq!(found["allocated_within_gpu_hours"], 0.0);
    // The mean of its first minute is of the minute before the period, and nobody saw its last.
    assert_eq!(found["active_within_gpu_hours"], 1.0 / 60.0);
    near(&found["headline"]["cost_usd_micros"], 24.0);
    near(&found["headline"]["waste_usd_micros"], 6.0);
    let row = |cause: &str| -> Value {
        let rows = found["rows"].as_array().expect("rows").iter();
        let mut of = rows.filter(|row| row["key"]["cause"] == cause);
        of.next().unwrap_or_else(|| panic!("{cause}: {found:#}")).clone()
    };
    let idle = row("idle");
    near(&idle["cost_usd_micros"], 6.0);
    assert_eq!(idle["gpu_hours"], 1.0);
    let key = json!({"team": "eyes", "job": "CronJob vision/train", "queue": "batch", "node-pool": "NodePool h100", "cause": "idle"});
    assert_eq!(idle["key"], key);
    near(&row("free_of_unknown_cause")["cost_usd_micros"], 12.0);
    let residual = folder.json(&format!("{call} --vcpu-price 0.04 --gib-price 0.005 --by team"));
    let rows = residual["rows"].as_array().expect("rows");
    let eyes = rows.iter().find(|row| row["key"]["team"] == "eyes").expect("a row");
    near(&eyes["cost_usd_micros"], 11.0);
    near(&residual["headline"]["unused_cpu_memory_usd_micros"], 7.0);
}

#[test]
fn a_period_is_a_focus_dataset_of_days() {
    let server = FakePrometheus::start(series);
    let call =
        format!("cost --prometheus {} --period 48h --gpu-price H100=6 --focus 1.4", server.url);
    let done = Folder::new().call(&call);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let version = dovetail_bill::focus::FocusVersion::V1_4;
    assert_eq!(dovetail_bill::focus::check(version, &done.out, None), [], "{}", done.out);
    let mut rows = csv::Reader::from_reader(done.out.as_bytes());
    let column = |name: &str, rows: &mut csv::Reader<&[u8]>| {
        rows.headers().expect("CSV").iter().position(|column| column == name).expect("a column")
    };
    let [from, to] = ["ChargePeriodStart", "ChargePeriodEnd"].map(|name| column(name, &mut rows));
    let rows: Vec<csv::StringRecord> = rows.records().map(|row| row.expect("CSV")).collect();
    // Each node is charged from its first sample of a day to its last: 48 h, whatever the time of
    // day.
    let mut periods: Vec<(i64, i64)> = rows
        .iter()
        .map(|row| {
            let at =
                |cell: usize| row[cell].parse::<jiff::Timestamp>().expect("a time").as_second();
            (at(from), at(to))
        })
        .collect();
    periods.sort_unstable();
    periods.dedup();
    let seconds: i64 = periods.iter().map(|(from, to)| to - from).sum();
    assert_eq!(seconds, 48 * 3600, "{periods:?}");
    let costs = rows.iter().map(|row| row[0].parse::<f64>().expect("a number"));
    assert!((costs.sum::<f64>() - 48.0 * 12.0).abs() < 1e-4, "{}", done.out);
}

/// Without kube-state-metrics jobs are told by names, and nothing of CPU and memory is known.
#[test]
fn without_objects_what_is_not_known_is_told() {
    let server = FakePrometheus::start(|query| match query.text.contains("kube_") {
        true => Vec::new(),
        false => series(query),
    });
    let folder = Folder::new();
    let call = format!("cost --prometheus {} --period 2h --gpu-price H100=6 --by job", server.url);
    let found = folder.json(&call);
    let rows = found["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["key"]["job"] == "vision/train"), "{found:#}");
    let notes = found["notes"].to_string();
    for part in ["jobs are recognized by their pods' names", "CPU and memory of 1 node: unknown"] {
        assert!(notes.contains(part), "{notes}");
    }
    let blind = FakePrometheus::start(|_| Vec::new());
    let found = folder.json(&format!("cost --prometheus {} --period 2h", blind.url));
    assert!(found["notes"].to_string().contains("no GPU was found"), "{found:#}");
}
