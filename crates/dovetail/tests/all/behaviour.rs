//! What holds whatever the figures are.

use std::process::Stdio;

use serde_json::Value;

use crate::program::Folder;

/// Columns of the own form of jobs.
const SHARES: &str = "job_id,submit_ms,duration_ms,estimate_ms,start_ms,pod_count,cpu_milli,memory_bytes,gpu_count,\
gpu_milli,gpu_models,user,queue,model,service_class,priority,deadline_ms,outcome\n";

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
fn a_scenario_is_drawn_by_seed_and_its_problems_have_a_line() {
    let folder = Folder::new();
    let good = "\
[world]
nodes = '2x8'
[stream]
load = 0.8
length = '2d'
[[stream.jobs]]
gpus = [1, 16]
run_time = ['10m', '4h']
[[overlays]]
share = 0.5
checkpoint_interval = '10m'
";
    folder.write("good.toml", good);
    let run = |seed: u32, more: &str| {
        folder.json(&format!(
            "sim run --protocol timed --scenario good.toml --order fifo --seed {seed} {more}"
        ))
    };
    let (first, again, other) = (run(1, ""), run(1, "--check every-step"), run(2, ""));
    assert_eq!(first["event_log_hash"], again["event_log_hash"]);
    assert_ne!(first["event_log_hash"], other["event_log_hash"]);
    assert_eq!((&first["nodes"], &first["unfinished_jobs"]), (&2.into(), &0.into()));
    let starts = &run(1, "--estimates truth --start-estimates 1h")["start_estimate"];
    assert_eq!((&starts["worst_p50_error_s"], &starts["unknown"]), (&0.0.into(), &0.into()));
    assert!(starts["jobs"].as_u64() > Some(5), "{starts}");
    for (file, from, to, expected) in [
        ("line", "load = 0.8", "load = 'much'", "line.toml:4: stream.load: "),
        ("key", "gpus =", "gpu =", "key.toml:7: stream.jobs.gpu: unknown field `gpu`"),
        ("load", "load = 0.8", "load = 0", "load.toml:4: stream.load: expected a number above 0"),
        (
            "range",
            "'10m', '4h'",
            "'4h', '10m'",
            "range.toml:8: stream.jobs.run_time: the first duration must be above 0",
        ),
        ("nodes", "2x8", "0x8", "nodes.toml:2: world.nodes: no nodes"),
        ("many", "load = 0.8", "load = 1e9", "many.toml:4: stream.load: more than 1000000 jobs"),
        ("none", "gpus =", "gpus = [] #", "none.toml:7: stream.jobs.gpus: expected numbers of"),
        ("large", "gpus =", "gpus = [1000001] #", "large.toml:7: stream.jobs.gpus: expected"),
    ] {
        folder.write(&format!("{file}.toml"), &good.replace(from, to));
        let told =
            folder.call(&format!("sim run --protocol timed --scenario {file}.toml --order fifo"));
        assert_eq!(told.code, Some(3), "{}", told.err);
        assert!(told.err.contains(expected), "{expected} is not in {}", told.err);
    }
    let told = folder.call("sim run --protocol timed --nodes 2x8 --order fifo");
    assert_eq!(told.code, Some(2));
    assert!(told.err.contains("no jobs: pass --jobs FILE"), "{}", told.err);
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
    folder.write("arrivals.csv", "7,5 4 3\n8,0 1 2 3 4 5 2\n");
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
fn the_demo_compares_four_policies_and_writes_its_report() {
    let folder = Folder::new();
    let small = "demo --nodes 20 --days 1 --report page/demo.html";
    let shown = folder.json(small);
    assert_eq!(shown["command"], "dovetail demo --nodes 20 --days 1 --load 0.9 --seed 42");
    let policies = shown["timed"][0]["policies"].as_array().unwrap();
    let names: Vec<&Value> = policies.iter().map(|policy| &policy["policy"]).collect();
    assert_eq!(names, ["kube-default", "kube-most-allocated", "best-fit", "dovetail"]);
    for policy in policies {
        let run = &policy["runs"][0];
        assert!(run["metrics"]["jobs"].as_u64() > Some(0), "{run}");
        assert!(run["account"]["usage"].is_object(), "{run}");
    }
    assert!(folder.read("page/demo.html").contains("generated, 1 day"));
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
    assert_eq!(run("--save-learned learnt.json")["learning_started_from"], "nothing");
    assert!(folder.read("learnt.json").contains("dovetail-learnt-1"));
    assert_eq!(run("--learned learnt.json")["learning_started_from"], "learnt.json");
    // The old name.
    assert_eq!(run("--learnt learnt.json")["learning_started_from"], "learnt.json");
    let other = folder.json(&format!("sim run {FGD} --policy fgd"));
    assert_eq!(other["learning_started_from"], Value::Null);
}

#[test]
fn preemptive_orders_count_microseconds() {
    let folder = Folder::new();
    // To the millisecond both run for 10 s, and the first of the file would go first.
    folder.write("fine.csv", "job_id,submit_s,service_s,num_gpu\na,0,10.0004,1\nb,0,10.0003,1\n");
    let run = folder.json("sim run --protocol timed --nodes 1x1 --jobs fine.csv --order srtf");
    assert_eq!(run["average_jct_s"], 15.0005);
    folder.json("trace export fine.csv --to out.csv");
    assert!(folder.read("out.csv").contains("a,0,10.000400,"), "{}", folder.read("out.csv"));
    let done = folder.call("trace import fine.csv --to own.csv");
    assert!(done.err.contains("fine.csv: times of 2 jobs have fractions"), "{}", done.err);
}

#[test]
fn numbers_with_exponents_are_read_alike_in_every_file() {
    let folder = Folder::new();
    folder
        .write("exponents.csv", "job_id,submit_s,duration_s,num_gpu,model\nj0,0,3.6e3,4e0,bert\n");
    folder.write("plain.csv", "job_id,submit_s,duration_s,num_gpu,model\nj0,0,3600,4,bert\n");
    folder.write("events.csv", "at_s,action,node\n1e1,cordon,node-000001\n");
    folder.write("few.csv", "num_gpu,model,overhead_s\n4E0,bert,2e+1\n");
    folder.write("price.csv", "gpu_model,usd_per_gpu_hour\nA100,2.5e0\n");
    folder.write("usage_e.csv", "timestamp_s,pod,gpu,activity_percent\n0,p,0,1e-1\n6e1,p,0,0\n");
    let timed = "sim run --protocol timed --nodes 2x4";
    let hash = |jobs: &str, more: &str| {
        folder.json(&format!("{timed} --jobs {jobs} {more}"))["event_log_hash"].clone()
    };
    for more in
        ["--order fifo --cluster-events events.csv", "--order srtf --start-overhead few.csv"]
    {
        assert_eq!(hash("exponents.csv", more), hash("plain.csv", more), "{more}");
    }
    for command in [
        "usage idle --usage usage_e.csv".to_owned(),
        "sim run --protocol timed --nodes nodes.csv --jobs plain.csv --order fifo --prices price.csv"
            .to_owned(),
    ] {
        assert_eq!(folder.call(&command).code, Some(0), "{command}: {}", folder.call(&command).err);
    }
}

#[test]
fn bad_rows_are_listed_when_they_are_left_out() {
    let folder = Folder::new();
    folder
        .write("bad.csv", "job_id,submit_s,duration_s,num_gpu\nj0,0,60,1\nj1,5,-3,1\nj2,6,60,x\n");
    let done = folder.call("trace stats bad.csv --skip-bad-rows --output json");
    assert_eq!(done.code, Some(0));
    for place in
        ["bad.csv:3: column `duration_s`", "bad.csv:4: column `num_gpu`", "2 bad rows skipped"]
    {
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
    // Also what goes wrong, before and after the command line is understood.
    for wrong in ["trace stats nowhere.csv", "sim run --protocol none"] {
        let plain = folder.call(wrong).err;
        assert!(!plain.is_empty() && !plain.contains('\x1b'), "{plain}");
        let coloured = folder.call(&format!("{wrong} --color always")).err;
        assert!(coloured.contains('\x1b'), "{coloured}");
    }
}

#[test]
fn what_is_written_under_a_name_of_gzip_is_gzip() {
    let folder = Folder::new();
    let made = "--nodes 20 --days 1 --seed 7";
    folder.json(&format!("trace synth {made} --to-jobs a.csv.gz --to-nodes b.csv.gz"));
    folder.json(&format!("trace synth {made} --to-jobs a.csv --to-nodes b.csv"));
    folder.json("trace import a.csv.gz --to again.csv.gz");
    for name in ["a.csv", "b.csv"] {
        let bytes = std::fs::read(folder.path(&format!("{name}.gz"))).unwrap();
        assert!(bytes.starts_with(&[0x1f, 0x8b]), "{name}.gz");
    }
    let stats = |jobs: &str, nodes: &str| {
        let mut stats = folder.json(&format!("trace stats {jobs} --nodes {nodes}"));
        stats.as_object_mut().unwrap().remove("source");
        stats["cluster"].as_object_mut().unwrap().remove("source");
        stats
    };
    let plain = stats("a.csv", "b.csv");
    assert_eq!(plain, stats("a.csv.gz", "b.csv.gz"));
    assert_eq!(plain, stats("again.csv.gz", "b.csv.gz"));
}

#[test]
fn an_order_that_the_seed_does_not_give_is_told() {
    let folder = Folder::new();
    // The seeded order of these pods on these machines, as a recording shows it.
    folder.json(&format!("sim run {FGD} --policy fgd --seed 3 --record log"));
    let log = folder.read("log");
    let rows: Vec<&str> = log
        .match_indices("\"submitted\"")
        .map(|(place, _)| &log[place..])
        .map(|rest| rest.split("\"name\":\"p").nth(1).unwrap().split('"').next().unwrap())
        .collect();
    let own = rows.join(" ");
    folder.write("own.csv", &format!("3,{own}\n"));
    let mut other = rows.clone();
    other.rotate_left(1);
    folder.write("other.csv", &format!("3,{}\n", other.join(" ")));
    let run = |file: &str| {
        let done = folder.call(&format!("sim run {FGD} --policy fgd --seed 3 --arrivals {file}"));
        assert_eq!(done.code, Some(0), "{}", done.err);
        done.err
    };
    assert_eq!(run("own.csv"), "");
    assert!(run("other.csv").contains("--arrivals other.csv"), "{}", run("other.csv"));
}

#[test]
fn jobs_that_can_never_start_are_counted_and_named_and_in_no_mean() {
    let folder = Folder::new();
    let grid =
        "--protocol timed --nodes 1x4 --jobs jobs.csv --orders fifo-skip --policies first-fit";
    let run = folder.json("sim run --protocol timed --nodes 1x4 --jobs jobs.csv --order fifo-skip");
    let named = serde_json::json!([
        { "job": "j1", "reason": "it requests 8 GPUs, but the cluster has 4" }
    ]);
    assert_eq!((&run["impossible_jobs"], &run["first_impossible_jobs"]), (&1.into(), &named));
    assert_eq!((&run["unfinished_jobs"], &run["started_jobs"]), (&1.into(), &4.into()));
    let trace = &folder.json(&format!("sim compare {grid}"))["traces"][0];
    assert_eq!((&trace["impossible_jobs"], &trace["first_impossible_jobs"]), (&1.into(), &named));
    // The limit is of the same jobs as the mean.
    let limit = trace["limit"].as_f64().unwrap();
    let mean = trace["policies"][0]["metrics"]["average_jct_s"]["mean"].as_f64().unwrap();
    assert!(limit <= mean, "{limit} {mean}");
    let bounds = folder.json("sim bounds --protocol timed --nodes 1x4 --jobs jobs.csv");
    assert_eq!(bounds["impossible_jobs"], 1);
    // Behind such a job, nobody starts in order of submission.
    let fifo = folder.json("sim run --protocol timed --nodes 1x4 --jobs jobs.csv --order fifo");
    assert_eq!((&fifo["unfinished_jobs"], &fifo["started_jobs"]), (&4.into(), &1.into()));
}

/// 10,000 s of work, stopped after 5,000 s for 1,000 s: by a failed node, or by a job of higher
/// priority.
#[test]
fn a_job_that_is_stopped_continues_from_its_last_checkpoint_if_it_has_one() {
    let folder = Folder::new();
    folder.write("one.csv", "job_id,submit_s,duration_s,num_gpu,model\nlong,0,10000,8,x\n");
    folder
        .write("events.csv", "at_s,action,node\n5000,fail,node-000000\n6000,repair,node-000000\n");
    let short = "high,5000000,1000000,1000000,,1,1,1,8,1000,,u,q,m,,9,,completed\n";
    let long = "long,0,10000000,10000000,,1,1,1,8,1000,,u,q,m,,0,,completed\n";
    folder.write("two.csv", &format!("{SHARES}{long}{short}"));
    let makespan = |more: &str| {
        let run = format!("sim run --protocol timed --nodes 1x8 --order fifo-skip {more}");
        folder.json(&run)["makespan_s"].as_f64().unwrap()
    };
    for stop in ["--jobs one.csv --cluster-events events.csv", "--jobs two.csv --preemption"] {
        assert_eq!(makespan(stop), 16_000.0, "{stop}");
        let kept = makespan(&format!("{stop} --checkpoint-interval 10m"));
        assert_eq!(kept, 11_200.0, "{stop}");
    }
    let run = "sim run --protocol timed --nodes 1x8 --order fifo-skip --jobs two.csv --preemption";
    for costs in ["--checkpoint-interval 1ms --checkpoint-cost 1h", "--checkpoint-interval 0s"] {
        let done = folder.call(&format!("{run} {costs}"));
        assert_eq!(done.code, Some(2), "{costs}: {}", done.err);
        assert!(done.err.contains("--checkpoint-interval: must be at least 1s"), "{}", done.err);
    }
}

#[test]
fn a_flag_for_published_orders_is_told_to_have_no_effect_on_others() {
    let folder = Folder::new();
    folder.write("one.csv", "job_id,submit_s,duration_s,num_gpu,model\nlong,0,10000,8,x\n");
    let told = |order: &str| {
        let run = "sim run --protocol timed --nodes 1x8 --jobs one.csv --charge-baselines";
        let done = folder.call(&format!("{run} --order {order}"));
        assert_eq!(done.code, Some(0), "{order}: {}", done.err);
        done.err.contains(&format!("--charge-baselines: no effect with --order {order}, which"))
    };
    let orders = ["fifo-skip", "dovetail", "las-placed", "las", "srtf", "srsf"];
    assert_eq!(orders.map(told), [true, true, true, false, false, false]);
}

#[test]
fn a_setting_of_a_generator_is_refused_by_the_flag_that_was_written() {
    let folder = Folder::new();
    for (call, told) in [
        ("demo --nodes 0", "--nodes 0: out of range; expected 1 to 100000"),
        ("trace synth --to-jobs j --to-nodes n --load 11", "--load 11: out of range; expected a"),
        ("trace synth --dump d --nodes 1", "--nodes 1: out of range with --dump; expected 12"),
    ] {
        let done = folder.call(call);
        assert_eq!(done.code, Some(2), "{call}: {}", done.err);
        assert!(done.err.contains(told), "{call}: {}", done.err);
    }
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

#[test]
fn nothing_that_is_read_is_overwritten_and_no_output_is_lost() {
    let folder = Folder::new();
    let jobs = folder.read("jobs.csv");
    for arguments in [
        "sim run --protocol timed --nodes 2x4 --jobs jobs.csv --order fifo --record jobs.csv",
        "sim run --protocol timed --nodes 2x4 --jobs jobs.csv --order fifo --record ./jobs.csv",
        "sim run --protocol timed --nodes 2x4 --jobs jobs.csv --order fifo --record r.gz \
         --checkpoint r.gz --pause-at 100",
        "trace import jobs.csv --to jobs.csv",
        "trace export jobs.csv --to ./jobs.csv",
        "trace synth --nodes 10 --days 1 --to-jobs new.csv --to-nodes ./new.csv",
    ] {
        let done = folder.call(arguments);
        assert_eq!(done.code, Some(2), "{arguments}: {}", done.err);
        assert!(done.err.contains("use two different files"), "{arguments}: {}", done.err);
        assert_eq!(folder.read("jobs.csv"), jobs, "{arguments}");
        assert!(!folder.path("new.csv").exists() && !folder.path("r.gz").exists(), "{arguments}");
    }
}

#[test]
fn a_page_of_replays_that_the_seed_does_not_change_claims_no_spread() {
    let folder = Folder::new();
    let done = folder.call(
        "sim compare --protocol timed --nodes 2x4 --jobs jobs.csv --orders fifo,sjf \
         --policies first-fit --seeds 1-3 --output html",
    );
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("One run (seed 1)"), "the page says how many runs there were");
    assert!(!done.out.contains("± "), "the page claims a spread");
}

#[test]
fn shares_of_a_gpu_count_in_the_limits_on_time() {
    let folder = Folder::new();
    // Ten jobs of half a GPU and one of a quarter, 100 s each, on one GPU: 525 s of work.
    let mut jobs = String::from(SHARES);
    for number in 0..11 {
        let milli = if number < 10 { 500 } else { 250 };
        jobs += &format!("j{number},0,100000,,,1,1000,1000,1,{milli},,u,q,m,BE,0,,completed\n");
    }
    folder.write("shares.csv", &jobs);
    let limits = folder.json("sim bounds --protocol timed --nodes 1x1 --jobs shares.csv");
    assert_eq!(limits["work_makespan_s"], 525.0);
    let ran = folder.json("sim run --protocol timed --nodes 1x1 --jobs shares.csv --order fifo");
    assert!(ran["makespan_s"].as_f64() >= Some(525.0), "{}", ran["makespan_s"]);
}

#[test]
fn a_price_for_a_model_that_is_not_there_is_refused() {
    let folder = Folder::new();
    let call = |price: &str| {
        folder.call(&format!(
            "sim run --protocol timed --nodes nodes.csv --jobs jobs.csv --order fifo --gpu-price {price}"
        ))
    };
    let done = call("H100=2");
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("models there: A100, T4, V100M16"), "{}", done.err);
    for there in ["T4=2", "V100=2", "*=2"] {
        let done = call(there);
        assert_eq!(done.code, Some(0), "{there}: {}", done.err);
    }
}

#[test]
fn the_judge_finds_nothing_wrong_with_what_any_preset_decides() {
    let folder = Folder::new();
    folder.json("trace synth --nodes 10 --days 2 --to-jobs jobs.csv --to-nodes nodes.csv");
    for preset in ["fair", "throughput", "latency", "cost", "kai"] {
        let run = folder.call(&format!(
            "sim run --protocol timed --jobs jobs.csv --nodes nodes.csv --order dovetail --preset \
             {preset} --restart-cost 30s --checkpoint-interval 10m"
        ));
        assert_eq!(run.code, Some(0), "{preset}: {}", run.err);
    }
}

#[test]
fn a_file_of_weights_changes_the_preset_of_the_flag_unless_it_names_its_own() {
    let folder = Folder::new();
    folder.json("trace synth --nodes 10 --days 2 --to-jobs jobs.csv --to-nodes nodes.csv");
    folder.write("size.toml", "size = 1\n");
    folder.write("whole.toml", "preset = \"cost\"\nsize = 1\n");
    let decided = |flags: &str| {
        let run = folder.json(&format!(
            "sim run --protocol timed --jobs jobs.csv --nodes nodes.csv --order dovetail {flags}"
        ));
        run["event_log_hash"].clone()
    };
    let changed = decided("--preset cost --weights size.toml");
    assert_eq!(changed, decided("--weights whole.toml"));
    assert_ne!(changed, decided("--preset cost"));
    assert_ne!(changed, decided("--weights size.toml"));
    assert_eq!(changed, decided("--preset fair --weights whole.toml"));
}
