//! What was recorded replays, what was changed is caught, what was paused goes on.

use std::fs;

use crate::program::Folder;

const TIMED: &str = "sim run --protocol timed --nodes 2x4 --jobs jobs.csv --order fifo-skip";
const FGD: &str = "sim run --protocol fgd --nodes nodes.csv --pods pods.csv";
const FAULTS: &str = "--time-between-failures 2 --repair-time 1 --policy dovetail";

#[test]
fn a_recording_replays_to_the_same_log_in_both_protocols() {
    let folder = Folder::new();
    let runs = [
        format!("{TIMED} --policy fgd"),
        format!("{TIMED} {FAULTS}"),
        format!("{FGD} --policy fgd"),
        format!("{FGD} --policy random"),
        format!("{FGD} --policy dovetail"),
    ];
    for (run, file) in runs.iter().flat_map(|run| [(run, "log"), (run, "log.gz")]) {
        let recorded = folder.json(&format!("{run} --record {file}"));
        let is_gzip = folder.bytes(file).starts_with(&[0x1f, 0x8b]);
        assert_eq!(is_gzip, file == "log.gz", "{run} {file}");
        let replayed = folder.json(&format!("sim replay {file}"));
        assert_eq!(replayed["event_log_hash"], recorded["event_log_hash"], "{run}");
        assert!(replayed["divergence"].is_null() && replayed["actions"].as_u64() > Some(3));
    }
    folder.rename("log.gz", "renamed");
    assert!(folder.call("sim replay renamed").out.contains("identical"));
}

#[test]
fn a_changed_recording_ends_with_4_and_a_torn_one_with_3_after_as_much_as_it_has() {
    let folder = Folder::new();
    folder.json(&format!("{TIMED} --record log"));
    let text = folder.read("log");
    let at = text.lines().position(|line| line.contains("\"bind\"")).unwrap() as u64 + 1;
    let (head, steps) = text.split_once('\n').unwrap();
    let changed = steps.replacen("\"node\":\"node-000000\"", "\"node\":\"elsewhere\"", 1);
    assert_ne!(changed, steps);
    folder.write("changed", &format!("{head}\n{changed}"));
    let done = folder.call("sim replay changed");
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert!(done.err.contains(&format!("changed:{at}: ")), "{}", done.err);
    assert!(done.out.contains("elsewhere"), "{}", done.out);
    let done = folder.call("sim replay changed --output json");
    let value: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((done.code, &value["divergence"]["line"]), (Some(4), &at.into()));
    folder.write("torn", &text[..text.len() - 20]);
    let done = folder.call("sim replay torn");
    assert_eq!(done.code, Some(3), "{}", done.err);
    let whole = text.lines().count() - 1;
    assert!(
        done.err.contains(&format!("torn:{whole}: the recording has no end mark")),
        "{}",
        done.err
    );
    assert!(done.out.contains("identical up to line"), "{}", done.out);
    let done = folder.call("sim replay torn --output json");
    let value: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((done.code, &value["cut_off_after_line"]), (Some(3), &whole.into()));
    let done = folder.call("sim replay torn --policy best-fit");
    assert!(done.code == Some(3) && done.err.contains("has no end mark"), "{}", done.err);
    folder.write("torn-early", &text[..20]);
    assert_eq!(folder.call("sim replay torn-early").code, Some(3));
    folder.json(&format!("{TIMED} --record log.gz"));
    let bytes = folder.bytes("log.gz");
    folder.write_bytes("torn.gz", &bytes[..bytes.len() * 9 / 10]);
    let done = folder.call("sim replay torn.gz");
    assert!(done.code == Some(3) && done.err.contains("has no end mark"), "{}", done.err);
    // All lines are there, and the end mark confirms it; at most the checksum of gzip is missing.
    for cut in [1, 5, 8] {
        folder.write_bytes("torn.gz", &bytes[..bytes.len() - cut]);
        let done = folder.call("sim replay torn.gz");
        assert!(done.code == Some(0) && done.out.contains("identical\n"), "{cut}: {}", done.err);
    }
}

#[test]
fn a_paused_run_goes_on_as_if_never_paused() {
    let folder = Folder::new();
    for (more, file) in [("", "p.json"), (FAULTS, "p.json.gz"), ("--policy fgd-learnt", "p.json")] {
        let run = format!("{TIMED} {more}");
        let whole = folder.json(&run);
        let mut from = String::new();
        for at in [100, 4000] {
            let paused = folder.json(&format!("{run} {from} --pause-at {at} --checkpoint {file}"));
            assert_eq!(paused["paused_at_ms"], at * 1000, "{more}");
            assert_ne!(paused["event_log_hash"], whole["event_log_hash"], "{more}");
            from = format!("--from-checkpoint {file}");
        }
        let mut resumed = folder.json(&format!("{run} {from}"));
        assert!(resumed["resumed_at_ms"].as_u64() <= Some(4_000_000));
        let account = ["installed", "allocated", "free", "unavailable"];
        for state in account {
            let of = |run: &serde_json::Value| run["usage"]["total"][state]["gpu_milli_ms"].clone();
            assert!(of(&whole).is_number() && of(&whole) == of(&resumed), "{more} {state}");
        }
        let mut whole = whole;
        for run in [&mut whole, &mut resumed] {
            let run = run.as_object_mut().unwrap();
            run.remove("resumed_at_ms");
            run.remove("usage");
        }
        assert_eq!(whole, resumed, "{more}");
        assert_eq!(folder.bytes(file).starts_with(&[0x1f, 0x8b]), file.ends_with(".gz"));
    }
}

#[test]
fn queues_fare_alike_with_and_without_a_pause() {
    let folder = Folder::new();
    folder.write(
        "jobs.csv",
        "job_id,submit_s,duration_s,num_gpu,queue\na0,0,3601,4,a\nb0,61,7207,8,b\n\
         b1,123,601,1,b\na1,187,607,2,a\na2,4001,1201,4,a\nnone,4007,1009,1,\n",
    );
    folder.write("q.toml", "[queues.a]\nweight = 1\n\n[queues.b]\nweight = 3\n");
    let run = format!("{TIMED} --queues q.toml");
    let whole = folder.json(&run);
    assert!(whole["queues"][0]["gpu_hours"].as_f64() > Some(1.0), "{whole}");
    folder.json(&format!("{run} --pause-at 211 --checkpoint p.json"));
    let again = "--from-checkpoint p.json --pause-at 5003 --checkpoint q.json";
    folder.json(&format!("{run} {again}"));
    for file in ["p.json", "q.json"] {
        let resumed = folder.json(&format!("{run} --from-checkpoint {file}"));
        assert_eq!(resumed["queues"], whole["queues"], "{file}");
    }
}

#[test]
fn a_checkpoint_goes_with_its_own_history_alone() {
    let folder = Folder::new();
    folder.write(
        "jobs.csv",
        "job_id,submit_s,duration_s,num_gpu,queue\na0,0,3601,4,a\nb0,61,7207,8,b\n",
    );
    for (file, hours) in [("h.toml", 100), ("same.toml", 100), ("other.toml", 200)] {
        folder.write(file, &format!("[gpuHours]\na = {hours}\n"));
    }
    let run = TIMED.replace("fifo-skip", "dovetail");
    folder.json(&format!("{run} --history h.toml --pause-at 211 --checkpoint p.json"));
    for history in ["", "--history other.toml"] {
        let done = folder.call(&format!("{run} {history} --from-checkpoint p.json"));
        let told = "written with another trace, cluster or history";
        assert!(done.code == Some(3) && done.err.contains(told), "{history}: {}", done.err);
    }
    folder.json(&format!("{run} --history same.toml --from-checkpoint p.json"));
}

#[test]
fn a_refused_reservation_has_a_reason() {
    let folder = Folder::new();
    folder
        .write("jobs.csv", "job_id,submit_s,duration_s,num_gpu,estimate_s\nbusy,0,36000,4,36000\n");
    folder.write(
        "r.toml",
        "[reservations.late]\ngpus = 4\ncount = 2\nfrom = \"1h\"\nto = \"2h\"\n\
         asked = \"60s\"\n\n[reservations.never]\ngpus = 16\ncount = 1\nfrom = \"1h\"\n\
         to = \"2h\"\n\n[reservations.wide]\ngpus = 4\ncount = 3\nfrom = \"1h\"\n\
         to = \"2h\"\n",
    );
    let run = folder.json(&format!("{TIMED} --reservations r.toml"));
    let reservations = run["reservations"].as_array().expect("a list");
    let reasons = reservations.iter().filter_map(|of| of["reason"].as_str());
    let (late, never, wide) = (
        "no capacity at the reserved time; earliest start with capacity: 36000 s",
        "no node is large enough: each pod requests 16 GPUs, and the largest node has 4",
        "no capacity at the reserved time or at any later time that can be forecast",
    );
    assert_eq!(reasons.collect::<Vec<_>>(), [late, never, wide], "{run}");
    let text = folder.call(&format!("{TIMED} --reservations r.toml")).out;
    let lines = format!("  late: {late}\n  never: {never}\n  wide: {wide}\n");
    assert!(text.contains(&format!("\nrefused reservations\n{lines}")), "{text}");
}

#[test]
fn a_reservation_for_a_queue_or_a_job_that_is_not_there_is_told() {
    let folder = Folder::new();
    folder.write("jobs.csv", "job_id,submit_s,duration_s,num_gpu,queue\nbusy,0,3600,4,vision\n");
    let told = |beneficiary: &str| {
        let window = "gpus = 1\ncount = 1\nfrom = \"1h\"\nto = \"2h\"\n";
        folder.write("r.toml", &format!("[reservations.night]\n{beneficiary}\n{window}"));
        let done = folder.call(&format!("{TIMED} --reservations r.toml"));
        assert_eq!(done.code, Some(0), "{beneficiary}: {}", done.err);
        done.err
    };
    let (queue, job) = (told("queue = \"vison\""), told("job = \"bussy\""));
    assert!(queue.contains("note: reservation night: no job is in queue vison"), "{queue}");
    assert!(job.contains("note: reservation night: the trace has no job bussy"), "{job}");
    for there in ["queue = \"vision\"", "job = \"busy\"", ""] {
        let told = told(there);
        assert!(!told.contains("reservation night"), "{there}: {told}");
    }
}

#[test]
fn a_checkpoint_goes_with_its_own_trace_and_flags_alone() {
    let folder = Folder::new();
    folder.json(&format!("{TIMED} --pause-at 3000 --checkpoint p.json"));
    let refused = |run: &str, file: &str, code: i32, says: &str| {
        let done = folder.call(&format!("{run} --from-checkpoint {file}"));
        assert_eq!(done.code, Some(code), "{run}: {}", done.err);
        assert!(done.err.contains(says), "{run}: {}", done.err);
    };
    refused(&TIMED.replace("2x4", "3x4"), "p.json", 3, "another trace");
    refused(&format!("{TIMED} --policy best-fit"), "p.json", 2, "pass the same flags");
    refused(&format!("{TIMED} --seed 7"), "p.json", 2, "pass the same flags");
    folder.write(
        "changed.json",
        &folder.read("p.json").replacen("\"attempt\":0", "\"attempt\":1", 1),
    );
    refused(TIMED, "changed.json", 3, "changed.json:2: ");
    let earlier = format!("{TIMED} --pause-at 10 --checkpoint q.json");
    refused(&earlier, "p.json", 2, "--pause-at");
    let done = folder.call(&format!("{TIMED} --pause-at 900000 --checkpoint late.json"));
    assert!(done.code == Some(0) && done.err.contains("no checkpoint was written"), "{}", done.err);
    assert!(!folder.has("late.json"));
}

impl Folder {
    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file that the program wrote")
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).expect("both in a temporary folder");
    }
}
