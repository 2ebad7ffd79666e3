//! `dovetail cost --store`: what was read is kept, read once, and answered without a server.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::fake_prometheus::{FakePrometheus, two_gpus as series};
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

    // Again: nothing but what is new. An hour may end in between; then the period is another one.
    let (again, alone) = loop {
        asked.lock().expect("nobody panics").clear();
        let (again, alone) = (folder.json(&fill), folder.json(ask));
        if again["from"] == alone["from"] {
            break (again, alone);
        }
    };
    let until_ms = time_ms(&first, "from") + hours / 2.0 * 3.6e6;
    let begin_ms = earliest(&asked.lock().expect("nobody panics"));
    assert!(begin_ms >= until_ms - 300_001.0, "{begin_ms} is long before {until_ms}");
    assert_eq!(again["rows"], alone["rows"]);
    assert_eq!(alone["headline"], again["headline"]);
}

#[test]
fn a_ledger_that_cannot_answer_says_why() {
    let server = FakePrometheus::start(series);
    let folder = Folder::new();
    let url = &server.url;
    for (call, code, expected) in [
        ("cost --store none.db".to_owned(), 2, "no such file"),
        ("cost --store mysql://a:secret@b/c".to_owned(), 2, "mysql://a@b/c"),
        (format!("cost --store l.db --prometheus {url} --period 2h"), 2, "--cluster NAME"),
        (format!("cost --store l.db --prometheus {url} --usage usage.csv"), 2, "--usage"),
        ("cost --store l.db --gpu-price H100=6".to_owned(), 2, "prices"),
        ("cost --store l.db --cluster west".to_owned(), 1, "nothing of a cluster `west`"),
    ] {
        let done = folder.call(&call);
        assert_eq!(done.code, Some(code), "{call}: {}", done.err);
        assert!(done.err.contains(expected), "{call}: {}", done.err);
        assert!(!done.err.contains("secret"), "{call}: {}", done.err);
    }
    std::fs::write(folder.path("notes.txt"), "no ledger at all\n".repeat(100)).expect("a file");
    let done = folder.call("cost --store notes.txt");
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("notes.txt is no ledger of dovetail"), "{}", done.err);
}
