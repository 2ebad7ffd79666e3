//! `dovetail audit` with what GPUs did from a server: what it makes of samples, and of counters
//! that lie.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dovetail_phases::job_phases::{JobRecord, Phase, PhaseRule, job_phases};
use dovetail_signals::JobBehavior;
use serde_json::{Value, json};

use crate::cost::{dump, node, pod};
use crate::cost_job_period::{pod_of, record, series as series_of};
use crate::fake_prometheus::{FakePrometheus, Made, Query};
use crate::program::Folder;

/// A node of two GPUs, of which a notebook holds one.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut notebook = pod("vision", "train-0", 1, "n1");
    notebook["metadata"]["labels"] = json!({"dovetail.dev/class": "interactive"});
    let objects = [node("n1", 2, "h100"), notebook];
    folder.write("dump.json", &dump(&objects));
    folder
}

/// The engine of the held GPU is busy in the first hour, and not behind it; `kernels` is what
/// GPU_UTIL says.
fn series(query: &Query, kernels: f64) -> Vec<Made> {
    let labels = json!({"UUID": "a", "Hostname": "n1", "modelName": "NVIDIA H100", "pod": "train-0",
        "namespace": "vision"});
    match query.text.as_str() {
        text if text.contains("GR_ENGINE_ACTIVE[") => {
            let busy = |place: usize| Some(if place < 60 { 0.9 } else { 0.0 });
            vec![(labels, Box::new(busy))]
        }
        text if text.contains("DCGM_FI_DEV_GPU_UTIL[") => {
            vec![(labels, Box::new(move |_| Some(kernels)))]
        }
        _ => Vec::new(),
    }
}

fn audit(kernels: f64) -> Value {
    let server = FakePrometheus::start(move |query| series(query, kernels));
    let call = format!(
        "audit --from dump.json --prometheus {} --period 24h --gpu-price *=6 --gpu-price H100=6 --fail-on never",
        server.url
    );
    folder().json(&call)
}

fn finding<'d>(document: &'d Value, id: &str) -> Option<&'d Value> {
    document["findings"].as_array().expect("findings").iter().find(|finding| finding["id"] == id)
}

fn gpus(document: &Value, state: &str) -> f64 {
    let mut states = document["states"].as_array().expect("states").iter();
    states.find(|of| of["state"] == state).map_or(0.0, |of| of["gpus"].as_f64().expect("a number"))
}

/// Series have the pod's GPU on another node than the API server: nobody knows what the pod's own
/// GPU does.
#[test]
fn series_that_contradict_the_placement_are_a_finding_and_unknown() {
    let folder = folder();
    let mut moved = pod("vision", "train-0", 1, "n2");
    moved["metadata"]["labels"] = json!({"dovetail.dev/class": "interactive"});
    let objects = [node("n1", 2, "h100"), node("n2", 2, "h100"), moved];
    folder.write("dump.json", &dump(&objects));
    let server = FakePrometheus::start(|query| series(query, 0.0));
    let usage = |rows: &[(&str, &str)]| {
        let row = |at_s: u64| {
            let of = |(gpu, node): &(&str, &str)| format!("{at_s},train-0,{gpu},0,vision,{node}\n");
            rows.iter().map(of).collect::<String>()
        };
        let rows: String = (0..200).map(|minute| row(1_795_172_400 + minute * 60)).collect();
        format!("timestamp_s,pod,gpu,activity_percent,namespace,node\n{rows}")
    };
    folder.write("elsewhere.csv", &usage(&[("0", "n1")]));
    folder.write("more.csv", &usage(&[("0", "n2"), ("1", "n2")]));
    folder.write("true.csv", &usage(&[("0", "n2")]));
    let prometheus = format!("--prometheus {} --period 24h", server.url);
    for (source, is_false) in [
        (prometheus.as_str(), true),
        ("--usage elsewhere.csv", true),
        ("--usage more.csv", true),
        ("--usage true.csv", false),
    ] {
        let call = format!("audit --from dump.json {source} --gpu-price H100=6 --fail-on never");
        let found = folder.json(&call);
        assert_eq!(finding(&found, "VIS-05").is_some(), is_false, "{source}: {found:#}");
        assert_eq!(gpus(&found, "idle") == 0.0, is_false, "{source}: {found:#}");
        assert!(finding(&found, "IDL-02").is_none() || !is_false, "{source}: {found:#}");
    }
}

/// One hour of 24 active, 23 idle: of a month of 720 hours at $6 that is 690 hours, $4,140.
#[test]
fn what_a_server_saw_turns_blind_time_into_idle_time_with_its_price() {
    let found = audit(0.0);
    assert_eq!(
        (&found["measured"]["hours"], &found["measured"]["step_s"]),
        (&json!(24.0), &json!(60.0))
    );
    let idle = gpus(&found, "idle");
    assert!((idle - 23.0 / 24.0).abs() < 2.0 / 1440.0, "{idle}: {:#}", found["states"]);
    assert_eq!(found["headline"]["blind_share"], 0.0);
    let notebook = finding(&found, "IDL-01").expect("it stands still");
    let usd = notebook["usd_micros_per_month"].as_f64().expect("an amount") / 1e6;
    assert!((usd - 4_140.0).abs() < 4_140.0 / 690.0, "{usd}");
    assert!(notebook["formula"].as_str().expect("a formula").contains("× $6.00 per GPU-hour"));
    let coarse = finding(&found, "VIS-03").expect("nothing finer was seen");
    assert_eq!(coarse["evidence"][0]["value"], "gr_engine_active");
    assert!(finding(&found, "VIS-02").is_none());
}

/// The pod of today was made six hours ago; in the eighteen hours before, another one of its name
/// computed. And of a dump that was read two days ago the day before it counts.
#[test]
fn a_server_is_asked_about_the_pods_of_the_objects_and_until_these_were_read() {
    let now = jiff::Timestamp::now();
    let hours_ago = |hours: i64| now.checked_sub(jiff::SignedDuration::from_hours(hours));
    let hours_ago = |hours: i64| hours_ago(hours).expect("a time").to_string();
    let last_s = Arc::new(Mutex::new(0.0));
    let asked = Arc::clone(&last_s);
    let server = FakePrometheus::start(move |query| {
        let Some((labels, _)) = series(query, 0.0).pop() else { return Vec::new() };
        *asked.lock().expect("nobody panics") = query.moments.last().copied().unwrap_or(0.0);
        let busy = |place: usize| Some(if place < 18 * 60 { 0.9 } else { 0.0 });
        vec![(labels, Box::new(busy))]
    });
    let folder = folder();
    let audit = |made: String, more: &str| {
        let mut notebook = pod("vision", "train-0", 1, "n1");
        notebook["metadata"]["creationTimestamp"] = json!(made);
        let objects = [node("n1", 2, "h100"), notebook];
        folder.write("dump.json", &dump(&objects));
        let flags = "--period 24h --gpu-price H100=6 --fail-on never";
        folder.json(&format!("audit --from dump.json --prometheus {} {flags} {more}", server.url))
    };
    let told = "ignored measurements of pod vision/train-0, from before the pod was created";
    for (made_hours_ago, idle, is_told) in [(100, 0.25, false), (6, 1.0, true)] {
        let found = audit(hours_ago(made_hours_ago), "");
        assert!((gpus(&found, "idle") - idle).abs() < 0.01, "{:#}", found["states"]);
        assert_eq!(found["notes"].to_string().contains(told), is_told, "{:#}", found["notes"]);
    }
    let found = audit(hours_ago(100), &format!("--at {}", hours_ago(48)));
    assert!((gpus(&found, "idle") - 0.25).abs() < 0.01, "{:#}", found["states"]);
    let apart_s = now.as_second() as f64 - *last_s.lock().expect("nobody panics");
    assert!((48.0 * 3600.0..48.0 * 3600.0 + 121.0).contains(&apart_s), "{apart_s}");
}

/// Kernels ran all day, and the engine's counter was zero for 23 hours of it: nobody knows what the
/// GPU did.
#[test]
fn a_counter_that_stands_still_makes_time_unknown_and_not_idle() {
    let found = audit(100.0);
    assert!(gpus(&found, "idle") < 0.01, "{:#}", found["states"]);
    assert!(finding(&found, "IDL-01").is_none());
    let dead = finding(&found, "VIS-02").expect("the signals contradict each other");
    let value = dead["evidence"][0]["value"].as_str().expect("text");
    let hours = value.strip_prefix("GPU a of n1 for ").and_then(|text| text.strip_suffix(" h"));
    let hours: f64 = hours.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value}"));
    assert!((hours - 23.0).abs() < 0.05, "{value}");
}

/// The pods of a recorded job, which a gang label binds, on the nodes that its series name.
fn dump_of(record: &JobRecord) -> Folder {
    let members = record.members.iter().enumerate();
    let pods = members.map(|(number, member)| (pod_of(member), format!("n{}", number % 2)));
    let pods: BTreeMap<String, String> = pods.collect();
    let mut objects = vec![node("n0", 64, "h100"), node("n1", 64, "h100")];
    objects.extend(pods.into_iter().map(|(name, node)| {
        let mut pod = pod("ml", &name, 1, &node);
        pod["metadata"]["ownerReferences"] =
            json!([{"kind": "PyTorchJob", "name": "train", "controller": true}]);
        pod
    }));
    let folder = Folder::new();
    folder.write("dump.json", &dump(&objects));
    folder
}

/// A job that hangs is told as such, as long as the truth of its record says, and one that waits
/// for a straggler is not.
#[test]
fn a_job_that_hangs_is_found_and_one_that_waits_is_not() {
    for (kind, seed) in [(JobBehavior::Hanging, 2), (JobBehavior::Straggler, 3)] {
        let record = record(kind, seed);
        let folder = dump_of(&record);
        let phases = job_phases(&record, &PhaseRule::default()).expect("a record").by_phase();
        let hung_h = phases.get(&Phase::Hang).copied().unwrap_or(0) as f64 / 3.6e9;
        assert_eq!(hung_h > 0.1, kind == JobBehavior::Hanging, "{hung_h}");
        let served = record.clone();
        let server = FakePrometheus::start(move |query| series_of(&served, query));
        let call = format!(
            "audit --from dump.json --prometheus {} --period 12h --step 60s --fail-on never",
            server.url
        );
        let document = folder.json(&call);
        let hang = finding(&document, "IDL-08");
        assert_eq!(hang.is_some(), kind == JobBehavior::Hanging, "{hang:?}");
        let Some(hang) = hang else { continue };
        assert_eq!(hang["object"]["name"], "train");
        assert_eq!(
            (&hang["confidence"], &hang["usd_micros_per_month"]),
            (&json!("likely"), &Value::Null)
        );
        let hours = hang["evidence"][1]["value"].as_str().expect("text").parse::<f64>();
        let hours = hours.expect("GPU-hours");
        assert!((hours / hung_h - 1.0).abs() < 0.1, "{hours}, not {hung_h}");
    }
}

/// 150,000 requests in a day of a model that its server names; a pod of the same server elsewhere
/// is another's.
#[test]
fn a_much_asked_model_is_told_with_what_its_server_counted() {
    let mut serve = pod("prod", "chat-0", 1, "n1");
    serve["metadata"]["labels"] = json!({"dovetail.dev/class": "inference"});
    let folder = Folder::new();
    let objects = [node("n1", 2, "h100"), serve];
    folder.write("dump.json", &dump(&objects));
    let audit = |requests: f64, model: &'static str, period: &str| {
        let server = FakePrometheus::start(move |query| {
            if !query.text.contains("vllm:request_success_total") {
                return Vec::new();
            }
            let of = |namespace: &str| json!({"namespace": namespace, "pod": "chat-0", "model_name": model});
            let one = |namespace: &str, value: f64| -> Made {
                (of(namespace), Box::new(move |_| Some(value)))
            };
            vec![one("prod", requests), one("other", 1e9)]
        });
        folder.json(&format!(
            "audit --from dump.json --prometheus {} --period {period} --fail-on never",
            server.url
        ))
    };
    let found = audit(300_000.0, "org/Model-8B", "48h");
    let asked = finding(&found, "MOD-01").expect("it is asked often");
    assert_eq!(asked["evidence"][0]["value"], "150000");
    assert!(finding(&audit(300_000.0, "org/Model-8B-FP8", "48h"), "MOD-01").is_none());
    assert!(finding(&audit(200_000.0, "org/Model-8B", "48h"), "MOD-01").is_none());
    // Nobody knows the night.
    assert!(finding(&audit(300_000.0, "org/Model-8B", "12h"), "MOD-01").is_none());
}
