//! What goes wrong is named with its place and the way out, and has its exit code.

use crate::program::Folder;

const FGD: &str = "sim run --protocol fgd --nodes nodes.csv --pods pods.csv";
const TIMED: &str = "sim run --protocol timed --nodes 2x4 --jobs jobs.csv";

/// Pods of openb of which one ended, one still ran and one never started.
const PENDING: &str = "\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,4000,8192,1,500,,LS,Succeeded,0,60,5
p1,4000,8192,1,500,,LS,Running,10,,15
p2,4000,8192,1,500,,LS,Pending,20,,
";

/// Name, exit code, arguments after those of `FGD` or `TIMED`.
fn cases() -> Vec<(&'static str, i32, String)> {
    vec![
        ("missing_file", 1, "trace stats nowhere.csv".into()),
        ("missing_flag", 2, "sim run --protocol fgd --nodes nodes.csv".into()),
        ("unknown_policy", 2, format!("{FGD} --policy best")),
        ("unknown_order", 2, format!("{TIMED} --order lifo")),
        ("bad_sizes", 2, "sim run --protocol timed --nodes 8x --jobs jobs.csv --order fifo".into()),
        ("flag_of_other_protocol", 2, format!("{FGD} --order fifo")),
        (
            "overhead_without_preemption",
            2,
            format!("{TIMED} --order fifo --start-overhead overheads.csv"),
        ),
        ("policy_with_preemption", 2, format!("{TIMED} --order srtf --policy fgd")),
        (
            "learning_of_a_policy_that_does_not",
            2,
            format!("{FGD} --policy fgd --save-learned x.json"),
        ),
        (
            "against_something_else",
            2,
            "sim compare --protocol fgd --nodes nodes.csv --pods pods.csv --against best-fit"
                .into(),
        ),
        ("output_the_command_lacks", 2, format!("{FGD} --output csv")),
        ("bad_price", 2, format!("{TIMED} --order fifo --gpu-price T4=2,5")),
        ("bad_row", 3, "trace stats bad.csv".into()),
        ("unknown_seed", 3, format!("{FGD} --arrivals arrivals.csv --seed 7")),
        ("bad_row_in_order_file", 3, format!("{FGD} --arrivals arrivals.csv --seed 1")),
        (
            "job_too_large",
            3,
            "sim run --protocol timed --nodes 1x4 --jobs jobs.csv --order srtf".into(),
        ),
        (
            "no_run_time",
            3,
            "sim run --protocol timed --nodes nodes.csv --jobs pending.csv --order fifo".into(),
        ),
        ("export_without_run_time", 3, "trace export pending.csv --to out.csv".into()),
        (
            "policy_twice",
            2,
            "sim compare --protocol fgd --nodes nodes.csv --pods pods.csv --policies fgd,fgd"
                .into(),
        ),
        ("price_twice", 2, format!("{TIMED} --order fifo --gpu-price T4=1 --gpu-price T4=2")),
        ("report_in_place_of_a_folder", 1, "demo --nodes 20 --days 1 --report folder".into()),
        (
            "no_submission_times",
            3,
            "sim run --protocol timed --nodes nodes.csv --jobs pods.csv --order fifo".into(),
        ),
        (
            "overhead_row_missing",
            3,
            format!("{TIMED} --order srtf --start-overhead some_overheads.csv"),
        ),
        ("not_learnt_values", 3, format!("{FGD} --learned nodes.csv")),
    ]
}

/// The same for files that do not fit the command.
fn cases_of_files() -> Vec<(&'static str, i32, String)> {
    vec![
        ("pause_without_checkpoint", 2, format!("{TIMED} --order fifo --pause-at 60")),
        ("record_with_preemption", 2, format!("{TIMED} --order srtf --record log")),
        ("pause_of_arrivals_only", 2, format!("{FGD} --pause-at 60 --checkpoint paused.json")),
        ("one_file_for_two", 2, "trace synth --to-jobs a.csv --to-nodes a.csv".into()),
        ("not_a_recording", 3, "sim replay jobs.csv".into()),
        ("not_a_checkpoint", 3, format!("{TIMED} --order fifo --from-checkpoint nodes.csv")),
        ("bad_usage_row", 3, "usage idle --usage bad_usage.csv".into()),
        ("bad_threshold", 2, "usage idle --usage usage.csv --threshold-percent 101".into()),
        ("bad_duration", 2, "usage idle --usage usage.csv --min-run 10".into()),
        ("machines_for_jobs", 3, "trace stats nodes.csv".into()),
    ]
}

/// Values beyond the limits, alone or together, and files that look right and are not.
fn cases_of_values() -> Vec<(&'static str, i32, String)> {
    vec![
        ("node_beyond_limits", 3, format!("{FGD} --nodes large_node.csv").replace(" --nodes nodes.csv", "")),
        ("cluster_beyond_limits", 3, "sim run --protocol timed --nodes large.csv --jobs jobs.csv --order fifo".into()),
        ("sizes_beyond_limits", 2, "sim run --protocol timed --nodes 2000x1000 --jobs jobs.csv --order fifo".into()),
        ("time_beyond_limits", 3, "trace stats long.csv".into()),
        ("money_beyond_limits", 3, "sim run --protocol timed --nodes 8x8 --jobs century.csv --order fifo --gpu-price *=1000000".into()),
        ("end_beyond_limits", 3, "sim run --protocol timed --nodes 1x1 --jobs centuries.csv --order fifo".into()),
        ("event_of_unknown_node", 3, format!("{TIMED} --order fifo --cluster-events events.csv")),
        ("share_with_preemption", 3, "sim run --protocol timed --nodes 2x4 --jobs share.csv --order las".into()),
        ("fgd_without_gpu_pods", 3, format!("{FGD} --pods cpu_pods.csv").replace(" --pods pods.csv", "")),
        ("fgd_without_gpus", 3, "sim run --protocol fgd --nodes 5x0 --pods pods.csv".into()),
        ("seed_twice", 3, format!("{FGD} --arrivals twice.csv --seed 42")),
        ("carriage_returns", 3, "trace stats mac.csv".into()),
        ("directory", 1, "trace stats folder".into()),
        ("directory_of_events", 1, format!("{TIMED} --order fifo --cluster-events folder")),
        ("directory_of_prices", 1, format!("{TIMED} --order fifo --prices folder")),
        ("directory_as_recording", 1, "sim replay folder".into()),
    ]
}

/// The files of these cases.
fn write_values(folder: &Folder) {
    let nodes = "node_name,cpu_milli,memory_bytes,gpu_count\n";
    folder.write("large_node.csv", &format!("{nodes}a,1000,1000,65536\n"));
    let many: String = (0..1000).map(|node| format!("n{node},1000,1000,1001\n")).collect();
    folder.write("large.csv", &format!("{nodes}{many}"));
    let jobs = "job_id,submit_ms,duration_ms,gpu_count\n";
    folder.write("long.csv", &format!("{jobs}a,0,1000000000000000,8\n"));
    folder.write("century.csv", &format!("{jobs}a,0,1,8\nb,0,3162240000000,8\n"));
    let centuries: String = (0..400).map(|job| format!("j{job},0,3162240000000,1\n")).collect();
    folder.write("centuries.csv", &format!("{jobs}{centuries}"));
    folder.write("events.csv", "at_s,action,node\n5,cordon,node-000001\n9,fail,node-7\n");
    folder.write(
        "share.csv",
        "job_id,submit_s,duration_s,num_gpu,gpu_milli\na,0,9,1,\nb,0,9,1,500\n",
    );
    folder.write("cpu_pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\n");
    folder.write("twice.csv", "1,0 1\n42,0 1 2\n7,2\n42,2 1 0\n");
    folder.write("mac.csv", &folder.read("jobs.csv").replace('\n', "\r"));
}

#[test]
fn errors_name_the_place_and_the_way_out() {
    let folder = Folder::new();
    folder.write("bad.csv", "job_id,submit_s,duration_s,num_gpu\nj0,0,60,1\nj1,5,-3,1\n");
    folder.write(
        "bad_usage.csv",
        "timestamp_s,pod,gpu,activity_percent\n0,train-0,0,NaN\n60,train-0,0,97.5\n",
    );
    folder.write("arrivals.csv", "1,0 1 99\n42,0 1 2\n");
    folder.write("pending.csv", PENDING);
    write_values(&folder);
    folder.make_folder("folder");
    folder.write("some_overheads.csv", "num_gpu,model,overhead_s\n4,bert,20\n");
    let all = cases().into_iter().chain(cases_of_files()).chain(cases_of_values());
    for (name, code, arguments) in all {
        let done = folder.call(&arguments);
        assert_eq!(done.code, Some(code), "{name}: {}", done.err);
        assert!(done.out.is_empty(), "{name} wrote {}", done.out);
        insta::assert_snapshot!(format!("error_{name}"), done.err);
    }
    assert!(!folder.has("out.csv"), "a file that could not be written whole is not there");
}

#[test]
fn jobs_without_run_time_are_left_out_and_listed_on_request() {
    let folder = Folder::new();
    folder.write("pending.csv", PENDING);
    let run = "sim run --protocol timed --nodes nodes.csv --jobs pending.csv --order fifo";
    let done = folder.call(&format!("{run} --skip-bad-rows --output json"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("\"jobs\":1,"), "{}", done.out);
    for place in ["csv:3: column `deletion_time`", "csv:4: column `scheduled_time`", "2 bad rows"] {
        assert!(done.err.contains(place), "{place}: {}", done.err);
    }
    folder.json("trace export pending.csv --to out.csv --skip-bad-rows");
    assert_eq!(folder.read("out.csv").lines().count(), 2);
    let left: Vec<String> =
        folder.names().into_iter().filter(|name| name.ends_with(".part")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn models_that_no_node_has_are_named() {
    let folder = Folder::new();
    let header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";
    let pods = "a,1,1,1,1000,A100\nb,1,1,1,1000,A10O|T4\nc,1,1,1,1000,A10O\nd,1,1,1,1000,A10O\n";
    folder.write("typo.csv", &format!("{header}{pods}"));
    let done =
        folder.call("sim run --protocol fgd --nodes nodes.csv --pods typo.csv --output json");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let note = "typo.csv:3: no node in nodes.csv has GPUs of the model `A10O`";
    assert!(done.err.contains(note) && done.err.contains("dropped: 2"), "{}", done.err);
    assert!(!done.err.contains("`A100`") && !done.err.contains("`T4`"), "{}", done.err);
}

#[test]
fn a_file_that_cannot_be_replaced_stays_as_it_was() {
    let folder = Folder::new();
    folder.write("out.csv", "before");
    folder.write("pending.csv", PENDING);
    assert_eq!(folder.call("trace export pending.csv --to out.csv").code, Some(3));
    assert_eq!(folder.read("out.csv"), "before");
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let folder = Folder::new();
    folder.write("dovetail.toml", "sed = 3\n");
    let done = folder.call("config");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("dovetail.toml") && done.err.contains("`sed`"), "{}", done.err);
    folder.write("dovetail.toml", "");
    let output = folder.command("config").env("DOVETAIL_THREADS", "none").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
