//! Results: tables as people see them, JSON as programs read it.

use crate::program::{Folder, shortened};

const FGD: &str = "--protocol fgd --nodes nodes.csv --pods pods.csv";
const TIMED: &str = "--protocol timed --nodes 2x4 --jobs jobs.csv --gpu-price *=2.50";

/// Name and arguments. Policies that learn are left out: their figures change with every
/// improvement.
fn cases() -> Vec<(&'static str, String)> {
    vec![
        ("run_fgd", format!("sim run {FGD} --policy fgd")),
        ("run_timed", format!("sim run {TIMED} --order fifo-skip")),
        (
            "run_impossible",
            "sim run --protocol timed --nodes 1x4 --jobs jobs.csv --order fifo-skip".into(),
        ),
        (
            "compare_partly_priced",
            "sim compare --protocol timed --nodes two.csv --jobs jobs.csv --orders fifo,sjf --gpu-price A=2"
                .into(),
        ),
        ("run_timed_faults", format!("sim run {TIMED} --order fifo --cluster-events events.csv")),
        (
            "run_preemptive",
            "sim run --protocol timed --nodes 2x4 --jobs jobs.csv --order srtf \
             --start-overhead overheads.csv"
                .into(),
        ),
        (
            "compare_fgd",
            format!(
                "sim compare {FGD} --policies first-fit,best-fit,fgd --seeds 42-44 --check every-step"
            ),
        ),
        ("compare_timed", format!("sim compare {TIMED} --orders fifo,sjf --policies first-fit")),
        ("sweep_timed", format!("sim sweep {TIMED} --orders fifo,fifo-skip")),
        ("replay", "sim replay recording".into()),
        ("pause", format!("sim run {TIMED} --order fifo --pause-at 3000 --checkpoint paused.json")),
        ("resume", format!("sim run {TIMED} --order fifo --from-checkpoint half.json")),
        ("bounds_fgd", format!("sim bounds {FGD} --combined")),
        ("bounds_timed", "sim bounds --protocol timed --nodes 2x4 --jobs jobs.csv".into()),
        ("trace_import", "trace import jobs.csv --to imported.csv".into()),
        ("trace_export", "trace export pods_with_times.csv --to exported.csv".into()),
        ("trace_stats", "trace stats jobs.csv --nodes 2x4".into()),
        (
            "trace_synth",
            "trace synth --nodes 20 --days 1 --seed 7 --to-jobs made.csv --to-nodes machines.csv"
                .into(),
        ),
        ("usage_idle", "usage idle --usage usage.csv --min-run 2m --grace 90s".into()),
        ("config", "config --threads 3".into()),
    ]
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder
        .write("events.csv", "at_s,action,node\n1800,fail,node-000000\n2400,repair,node-000000\n");
    folder.write(
        "two.csv",
        "node_name,cpu_milli,memory_bytes,gpu_count,gpu_model\n\
         a,64000,274877906944,4,B\nb,64000,274877906944,2,A\nc,64000,274877906944,2,B\n",
    );
    folder.write(
        "pods_with_times.csv",
        "job_id,submit_ms,duration_ms,gpu_count,gpu_milli,cpu_milli,memory_bytes\n\
         a,0,5000,1,500,4000,0\nb,1000,9000,2,1000,8000,0\n",
    );
    let fifo = format!("sim run {TIMED} --order fifo");
    let first = folder.call(&format!("{fifo} --record recording"));
    let half = folder.call(&format!("{fifo} --pause-at 4000 --checkpoint half.json"));
    assert_eq!((first.code, half.code), (Some(0), Some(0)), "{}{}", first.err, half.err);
    folder
}

#[test]
fn tables_are_as_documented_and_fit_100_columns() {
    let folder = folder();
    for (name, arguments) in cases() {
        let done = folder.call(&arguments);
        assert!(done.out.lines().all(|line| line.chars().count() <= 100), "{name}: {}", done.out);
        insta::assert_snapshot!(format!("table_{name}"), done.whole());
    }
}

#[test]
fn json_keeps_its_keys() {
    let folder = folder();
    // Accounts with failures and after a pause have the keys of the first.
    let same = ["run_timed_faults", "resume"];
    for (name, arguments) in cases().into_iter().filter(|(name, _)| !same.contains(name)) {
        let value = folder.json(&arguments);
        let text = serde_json::to_string_pretty(&shortened(&value)).unwrap();
        insta::assert_snapshot!(format!("json_{name}"), text);
    }
}

#[test]
fn a_sweep_as_csv_has_a_header_and_a_row_per_run() {
    let folder = folder();
    let done =
        folder.call(&format!("sim sweep {TIMED} --orders srtf,sjf --seeds 1,2 --output csv"));
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(lines.len(), 5, "{}", done.out);
    assert!(lines[0].starts_with("trace,policy,seed,"), "{}", lines[0]);
    assert!(lines[4].starts_with("jobs,sjf/first-fit,2,"), "{}", lines[4]);
    // Published orders keep no account of money.
    let column =
        |name: &str| lines[0].split(',').position(|column| column == name).expect("a column");
    for name in ["wasted_usd_micros_per_month", "wasted_priced_share"] {
        let cell = |line: usize| lines[line].split(',').nth(column(name)).expect("a cell");
        assert!(cell(1).is_empty() && !cell(4).is_empty(), "{name}: {}", done.out);
    }
}

/// All jobs come at once and the first holds up the rest for good: there is no time to have shares
/// of.
#[test]
fn a_replay_of_no_time_has_no_share() {
    let folder = folder();
    folder.write("at_once.csv", "job_id,submit_s,duration_s,num_gpu\na,0,100,9\nb,0,100,1\n");
    let done = folder.call("sim run --protocol timed --nodes 1x8 --jobs at_once.csv --order fifo");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("allocated") && !done.out.contains("NaN"), "{}", done.out);
}

#[test]
fn one_of_a_kind_is_said_in_the_singular() {
    let folder = Folder::new();
    folder.write("one.csv", "job_id,submit_s,duration_s,num_gpu\na,0,100,1\nlarge,10,100,9\n");
    let timed = "--protocol timed --nodes 1x1 --jobs one.csv";
    for arguments in [
        format!("sim run {timed} --order fifo-skip --estimates truth"),
        format!("sim run {timed} --order fifo-skip --output html"),
        format!("sim compare {timed} --orders fifo-skip,sjf"),
        format!("sim compare {timed} --orders fifo-skip,sjf --output html"),
        format!("sim bounds {timed}"),
    ] {
        let done = folder.call(&arguments);
        assert_eq!(done.code, Some(0), "{arguments}: {}", done.err);
        let said = done.whole();
        for many in ["jobs", "pods", "GPUs", "nodes", "queues", "times", "runs", "seconds"] {
            for before in [" ", "\n", ">", "("] {
                let wrong = format!("{before}1 {many}");
                assert!(!said.contains(&wrong), "{arguments}: {wrong} in {said}");
            }
        }
    }
}

/// The estimates are the run times themselves: all jobs run no longer than expected.
#[test]
fn a_replay_reports_how_good_run_time_estimates_were() {
    let done = folder().call(&format!("sim run {TIMED} --order fifo-skip --estimates truth"));
    let row = "run times given by users  100.00% of 5 jobs within the median, 100.00% within the";
    assert!(done.out.contains(row), "{}{}", done.out, done.err);
}

#[test]
fn pages_stand_alone_and_name_what_they_show() {
    let folder = folder();
    let calls = [
        (format!("sim run {FGD} --policy fgd"), vec!["fgd", "pods"]),
        (format!("sim run {TIMED} --order fifo"), vec!["fifo/first-fit", "jobs", "100.00% priced"]),
        (
            "sim run --protocol timed --nodes 1x4 --jobs jobs.csv --order fifo-skip".to_owned(),
            vec!["can never start", "it requests 8 GPUs, but the cluster has 4"],
        ),
        (format!("sim compare {FGD} --policies best-fit,fgd"), vec!["best-fit", "fgd", "pods"]),
        (format!("sim compare {TIMED} --orders fifo,srtf"), vec!["fifo/first-fit", "srtf"]),
    ];
    for (arguments, names) in calls {
        let done = folder.call(&format!("{arguments} --output html"));
        assert_eq!(done.code, Some(0), "{arguments}: {}", done.err);
        assert!(done.out.starts_with("<!DOCTYPE html>") || done.out.starts_with("<!doctype html>"));
        assert!(done.out.contains("<svg"), "{arguments}");
        for name in names {
            assert!(done.out.contains(name), "{arguments}: no {name}");
        }
        for outside in ["<script", "<link", "src=", "@import"] {
            assert!(!done.out.contains(outside), "{arguments}: {outside}");
        }
    }
}
