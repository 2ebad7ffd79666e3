//! `dovetail cost questions`: what people ask first, worked by hand.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cost::{ended_pod, made_long_ago, node, pod};
use crate::program::Folder;

const SOURCE: &str = "--from dump.json --at 2026-11-20T12:00:00Z --usage usage.csv";
const END_S: u64 = 1_795_176_000;

/// Eight H100 at $6.88. Of vision four, at 20% for eight hours and at 95% for four; of nlp one
/// that is never used, two that nobody measured, and a pod that needs none.
fn folder() -> Folder {
    let folder = Folder::new();
    let team = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "vision", "labels": {"team": "eyes"}}});
    let objects = [
        node("g1", 8, "h100"),
        team,
        made_long_ago(pod("vision", "train-0", 4, "g1")),
        made_long_ago(pod("nlp", "tune-0", 1, "g1")),
        pod("nlp", "blind-0", 2, "g1"),
        pod("nlp", "web-0", 0, "g1"),
    ];
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    let mut usage = "timestamp_s,pod,gpu,activity_percent,memory_bytes,namespace,node\n".to_owned();
    for step in 0..144 {
        let at_s = END_S - (144 - step) * 300;
        for gpu in 0..4 {
            let activity = if step < 96 { 20 } else { 95 };
            _ = writeln!(usage, "{at_s},train-0,{gpu},{activity},,vision,g1");
        }
        _ = writeln!(usage, "{at_s},tune-0,0,0,,nlp,g1");
    }
    folder.write("usage.csv", &usage);
    folder
}

fn answer<'d>(document: &'d Value, name: &str) -> &'d Value {
    let answers = document["answers"].as_array().expect("answers");
    answers.iter().find(|answer| answer["name"] == name).unwrap_or_else(|| panic!("{document:#}"))
}

fn row<'d>(answer: &'d Value, key: &str, value: &str) -> &'d Value {
    let rows = answer["rows"].as_array().expect("rows");
    rows.iter().find(|row| row[key] == value).unwrap_or_else(|| panic!("{value}: {answer:#}"))
}

fn near(value: &Value, wanted: f64) {
    let found = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((found - wanted).abs() < 1e-3 * wanted.abs().max(1.0), "{found}, not {wanted}");
}

#[test]
fn answers_are_those_worked_by_hand() {
    let folder = folder();
    let all = folder.json(&format!("cost questions {SOURCE}"));
    assert_eq!(all["schema"], "dovetail-cost-questions/1");
    near(&all["sampled_hours"], 12.0);
    // A month has 720 hours.
    let tune = row(answer(&all, "top"), "job", "Job nlp/tune");
    near(&tune["waste_gpu_hours"], 720.0);
    assert_eq!(tune["waste_usd_micros"], 720 * 6_880_000_i64);
    assert_eq!(tune["mostly"], "idle");
    assert_eq!(answer(&all, "top")["rows"].as_array().map(Vec::len), Some(1));
    let eyes = row(answer(&all, "teams"), "team", "eyes");
    near(&eyes["allocated_gpu_hours"], 2_880.0);
    near(&eyes["active_share"], 1.0);
    near(&eyes["utilisation"], (8.0 * 0.20 + 4.0 * 0.95) / 12.0);
    // Of the others one is idle, two are not known.
    let others = row(answer(&all, "teams"), "team", "(unknown)");
    near(&others["utilisation"], 0.0);
    near(&others["utilisation_at_least"], 0.0);
    near(&others["utilisation_at_most"], 2.0 / 3.0);
    let idle = row(answer(&all, "idle"), "team", "total");
    near(&idle["idle_gpu_hours"], 720.0);
    near(&idle["unknown_gpu_hours"], 1_440.0);
    near(&idle["idle_share"], 1.0 / 7.0);
    // A window that begins after t hours, 2 < t < 8, has a mean of (20 (8 − t) + 95 (t − 2)) / 6,
    // which is 30 at t = 2.8: until 8.8 hours.
    let train = row(answer(&all, "low"), "pod", "vision/train-0");
    near(&train["lowest_6h_mean"], 0.20);
    near(&train["low_hours"], 8.8);
    near(&train["low_gpu_hours"], 4.0 * 8.8);
    near(&row(answer(&all, "low"), "pod", "nlp/tune-0")["low_hours"], 12.0);
    assert!(
        answer(&all, "low")["uncertainty"]
            .to_string()
            .contains("of 3 pods with GPUs, 1 was not measured"),
        "{all:#}"
    );
    let beside = row(answer(&all, "beside"), "node", "g1");
    assert_eq!((&beside["pods_without_gpus"], &beside["of"]), (&json!(1), &json!("Job nlp/web")));
}

#[test]
fn each_is_asked_alone_and_what_nobody_knows_is_unknown() {
    let folder = folder();
    let two = folder.json(&format!("cost questions low idle {SOURCE}"));
    let names: Vec<&Value> =
        two["answers"].as_array().expect("answers").iter().map(|answer| &answer["name"]).collect();
    assert_eq!(names, [&json!("low"), &json!("idle")]);
    let blind = folder.json("cost questions --from dump.json --at 2026-11-20T12:00:00Z");
    for name in ["top", "teams", "idle", "low"] {
        let because = answer(&blind, name)["unknown_because"].as_str().unwrap_or_default();
        assert!(because.contains("--usage FILE"), "{name}: {blind:#}");
    }
    assert_eq!(answer(&blind, "beside")["unknown_because"], Value::Null);
    for wrong in ["cost questions idle idle", "cost questions why"] {
        let done = folder.call(&format!("{wrong} {SOURCE}"));
        assert_eq!(done.code, Some(2), "{wrong}: {}", done.err);
    }
}

#[test]
fn the_example_answers_all_of_them() {
    let folder = Folder::new();
    let found = folder.json("cost questions --example");
    let bill = folder.json("cost --example --by team");
    for answer in found["answers"].as_array().expect("answers") {
        // A snapshot counts no requests.
        if answer["name"] == "requests" {
            continue;
        }
        assert_eq!(answer["unknown_because"], Value::Null, "{answer:#}");
        assert!(answer["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{answer:#}");
    }
    // What the bill has by team is what the answers add up to.
    let total = row(answer(&found, "idle"), "team", "total");
    near(&total["idle_gpu_hours"], bill["total"]["idle_gpu_hours"].as_f64().expect("hours"));
    near(
        &total["allocated_gpu_hours"],
        bill["total"]["allocated_gpu_hours"].as_f64().expect("hours"),
    );
    let spot = answer(&found, "spot")["rows"].as_array().expect("rows").iter();
    near(&json!(spot.map(|row| row["share"].as_f64().expect("a share")).sum::<f64>()), 1.0);
    let table = folder.call("cost questions --example");
    assert!(table.out.lines().all(|line| line.chars().count() <= 100), "{}", table.out);
}

fn sentence<'d>(document: &'d Value, name: &str, key: &str) -> &'d str {
    answer(document, name)[key].as_str().unwrap_or_else(|| panic!("{name}.{key}: {document:#}"))
}

#[test]
fn where_there_is_nothing_it_is_said_what_was_looked_for() {
    let folder = Folder::new();
    let write = |objects: &[Value]| {
        folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    };
    let call = "cost questions --from dump.json --at 2026-11-20T12:00:00Z";
    write(&[node("g1", 8, "h100"), ended_pod()]);
    let none = folder.json(call);
    for (name, said) in [
        ("top", "no pod had a GPU in this snapshot"),
        ("teams", "no pod had a GPU in this snapshot"),
        ("idle", "no pod had a GPU in this snapshot"),
        ("low", "no pod had a GPU in this snapshot"),
        ("beside", "only pods with GPUs and pods of DaemonSets run on 1 node with GPUs"),
        ("spot", "no training had a GPU in this snapshot"),
        ("runs", "no training had a GPU in this snapshot"),
        ("wait", "no existing pod requested GPUs"),
    ] {
        assert_eq!(sentence(&none, name, "none_because"), said);
        assert_eq!(answer(&none, name)["unknown_because"], Value::Null, "{name}");
    }
    let told = folder.call(call).out;
    assert!(
        told.contains("(spot)\nNone: no training had a GPU in this snapshot.\nHow: "),
        "{told}"
    );
    write(&[node("c1", 0, "web"), pod("nlp", "web-0", 0, "c1")]);
    assert_eq!(sentence(&folder.json(call), "beside", "none_because"), "no node has GPUs");
}

/// Of no hours there is no share: not even one of zero.
#[test]
fn a_share_of_nothing_is_null() {
    let folder = Folder::new();
    let objects = json!({"kind": "List", "items": [node("g1", 8, "h100")]});
    folder.write("dump.json", &objects.to_string());
    let all = folder.json("cost questions --from dump.json --at 2026-11-20T12:00:00Z");
    for (name, share) in [("teams", "active_share"), ("idle", "idle_share")] {
        let total = row(answer(&all, name), "team", "total");
        near(&total["allocated_gpu_hours"], 0.0);
        assert_eq!(total.get(share), Some(&Value::Null), "{total:#}");
    }
}

#[test]
fn of_one_thing_it_is_said_in_the_singular() {
    let folder = Folder::new();
    let objects = [
        node("g1", 8, "h100"),
        made_long_ago(pod("vision", "train-0", 1, "g1")),
        pod("nlp", "web-0", 0, "g1"),
    ];
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    let mut usage = "timestamp_s,pod,gpu,activity_percent,memory_bytes,namespace,node\n".to_owned();
    for step in 0..144 {
        _ = writeln!(usage, "{},train-0,0,0,,vision,g1", END_S - (144 - step) * 300);
    }
    folder.write("usage.csv", &usage);
    let one = folder.json(&format!("cost questions {SOURCE}"));
    assert_eq!(
        sentence(&one, "top", "uncertainty"),
        "these are all workloads with waste; whether 0% of the allocated GPU time is waste is \
         unknown, so it is not counted"
    );
    assert_eq!(
        sentence(&one, "low", "uncertainty"),
        "the one pod with GPUs was measured long enough"
    );
    let beside = sentence(&one, "beside", "uncertainty");
    assert!(beside.starts_with("1 of 1 node with GPUs carries such pods; "), "{beside}");
    assert!(beside.contains("all-in assigns the whole price of a node to its GPUs"), "{beside}");
    assert_eq!(
        sentence(&one, "runs", "unknown_because"),
        "it is unknown how long 1 training pod has used whole GPUs: add --prometheus URL"
    );
    for answer in one["answers"].as_array().expect("answers") {
        assert_eq!(answer["none_because"], Value::Null, "{answer:#}");
    }
}

/// What trains is told once, for the share on spot capacity and for runs.
#[test]
fn both_questions_about_training_tell_the_same_definition() {
    let folder = folder();
    let found = folder.json(&format!("cost questions spot runs {SOURCE}"));
    let definition = |name: &str| {
        let how = sentence(&found, name, "how");
        how[how.find("training is GPU work").unwrap_or_else(|| panic!("{how}"))..].to_owned()
    };
    assert_eq!(definition("spot"), definition("runs"));
    // Seven GPUs of three Jobs.
    near(&row(answer(&found, "spot"), "bought", "on demand")["gpu_hours"], 7.0 * 720.0);
}
