//! The interfaces that others call, on the published traces.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::program::command;

pub(crate) fn traces(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("DOVETAIL_TRACES").map(PathBuf::from);
    if folder.is_none() {
        let line = format!("skipped: {test}: set DOVETAIL_TRACES\n");
        // Not by `eprintln!`, which the test harness hides for tests that pass.
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    folder
}

fn json(folder: &std::path::Path, arguments: &str) -> Value {
    let mut command = command(folder);
    let output = command.args(arguments.split_whitespace()).args(["--output", "json"]).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn the_computed_orders_are_those_of_the_published_files() {
    let Some(folder) = traces("the_computed_orders_are_those_of_the_published_files") else {
        return;
    };
    let run = "sim run --protocol fgd --nodes openb/openb_node_list_gpu_node.csv \
               --pods openb/openb_pod_list_gpuspec33.csv --policy best-fit --seed 44";
    let files = "--arrivals openb/arrivals/gpuspec33.csv.gz --node-order openb/node_order.csv.gz";
    let (computed, given) = (json(&folder, run), json(&folder, &format!("{run} {files}")));
    assert_eq!(computed["event_log_hash"], given["event_log_hash"]);
    assert_eq!(computed["allocation_percent"].as_array().map(Vec::len), Some(131));
    assert_eq!(computed["fragmentation_percent"].as_array().map(Vec::len), Some(131));
}

#[test]
fn published_times_come_out_of_the_command_line() {
    let Some(folder) = traces("published_times_come_out_of_the_command_line") else { return };
    let run = json(
        &folder,
        "sim run --protocol timed --jobs jobs/muri_trace3.csv --nodes 8x8 --order srtf \
         --start-overhead expected/muri_start_overhead_s.csv",
    );
    // Muri (SIGCOMM 2022), SRTF on trace 3.
    let average_jct_s = run["average_jct_s"].as_f64().unwrap();
    assert!((average_jct_s / 193_081.796 - 1.0).abs() < 1e-8, "{average_jct_s}");
}
