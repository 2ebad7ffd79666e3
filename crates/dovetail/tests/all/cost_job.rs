//! `dovetail cost job`: the time and the bill of one job, in parts that are all of it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cost::{made_long_ago, node, pod};
use crate::program::Folder;

const SOURCE: &str = "--from dump.json --at 2026-11-20T12:00:00Z";
const END_S: u64 = 1_795_176_000;

/// By default samples of less than 12 hours say nothing of a month.
pub(crate) const ONE_HOUR: &str = "[audit]\nleast_measured_hours = 1\n";

/// Three jobs on eight GPUs; `train` is in two namespaces, and only that of vision was measured:
/// each of its GPUs rests for 40 of 100 minutes, then works.
fn folder() -> Folder {
    let folder = Folder::new();
    let objects = [
        node("g1", 8, "h100"),
        made_long_ago(pod("vision", "train-0", 4, "g1")),
        made_long_ago(pod("nlp", "train-0", 2, "g1")),
        made_long_ago(pod("nlp", "tune-0", 1, "g1")),
    ];
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    let mut usage = "timestamp_s,pod,gpu,activity_percent,memory_bytes,namespace,node\n".to_owned();
    for minute in 0..100 {
        for gpu in 0..4 {
            let activity = if (20..60).contains(&minute) { 0 } else { 95 };
            let at_s = END_S - (100 - minute) * 60;
            _ = writeln!(usage, "{at_s},train-0,{gpu},{activity},,vision,g1");
        }
    }
    folder.write("usage.csv", &usage);
    folder.write("dovetail.toml", ONE_HOUR);
    folder
}

fn part<'d>(document: &'d Value, phase: &str) -> Option<&'d Value> {
    document["parts"].as_array().expect("parts").iter().find(|part| part["phase"] == phase)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The parts are the job, and the job is its row in `cost --by job`.
pub(crate) fn is_its_bill(job: &Value, bill: &Value) {
    let rows = bill["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["key"]["job"] == job["job"]);
    let row = row.unwrap_or_else(|| panic!("{}: {bill:#}", job["job"]));
    assert_eq!(job["gpu_hours"], row["gpu_hours"]);
    assert_eq!(job["cost_usd_micros"], row["cost_usd_micros"]);
    let parts = || job["parts"].as_array().expect("parts").iter();
    if let Some(all) = job["cost_usd_micros"].as_i64() {
        let cost: i64 = parts().filter_map(|part| part["cost_usd_micros"].as_i64()).sum();
        assert_eq!(Some(cost), job["gpu_usd_micros"].as_i64());
        assert_eq!(Some(all - cost), job["other_usd_micros"].as_i64());
    }
    let hours: f64 = parts().map(|part| number(&part["gpu_hours"])).sum();
    assert!((hours - number(&job["gpu_hours"])).abs() < 1e-6, "{hours}: {job:#}");
}

/// Samples that were given and say nothing of the job are told with the reason, as the bill has it.
#[test]
fn samples_that_were_left_out_of_a_job_are_told() {
    let folder = folder();
    let dump = folder.read("dump.json");
    let mut dump: Value = serde_json::from_str(&dump).expect("JSON");
    dump["items"][1]["metadata"]["creationTimestamp"] = json!("2026-11-20T12:00:00Z");
    folder.write("dump.json", &dump.to_string());
    let call = |usage: &str| folder.call(&format!("cost job vision/train {SOURCE} {usage}"));
    let done = call("--usage usage.csv");
    let told = "no samples of its pods remain; usage.csv: ignored 400 samples of pod \
                vision/train-0, from before the pod was created";
    assert!(done.code == Some(3) && done.err.contains(told), "{:?} {}", done.code, done.err);
    folder.write("ghost.csv", &folder.read("usage.csv").replace("train-0", "ghost-0"));
    let done = call("--usage ghost.csv");
    let told = "no samples of its pods remain; ghost.csv: ignored 1 measured pod without a GPU now";
    assert!(done.err.contains(told), "{}", done.err);
    assert!(call("").err.contains("pass samples with --usage FILE.csv"), "{}", call("").err);
}

/// Activity alone tells pauses by their length, and nothing of what is busy.
#[test]
fn a_month_is_split_as_its_samples_were() {
    let folder = folder();
    for prices in
        ["", "--vcpu-price 0.04 --gib-price 0.005", "--method aws-split --unused distributed"]
    {
        let call = format!("cost job vision/train {SOURCE} --usage usage.csv {prices}");
        let found = folder.json(&call);
        let bill = folder.json(&format!("cost {SOURCE} --usage usage.csv {prices} --by job"));
        is_its_bill(&found, &bill);
        assert_eq!(
            (&found["schema"], &found["basis"]),
            (&json!("dovetail-cost-job/1"), &json!("run-rate"))
        );
        assert_eq!((&found["job"], &found["ranks"]), (&json!("Job vision/train"), &json!(4)));
        assert_eq!(found["signals"], json!(["activity"]));
        let pause = part(&found, "long_pause").expect("a pause");
        assert!((number(&pause["share"]) - 0.4).abs() < 0.02, "{found:#}");
        let busy = part(&found, "busy_not_separable").expect("something busy");
        assert!((number(&busy["share"]) - 0.6).abs() < 0.03, "{found:#}");
        assert!(part(&found, "compute").is_none() && part(&found, "synchronisation").is_none());
        assert!(found["notes"].to_string().contains("only activity was measured"), "{found:#}");
    }
    let table = folder.call(&format!("cost job train -n vision {SOURCE} --usage usage.csv"));
    assert!(table.out.lines().all(|line| line.chars().count() <= 100), "{}", table.out);
    for said in [
        "Job vision/train: 2,880 GPU-hours a month",
        "how much of it was spent computing is",
        "long_pause",
        "DCGM_FI_PROF_PIPE_TENSOR",
        // What a reader needs who never saw it.
        "\nbusy_not_separable: the GPUs were busy, but no available signal distinguishes",
        "\nconfidence, for most of a part's time: high if events or two signals show it",
    ] {
        assert!(table.out.contains(said), "{said}: {}", table.out);
    }
}

/// A pod that starts does so for a time that nobody knows, and a few samples are no month.
#[test]
fn what_is_too_recent_is_no_month_of_a_job() {
    let folder = folder();
    std::fs::remove_file(folder.path("dovetail.toml")).expect("a file");
    let short = folder.call(&format!("cost job vision/train {SOURCE} --usage usage.csv"));
    assert!(short.code == Some(3) && short.err.contains("too few samples"), "{}", short.err);
    let mut slow = made_long_ago(pod("vision", "slow-0", 1, "g1"));
    slow["status"] = json!({"phase": "Pending"});
    let objects = json!({"kind": "List", "items": [node("g1", 8, "h100"), slow]});
    folder.write("dump.json", &objects.to_string());
    let told = folder.call(&format!("cost job slow {SOURCE}"));
    assert!(told.code == Some(3) && told.err.contains("for how long is unknown"), "{}", told.err);
}

#[test]
fn what_cannot_be_told_is_said() {
    let folder = folder();
    for (name, code, said) in [
        ("train", 2, "2 jobs are named `train`: `Job nlp/train`, `Job vision/train`"),
        (
            "tarin",
            2,
            "no job named `tarin` had a GPU: most GPU-hours were used by `Job vision/train`",
        ),
        ("tune -n vision", 2, "no job named `tune` in namespace `vision`"),
        // The others were not measured.
        ("tune", 3, "Job nlp/tune: GPU use was not measured in its 720.0 GPU-hours"),
    ] {
        let done = folder.call(&format!("cost job {name} {SOURCE} --usage usage.csv"));
        assert_eq!(done.code, Some(code), "{name}: {}", done.err);
        assert!(done.err.contains(said), "{name}: {}", done.err);
    }
    let nobody = folder.call(&format!("cost job vision/train {SOURCE}"));
    assert_eq!(nobody.code, Some(3), "{}", nobody.err);
    assert!(nobody.err.contains("--usage FILE.csv"), "{}", nobody.err);
    let twice = folder.call("cost --by team job vision/train --example");
    assert_eq!(twice.code, Some(2), "{}", twice.out);
}

/// Every job of the generated cluster that was measured is its bill; those with all signals are
/// told apart.
#[test]
fn jobs_of_the_example_are_told_without_a_cluster() {
    let folder = Folder::new();
    let bill = folder.json("cost --example --by job");
    let rows = bill["rows"].as_array().expect("rows").iter();
    let measured = rows.filter(|row| number(&row["blind_gpu_hours"]) < number(&row["gpu_hours"]));
    let mut told = 0;
    for row in measured.filter(|row| row["key"]["job"] != "(no owner)").step_by(17) {
        let name = row["key"]["job"].as_str().expect("a name");
        let done = folder.call(&format!(
            "cost job {} --example --output json",
            name.split(' ').nth(1).expect("a path")
        ));
        // A name of several kinds is refused.
        if done.code == Some(0) {
            is_its_bill(&serde_json::from_str(&done.out).expect("JSON"), &bill);
            told += 1;
        }
    }
    assert!(told >= 3, "{told} of {bill:#}");
    for (kind, phase) in [
        ("straggler", "synchronisation"),
        ("starved", "data_loading"),
        ("failing", "repeated"),
        ("hanging", "hang"),
        ("notebook", "long_pause"),
        ("lingering", "tail"),
    ] {
        let found = folder.json(&format!("cost job {kind} --example"));
        let share = part(&found, phase).map_or(0.0, |part| number(&part["share"]));
        assert!(share > 0.03, "{kind}: {found:#}");
        assert!(
            part(&found, "compute").is_some_and(|part| part["cost_usd_micros"].as_i64() > Some(0))
        );
    }
}
