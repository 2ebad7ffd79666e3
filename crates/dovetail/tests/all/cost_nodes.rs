//! Nodes of a period that exporters do not tell: GPUs that nobody measures, and names that went to
//! another machine.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::fake_prometheus::{FakePrometheus, Made, Query};
use crate::program::Folder;

const HOUR_S: u64 = 3600;

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn always(labels: Value, value: f64) -> Made {
    (labels, Box::new(move |_| Some(value)))
}

fn gpu(node: &str, pod: &str) -> Value {
    json!({"UUID": "a", "Hostname": node, "modelName": "NVIDIA H100", "namespace": "red", "pod": pod})
}

/// GPU-hours of a node, a pod (or nobody) and a cause.
fn hours(found: &Value, [node, pod, cause]: [&str; 3]) -> f64 {
    let key = json!({"node": node, "pod": pod, "cause": cause});
    let rows = found["rows"].as_array().expect("rows").iter();
    rows.filter(|row| row["key"] == key).filter_map(|row| row["gpu_hours"].as_f64()).sum()
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.05, "{found}, not {expected}");
}

/// Node `n1` has one GPU, which is measured; `n2` has two, which are not: a pod asked for one of
/// them.
fn one_of_two_measured(query: &Query) -> Vec<Made> {
    let text = query.text.as_str();
    let of_node = |node: &str, more: Value| {
        let mut labels = json!({"node": node});
        labels.as_object_mut().expect("labels").extend(more.as_object().cloned().expect("more"));
        labels
    };
    let resource = || json!({"resource": "nvidia_com_gpu"});
    match () {
        () if text.contains("GR_ENGINE_ACTIVE[") => vec![always(gpu("n1", "gap-0"), 0.9)],
        () if text.contains("kube_node_info[") => {
            ["n1", "n2"].map(|node| always(of_node(node, json!({})), 1.0)).into()
        }
        () if text.contains("kube_node_labels[") => {
            let product = json!({"label_nvidia_com_gpu_product": "NVIDIA-H100-80GB-HBM3"});
            vec![always(of_node("n2", product), 1.0)]
        }
        () if text.starts_with("max by (node, exported_node, resource)") => {
            vec![always(of_node("n1", resource()), 1.0), always(of_node("n2", resource()), 2.0)]
        }
        () if text.starts_with("sum by (namespace, exported_namespace") => {
            assert!(text.contains("node=~\"n2\""), "{text}");
            let pod = json!({"namespace": "red", "pod": "b-0", "resource": "nvidia_com_gpu"});
            vec![always(of_node("n2", pod), 1.0)]
        }
        () => Vec::new(),
    }
}

#[test]
fn a_node_that_no_exporter_measures_is_in_the_bill() {
    let server = FakePrometheus::start(one_of_two_measured);
    let folder = Folder::new();
    let call = format!(
        "cost --prometheus {} --period 2h --gpu-price H100=6 --by node,pod,cause",
        server.url
    );
    for call in [call.clone(), format!("{call} --store ledger.db --cluster west")] {
        let found = folder.json(&call);
        let active = hours(&found, ["n1", "red/gap-0", "active_not_separable"]);
        assert!((1.95..=3.05).contains(&active), "{found:#}");
        near(hours(&found, ["n2", "red/b-0", "unknown"]), active);
        near(hours(&found, ["n2", "(no owner)", "free_of_unknown_cause"]), active);
        let total = &found["total"];
        near(total["gpu_hours"].as_f64().expect("hours"), 3.0 * active);
        near(total["cost_usd_micros"].as_f64().expect("an amount") / 1e6, 18.0 * active);
        let notes = found["notes"].to_string();
        assert!(notes.contains("2 GPUs of 1 node that no exporter measures (n2)"), "{notes}");
    }
}

/// A ledger reads a long period in parts, of which an early one has another number of GPUs that
/// nobody measures: there is one note, with the most.
#[test]
fn what_parts_of_a_period_leave_open_is_told_once() {
    let turn_s = (now_s() - 7 * HOUR_S) as f64;
    let server = FakePrometheus::start(move |query| {
        let mut made = one_of_two_measured(query);
        if query.text.starts_with("max by (node, exported_node, resource)") {
            let moments = query.moments.clone();
            let grows = move |place: usize| Some(if moments[place] < turn_s { 1.0 } else { 3.0 });
            made[1].1 = Box::new(grows);
        }
        made
    });
    let found = Folder::new().json(&format!(
        "cost --prometheus {} --period 14h --gpu-price H100=6 --store ledger.db --cluster west",
        server.url
    ));
    let notes = found["notes"].as_array().expect("notes").iter().filter_map(Value::as_str);
    let told: Vec<&str> = notes.filter(|note| note.contains("no exporter measures")).collect();
    assert_eq!(told.len(), 1, "{found:#}");
    assert!(told[0].starts_with("3 GPUs of 1 node that no exporter measures (n2)"), "{told:?}");
}

/// Without exporters a ledger waits: a later run may hear of them.
#[test]
fn a_ledger_keeps_nothing_of_time_without_any_exporter() {
    let server = FakePrometheus::start(|query| match query.text.contains("GR_ENGINE") {
        true => Vec::new(),
        false => one_of_two_measured(query),
    });
    let call = format!(
        "cost --prometheus {} --period 2h --store ledger.db --cluster west --by node,pod,cause",
        server.url
    );
    let found = Folder::new().json(&call);
    assert_eq!(found["rows"], json!([]), "{found:#}");
}

/// A machine at $6 an hour has the name `n5` until two hours ago, one at $2 since then.
#[test]
fn a_name_that_goes_to_another_machine_has_the_price_of_each() {
    let turn_s = now_s() / HOUR_S * HOUR_S - 2 * HOUR_S;
    let server = FakePrometheus::start(move |query| {
        let text = query.text.as_str();
        let moments = query.moments.clone();
        let (first, second) = (moments.clone(), moments);
        let both = |labels: [Value; 2]| -> Vec<Made> {
            let [before, after] = labels;
            let is_before = move |place: usize| ((first[place] as u64) < turn_s).then_some(1.0);
            let is_after = move |place: usize| ((second[place] as u64) >= turn_s).then_some(1.0);
            vec![(before, Box::new(is_before)), (after, Box::new(is_after))]
        };
        let info = |id: &str| json!({"node": "n5", "provider_id": format!("aws:///x/{id}")});
        let bought = |kind: &str| json!({"node": "n5", "label_karpenter_sh_capacity_type": kind});
        match () {
            () if text.contains("GR_ENGINE_ACTIVE[") => vec![always(gpu("n5", "s-0"), 0.9)],
            // The last word of each series of the period.
            () if text.contains("kube_node_info[") => {
                ["i-a", "i-b"].map(|id| always(info(id), 1.0)).into()
            }
            () if text.contains("kube_node_info{node=") => both([info("i-a"), info("i-b")]),
            () if text.contains("kube_node_labels{node=") => {
                both([bought("on-demand"), bought("spot")])
            }
            () => Vec::new(),
        }
    });
    let folder = Folder::new();
    folder
        .write("mine.csv", "gpu_model,usd_per_gpu_hour,purchase\nH100,6,on_demand\nH100,2,spot\n");
    let call = format!("cost --prometheus {} --period 5h --prices mine.csv", server.url);
    for call in [call.clone(), format!("{call} --store ledger.db --cluster west")] {
        let found = folder.json(&format!("{call} --by node"));
        let from: jiff::Timestamp =
            found["from"].as_str().and_then(|text| text.parse().ok()).expect("a time");
        let gpu_hours = found["total"]["gpu_hours"].as_f64().expect("hours");
        let before = (turn_s as f64 - from.as_second() as f64) / HOUR_S as f64;
        let cost = found["total"]["cost_usd_micros"].as_f64().expect("an amount") / 1e6;
        let expected = 6.0 * before + 2.0 * (gpu_hours - before);
        assert!((cost - expected).abs() < 0.15, "{cost}, not {expected}: {found:#}");
        assert_eq!(found["rows"].as_array().map(Vec::len), Some(1), "{found:#}");
        let notes = found["notes"].to_string();
        assert!(
            notes.contains("1 node name moved to another machine within the period"),
            "{notes}"
        );
    }
    let focus = folder.call(&format!("{call} --focus 1.4")).out;
    assert!(focus.contains("aws:///x/i-a") && focus.contains("aws:///x/i-b"), "{focus}");
}
