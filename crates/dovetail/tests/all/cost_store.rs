//! `dovetail cost --store`: what was read is kept, read once, and answered without a server.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::fake_prometheus::{FakePrometheus, two_gpus as series};
use crate::live::{busy, connected};
use crate::program::Folder;

fn time_ms(found: &Value, key: &str) -> f64 {
    let text = found[key].as_str().expect("a time");
    text.parse::<jiff::Timestamp>().expect("a time").as_millisecond() as f64
}

#[test]
fn what_was_read_is_kept_and_read_once() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let server = FakePrometheus::start(move |query| {
        if query.text.contains("GR_ENGINE_ACTIVE[") {
            seen.lock().expect("nobody panics").push(query.moments[0] * 1e3);
        }
        series(query)
    });
    let folder = Folder::new();
    let ask = "cost --store ledger.db --period 9h --by namespace,pod,cause";
    let fill = format!("{ask} --prometheus {} --gpu-price H100=6 --cluster west", server.url);
    let first = folder.json(&fill);
    assert_eq!((&first["basis"], &first["cluster"]), (&json!("ledger"), &json!("west")));
    let earliest = |asked: &[f64]| asked.iter().copied().fold(f64::INFINITY, f64::min);
    let begin_ms = earliest(&asked.lock().expect("nobody panics"));
    assert_eq!(begin_ms, time_ms(&first, "from") - 300_000.0);
    // Both GPUs for all the time that is over, at $6 an hour.
    let total = &first["total"];
    let hours = total["gpu_hours"].as_f64().expect("hours");
    assert!((16.0..=20.0).contains(&hours), "{first:#}");
    let usd = total["cost_usd_micros"].as_f64().expect("an amount") / 1e6;
    assert!((usd - 6.0 * hours).abs() < 1e-4, "{first:#}");
    let half = total["allocated_gpu_hours"].as_f64().expect("hours");
    assert!((half - hours / 2.0).abs() < 1e-9, "{first:#}");
    assert!(
        total["active_gpu_hours"].as_f64() > Some(3.0)
            && total["idle_gpu_hours"].as_f64() > Some(3.0)
    );

    // Again: nothing but what is new. What is read is all hours that the period touches; alone the
    // ledger has as many as it is asked for. An hour may end in between; then the period is another
    // one.
    let (again, alone) = loop {
        asked.lock().expect("nobody panics").clear();
        let again = folder.json(&fill);
        let hours = (time_ms(&again, "to") - time_ms(&again, "from")) / 3.6e6;
        let alone = folder.json(&ask.replace("9h", &format!("{hours}h")));
        if again["from"] == alone["from"] {
            break (again, alone);
        }
    };
    let until_ms = time_ms(&first, "from") + hours / 2.0 * 3.6e6;
    let begin_ms = earliest(&asked.lock().expect("nobody panics"));
    assert!(begin_ms >= until_ms - 300_001.0, "{begin_ms} is long before {until_ms}");
    assert_eq!(again["rows"], alone["rows"]);
    assert_eq!(alone["headline"], again["headline"]);

    // The dearest job, ranked by the ledger, and all others as one.
    let by_job = ask.replace("namespace,pod,cause", "job");
    let (all, top) = loop {
        let (all, top) = (folder.json(&by_job), folder.json(&format!("{by_job} --top 1")));
        if all["from"] == top["from"] {
            break (all, top);
        }
    };
    assert_eq!((&top["total"], &top["headline"]), (&all["total"], &all["headline"]));
    let (all, top) = (all["rows"].as_array().expect("rows"), top["rows"].as_array().expect("rows"));
    assert!(all.len() > 1 && top.len() == 2, "{all:#?} {top:#?}");
    assert_eq!(top[0], all[0]);
    assert_eq!(top[1]["key"]["job"], format!("others ({})", all.len() - 1));
    let cost = |row: &Value| row["cost_usd_micros"].as_i64().expect("an amount");
    assert_eq!(cost(&top[1]), all[1..].iter().map(cost).sum::<i64>());
}

/// Both clusters have the same series, so each job is there twice.
#[test]
fn jobs_of_one_name_in_two_clusters_are_two_also_among_the_dearest() {
    let server = FakePrometheus::start(series);
    let folder = Folder::new();
    let ask = "cost --store ledger.db --period 3h --by job";
    for cluster in ["west", "east"] {
        let fill = format!("{ask} --prometheus {} --gpu-price H100=6", server.url);
        folder.json(&format!("{fill} --cluster {cluster}"));
    }
    let jobs = |flags: &str| -> Vec<String> {
        let found = folder.json(&format!("{ask} {flags}"));
        let rows = found["rows"].as_array().expect("rows").iter();
        let job = |row: &Value| row["key"]["job"].as_str().expect("a job").to_owned();
        rows.map(job).filter(|job| !job.starts_with('(')).collect()
    };
    let of_west = jobs("--cluster west");
    let [job] = of_west.as_slice() else { panic!("{of_west:?}") };
    let mut both = jobs("");
    both.sort();
    assert_eq!(both, [format!("east/{job}"), format!("west/{job}")]);
    // The dearest row is what nobody had.
    let top = jobs("--top 2");
    assert!(top.iter().any(|top| both.contains(top)), "{top:?} {both:?}");
    assert!(!top.contains(job), "{top:?}");
}

/// kube-state-metrics is away from half an hour after the period began on: parts of six hours that
/// begin later have usage of a pod and a node of which it says nothing.
#[test]
fn a_part_knows_a_pod_as_the_part_before_it_did() {
    const HOUR_S: f64 = 3600.0;
    let now_s = jiff::Timestamp::now().as_second() as f64;
    let last_heard_s = ((now_s / HOUR_S).floor() - 9.0) * HOUR_S + HOUR_S / 2.0;
    let server = FakePrometheus::start(move |query| {
        let text = query.text.as_str();
        let known = [
            (
                "kube_pod_info",
                json!({"namespace": "vision", "pod": "train-0", "node": "n1",
                "created_by_kind": "ReplicaSet", "created_by_name": "train-7d9"}),
            ),
            (
                "kube_pod_labels",
                json!({"namespace": "vision", "pod": "train-0",
                "label_kueue_x_k8s_io_queue_name": "batch"}),
            ),
            (
                "kube_replicaset_owner",
                json!({"namespace": "vision", "replicaset": "train-7d9",
                "owner_kind": "Deployment", "owner_name": "train"}),
            ),
            ("kube_node_info", json!({"node": "n1", "provider_id": "aws:///us-east-1a/i-n1"})),
            ("kube_node_labels", json!({"node": "n1", "label_karpenter_sh_nodepool": "h100"})),
        ];
        let asked = known.into_iter().find(|(series, _)| {
            let asks = |with: &str| text.starts_with(&format!("last_over_time({series}{with}"));
            asks("[") || asks("{")
        });
        let Some((_, labels)) = asked else { return series(query) };
        let window_ms = text.split_once("ms]").and_then(|(head, _)| head.rsplit_once('['));
        let window_ms: f64 = window_ms.expect("a window").1.parse().expect("a number");
        let is_seen = query.moments[0] - window_ms / 1e3 <= last_heard_s;
        if is_seen { vec![(labels, Box::new(|_| Some(1.0)))] } else { Vec::new() }
    });
    let folder = Folder::new();
    let fill = format!(
        "cost --store ledger.db --period 9h --prometheus {} --gpu-price H100=6 --cluster west",
        server.url
    );
    let found = folder.json(&format!("{fill} --by job,queue,node-pool,pod"));
    let rows = found["rows"].as_array().expect("rows").iter().map(|row| row["key"].clone());
    let rows: Vec<Value> = rows.filter(|key| key["pod"] == "vision/train-0").collect();
    let wanted = json!({"job": "Deployment vision/train", "queue": "batch",
        "node-pool": "NodePool h100", "pod": "vision/train-0"});
    assert_eq!(rows, [wanted]);
}

/// Each part of a period begins a little before the last one ended, and what pods kept of CPU and
/// memory is read anew from the begin of that hour: so are those that ended since, and those that
/// Prometheus still saw then, for up to five minutes.
#[test]
fn an_hour_that_is_read_again_knows_the_pods_of_its_begin() {
    let begins = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&begins);
    let server = FakePrometheus::start(move |query| {
        let window = query.text.strip_prefix("last_over_time(kube_pod_labels[");
        if let Some((window_ms, _)) = window.and_then(|rest| rest.split_once("ms]")) {
            let window_ms: f64 = window_ms.parse().expect("a number");
            seen.lock().expect("nobody panics").push(query.moments[0] * 1e3 - window_ms);
        }
        series(query)
    });
    let folder = Folder::new();
    let fill = format!(
        "cost --store ledger.db --period 9h --prometheus {} --gpu-price H100=6 --cluster west",
        server.url
    );
    folder.json(&fill);
    let begins = begins.lock().expect("nobody panics");
    assert!(begins.len() >= 2, "{begins:?}");
    // The last ms of the period is the moment that is asked for.
    let is_of_hour = |begin: &f64| (begin + 300_001.0) % 3.6e6 <= 1.0;
    assert!(begins.iter().all(is_of_hour), "{begins:?}");
}

/// A day is the same whenever and wherever it is asked for.
#[test]
fn a_day_or_month_that_is_over_is_asked_for_by_its_name() {
    let server = FakePrometheus::start(series);
    let folder = Folder::new();
    let midnight = |text: &str| format!("{text}T00:00:00Z");
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let day =
        |back: i64| today.checked_sub(jiff::Span::new().days(back)).expect("a day").to_string();
    let (before, yesterday) = (day(2), day(1));
    let read = format!("--prometheus {} --gpu-price H100=6 --by namespace,cause", server.url);
    let kept = "--store ledger.db --cluster west";
    let of = |flags: &str, period: &str| folder.json(&format!("cost {flags} --period {period}"));
    let filled = of(&format!("{read} {kept}"), &yesterday);
    assert_eq!(filled["from"], midnight(&yesterday));
    // It may be tomorrow by now, never that it ends elsewhere.
    assert_eq!(filled["to"], midnight(&today.to_string()));
    assert_eq!(filled["total"]["gpu_hours"].as_f64(), Some(48.0));
    for flags in [read.clone(), format!("{kept} --by namespace,cause")] {
        let again = of(&flags, &yesterday);
        for part in ["from", "to", "rows", "headline"] {
            assert_eq!(again[part], filled[part], "{flags}: {part}");
        }
    }
    let two = of(&format!("{kept} --by pod"), &format!("{before}T12:00:00Z..{yesterday}"));
    assert_eq!(two["from"], format!("{before}T12:00:00Z"));
    // Of the day before its last minutes were read with what follows.
    let hours = two["total"]["gpu_hours"].as_f64().expect("hours");
    assert!((48.0..48.2).contains(&hours), "{two:#}");
    assert!(two["notes"].to_string().contains("11.9 h of the period"), "{:#}", two["notes"]);
    let ahead = folder.call(&format!("cost {kept} --period {}", day(-2)));
    assert!(ahead.err.contains("in the future") && ahead.code == Some(2), "{ahead:?}");
}

/// Hours are kept for 90 days, days for ever.
#[test]
fn a_period_that_is_longer_than_hours_are_kept_begins_with_a_whole_day() {
    let server = FakePrometheus::start(series);
    let folder = Folder::new();
    let ask = "cost --store ledger.db --by team";
    let fill = format!("{ask} --prometheus {} --gpu-price H100=6 --cluster west", server.url);
    folder.json(&format!("{fill} --period 3h"));
    for flags in ["--period 120d", "--period 120d --cluster west"] {
        let found = folder.json(&format!("{ask} {flags}"));
        let notes = found["notes"].to_string();
        // From midnight on it begins with a day by itself.
        let is_told = notes.contains("only as whole days (UTC)");
        assert_eq!(time_ms(&found, "from") % 86.4e6, 0.0, "{found:#}");
        assert!(is_told || found["days"].as_f64() > Some(119.99), "{notes}");
    }
    let of_pods = folder.call("cost --store ledger.db --by pod --period 120d");
    assert!(of_pods.err.contains("neither by pod nor by node"), "{}", of_pods.err);
}

/// A model that no list has is in no amount, and is named: by the run that reads it, and out of the
/// ledger alone.
#[test]
fn what_has_no_price_is_told_out_of_a_ledger() {
    let server = FakePrometheus::start(|query| {
        let mut made = series(query);
        for (labels, _) in &mut made {
            labels["modelName"] = json!("NVIDIA UNHEARD-7");
        }
        made
    });
    let folder = Folder::new();
    for flags in ["--by team", "--by job --top 1"] {
        let ask = format!("cost --store ledger.db --period 3h {flags}");
        let fill = format!("{ask} --prometheus {} --cluster west", server.url);
        for call in [&fill, &ask] {
            let found = folder.json(call);
            assert_eq!(found["headline"]["priced_share"], 0.0, "{found:#}");
            let notes = found["notes"].to_string();
            assert!(
                notes.contains(
                    " GPU-hours of model UNHEARD-7: no price, so not included in any amount"
                ),
                "{notes}"
            );
            assert!(
                notes.contains(
                    "--gpu-price UNHEARD-7=USD_PER_HOUR to the command that fills the ledger"
                ),
                "{notes}"
            );
        }
    }
}

/// One GPU of node n1 is free in the series; objects say why, at the moment of the run.
#[test]
fn a_run_keeps_why_gpus_are_free_for_the_step_that_it_saw() {
    let api = busy();
    let folder = connected(&api);
    let server = FakePrometheus::start(series);
    let ask = "cost --store ledger.db --period 2h --by cause";
    let fill = format!(
        "{ask} --kubeconfig kubeconfig --prometheus {} --cluster west --gpu-price H100=6",
        server.url
    );
    let seconds = |found: &Value| -> f64 {
        let rows = found["rows"].as_array().expect("rows").iter();
        let cause = |row: &Value| row["key"]["cause"].as_str().expect("a cause").to_owned();
        let known = rows
            .filter(|row| cause(row).starts_with("free_") && cause(row) != "free_of_unknown_cause");
        known.map(|row| row["gpu_hours"].as_f64().expect("hours") * 3600.0).sum()
    };
    let first = seconds(&folder.json(&fill));
    assert!((first - 60.0).abs() < 0.01, "{first}");
    // What is known stays; another run adds its own step, which may be the same.
    let again = seconds(&folder.json(&fill));
    let is_whole_steps = (again - 60.0).abs() < 0.01 || (again - 120.0).abs() < 0.01;
    assert!(is_whole_steps, "{again}");
    assert!((seconds(&folder.json(ask)) - again).abs() < 0.01);
}

#[test]
fn a_ledger_that_cannot_answer_says_why() {
    let server = FakePrometheus::start(series);
    let folder = Folder::new();
    let url = &server.url;
    for (call, code, expected) in [
        ("cost --store none.db".to_owned(), 1, "file does not exist; `dovetail serve"),
        ("cost --store mysql://a:secret@b/c".to_owned(), 2, "mysql://a@b/c"),
        (format!("cost --store l.db --prometheus {url} --period 2h"), 2, "--cluster NAME"),
        (format!("cost --store l.db --prometheus {url} --usage usage.csv"), 2, "--usage"),
        ("cost --store l.db --gpu-price H100=6".to_owned(), 2, "prices"),
        ("cost --store l.db --cluster west".to_owned(), 1, "no data for cluster `west`"),
    ] {
        let done = folder.call(&call);
        assert_eq!(done.code, Some(code), "{call}: {}", done.err);
        assert!(done.err.contains(expected), "{call}: {}", done.err);
        assert!(!done.err.contains("secret"), "{call}: {}", done.err);
    }
    std::fs::write(folder.path("notes.txt"), "no ledger at all\n".repeat(100)).expect("a file");
    let done = folder.call("cost --store notes.txt");
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("notes.txt is not a dovetail ledger"), "{}", done.err);
}
