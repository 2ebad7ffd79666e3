//! The generated cluster: what `--example` shows is what the files of `trace synth --dump` show.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::program::{Done, Folder};

fn json(folder: &Folder, call: &str) -> Value {
    let done = folder.call(&format!("{call} --output json"));
    parsed(&done)
}

fn parsed(done: &Done) -> Value {
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {}", done.err))
}

fn ids(document: &Value) -> BTreeSet<&str> {
    let findings = document["findings"].as_array().expect("findings").iter();
    findings.map(|finding| finding["id"].as_str().expect("an id")).collect()
}

/// Checks that the slips of the generated cluster are made for.
const FOUND: [&str; 34] = [
    "AUT-02", "AUT-04", "AUT-05", "AUT-06", "CAP-01", "CAP-02", "GOV-01", "GOV-02", "GOV-03",
    "IDL-01", "IDL-02", "IDL-03", "IDL-04", "IDL-05", "IDL-06", "REQ-02", "REQ-03", "REQ-04",
    "REQ-05", "REQ-06", "REQ-08", "REQ-12", "SCH-01", "SCH-02", "SCH-03", "SCH-04", "SCH-05",
    "SCH-06", "SCH-09", "SCH-10", "SCH-11", "SHR-02", "SPT-01", "VIS-01",
];

#[test]
fn the_example_has_findings_of_most_checks_and_they_are_no_more_than_the_waste() {
    let folder = Folder::new();
    let document = json(&folder, "audit --example");
    let found = ids(&document);
    let missing: Vec<&&str> = FOUND.iter().filter(|id| !found.contains(**id)).collect();
    assert!(missing.is_empty(), "{missing:?} of {found:?}");
    let head = &document["headline"];
    let micros = |value: &Value| value.as_i64().unwrap_or(0);
    let findings = document["findings"].as_array().expect("findings").iter();
    let claimed: i64 = findings.map(|finding| micros(&finding["usd_micros_per_month"])).sum();
    let waste = micros(&head["waste_usd_micros_per_month"]);
    let bill = micros(&head["bill_usd_micros_per_month"]);
    assert!(0 < claimed && claimed <= waste && waste <= bill, "{claimed} {waste} {bill}");
    assert_eq!(document["measured"]["hours"], 24.0);
    let table = folder.call("audit --example");
    assert_eq!(table.code, Some(5), "{}", table.err);
    assert!(table.out.lines().all(|line| line.chars().count() <= 100), "{}", table.out);
    // Measured time is idle or active, and what nobody measures is still blind.
    for state in ["idle ", "active not separable", "unknown"] {
        assert!(table.out.contains(state), "{state}: {}", table.out);
    }
}

#[test]
fn the_dump_of_the_example_says_the_same() {
    let folder = Folder::new();
    let written = json(&folder, "trace synth --seed 42 --nodes 32 --dump d --usage u.csv");
    assert_eq!(written["at"], "2026-11-20T12:00:00Z");
    let audit = "audit --from d --at 2026-11-20T12:00:00Z --usage u.csv";
    let (mut dumped, mut example) = (json(&folder, audit), json(&folder, "audit --example"));
    for document in [&mut dumped, &mut example] {
        document.as_object_mut().expect("a document").remove("sources");
    }
    assert_eq!(dumped, example);
    // A collection of it too: what is left out is not read.
    let collect = "collect --from d --at 2026-11-20T12:00:00Z --to kept.json.gz";
    assert_eq!(folder.call(collect).code, Some(0));
    let mut kept = json(&folder, "audit --from kept.json.gz --usage u.csv");
    kept.as_object_mut().expect("a document").remove("sources");
    assert_eq!(kept, example);
    // What was measured turns blind time into idle and active time of the bill, and nothing else.
    let without = json(&folder, "cost --from d --at 2026-11-20T12:00:00Z --by cause");
    let with = json(&folder, "cost --example --by cause");
    let total = |document: &Value, key: &str| document["total"][key].as_f64().expect("a number");
    assert_eq!(with["total"]["cost_usd_micros"], without["total"]["cost_usd_micros"]);
    assert_eq!(total(&with, "allocated_gpu_hours"), total(&without, "allocated_gpu_hours"));
    assert!(total(&with, "idle_gpu_hours") > 0.0 && total(&without, "idle_gpu_hours") == 0.0);
    assert!(total(&with, "blind_gpu_hours") < total(&without, "blind_gpu_hours"));
}

#[test]
fn an_anonymous_collection_has_the_findings_dollars_and_causes_of_its_cluster() {
    const AT: &str = "--at 2026-11-20T12:00:00Z";
    let folder = Folder::new();
    let told = folder.call("trace synth --seed 42 --nodes 32 --dump d --usage u.csv").out;
    // Who follows the advice sees what was measured too.
    assert!(told.contains(&format!("dovetail audit --from d {AT} --usage u.csv")), "{told}");
    let told = folder.call("trace synth --seed 42 --nodes 32 --dump d").out;
    assert!(told.contains(&format!("dovetail audit --from d {AT}\n")), "{told}");
    let collect = format!("collect --from d {AT} --to anon.json.gz --anonymise --names n.json");
    assert_eq!(folder.call(&collect).code, Some(0));
    let findings = |from: &str| -> Vec<String> {
        let document = json(&folder, &format!("audit --from {from} {AT}"));
        let found = document["findings"].as_array().expect("findings").iter();
        let told = |finding: &Value| {
            ["id", "severity", "usd_micros_per_month", "gpu_hours_per_month", "affected_objects"]
                .map(|part| finding[part].to_string())
                .join(" ")
        };
        let mut told: Vec<String> = found.map(told).collect();
        told.sort();
        told.push(document["headline"].to_string());
        told
    };
    assert_eq!(findings("anon.json.gz"), findings("d"));
    let causes = |from: &str| {
        let document = json(&folder, &format!("cost --from {from} {AT} --by cause"));
        (document["rows"].clone(), document["total"].clone())
    };
    assert_eq!(causes("anon.json.gz"), causes("d"));
}

#[test]
fn what_cannot_be_generated_or_measured_is_told() {
    let folder = Folder::new();
    let told = |call: &str, code: i32, text: &str| {
        let done = folder.call(call);
        assert_eq!(done.code, Some(code), "{call}: {}", done.err);
        assert!(done.err.contains(text) && done.out.is_empty(), "{call}: {}", done.err);
    };
    told("trace synth --nodes 11 --dump d", 2, "12 to 20000");
    told("trace synth --nodes 24 --usage u.csv --to-jobs j --to-nodes n", 2, "cannot be used with");
    told("trace synth --dump d --to-jobs j", 2, "--to-jobs");
    folder.make_folder("full");
    folder.write("full/other.json", "{}");
    told("trace synth --nodes 24 --dump full", 2, "`other.json` is in it");
    told("audit --example --from d", 2, "cannot be used with");
    told("audit --example --usage none.csv", 1, "none.csv: cannot be read");
    folder.write("one.csv", "timestamp_s,pod,gpu,activity_percent\n0,a,0,1\n");
    told("audit --example --usage one.csv", 3, "no GPU of a pod has two samples");
    folder.write("bad.csv", "timestamp_s,pod,gpu,activity_percent\n0,a,0,101\n");
    told("audit --example --usage bad.csv", 3, "is more than all of a GPU");
    // Samples of others say nothing of this cluster, and are told.
    folder.write("other.csv", "timestamp_s,pod,gpu,activity_percent\n0,a,0,1\n60,a,0,1\n");
    let done = folder.call("audit --example --usage other.csv --output json");
    assert!(
        done.err.contains("other.csv: left out 1 measured pod without a GPU now"),
        "{}",
        done.err
    );
    assert_eq!(
        parsed(&done)["headline"]["waste_share"].as_f64().map(|share| share < 1.0),
        Some(true)
    );
}
