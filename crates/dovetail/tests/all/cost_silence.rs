//! What exporters did not say, or said in numbers that are no readings: unknown, never free and
//! never nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::fake_prometheus::{FakePrometheus, Made, Query};
use crate::program::Folder;

const HOUR_S: u64 = 3600;

/// The begin of the running hour, in seconds.
fn hour_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    now / HOUR_S * HOUR_S
}

/// A GPU of a node with one, held by a pod.
fn gpu(node: &str, pod: &str) -> Value {
    let model = "NVIDIA H100";
    json!({"UUID": "a", "Hostname": node, "modelName": model, "namespace": "red", "pod": pod})
}

/// One busy GPU that has samples when `is_heard`, by seconds since 1970.
fn heard(query: &Query, is_heard: impl Fn(u64) -> bool + 'static) -> Vec<Made> {
    if !query.text.contains("GR_ENGINE_ACTIVE[") {
        return Vec::new();
    }
    let moments = query.moments.clone();
    let value = move |place: usize| is_heard(moments[place] as u64).then_some(0.9);
    vec![(gpu("n1", "gap-0"), Box::new(value))]
}

fn rows(found: &Value) -> &Vec<Value> {
    found["rows"].as_array().expect("rows")
}

/// GPU-hours of a pod (or nobody) and cause.
fn hours(found: &Value, pod: &str, cause: &str) -> f64 {
    let is_it = |row: &&Value| row["key"]["pod"] == pod && row["key"]["cause"] == cause;
    rows(found).iter().filter(is_it).filter_map(|row| row["gpu_hours"].as_f64()).sum()
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.05, "{found}, not {expected}");
}

#[test]
fn gpus_whose_readings_are_refused_are_held_unknown_and_billed() {
    const WRONG: [f64; 5] = [f64::NAN, 80.0, -0.5, f64::INFINITY, 9_223_372_036_854_775_794.0];
    let server = FakePrometheus::start(|query| {
        if !query.text.contains("GR_ENGINE_ACTIVE[") {
            return Vec::new();
        }
        let made = WRONG.into_iter().enumerate().map(|(place, wrong)| -> Made {
            (gpu(&format!("n{place}"), &format!("p-{place}")), Box::new(move |_| Some(wrong)))
        });
        made.collect()
    });
    let folder = Folder::new();
    let call =
        format!("cost --prometheus {} --period 2h --gpu-price H100=6 --by pod,cause", server.url);
    for call in [call.clone(), format!("{call} --store ledger.db --cluster west")] {
        let found = folder.json(&call);
        assert_eq!(rows(&found).len(), WRONG.len(), "{found:#}");
        let gpu_hours = found["total"]["gpu_hours"].as_f64().expect("hours");
        assert!(gpu_hours >= 2.0 * WRONG.len() as f64, "{found:#}");
        near(found["total"]["cost_usd_micros"].as_f64().expect("an amount") / 1e6, 6.0 * gpu_hours);
        let unknown: f64 =
            (0..WRONG.len()).map(|place| hours(&found, &format!("red/p-{place}"), "unknown")).sum();
        near(unknown, gpu_hours);
        assert!(found["notes"].to_string().contains("reported invalid values"), "{found:#}");
    }
}

/// The exporter is silent for eight hours, longer than a ledger reads at a time. The pod was there
/// before and after.
#[test]
fn an_outage_is_unknown_in_a_ledger_as_it_is_without() {
    let begin_s = hour_s() - 12 * HOUR_S;
    let silent = begin_s..begin_s + 8 * HOUR_S;
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let server = FakePrometheus::start(move |query| {
        let (silent, over) = (silent.clone(), Arc::clone(&over));
        heard(query, move |at_s| {
            at_s < silent.start || at_s >= silent.end && over.load(Ordering::SeqCst)
        })
    });
    let folder = Folder::new();
    let direct =
        format!("cost --prometheus {} --period 20h --gpu-price H100=6 --by pod,cause", server.url);
    let kept = format!("{direct} --store ledger.db --cluster west");
    // It is not over yet: until when it was heard is known, and the rest is a gap that is told.
    let during = folder.json(&kept);
    let known = hours(&during, "red/gap-0", "active_not_separable");
    assert!((8.0..=9.0).contains(&known) && rows(&during).len() == 1, "{during:#}");
    assert!(during["notes"].to_string().contains("no GPU exporter was read"), "{during:#}");
    is_over.store(true, Ordering::SeqCst);
    for call in [direct, kept.clone()] {
        let found = folder.json(&call);
        near(hours(&found, "red/gap-0", "unknown"), 8.0);
        assert_eq!(rows(&found).len(), 2, "{found:#}");
        let total = &found["total"];
        let gpu_hours = total["gpu_hours"].as_f64().expect("hours");
        assert!((19.9..=21.0).contains(&gpu_hours), "{found:#}");
        near(total["cost_usd_micros"].as_f64().expect("an amount") / 1e6, 6.0 * gpu_hours);
        assert!(!found["notes"].to_string().contains("no GPU exporter was read"), "{found:#}");
    }
    // Once more: nothing changes.
    assert_eq!(hours(&folder.json(&kept), "red/gap-0", "unknown"), 8.0);
}

/// Nobody knows what was when there was no series: it is not kept as read, and read when there is
/// one.
#[test]
fn what_a_server_had_no_series_of_is_a_gap_and_read_later() {
    let has_all = Arc::new(AtomicBool::new(false));
    let all = Arc::clone(&has_all);
    let since_s = hour_s() - 3 * HOUR_S;
    let server = FakePrometheus::start(move |query| {
        let all = Arc::clone(&all);
        heard(query, move |at_s| at_s >= since_s || all.load(Ordering::SeqCst))
    });
    let silent = FakePrometheus::start(|_| Vec::new());
    let folder = Folder::new();
    let call = |url: &str, store: &str| {
        let call = format!(
            "cost --period 27h --gpu-price H100=6 --by pod,cause --prometheus {url} {store}"
        );
        folder.json(&call)
    };
    let store = "--store ledger.db --cluster west";
    let nothing = call(&silent.url, store);
    assert!(rows(&nothing).is_empty(), "{nothing:#}");
    let notes = nothing["notes"].to_string();
    // Of the hour that the period begins in all is asked for: 27 to 28 h, 27 when an hour begins.
    let is_whole = ["for 27 h", "for 27.", "for 28 h"].iter().any(|hours| notes.contains(hours));
    assert!(notes.contains("no GPU was found") && is_whole, "{notes}");
    assert_eq!(nothing["resolution_by_day"], json!([]));

    let late = call(&server.url, store);
    let hours_of = |found: &Value| found["total"]["gpu_hours"].as_f64().expect("hours");
    assert!((2.9..=4.1).contains(&hours_of(&late)), "{late:#}");
    let notes = late["notes"].to_string();
    assert!(
        notes.contains("no GPU exporter was read for 24 h of the period, in 1 part: "),
        "{notes}"
    );
    assert!(!notes.contains("no GPU was found"), "{notes}");
    // Without a ledger the same is said.
    let direct = call(&server.url, "");
    let notes = direct["notes"].to_string();
    assert!(notes.contains("27 h of the period, Prometheus has no series"), "{notes}");
    let read = |found: &Value| -> u64 {
        let days = found["resolution_by_day"].as_array().expect("days").iter();
        days.filter_map(|day| day["hours_read"].as_u64()).sum()
    };
    assert!(read(&direct) <= 5, "{direct:#}");

    has_all.store(true, Ordering::SeqCst);
    let whole = call(&server.url, store);
    assert!((26.9..=28.1).contains(&hours_of(&whole)), "{whole:#}");
    assert!(!whole["notes"].to_string().contains("no GPU exporter"), "{whole:#}");
    assert!(read(&whole) >= 27, "{whole:#}");
}

/// Series say that the pod holds a GPU of n1; kube-state-metrics, or the objects, have it on n2.
#[test]
fn series_that_contradict_the_placement_are_not_believed() {
    let server = FakePrometheus::start(|query| {
        let one = |labels: Value| -> Made { (labels, Box::new(|_| Some(1.0))) };
        match () {
            () if query.text.contains("kube_pod_info[") => {
                vec![one(json!({"namespace": "red", "pod": "gap-0", "node": "n2"}))]
            }
            () if query.text.contains("kube_node_info[") => {
                vec![one(json!({"node": "n1"})), one(json!({"node": "n2"}))]
            }
            () => heard(query, |_| true),
        }
    });
    let url = &server.url;
    let folder = Folder::new();
    let call = format!("cost --prometheus {url} --period 2h --gpu-price H100=6 --by pod,cause");
    for call in [call.clone(), format!("{call} --store ledger.db --cluster west")] {
        let found = folder.json(&call);
        assert_eq!(hours(&found, "red/gap-0", "active_not_separable"), 0.0, "{found:#}");
        let unknown = hours(&found, "(unknown)", "unknown");
        assert!(unknown >= 2.0, "{found:#}");
        near(found["total"]["cost_usd_micros"].as_f64().expect("an amount") / 1e6, 6.0 * unknown);
        assert!(found["notes"].to_string().contains("red/gap-0 on n1"), "{found:#}");
    }
}

#[test]
fn a_step_that_is_finer_than_the_samples_says_which_one_is_not() {
    let server = FakePrometheus::start(|query| heard(query, |at_s| at_s % 60 == 0));
    let call = |step: &str| {
        let url = &server.url;
        Folder::new()
            .json(&format!("cost --prometheus {url} --period 1h --step {step} --by pod,cause"))
    };
    let fine = call("1s");
    let notes = fine["notes"].to_string();
    assert!(notes.contains("samples are 60 s apart") && notes.contains("--step 60s"), "{notes}");
    assert!(hours(&fine, "red/gap-0", "unknown") > 0.9, "{fine:#}");
    let coarse = call("60s")["notes"].to_string();
    assert!(!coarse.contains("apart"), "{coarse}");
}
