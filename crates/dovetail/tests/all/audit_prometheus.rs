//! `dovetail audit` with what GPUs did from a server: what it makes of samples, and of counters that lie.

use serde_json::{Value, json};

use crate::cost::{node, pod};
use crate::fake_prometheus::{FakePrometheus, Made, Query};
use crate::program::Folder;

/// A node of two GPUs, of which a notebook holds one.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut notebook = pod("vision", "train-0", 1, "n1");
    notebook["metadata"]["labels"] = json!({"dovetail.dev/class": "interactive"});
    let objects = [node("n1", 2, "h100"), notebook];
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    folder
}

/// The engine of the held GPU is busy in the first hour, and not behind it; `kernels` is what GPU_UTIL says.
fn series(query: &Query, kernels: f64) -> Vec<Made> {
    let labels = json!({"UUID": "a", "Hostname": "n1", "modelName": "NVIDIA H100", "pod": "train-0",
        "namespace": "vision"});
    match query.text.as_str() {
        text if text.contains("GR_ENGINE_ACTIVE[") => {
            let busy = |place: usize| Some(if place < 60 { 0.9 } else { 0.0 });
            vec![(labels, Box::new(busy))]
        }
        text if text.contains("DCGM_FI_DEV_GPU_UTIL[") => {
            vec![(labels, Box::new(move |_| Some(kernels)))]
        }
        _ => Vec::new(),
    }
}

fn audit(kernels: f64) -> Value {
    let server = FakePrometheus::start(move |query| series(query, kernels));
    let call = format!(
        "audit --from dump.json --prometheus {} --period 24h --gpu-price *=6 --gpu-price H100=6 --fail-on never",
        server.url
    );
    folder().json(&call)
}

fn finding<'d>(document: &'d Value, id: &str) -> Option<&'d Value> {
    document["findings"].as_array().expect("findings").iter().find(|finding| finding["id"] == id)
}

fn gpus(document: &Value, state: &str) -> f64 {
    let mut states = document["states"].as_array().expect("states").iter();
    states.find(|of| of["state"] == state).map_or(0.0, |of| of["gpus"].as_f64().expect("a number"))
}

/// One hour of 24 active, 23 idle: of a month of 720 hours at $6 that is 690 hours, $4,140.
#[test]
fn what_a_server_saw_turns_blind_time_into_idle_time_with_its_price() {
    let found = audit(0.0);
    assert_eq!(
        (&found["measured"]["hours"], &found["measured"]["step_s"]),
        (&json!(24.0), &json!(60.0))
    );
    let idle = gpus(&found, "idle");
    assert!((idle - 23.0 / 24.0).abs() < 2.0 / 1440.0, "{idle}: {:#}", found["states"]);
    assert_eq!(found["headline"]["blind_share"], 0.0);
    let notebook = finding(&found, "IDL-01").expect("it stands still");
    let usd = notebook["usd_micros_per_month"].as_f64().expect("an amount") / 1e6;
    assert!((usd - 4_140.0).abs() < 4_140.0 / 690.0, "{usd}");
    assert!(notebook["formula"].as_str().expect("a formula").contains("× $6.00 per GPU-hour"));
    let coarse = finding(&found, "VIS-03").expect("nothing finer was seen");
    assert_eq!(coarse["evidence"][0]["value"], "gr_engine_active");
    assert!(finding(&found, "VIS-02").is_none());
}

/// Kernels ran all day, and the engine's counter was zero for 23 hours of it: nobody knows what the GPU did.
#[test]
fn a_counter_that_stands_still_makes_time_unknown_and_not_idle() {
    let found = audit(100.0);
    assert!(gpus(&found, "idle") < 0.01, "{:#}", found["states"]);
    assert!(finding(&found, "IDL-01").is_none());
    let dead = finding(&found, "VIS-02").expect("the signals contradict each other");
    let value = dead["evidence"][0]["value"].as_str().expect("text");
    let minutes = value.strip_prefix("GPU a of n1 for ").and_then(|text| text.strip_suffix(" min"));
    let minutes: u64 =
        minutes.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value}"));
    assert!(minutes.abs_diff(23 * 60) <= 2, "{value}");
}
