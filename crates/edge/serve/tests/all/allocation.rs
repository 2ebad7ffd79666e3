//! OpenCost's questions, answered out of a ledger whose amounts are worked out by hand.

use dovetail_serve::allocation::Ask;
use serde_json::Value;

use crate::world::{BEGIN_MS, ledger};

const NOW_MS: u64 = BEGIN_MS + 2 * 3_600_000;

async fn ask(query: &str) -> Value {
    let (_folder, books) = ledger().await;
    let ask = Ask::read(query, NOW_MS).expect("a question");
    let answer = books.allocation(&ask, NOW_MS).await.expect("an answer");
    serde_json::to_value(&answer).expect("JSON")
}

const TWO_HOURS: &str = "window=2026-11-18T00:00:00Z,2026-11-18T02:00:00Z";

#[tokio::test]
async fn the_answer_has_opencosts_form() {
    let found = ask(&format!("{TWO_HOURS}&aggregate=namespace,controller&includeIdle=true")).await;
    insta::assert_snapshot!(serde_json::to_string_pretty(&found).expect("JSON"));
}

/// By hand, under `residual`: node `a` costs $12 an hour, of it 32 x $0.05 = $1.60 for CPU and
/// $10.40 for two GPUs.
#[tokio::test]
async fn amounts_are_those_worked_out_by_hand() {
    let found = ask(&format!("{TWO_HOURS}&aggregate=namespace&includeIdle=true&step=1h")).await;
    let amount = |step: usize, name: &str, field: &str| found["data"][step][name][field].as_f64();
    for (step, name, field, expected) in [
        (0, "prod", "gpuCost", Some(10.4)),
        (0, "prod", "cpuRamCost", Some(0.4)),
        (0, "prod", "totalCost", Some(10.8)),
        (0, "prod", "gpuHours", Some(2.0)),
        (0, "prod", "gpuCount", Some(2.0)),
        (0, "prod", "gpuEfficiency", Some(0.6)),
        (0, "prod", "gpuActiveShare", Some(1.0)),
        (0, "__idle__", "totalCost", Some(1.2)),
        (1, "prod", "gpuCost", Some(5.2)),
        (1, "prod", "gpuIdleCost", Some(5.2)),
        (1, "prod", "gpuEfficiency", Some(0.0)),
        (1, "prod", "gpuActiveShare", Some(0.0)),
        // The GPU of a free slot is nobody's, and so is all CPU of the second hour.
        (1, "__idle__", "gpuCost", Some(5.2)),
        (1, "__idle__", "totalCost", Some(6.8)),
        // A node without a price costs nobody knows what, and what it did is unknown.
        (0, "lab", "totalCost", None),
        (0, "lab", "gpuHours", Some(1.0)),
        (0, "lab", "gpuUnknownHours", Some(1.0)),
        (0, "lab", "gpuEfficiency", None),
        (0, "lab", "gpuActiveShare", None),
        // Which part of an amount is CPU is not kept.
        (0, "prod", "cpuCost", None),
        (0, "prod", "networkCost", None),
    ] {
        assert_eq!(amount(step, name, field), expected, "{step} {name} {field}: {found:#}");
    }
    assert_eq!(found["data"][0]["lab"]["isPartlyUnpriced"], true);
    assert_eq!(found["data"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn entries_are_named_as_opencost_names_them() {
    for (aggregate, expected) in [
        ("cluster", vec!["west"]),
        ("namespace", vec!["lab", "prod"]),
        ("controller", vec!["deployment:serve", "train"]),
        ("controllerKind", vec!["__unallocated__", "deployment"]),
        ("deployment", vec!["__unallocated__", "serve"]),
        ("pod", vec!["serve-0", "train-0"]),
        ("node", vec!["a", "b"]),
        ("label:team", vec!["all", "eyes"]),
        ("team", vec!["__unallocated__", "eyes"]),
        ("node-pool", vec!["NodePool as", "NodePool bs"]),
        ("gpu-type", vec!["H100"]),
        ("queue", vec!["__unallocated__"]),
        ("", vec!["west/a/prod/serve-0", "west/b/lab/train-0"]),
    ] {
        let found = ask(&format!("{TWO_HOURS}&aggregate={aggregate}")).await;
        let names: Vec<&String> = found["data"][0].as_object().expect("entries").keys().collect();
        assert_eq!(names, expected, "{aggregate}");
        let total = |name: &String| found["data"][0][name]["totalCost"].as_f64().unwrap_or(0.0);
        let sum: f64 = names.into_iter().map(total).sum();
        assert!((sum - 16.0).abs() < 1e-9, "{aggregate}: {sum}");
    }
}

#[tokio::test]
async fn time_that_nobody_read_is_told() {
    assert_eq!(ask(TWO_HOURS).await["warning"], Value::Null);
    let found = ask("window=2d").await;
    let told = found["warning"].as_str().expect("a warning");
    assert_eq!(told, "no data, so not included in any amount: west: 24 h");
}

/// It is 02:00: the hour until 03:00 is running, and what comes after it is no zero.
#[tokio::test]
async fn a_window_that_ends_in_the_future_is_answered_until_now() {
    let found = ask("window=2026-11-18T00:00:00Z,2026-11-19T00:00:00Z&aggregate=namespace").await;
    let told = "the requested window ends at 2026-11-19T00:00:00Z, in the future; the answer ends \
         at 2026-11-18T03:00:00Z";
    assert_eq!(found["warning"], told);
    let prod = &found["data"][0]["prod"];
    assert_eq!((&prod["gpuHours"], &prod["end"]), (&3.0.into(), &"2026-11-18T03:00:00Z".into()));
}
