//! What holds whatever the figures are.

use std::process::Stdio;

use serde_json::Value;

use crate::program::Folder;

const FGD: &str = "--protocol fgd --nodes nodes.csv --pods pods.csv";

/// The rows of a sweep without measured times.
fn rows(folder: &Folder, more: &str) -> Vec<Value> {
    let value =
        folder.json(&format!("sim sweep {FGD} --policies random,fgd,dovetail --seeds 1-6 {more}"));
    let mut rows = value["runs"].as_array().unwrap().clone();
    for row in &mut rows {
        row.as_object_mut().unwrap().remove("decisions_per_second");
    }
    rows
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let folder = Folder::new();
    let alone = rows(&folder, "--threads 1");
    assert_eq!(alone.len(), 18);
    assert_eq!(alone, rows(&folder, "--threads 4"));
}

#[test]
fn the_same_seed_gives_the_same_log_and_another_seed_another() {
    let folder = Folder::new();
    let hash = |seed: u32| {
        folder.json(&format!("sim run {FGD} --policy best-fit --seed {seed}"))["event_log_hash"]
            .clone()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn every_step_can_be_checked() {
    let folder = Folder::new();
    let mut logs = ["sampled", "every-step", "off"].map(|check| {
        folder.json(&format!("sim run {FGD} --policy dovetail --check {check}"))["event_log_hash"].clone()
    });
    logs.sort_by_key(Value::to_string);
    assert_eq!(logs[0], logs[2]);
}

#[test]
fn the_row_of_an_order_file_is_chosen_by_seed_and_trace() {
    let folder = Folder::new();
    folder.write("openb_pod_list_small.csv", &folder.read("pods.csv"));
    folder.write("arrivals.csv", "7,5 5 5\n8,0 1 2 3 4 5 2\n");
    folder.write("orders.csv", "other,8,0 1 2 3\nsmall,8,3 2 1 0\n");
    let files = "--pods openb_pod_list_small.csv --arrivals arrivals.csv --node-order orders.csv";
    let run = |seed: u32| {
        folder.json(&format!("sim run --protocol fgd --nodes nodes.csv {files} --seed {seed}"))
    };
    assert_eq!(run(8)["decisions"], 7);
    assert_eq!(run(8)["trace"], "small");
    let done = folder.call(&format!("sim run --protocol fgd --nodes nodes.csv {files} --seed 7"));
    assert_eq!(done.code, Some(3));
    assert!(done.err.contains("trace small, seed 7"), "{}", done.err);
}

#[test]
fn the_demo_compares_two_policies_and_writes_its_report() {
    let folder = Folder::new();
    let small = "demo --nodes 20 --days 1 --report page/demo.html";
    let shown = folder.json(small);
    assert_eq!(shown["command"], "dovetail demo --nodes 20 --days 1 --load 0.9 --seed 42");
    let policies = shown["timed"][0]["policies"].as_array().unwrap();
    let names: Vec<&Value> = policies.iter().map(|policy| &policy["policy"]).collect();
    assert_eq!(names, ["kube-default", "dovetail"]);
    for policy in policies {
        let run = &policy["runs"][0];
        assert!(run["metrics"]["jobs"].as_u64() > Some(0), "{run}");
        assert!(run["account"]["usage"].is_object(), "{run}");
    }
    assert!(folder.read("page/demo.html").contains("synthetic 1 days"));
    assert_eq!(folder.call(&format!("{small} --output csv")).code, Some(2));
}

#[test]
fn one_replay_asked_for_ten_times_is_no_evidence() {
    let folder = Folder::new();
    let grid = "sim compare --protocol timed --nodes 2x4 --jobs jobs.csv --orders fifo,sjf";
    let shown = folder.json(&format!("{grid} --policies first-fit --seeds 1-10"));
    let policies =
        shown["all_traces"]["policies"].as_array().or(shown["traces"][0]["policies"].as_array());
    for policy in policies.unwrap() {
        for metric in policy["metrics"].as_object().unwrap().values() {
            assert!(metric["runs"].is_null() || metric["runs"] == 1, "{metric}");
            let p = &metric["against"]["sign_test_p"];
            assert!(p.is_null() || *p == 1.0, "{metric}");
        }
    }
}

#[test]
fn learnt_values_are_saved_and_taken_up() {
    let folder = Folder::new();
    let run = |more: &str| folder.json(&format!("sim run {FGD} --policy dovetail {more}"));
    assert_eq!(run("--save-learnt learnt.json")["learning_started_from"], "nothing");
    assert!(folder.read("learnt.json").contains("dovetail-learnt-1"));
    assert_eq!(run("--learnt learnt.json")["learning_started_from"], "learnt.json");
    let other = folder.json(&format!("sim run {FGD} --policy fgd"));
    assert_eq!(other["learning_started_from"], Value::Null);
}

#[test]
fn bad_rows_are_listed_when_they_are_left_out() {
    let folder = Folder::new();
    folder
        .write("bad.csv", "job_id,submit_s,duration_s,num_gpu\nj0,0,60,1\nj1,5,-3,1\nj2,6,60,x\n");
    let done = folder.call("trace stats bad.csv --skip-bad-rows --output json");
    assert_eq!(done.code, Some(0));
    for place in ["line 3, column duration_s", "line 4, column num_gpu", "2 bad rows left out"] {
        assert!(done.err.contains(place), "{place}: {}", done.err);
    }
    let stats: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&stats["jobs"], &stats["skipped_rows"]), (&1.into(), &2.into()));
}

#[test]
fn a_file_that_was_imported_is_the_same_trace() {
    let folder = Folder::new();
    folder.json("trace import jobs.csv --to own.csv");
    let run = |file: &str| {
        let order = "--protocol timed --nodes 2x4 --order sjf";
        folder.json(&format!("sim run {order} --jobs {file}"))["event_log_hash"].clone()
    };
    assert_eq!(run("jobs.csv"), run("own.csv"));
}

#[test]
fn who_closes_the_pipe_is_not_told_of_it() {
    let folder = Folder::new();
    let mut command =
        folder.command("sim run --protocol timed --nodes 2x4 --jobs jobs.csv --order fifo");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn colour_comes_only_when_it_is_asked_for() {
    let folder = Folder::new();
    let run = "sim run --protocol timed --nodes 2x4 --jobs jobs.csv --order fifo";
    assert!(!folder.call(run).out.contains('\x1b'));
    assert!(folder.call(&format!("{run} --color always")).out.contains('\x1b'));
}

#[test]
fn settings_come_from_flags_before_the_environment_before_the_file() {
    let folder = Folder::new();
    folder.write("dovetail.toml", "seed = 1\nthreads = 2\noutput = \"json\"\n");
    let mut command = folder.command("config --threads 3");
    let output = command.env("DOVETAIL_SEED", "5").output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let origin = |place: usize| value["settings"][place]["origin"].as_str().unwrap().to_owned();
    let origins: Vec<String> = (0..4).map(origin).collect();
    let expected = ["file dovetail.toml", "environment DOVETAIL_SEED", "flag --threads", "default"];
    assert_eq!(origins, expected);
}
