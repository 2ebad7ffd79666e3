//! `dovetail usage` on the published duty cycles of 143 pods.

use serde_json::{Value, json};

use crate::duty_cycles;
use crate::program::Folder;
use crate::real_traces::traces;

#[test]
fn idle_runs_of_the_published_pods_are_those_counted_independently() {
    let Some(traces) = traces("idle_runs_of_the_published_pods_are_those_counted_independently")
    else {
        return;
    };
    let folder = Folder::new();
    folder.write("duty.csv", &duty_cycles::as_usage_file(&traces));
    let expected = std::fs::read(traces.join("expected/genai_waste.json")).expect("the figures");
    let expected: Value = serde_json::from_slice(&expected).expect("JSON");
    let idle = &expected["duty_lt_5"];
    for minutes in [10, 30, 60, 180] {
        let found = folder.json(&format!(
            "usage idle --usage duty.csv --threshold-percent 5 --min-run {minutes}m --grace {minutes}m"
        ));
        let number = |value: &Value| json!(value.as_f64().expect("a number"));
        let in_all = [
            ("samples", &expected["samples"]),
            ("pods", &expected["pods"]),
            ("sample_step_s", &expected["sample_step_s"]),
            ("gpu_hours", &expected["gpu_hours_total"]),
            ("idle_gpu_hours", &idle["idle_gpu_hours"]),
            ("idle_share", &idle["idle_share"]),
        ];
        let of_runs = [
            ("runs", &idle[format!("runs_ge_{minutes}min")]),
            ("gpu_hours_in_runs", &idle[format!("gpu_hours_in_runs_ge_{minutes}min")]),
            (
                "reclaimable_gpu_hours",
                &idle[format!("reclaimable_gpu_hours_after_{minutes}min_grace")],
            ),
        ];
        for (key, expected) in in_all.into_iter().chain(of_runs) {
            assert_eq!(number(&found[key]), number(expected), "{key} at {minutes} minutes");
        }
    }
}

#[test]
fn bad_rows_are_left_out_when_asked_and_listed() {
    let folder = Folder::new();
    let rows = "60,p,0,0\n0,p,0,0\n120,p,0,NaN\n60,p,0,0\nx\n";
    folder.write("some.csv", &format!("timestamp_s,pod,gpu,activity_percent\n{rows}"));
    let done = folder.call("usage idle --usage some.csv --skip-bad-rows --output json");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let found: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!([&found["samples"], &found["skipped_rows"], &found["duplicate_rows"]], [2, 2, 1]);
    for listed in ["some.csv:4: column `activity_percent`: `NaN`", "some.csv:6: `x`"] {
        assert!(done.err.contains(listed), "{}", done.err);
    }
}
