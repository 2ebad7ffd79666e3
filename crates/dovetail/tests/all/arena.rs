//! `dovetail sim arena`: its JSON, and a comparison that was stopped and resumed.

use serde_json::Value;

use crate::program::Folder;

const SMALL: &str = "sim arena --regimes training/10-nodes/load-0.7/fifo-skip \
                     --policies best-fit,kube-default,dovetail --seeds 2 --orders 2";

#[test]
fn the_json_has_the_keys_that_were_promised() {
    let shown = Folder::new().json(SMALL);
    let regime = &shown["regimes"][0];
    assert_eq!(regime["name"], "training/10-nodes/load-0.7/fifo-skip");
    assert_eq!(regime["family"], "training");
    assert_eq!(regime["figure"], "gpu_weighted_wait_hours");
    assert_eq!((&regime["unit"], &regime["higher_is_better"]), (&"hours".into(), &false.into()));
    assert!(regime["easy"].is_boolean(), "{regime}");
    let reference = regime["reference"].as_str().unwrap();
    assert!(["best-fit", "kube-default"].contains(&reference), "{reference}");
    for policy in ["best-fit", "kube-default", "dovetail"] {
        let estimate = &regime["by_policy"][policy];
        let [low, mean, high] = ["low", "mean", "high"].map(|key| estimate[key].as_f64().unwrap());
        assert!(low <= mean && mean <= high, "{estimate}");
        assert!(regime["regret"][policy].is_f64(), "{regime}");
        let summary = &shown["summary"][policy];
        assert!(regime["easy"] == true || summary["mean_regret_percent"].is_f64(), "{summary}");
        assert!(regime["easy"] == true || summary["worst_regret_percent"].is_f64(), "{summary}");
        assert!(regime["easy"] == true || summary["wins"].is_u64(), "{summary}");
    }
    assert_eq!(regime["regret"][reference], 0.0);
}

#[test]
fn a_comparison_that_was_cut_off_ends_as_one_that_was_not() {
    let folder = Folder::new();
    let resumed = format!("{SMALL} --resume runs.jsonl");
    let whole: Value = folder.json(SMALL);
    assert_eq!(folder.json(&resumed), whole, "a file changes nothing");
    let mut lines: Vec<String> = folder.read("runs.jsonl").lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 1 + 2 * 2 * 3, "settings, and a line for each run");
    // As if the program had been killed within its sixth run.
    let kept = lines[..6].join("\n");
    folder.write("runs.jsonl", &format!("{kept}\n{}", &lines[6][..30]));
    assert_eq!(folder.json(&resumed), whole);
    let mut again: Vec<String> = folder.read("runs.jsonl").lines().map(str::to_owned).collect();
    lines.sort_unstable();
    again.sort_unstable();
    assert_eq!(again, lines);
    // All are there: none is run again, and other settings are refused by name.
    let done = folder.call(&resumed);
    assert!(done.err.contains("runs.jsonl has 12 finished runs"), "{}", done.err);
    let done = folder.call(&resumed.replace("--seeds 2", "--seeds 3"));
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.err.contains("seeds [42, 43] there, [42, 43, 44] here"), "{}", done.err);
}

#[test]
fn without_outside_data_the_rest_runs_and_says_so() {
    let folder = Folder::new();
    let done = folder.call("sim arena --regimes training,plain --policies best-fit --seeds 0");
    assert_eq!(done.code, Some(2), "{}", done.err);
    let regimes = "training/10-nodes/load-0.7/fifo-skip,plain";
    let done = folder
        .call(&format!("sim arena --regimes {regimes} --policies best-fit --seeds 1 --orders 1"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("14 regimes need traces that are not there"), "{}", done.err);
    let done = folder.call("sim arena --regimes plain");
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("set DOVETAIL_TRACES or --traces"), "{}", done.err);
}
