//! The generated cluster: what `--example` shows is what the files of `trace synth --dump` show.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::audit_and_bill::bill_agrees;
use crate::cost::{node, pod};
use crate::program::{Done, Folder};

fn document(folder: &Folder, call: &str) -> Value {
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
    let document = document(&folder, "audit --example");
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
    fixes_are_about_what_was_found(&document);
    let table = folder.call("audit --example --all-findings --fail-on error");
    assert!(
        table.out.contains("fix: run, for example: kubectl describe node ip-"),
        "{}",
        table.out
    );
    assert!(!table.out.contains("for example: kubectl describe node NODE"), "{}", table.out);
    assert_eq!(table.code, Some(5), "{}", table.err);
    assert!(table.out.lines().all(|line| line.chars().count() <= 100), "{}", table.out);
    // Measured time is idle or active, and what nobody measures is still blind.
    for state in ["idle ", "active  ", "use not measured"] {
        assert!(table.out.contains(state), "{state}: {}", table.out);
    }
}

/// A fix names the slice that its evidence names, and the only node that it is about.
fn fixes_are_about_what_was_found(document: &Value) {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let mut seen = (0, 0);
    for finding in document["findings"].as_array().expect("findings") {
        let example = text(&finding["fix"]["example"]);
        let evidence = finding["evidence"].as_array().expect("evidence");
        let slice = evidence.iter().find(|of| of["what"] == "smallest slice that fits");
        if let Some(slice) = slice {
            let resource = format!("nvidia.com/mig-{}: 1", text(&slice["value"]));
            assert!(example.contains(&resource), "{example} for {resource}");
            seen.0 += 1;
        }
        let affected = finding["affected"].as_array().expect("affected");
        if let ([only], true) = (&affected[..], finding["id"] == "CAP-02") {
            let command = format!("kubectl describe node {} ", text(&only["name"]));
            assert!(example.starts_with(&command), "{example} for {command}");
            seen.1 += 1;
        }
    }
    assert!(seen.0 > 0 && seen.1 > 0, "{seen:?}");
}

/// Both round at one place. In the second world three nodes have prices that no share of them
/// divides, and their GPUs computed for one, three and five sevenths of the time.
#[test]
fn an_audit_and_a_bill_of_one_moment_are_equal_to_the_micro_dollar() {
    let folder = Folder::new();
    let objects = [
        node("g1", 8, "h100"),
        node("g2", 7, "h100"),
        node("g3", 3, "other"),
        pod("vision", "train-0", 3, "g1"),
        pod("vision", "train-1", 3, "g2"),
        pod("nlp", "serve-0", 2, "g3"),
        pod("nlp", "serve-1", 1, "g1"),
    ];
    folder.write("odd.json", &json!({"kind": "List", "items": objects}).to_string());
    let mut usage = "timestamp_s,pod,gpu,activity_percent,namespace,node\n".to_owned();
    // Two hours apart: what was measured for less than 12 hours is in no month.
    for sample in 0..7 {
        for (gpu, active_of_seven) in [(0, 1), (1, 3), (2, 5)] {
            let activity = if sample < active_of_seven { 90 } else { 0 };
            let at_s = 1_795_176_000 - 7 * 7_200 + 7_200 * sample;
            for (pod, on) in [("train-0", "g1"), ("train-1", "g2")] {
                usage += &format!("{at_s},{pod},{gpu},{activity},vision,{on}\n");
            }
        }
    }
    folder.write("odd.csv", &usage);
    let odd = "--from odd.json --at 2026-11-20T12:00:00Z --usage odd.csv --gpu-price H100=3.141593";
    for source in ["--example", "--example --gpu-price H100=0.999983 --gpu-price L4=0.123457", odd]
    {
        let audit = document(&folder, &format!("audit {source}"));
        bill_agrees(&folder, &audit, source);
        assert!(audit["headline"]["waste_usd_micros_per_month"].as_i64() > Some(0), "{source}");
        let findings = audit["findings"].as_array().expect("findings").iter();
        let claimed = findings.filter_map(|finding| finding["usd_micros_per_month"].as_i64());
        let waste = audit["headline"]["waste_usd_micros_per_month"].as_i64();
        assert!(Some(claimed.sum::<i64>()) <= waste, "{source}");
        assert_eq!(audit["ladder"][0]["waste_usd_micros_per_month"].as_i64(), waste, "{source}");
    }
}

#[test]
fn the_dump_of_the_example_says_the_same() {
    let folder = Folder::new();
    let written = document(&folder, "trace synth --seed 42 --nodes 32 --dump d --usage u.csv");
    assert_eq!(written["at"], "2026-11-20T12:00:00Z");
    let audit = "audit --from d --at 2026-11-20T12:00:00Z --usage u.csv";
    let (mut dumped, mut example) =
        (document(&folder, audit), document(&folder, "audit --example"));
    for document in [&mut dumped, &mut example] {
        document.as_object_mut().expect("a document").remove("sources");
    }
    assert_eq!(dumped, example);
    // A collection of it too: what is left out is not read.
    let collect = "collect --from d --at 2026-11-20T12:00:00Z --to kept.json.gz";
    assert_eq!(folder.call(collect).code, Some(0));
    let mut kept = document(&folder, "audit --from kept.json.gz --usage u.csv");
    kept.as_object_mut().expect("a document").remove("sources");
    assert_eq!(kept, example);
    // What was measured turns blind time into idle and active time of the bill, and nothing else.
    let without = document(&folder, "cost --from d --at 2026-11-20T12:00:00Z --by cause");
    let with = document(&folder, "cost --example --by cause");
    let total = |document: &Value, key: &str| document["total"][key].as_f64().expect("a number");
    assert_eq!(with["total"]["cost_usd_micros"], without["total"]["cost_usd_micros"]);
    assert_eq!(total(&with, "allocated_gpu_hours"), total(&without, "allocated_gpu_hours"));
    // A pod that should be gone is idle, measured or not.
    assert!(total(&with, "idle_gpu_hours") > total(&without, "idle_gpu_hours"));
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
        let document = document(&folder, &format!("audit --from {from} {AT}"));
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
        let document = document(&folder, &format!("cost --from {from} {AT} --by cause"));
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
    told("trace synth --nodes 24 --dump full", 2, "the folder contains `other.json`");
    told("audit --example --from d", 2, "cannot be used with");
    for call in ["audit", "cost", "cost job balanced", "cost questions"] {
        for (flag, value) in [("--period", "2020-01"), ("--step", "5m")] {
            let expected = format!("{flag} cannot be used with --example");
            told(&format!("{call} --example {flag} {value}"), 2, &expected);
        }
    }
    told("audit --example --usage none.csv", 1, "none.csv: cannot be read");
    folder.write("one.csv", "timestamp_s,pod,gpu,activity_percent\n0,a,0,1\n");
    told("audit --example --usage one.csv", 3, "at least two samples of a GPU are needed");
    folder.write("bad.csv", "timestamp_s,pod,gpu,activity_percent\n0,a,0,101\n");
    told("audit --example --usage bad.csv", 3, "`101` exceeds 100: write 0 to 100");
    // Samples of others say nothing of this cluster, and are told.
    folder.write("other.csv", "timestamp_s,pod,gpu,activity_percent\n0,a,0,1\n60,a,0,1\n");
    let done = folder.call("audit --example --usage other.csv --output json");
    let told = "other.csv: ignored 1 measured pod without a GPU now";
    let notes = parsed(&done)["notes"].to_string();
    assert!(notes.contains(told), "{notes}");
    assert_eq!(
        parsed(&done)["headline"]["waste_share"].as_f64().map(|share| share < 1.0),
        Some(true)
    );
}
