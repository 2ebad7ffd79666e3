//! How far the methods disagree about the dollars of answers and of jobs.

use std::fmt::Write;

use serde_json::json;

use crate::cost::{HOURS, dump, folder, node, pod};
use crate::cost_job::ONE_HOUR;

const PRICES: &str = "--vcpu-price 0.04 --gib-price 0.005";

/// A p5.48xlarge at $55.04 an hour; with $0.04 a vCPU and $0.005 a GiB a GPU-hour is $4.64 by
/// `residual` and $6.88 by `all-in`, and AWS' weights make $1.101779 of it. Two jobs have six GPUs;
/// one of them four, with 48 vCPUs and 512 GiB, which are $1.92 and $2.56.
#[test]
fn dollars_of_answers_and_jobs_have_their_range_over_the_methods() {
    let folder = folder();
    let mut csv = "timestamp_s,pod,gpu,activity_percent\n".to_owned();
    for step in 0..120 {
        for gpu in 0..4 {
            writeln!(csv, "{},train-0,{gpu},90", 1_795_168_800 + 60 * step).expect("a text");
        }
    }
    folder.write("usage.csv", &csv);
    folder.write("dovetail.toml", ONE_HOUR);
    let from = "--from dump.json --at 2026-11-20T12:00:00Z --usage usage.csv";
    let found = folder.json(&format!("cost questions spot teams {from} {PRICES}"));
    let [spot, teams] = [0, 1].map(|place| found["answers"][place]["range"].clone());
    assert_eq!(spot["what"], "GPU time of training");
    assert_eq!(spot["usd_micros"], 6 * 4_640_000 * HOURS);
    assert_eq!(spot["highest"], json!({"method": "all-in/1", "usd_micros": 6 * 6_880_000 * HOURS}));
    assert_eq!(spot["lowest"]["method"], "aws-split/1");
    let lowest = spot["lowest"]["usd_micros"].as_f64().expect("an amount") / 6.0 / HOURS as f64;
    assert!((lowest - 1_101_779.0).abs() < 1.0, "{lowest}");
    assert_eq!(teams, json!(null));
    let job = folder.json(&format!("cost job train {from} {PRICES}"));
    assert_eq!(job["cost_usd_micros"], (4 * 4_640_000 + 1_920_000 + 2_560_000) * HOURS);
    let all_in = json!({"method": "all-in/1", "cost_usd_micros": 4 * 6_880_000 * HOURS});
    assert_eq!(job["highest"], all_in);
    assert_eq!(job["lowest"]["method"], "aws-split/1");
    let shown = |call: &str| {
        let text = folder.call(&format!("{call} {from} {PRICES}")).out;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = "By method: GPU time of training: $20,044.80 (";
    assert!(shown("cost questions spot").contains(told), "{}", shown("cost questions spot"));
    let told = "to $19,814.40 by all-in/1)";
    assert!(shown("cost job train").contains(told), "{}", shown("cost job train"));
}

/// The job has half of everything of its node: under each method it pays half of the price, to a
/// rounded micro-dollar.
#[test]
fn what_methods_round_is_no_range_in_any_form() {
    let folder = folder();
    let mut half = pod("vision", "train-0", 4, "g1");
    let requests = &mut half["spec"]["containers"][0]["resources"]["requests"];
    (requests["cpu"], requests["memory"]) = (json!("96"), json!("1024Gi"));
    let objects = [node("g1", 8, "h100"), half];
    folder.write("dump.json", &dump(&objects));
    let rows: String =
        (0..60).map(|step| format!("{},train-0,0,0\n", 1_795_172_400 + 60 * step)).collect();
    folder.write("usage.csv", &format!("timestamp_s,pod,gpu,activity_percent\n{rows}"));
    folder.write("dovetail.toml", ONE_HOUR);
    let from = "--from dump.json --at 2026-11-20T12:00:00Z --usage usage.csv";
    for prices in ["", PRICES] {
        let half = 27_520_000 * HOURS;
        let job = folder.json(&format!("cost job train {from} {prices}"));
        assert_eq!(job["cost_usd_micros"], half, "{prices}");
        assert_eq!((&job["lowest"], &job["highest"]), (&json!(null), &json!(null)), "{prices}");
        let bill = folder.json(&format!("cost {from} {prices} --by job"));
        for row in bill["rows"].as_array().expect("rows") {
            for end in ["cost_usd_micros", "lowest_usd_micros", "highest_usd_micros"] {
                assert_eq!(row[end], half, "{row:#}");
            }
        }
    }
}
