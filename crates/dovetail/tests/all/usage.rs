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

/// By hand: `busy` has a whole GPU for 6 minutes and is never idle; `slice` has half of one for 6
/// minutes, all idle, of which 4 lie after a grace of 2.
#[test]
fn idle_pods_are_listed_and_a_slice_counts_with_its_part() {
    let folder = Folder::new();
    let mut rows = "timestamp_s,pod,gpu,activity_percent,namespace,gpu_share\n".to_owned();
    for minute in 0..6 {
        let at_s = 60 * minute;
        rows += &format!("{at_s},busy,0,90,lab,\n{at_s},slice,1,0,lab,0.5\n");
    }
    folder.write("some.csv", &rows);
    let call = "usage idle --usage some.csv --min-run 2m";
    let found = folder.json(call);
    assert_eq!((&found["gpu_hours"], &found["idle_gpu_hours"]), (&json!(0.15), &json!(0.05)));
    assert_eq!(found["idle_share"], json!(0.3333));
    let expected = json!([{"namespace": "lab", "pod": "slice", "gpu_hours": 0.05,
        "idle_gpu_hours": 0.05, "idle_share": 1.0, "runs": 1, "gpu_hours_in_runs": 0.05,
        "reclaimable_gpu_hours": 0.03}]);
    assert_eq!(found["idle_pods"], expected);
    let text = folder.call(call).out;
    assert!(text.contains("lab/slice") && !text.contains("lab/busy"), "{text}");
    assert_eq!(folder.json(&format!("{call} -n lab"))["idle_pods"], expected);
    assert_eq!(folder.json(&format!("{call} -n other"))["idle_pods"], json!([]));
    folder.write("bad.csv", &rows.replace("300,slice,1,0,lab,0.5", "300,slice,1,0,lab,0.25"));
    let done = folder.call("usage idle --usage bad.csv");
    let told = "bad.csv:13: column `gpu_share`: `0.25` differs from 0.5 in an earlier row";
    assert!(done.err.contains(told), "{}", done.err);
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
