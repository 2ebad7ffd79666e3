//! What a ledger confirms of findings that are fixed: work that stopped wasting, work that only
//! moved, and objects and times of which it knows nothing.

use dovetail_account::device_time::{ActiveWork, DeviceInterval, DeviceState, Span};
use dovetail_account::rollup::{HOUR_MS, NodeTerms};
use dovetail_store::{Address, ReadDevice, ReadNode, ReadPod, Reading, Store};
use serde_json::{Value, json};

use crate::program::Folder;

const DAY_MS: u64 = 24 * HOUR_MS;
/// The earlier audit is of the noon of this day, the later one of two weeks after: whole weeks end
/// at their midnights.
const THEN: &str = "2026-11-06T12:00:00Z";
const NOW: &str = "2026-11-20T12:00:00Z";

fn day(text: &str) -> u64 {
    let time: jiff::Timestamp = format!("{text}T00:00:00Z").parse().expect("a day");
    u64::try_from(time.as_millisecond()).expect("after 1970")
}

/// What one GPU was for so many hours of each day: state and holder.
type Part = (u64, DeviceState, Option<u32>);

const SERVE: Option<u32> = Some(0);
const NOTEBOOK: Option<u32> = Some(1);
const TRAIN: Option<u32> = Some(2);
const IDLE: DeviceState = DeviceState::Idle;
const ACTIVE: DeviceState = DeviceState::Active(ActiveWork::NotSeparable);

fn reading(begin: &str, days: u64, gpus: &[&[Part]]) -> Reading {
    let from_ms = day(begin);
    let device = |(number, parts): (usize, &&[Part])| {
        let intervals = (0..days).flat_map(|day| {
            let mut at_ms = from_ms + day * DAY_MS;
            parts.iter().map(move |(hours, state, holder)| {
                let span = Span { from_ms: at_ms, to_ms: at_ms + hours * HOUR_MS };
                at_ms = span.to_ms;
                let (state, holder) = (*state, *holder);
                DeviceInterval { span, gpu_milli: 1000, state, holder, signal: None }
            })
        });
        // The third one is of another node, and has no price.
        let node = usize::from(number == 2);
        ReadDevice { node, name: format!("GPU-{number}"), intervals: intervals.collect() }
    };
    let pod = |name: &str, job: &str| ReadPod {
        namespace: "prod".to_owned(),
        name: name.to_owned(),
        job: job.to_owned(),
        ..ReadPod::default()
    };
    let node = |name: &str, model: &str, usd_micros_per_gpu_hour| ReadNode {
        name: name.to_owned(),
        gpu_type: model.to_owned(),
        pool: "EKSNodegroup h100".to_owned(),
        terms: NodeTerms { usd_micros_per_gpu_hour, ..NodeTerms::default() },
        ..ReadNode::default()
    };
    Reading {
        cluster: "west".to_owned(),
        source: "http://prometheus.example".to_owned(),
        span: Span { from_ms, to_ms: from_ms + days * DAY_MS },
        step_ms: Some(60_000),
        nodes: vec![node("g1", "H100", Some(2_000_000)), node("x1", "Mystery-X9", None)],
        pods: vec![
            pod("serve-1-a", "Deployment prod/serve"),
            pod("notebook-0", "StatefulSet prod/notebook"),
            pod("train-x", "Job prod/train"),
        ],
        devices: gpus.iter().enumerate().map(device).collect(),
        ..Reading::default()
    }
}

/// A ledger of a week before the earlier audit, and of so many days before the later one.
fn folder(before: &[&[Part]], days: u64, after: &[&[Part]]) -> Folder {
    let folder = Folder::new();
    let address = Address::File(folder.path("ledger.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let begin = ["2026-11-13", "2026-11-14", "2026-11-15", "2026-11-16"][7 - days as usize];
    runtime.expect("a runtime").block_on(async {
        let mut store = Store::open(&address).await.expect("a ledger");
        for reading in [reading("2026-10-30", 7, before), reading(begin, days, after)] {
            store.keep(&reading, day("2026-11-20")).await.expect("kept");
        }
        store.close().await;
    });
    let finding = |id: &str, kind: &str, name: &str, usd: Option<i64>| {
        json!({"id": id, "object": {"kind": kind, "namespace": "prod", "name": name},
            "usd_micros_per_month": usd, "gpu_hours_per_month": usd.map_or(0.0, |_| 720.0)})
    };
    let old = json!({"schema": "dovetail-audit/1", "taken_at": THEN, "findings": [
        finding("IDL-02", "Deployment", "serve", Some(1_440_000_000)),
        finding("IDL-01", "StatefulSet", "notebook", Some(1_440_000_000)),
        finding("IDL-03", "HorizontalPodAutoscaler", "serve", None),
        finding("SCH-11", "Deployment", "serve", None),
        finding("REQ-05", "Deployment", "serve", Some(720_000_000)),
    ]});
    folder.write("old.json", &old.to_string());
    let offers = json!({"cpu": "190", "memory": "2000Gi", "pods": "110"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c1"},
        "status": {"capacity": offers, "allocatable": offers,
            "conditions": [{"type": "Ready", "status": "True"}]}});
    folder.write("dump.json", &node.to_string());
    folder
}

fn call() -> String {
    format!("audit --from dump.json --at {NOW} --baseline old.json --store ledger.db")
}

/// What is said of a finding that is fixed.
fn of<'d>(document: &'d Value, id: &str) -> &'d Value {
    let fixed = document["fixed"].as_array().expect("what is fixed");
    &fixed.iter().find(|fixed| fixed["id"] == id).expect("it is fixed")["ledger"]
}

fn usd(rate: &Value) -> f64 {
    rate["usd_micros_per_month"].as_f64().expect("an amount") / 1e6
}

/// The server is idle for twelve hours a day, the notebook for six; both GPUs are seen for all of
/// each day.
const BEFORE: [&[Part]; 2] =
    [&[(12, IDLE, SERVE), (12, ACTIVE, SERVE)], &[(6, IDLE, NOTEBOOK), (18, ACTIVE, NOTEBOOK)]];

#[test]
fn what_stopped_is_confirmed_in_dollars_and_every_form_says_so() {
    // The server idles for three hours; the notebook as before.
    let after: [&[Part]; 2] =
        [&[(3, IDLE, SERVE), (21, ACTIVE, TRAIN)], &[(6, IDLE, NOTEBOOK), (18, ACTIVE, NOTEBOOK)]];
    let folder = folder(&BEFORE, 7, &after);
    let document = folder.json(&call());
    let serve = of(&document, "REQ-05");
    assert_eq!(serve["status"], "confirmed", "{document:#}");
    // 12 and 3 hours of each of 30 days at $2.
    assert_eq!((usd(&serve["before"]), usd(&serve["after"])), (720.0, 180.0));
    assert_eq!(
        (usd(&serve["confirmed"]), &serve["confirmed"]["gpu_hours_per_month"]),
        (540.0, &json!(270.0))
    );
    let notebook = of(&document, "IDL-01");
    assert_eq!((&notebook["status"], usd(&notebook["before"])), (&json!("not_confirmed"), 360.0));
    assert_eq!(notebook["confirmed"], Value::Null);
    assert_eq!(of(&document, "IDL-03")["status"], "unknown");
    assert_eq!(of(&document, "SCH-11")["status"], "nothing_to_confirm");
    // Its seconds are those of REQ-05 on the same object.
    let elsewhere = of(&document, "IDL-02");
    assert_eq!(
        (&elsewhere["status"], &elsewhere["before"]),
        (&json!("counted_elsewhere"), &Value::Null)
    );
    assert!(elsewhere["why"].as_str().expect("why").contains("REQ-05 of Deployment prod/serve"));
    let ledger = &document["ledger"];
    assert_eq!((&ledger["cluster"], &ledger["method"]), (&json!("west"), &json!("all-in/1")));
    let periods = ["before", "after"].map(|period| {
        let period = &ledger[period];
        assert_eq!((&period["hours"], &period["hours_read"]), (&json!(168.0), &json!(168.0)));
        (period["from"].as_str().expect("a time"), usd(&period["waste"]))
    });
    assert_eq!(periods, [("2026-10-30T00:00:00Z", 1080.0), ("2026-11-13T00:00:00Z", 540.0)]);
    assert_eq!(usd(&ledger["confirmed"]), 540.0);
    for form in ["table", "markdown", "html"] {
        let done = folder.call(&format!("{} --all-findings --output {form}", call()));
        assert_eq!(done.code, Some(0), "{}", done.err);
        let at = |text: &str| done.out.find(text).unwrap_or_else(|| panic!("{text}: {}", done.out));
        let begin = match form {
            "table" => at("Since 2026"),
            "markdown" => at("## Fixed"),
            _ => at("<h2>Fixed"),
        };
        insta::assert_snapshot!(format!("audit_ledger_{form}"), &done.out[begin..]);
    }
    let done = folder.call(&format!("{} --output sarif", call()));
    let log: Value = serde_json::from_str(&done.out).expect("JSON");
    let properties = &log["runs"][0]["properties"];
    assert_eq!(properties["fixed"], document["fixed"]);
    assert_eq!(properties["ledger"], document["ledger"]);
}

#[test]
fn what_only_moved_is_not_confirmed() {
    // The idle hours of the server are those of the training now.
    let after: [&[Part]; 2] =
        [&[(12, IDLE, TRAIN), (12, ACTIVE, TRAIN)], &[(6, IDLE, NOTEBOOK), (18, ACTIVE, NOTEBOOK)]];
    let document = folder(&BEFORE, 7, &after).json(&call());
    let serve = of(&document, "REQ-05");
    assert_eq!((&serve["status"], &serve["confirmed"]), (&json!("not_confirmed"), &Value::Null));
    assert!(
        serve["why"].as_str().expect("why").contains("other objects waste that much more"),
        "{serve}"
    );
    assert_eq!((usd(&serve["before"]), usd(&serve["after"])), (720.0, 0.0));
    assert_eq!(usd(&document["ledger"]["confirmed"]), 0.0);
}

/// The server idles on a GPU with a price, twelve hours a day, and on one without, for six: of a
/// month $720 and 180 GPU-hours. Of both a third is left, or it is as before.
#[test]
fn waste_of_which_a_part_has_a_price_is_told_in_both_and_what_did_not_fall_is_no_fall() {
    let gpus = |hours: u64, more: u64| -> [Vec<Part>; 3] {
        let of = |hours: u64| vec![(hours, IDLE, SERVE), (24 - hours, ACTIVE, SERVE)];
        [of(hours), vec![(24, ACTIVE, NOTEBOOK)], of(more)]
    };
    let both = |before: [Vec<Part>; 3], after: [Vec<Part>; 3]| {
        let [before, after] = [&before, &after].map(|gpus| gpus.each_ref().map(Vec::as_slice));
        folder(&before, 7, &after)
    };
    let told = |folder: &Folder| {
        let done = folder.call(&format!("{} --all-findings", call()));
        let words: Vec<&str> = done.out.split_whitespace().collect();
        words.join(" ")
    };
    let fell = both(gpus(12, 6), gpus(4, 2));
    let text = told(&fell);
    let waste = "total waste was $720.00 and 180.0 GPU-hours of unknown price a month from";
    assert!(text.contains(waste), "{text}");
    for part in [
        "and $240.00 and 60.0 GPU-hours of unknown price from",
        "Fixed findings account for $480.00 and 120.0 GPU-hours of unknown price of the decrease.",
        "confirmed: $480.00 and 120.0 GPU-hours of unknown price a month of 360.0 GPU-hours",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let rate = fell.json(&call())["ledger"]["before"]["waste"].clone();
    let wanted = json!({"gpu_hours_per_month": 540.0, "usd_micros_per_month": null,
        "priced_usd_micros_per_month": 720_000_000, "unpriced_gpu_hours_per_month": 180.0});
    assert_eq!(rate, wanted);
    let text = told(&both(gpus(4, 2), gpus(12, 6)));
    assert!(text.contains("It did not decrease."), "{text}");
    assert!(!text.contains("of the decrease"), "{text}");
}

#[test]
fn what_the_ledger_does_not_have_is_unknown() {
    let after: [&[Part]; 1] = [&[(24, ACTIVE, TRAIN)]];
    // Five of seven days of the later week.
    let document = folder(&BEFORE, 5, &after).json(&call());
    for id in ["REQ-05", "IDL-01", "SCH-11"] {
        let said = of(&document, id);
        assert_eq!((&said["status"], &said["before"]), (&json!("unknown"), &Value::Null));
        assert!(said["why"].as_str().expect("why").contains("120.0 of the 168.0 hours"), "{said}");
    }
    assert_eq!(document["ledger"]["confirmed"], Value::Null);
    // Both audits on one day, in one hour.
    let folder = folder(&BEFORE, 7, &after);
    folder.write("old.json", &folder.read("old.json").replace(THEN, "2026-11-20T11:30:00Z"));
    let document = folder.json(&call());
    let why = of(&document, "REQ-05")["why"].as_str().expect("why");
    assert!(why.contains("less than one whole hour apart"), "{why}");
    // A name that the ledger does not have is refused there, too.
    let done = folder.call(&format!("{} --cluster east", call()));
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("--cluster east: not in the ledger"), "{}", done.err);
}

#[test]
fn a_ledger_that_cannot_be_asked_is_told() {
    let folder = folder(&BEFORE, 7, &BEFORE);
    let empty = Address::File(folder.path("empty.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        Store::open(&empty).await.expect("a ledger").close().await;
    });
    let missing =
        "--store none.db: file does not exist; `dovetail serve --store none.db` creates it";
    for (flags, code, told) in [
        ("--store none.db --baseline old.json", 1, missing),
        (
            "--store ledger.db --baseline old.json --cluster east",
            2,
            "--cluster east: not in the ledger, which has west",
        ),
        (
            "--store empty.db --baseline old.json --cluster east",
            2,
            "--store empty.db: the ledger is empty; fill it with `dovetail serve",
        ),
        ("--store ledger.db", 2, "--baseline"),
        ("--cluster west --baseline old.json", 2, "--store"),
    ] {
        let done = folder.call(&format!("audit --from dump.json --at {NOW} {flags}"));
        assert_eq!(done.code, Some(code), "{flags}: {}", done.err);
        assert!(done.err.contains(told), "{flags}: {}", done.err);
    }
}
