//! `dovetail sim arena`: its JSON, and a comparison that was stopped and resumed.

use serde_json::Value;

use crate::program::Folder;

const SMALL: &str = "sim arena --regimes training/10-nodes/load-0.7/fifo-skip \
                     --policies best-fit,kube-default,dovetail --seeds 2 --orders 2";

#[test]
fn the_json_has_the_keys_that_were_promised() {
    let shown = Folder::new().json(SMALL);
    let regime = &shown["regimes"][0];
    assert_eq!(regime["name"], "training/10-nodes/load-0.7/fifo-skip");
    assert_eq!(regime["family"], "training");
    assert_eq!(regime["figure"], "gpu_weighted_wait_hours");
    assert_eq!((&regime["unit"], &regime["higher_is_better"]), (&"hours".into(), &false.into()));
    assert!(regime["easy"].is_boolean(), "{regime}");
    let reference = regime["reference"].as_str().unwrap();
    assert!(["best-fit", "kube-default"].contains(&reference), "{reference}");
    for policy in ["best-fit", "kube-default", "dovetail"] {
        let estimate = &regime["by_policy"][policy];
        let [low, mean, high] = ["low", "mean", "high"].map(|key| estimate[key].as_f64().unwrap());
        assert!(low <= mean && mean <= high, "{estimate}");
        assert!(regime["regret"][policy].is_f64(), "{regime}");
        let summary = &shown["summary"][policy];
        assert!(regime["easy"] == true || summary["mean_regret_percent"].is_f64(), "{summary}");
        assert!(regime["easy"] == true || summary["worst_regret_percent"].is_f64(), "{summary}");
        assert!(regime["easy"] == true || summary["wins"].is_u64(), "{summary}");
    }
    assert_eq!(regime["regret"][reference], 0.0);
}

/// A regret over nothing is unknown, and no table of it is printed.
#[test]
fn without_a_simple_policy_nothing_is_called_a_regret() {
    let folder = Folder::new();
    let alone = SMALL.replace("best-fit,kube-default,dovetail", "dovetail");
    let shown = folder.json(&alone);
    let standing = &shown["groups"][0]["by_policy"]["dovetail"];
    for key in ["mean_regret_percent", "worst_regret_percent", "win_percent"] {
        assert_eq!(standing.get(key), Some(&Value::Null), "{key} of {standing}");
    }
    let text = folder.call(&alone).out;
    assert!(text.contains("training/10-nodes") && !text.contains("worst regret"), "{text}");
}

/// The targets are for the default policy.
#[test]
fn without_the_default_policy_its_columns_and_targets_are_left_out() {
    let folder = Folder::new();
    let without = SMALL.replace("kube-default,dovetail", "kube-default");
    let text = folder.call(&without).out;
    let sentence =
        "The targets of the default policy are not judged, because dovetail was not run.";
    assert!(text.ends_with(&format!("\n{sentence}\n")), "{text}");
    let header = text.lines().nth(1).unwrap();
    assert!(header.contains("reference") && !header.contains("dovetail"), "{text}");
    assert!(!header.contains("regret"), "{text}");
    let page = folder.call(&format!("{without} -o html")).out;
    assert!(page.contains(sentence), "{page}");
    let whole = folder.call(SMALL).out;
    assert!(!whole.contains(sentence) && whole.contains("\n| group "), "{whole}");
}

#[test]
fn a_comparison_that_was_cut_off_ends_as_one_that_was_not() {
    let folder = Folder::new();
    let resumed = format!("{SMALL} --resume runs.jsonl");
    let whole: Value = folder.json(SMALL);
    assert_eq!(folder.json(&resumed), whole, "a file changes nothing");
    let mut lines: Vec<String> = folder.read("runs.jsonl").lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 1 + 2 * 2 * 3, "settings, and a line for each run");
    // As if the program had been killed within its sixth run.
    let kept = lines[..6].join("\n");
    folder.write("runs.jsonl", &format!("{kept}\n{}", &lines[6][..30]));
    assert_eq!(folder.json(&resumed), whole);
    let mut again: Vec<String> = folder.read("runs.jsonl").lines().map(str::to_owned).collect();
    lines.sort_unstable();
    again.sort_unstable();
    assert_eq!(again, lines);
    // All are there: none is run again, and other settings are refused by name.
    let done = folder.call(&resumed);
    assert!(done.err.contains("runs.jsonl has 12 finished runs"), "{}", done.err);
    let done = folder.call(&resumed.replace("--seeds 2", "--seeds 3"));
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.err.contains("seeds: [42, 43] in the file, [42, 43, 44] now"), "{}", done.err);
}

#[test]
fn without_outside_data_the_rest_runs_and_says_so() {
    let folder = Folder::new();
    let done = folder.call("sim arena --regimes training,plain --policies best-fit --seeds 0");
    assert_eq!(done.code, Some(2), "{}", done.err);
    let regimes = "training/10-nodes/load-0.7/fifo-skip,plain";
    let done = folder
        .call(&format!("sim arena --regimes {regimes} --policies best-fit --seeds 1 --orders 1"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(
        done.err
            .contains("14 regimes are skipped: openb/openb_node_list_gpu_node.csv does not exist"),
        "{}",
        done.err
    );
    let done = folder.call("sim arena --regimes plain");
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("set DOVETAIL_TRACES or --traces"), "{}", done.err);
    assert!(done.err.contains("openb_node_list_gpu_node.csv does not exist"), "{}", done.err);
    assert!(folder.call("sim arena --list --traces=").code == Some(0), "an empty variable");
    folder.write("file", "");
    for (folder_named, told) in [("nowhere", "--traces nowhere"), ("file", "--traces file")] {
        let done = folder.call(&format!("sim arena --list --traces {folder_named}"));
        assert_eq!(done.code, Some(1), "{}", done.err);
        assert!(done.err.contains(told), "{}", done.err);
    }
}

#[test]
fn regimes_are_listed_once_each() {
    let folder = Folder::new();
    let listed = folder.json("sim arena --list --regimes training,plain");
    let regimes = listed["regimes"].as_array().unwrap();
    let names: Vec<&str> = regimes.iter().map(|one| one["name"].as_str().unwrap()).collect();
    let mut once = names.clone();
    once.dedup();
    assert_eq!((names.len(), once.len()), (16 + 14, 30), "{names:?}");
    assert_eq!(regimes[0]["lacks"], "openb/openb_node_list_gpu_node.csv does not exist");
    assert_eq!(regimes[20]["lacks"], Value::Null);
    let text = folder.call("sim arena --list --regimes training,plain").out;
    assert!(text.lines().any(|line| line.starts_with("openb/default/plain ")), "{text}");
    assert!(
        text.contains("skipped 14: openb/openb_node_list_gpu_node.csv does not exist"),
        "{text}"
    );
    let names = |flags: &str| -> Vec<String> {
        let listed = folder.json(&format!("sim arena --list {flags}"));
        let regimes = listed["regimes"].as_array().unwrap().iter();
        regimes.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("--regimes preemption"), ["preemption/50-nodes/load-0.9"]);
    assert_eq!(names("--regimes mixed/10-nodes").len(), 3);
    assert_eq!(names("--regimes mix-change").len(), 4, "the family, and none of `changing`");
    let quick = names("--quick --regimes training");
    assert_eq!(quick.len(), 3, "{quick:?}");
    assert!(quick.iter().all(|name| names("--quick").contains(name)), "{quick:?}");
    assert_eq!(names("--quick --regimes training/10-nodes/load-0.7/fifo-skip").len(), 1);
    let done = folder.call("sim arena --quick --regimes early");
    assert!(done.code == Some(2) && done.err.contains("no regime of early is in"), "{}", done.err);
    let done = folder.call("sim arena --regimes preemptoin");
    assert!(done.err.contains("did you mean preemption/50-nodes/load-0.9?"), "{}", done.err);
    let done = folder.call("sim arena --regimes=");
    assert!(done.err.contains("--regimes: a name in the list is empty"), "{}", done.err);
    for asked in ["nope", "mixed,"] {
        let done = folder.call(&format!("sim arena --regimes {asked}"));
        assert_eq!(done.code, Some(2), "{}", done.err);
        assert_eq!(done.err.matches("adversarial").count(), 1, "{}", done.err);
        assert!(done.err.contains("--list lists the regimes"), "{}", done.err);
    }
}

const ONE: &str = "sim arena --regimes training/10-nodes/load-0.7/fifo-skip \
                   --policies best-fit --seeds 1 --orders 1";

/// A file of somebody else's, of another run, or of a run that still goes on, stays as it is.
#[test]
fn a_file_that_cannot_be_resumed_is_left_as_it_is() {
    let folder = Folder::new();
    let resumed = format!("{ONE} --resume runs.jsonl");
    let refused = |text: &str, code: i32, problem: &str| {
        folder.write("runs.jsonl", text);
        let done = folder.call(&resumed);
        assert_eq!(done.code, Some(code), "{}", done.err);
        assert!(done.err.contains(problem), "{}", done.err);
        assert_eq!(folder.read("runs.jsonl"), text);
    };
    refused("my only notes", 3, "runs.jsonl:1: ");
    refused("my notes\n", 3, "runs.jsonl:1:1: ");
    folder.write("runs.jsonl", "");
    assert_eq!(folder.call(&resumed).code, Some(0));
    let whole = folder.read("runs.jsonl");
    refused(&(whole.clone() + "and my notes"), 3, "runs.jsonl:3: ");
    let allocation =
        whole.split("\"allocation_percent\":").nth(1).and_then(|it| it.split(',').next());
    for edited in
        [whole.replace("\"order\":0", "\"order\":1"), whole.replacen(allocation.unwrap(), "50", 1)]
    {
        refused(&edited, 3, "runs.jsonl:2: not a file that `sim arena --resume` writes: the run");
    }
    folder.write("runs.jsonl", &whole);
    let held = std::fs::File::open(folder.path("runs.jsonl")).unwrap();
    held.lock().unwrap();
    let done = folder.call(&resumed);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.contains("another process is writing to this file"), "{}", done.err);
    held.unlock().unwrap();
    assert_eq!(folder.call(&resumed).code, Some(0));
}

#[test]
fn the_seed_of_the_settings_is_the_first() {
    let shown = Folder::new().json(&format!("{ONE} --seed 7"));
    assert_eq!(shown["seeds"], serde_json::json!([7]));
    let missing = shown["simple_not_run"].as_array().unwrap();
    assert_eq!(missing.len(), 7, "{missing:?}");
}

/// What is wrong with an outside trace is told with its line, and ends with the code of bad input.
#[test]
fn hostile_traces_end_as_bad_input() {
    let folder = Folder::new();
    let nodes = "sn,cpu_milli,memory_mib,gpu,model\nn,64000,262144,8,A\n";
    let pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\n";
    std::fs::create_dir_all(folder.path("t/openb")).unwrap();
    std::fs::create_dir_all(folder.path("t/jobs")).unwrap();
    folder.write("t/openb/openb_node_list_gpu_node.csv", nodes);
    folder.write("t/openb/openb_pod_list_default.csv", pods);
    folder.write("t/jobs/philly_pass_82k.csv", "job_id,submit_s,duration_s,num_gpu\n0,0,0,1\n");
    let run = "sim arena --traces t --seeds 1 --orders 1 --policies best-fit --regimes";
    for (regime, code, told) in [
        ("openb/default/plain", 3, "openb_pod_list_default.csv:2: no pod from here on requests"),
        ("philly/uniform/load-0.9", 3, "t/jobs/philly_pass_82k.csv: its jobs of the 10 days"),
        ("openb-timed/20-nodes/load-0.9", 2, "has 1 of the 20 nodes that it needs"),
        ("openb/default/only-p100", 2, "has P100 GPUs"),
    ] {
        let done = folder.call(&format!("{run} {regime}"));
        assert_eq!(done.code, Some(code), "{regime}: {}", done.err);
        assert!(done.err.contains(told) && done.err.contains(regime), "{regime}: {}", done.err);
    }
    // A file that cannot be read concerns the regimes that read it, and no flag waits for it.
    folder.write("t/jobs/philly_pass_82k.csv", "job_id,submit_s,duration_s,num_gpu\n0,0,1e400,1\n");
    for (regime, code, told) in [
        ("philly/uniform/load-0.9", 3, "t/jobs/philly_pass_82k.csv:2: column `duration_s`"),
        ("openb/default/only-p100", 2, "has P100 GPUs"),
        ("philly,nope", 2, "no regime or family is named nope"),
    ] {
        let done = folder.call(&format!("{run} {regime}"));
        assert_eq!(done.code, Some(code), "{regime}: {}", done.err);
        assert!(done.err.contains(told), "{regime}: {}", done.err);
    }
    let synthetic = folder.call(&format!("{run} first-64-jobs/10-nodes/load-0.9 --list"));
    assert_eq!(synthetic.code, Some(0), "{}", synthetic.err);
}
