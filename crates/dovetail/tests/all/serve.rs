//! `dovetail serve`: fills a ledger again and again, and answers out of it what
//! `dovetail cost --store` says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cost_prices::own_rates;
use crate::fake_prometheus::{FakePrometheus, two_gpus as series};
use crate::live::{busy, connected};
use crate::program::Folder;

/// No test waits longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program that serves, ended with the test.
pub(crate) struct Served {
    child: Child,
    address: String,
    log: mpsc::Receiver<String>,
}

impl Served {
    pub(crate) fn start(folder: &Folder, flags: &str) -> Self {
        let mut command = folder.command(&format!("serve --listen 127.0.0.1:0 {flags}"));
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let lines = BufReader::new(child.stderr.take().expect("a stream")).lines();
        let (send, log) = mpsc::channel();
        // Who does not read blocks who writes.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // After the test nobody listens.
                _ = send.send(line);
            }
        });
        let mut served = Self { child, address: String::new(), log };
        let line = served.waits_for("listening on http://");
        served.address = line.split_once("http://").expect("an address").1.trim().to_owned();
        served
    }

    /// The first line of the log from here on that says this.
    pub(crate) fn waits_for(&self, text: &str) -> String {
        let mut told = Vec::new();
        loop {
            let Ok(line) = self.log.recv_timeout(PATIENCE) else {
                panic!("no `{text}`: {told:#?}")
            };
            if line.contains(text) {
                return line;
            }
            told.push(line);
        }
    }

    fn get(&self, path: &str) -> String {
        let (status, text) = self.ask(path, "");
        assert_eq!(status, 200, "{path}: {text}");
        text
    }

    /// Status and body of an answer; each header ends with its line.
    pub(crate) fn ask(&self, path: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = match head.to_lowercase().contains("transfer-encoding: chunked") {
            true => unchunked(body),
            false => body.to_owned(),
        };
        (status.expect("a status"), body)
    }

    /// The value of a series.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.get("/metrics");
        let value = text.lines().find_map(|line| line.strip_prefix(series));
        let value = value.unwrap_or_else(|| panic!("no {series} in\n{text}"));
        value.trim().parse().expect("a number")
    }

    /// Asks it to end, as Kubernetes does.
    pub(crate) fn end(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().expect("kill");
        assert!(sent.success());
        self.child.wait().expect("an end").code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended before.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a length");
        text += &rest[..length];
        body = rest[length..].trim_start_matches("\r\n");
    }
    text
}

pub(crate) const READ: &str = "recorded the cluster in the ledger";
const FLAGS: &str = "--store ledger.db --cluster west --gpu-price H100=6 --back 9h --every 1d";

#[test]
fn it_fills_the_ledger_and_says_what_cost_says_and_begins_again_where_it_ended() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let server = FakePrometheus::start(move |query| {
        if query.text.contains("GR_ENGINE_ACTIVE[") {
            let (first, last) = (query.moments[0], query.moments[query.moments.len() - 1]);
            seen.lock().expect("nobody panics").push((first, last));
        }
        series(query)
    });
    let folder = Folder::new();
    let flags = format!("{FLAGS} --prometheus {}", server.url);
    let served = Served::start(&folder, &flags);
    served.waits_for(READ);
    assert_eq!(served.metric("dovetail_collections_total{outcome=\"done\"} "), 1.0);
    assert_eq!(served.metric("dovetail_ledger_missing_seconds{cluster=\"west\"} "), 0.0);
    assert!(served.metric("dovetail_collection_lag_seconds{cluster=\"west\"} ") >= 0.0);

    let cost = folder.json("cost --store ledger.db --period 6h --by namespace");
    let (from, to) = (cost["from"].as_str().expect("a time"), cost["to"].as_str().expect("a time"));
    let path = format!("/allocation?window={from},{to}&aggregate=namespace&includeIdle=true");
    let found: Value = serde_json::from_str(&served.get(&path)).expect("JSON");
    let entries = found["data"][0].as_object().expect("entries");
    let rows = cost["rows"].as_array().expect("rows");
    assert_eq!((entries.len(), rows.len()), (2, 2), "{found:#}\n{cost:#}");
    for row in rows {
        let name = row["key"]["namespace"].as_str().expect("a name");
        let entry = &found["data"][0][if name == "(no owner)" { "__idle__" } else { name }];
        let micros = (entry["totalCost"].as_f64().expect("an amount") * 1e6).round();
        assert_eq!(row["cost_usd_micros"].as_f64(), Some(micros), "{entry:#}\n{row:#}");
        assert_eq!(row["gpu_hours"], entry["gpuHours"]);
    }
    let day = "dovetail_day_usd{cluster=\"west\",team=\"(no owner)\",pool=\"(unknown)\",\
               cause=\"free_of_unknown_cause\"} ";
    assert!(served.metric(day) >= 6.0 * 8.0);
    assert_eq!(served.get("/healthz"), "ok\n");
    assert_eq!(served.end(), Some(0));

    // What was read is not read again, but for its edge.
    let before: Vec<(f64, f64)> = asked.lock().expect("nobody panics").drain(..).collect();
    let until = before.iter().map(|(_, last)| *last).fold(0.0, f64::max);
    let served = Served::start(&folder, &flags);
    served.waits_for(READ);
    let again = asked.lock().expect("nobody panics").clone();
    assert!(again.iter().all(|(first, _)| *first >= until - 300.0), "{again:?} {until}");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_server_that_does_not_answer_is_told_and_the_ledger_still_answers() {
    let folder = Folder::new();
    // Nobody listens on this port of this machine.
    let served = Served::start(&folder, &format!("{FLAGS} --prometheus http://127.0.0.1:1"));
    assert_eq!(served.get("/readyz"), "ok\n");
    served.waits_for("cannot collect data");
    assert!(served.metric("dovetail_collections_total{outcome=\"failed\"} ") >= 1.0);
    let found: Value = serde_json::from_str(&served.get("/allocation?window=1d")).expect("JSON");
    assert_eq!(found["data"], json!([{}]));
    assert_eq!(found["warning"], "the ledger is empty");
    assert_eq!(served.end(), Some(0));
}

/// Two nodes of eight GPUs: eight and four are held, and pods wait that ask for more than the four
/// that are free.
#[test]
fn every_gpu_of_the_objects_has_one_cause_and_its_price() {
    let api = busy();
    let folder = connected(&api);
    // As `a_node_costs_the_same_in_every_command` of the commands that end by themselves.
    folder
        .write("dovetail.toml", &format!("[cost.budgets]\neyes = \"250.5\"\n{}", own_rates("4.8")));
    let server = FakePrometheus::start(series);
    let flags = FLAGS.replace("--gpu-price H100=6 ", "");
    let flags = format!("{flags} --kubeconfig kubeconfig --prometheus {}", server.url);
    let served = Served::start(&folder, &flags);
    served.waits_for(READ);
    let text = served.get("/metrics");
    let sum = |name: &str, cause: &str| -> f64 {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        let lines = lines.filter(|line| line.contains(&format!("cause=\"{cause}")));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    assert_eq!(sum("dovetail_gpus{", ""), 16.0, "{text}");
    assert_eq!(sum("dovetail_gpus{", "free_"), 4.0, "{text}");
    assert_eq!(sum("dovetail_gpus{", "free_of_unknown_cause"), 0.0, "{text}");
    assert_eq!(sum("dovetail_gpus_usd_per_hour{", ""), 96.0, "{text}");
    assert_eq!(served.metric("dovetail_budget_usd{team=\"eyes\"} "), 250.5);
    assert_eq!(served.end(), Some(0));
}

/// Of two rounds the second knows for how long the causes of the first held.
#[test]
fn what_objects_say_of_free_gpus_is_in_the_ledger_and_stays_when_it_is_read_again() {
    let api = busy();
    let folder = connected(&api);
    let server = FakePrometheus::start(series);
    let flags = format!("{FLAGS} --step 1s --kubeconfig kubeconfig --prometheus {}", server.url);
    let served = Served::start(&folder, &flags.replace("--every 1d", "--every 10s"));
    served.waits_for(READ);
    served.waits_for(READ);
    let free = || -> BTreeMap<String, f64> {
        let cost = folder.json("cost --store ledger.db --period 6h --by cause");
        let rows = cost["rows"].as_array().expect("rows").iter();
        let rows = rows.map(|row| (&row["key"]["cause"], row["gpu_hours"].as_f64()));
        let rows = rows.map(|(cause, hours)| (cause.as_str().expect("a cause").to_owned(), hours));
        let free = rows.filter(|(cause, _)| cause.starts_with("free_"));
        free.map(|(cause, hours)| (cause, hours.expect("hours"))).collect()
    };
    let found = free();
    let known: f64 = found
        .iter()
        .filter(|(cause, _)| *cause != "free_of_unknown_cause")
        .map(|(_, hours)| hours * 3600.0)
        .sum();
    // The period ends with a whole step.
    assert!(known >= 8.0, "{found:?}");
    assert_eq!(served.end(), Some(0));

    // Who has seen nothing reads the same time again.
    let again = flags.replace("--step 1s", "--step 1m");
    let served = Served::start(&folder, &again);
    served.waits_for(READ);
    for (cause, hours) in &found {
        if cause != "free_of_unknown_cause" {
            assert_eq!(free().get(cause), Some(hours), "{cause}");
        }
    }
    assert_eq!(served.end(), Some(0));
}

#[test]
fn what_cannot_be_served_is_said_before_anything_begins() {
    let folder = Folder::new();
    folder.write("short", "guess me");
    let url = "--prometheus http://127.0.0.1:1";
    for (flags, expected) in [
        (format!("--cluster west {url} --listen 0.0.0.0:0"), "is reachable from other machines"),
        (format!("--cluster west {url} --listen nowhere"), "`nowhere` is not a listen address"),
        (format!("--cluster west {url} --accept-token-file short"), "short: its token has fewer"),
        (format!("--cluster west {url} --accept-token-file none"), "none: "),
        (format!("--cluster west {url} --accept-cluster-tokens"), "--in-cluster or --kubeconfig"),
        (format!("--cluster west {url} --tls-certificate short"), "--tls-key"),
        (format!("--cluster west {url} --tls-certificate short --tls-key short"), "no certificate"),
        (format!("--cluster west {url} --every 1s"), "--every"),
        (format!("--cluster west {url} --step 2h"), "--step"),
        (format!("--cluster west {url} --back 5m"), "--back"),
        (format!("--cluster west {url} --store mysql://a:secret@b/c"), "mysql://a@b/c"),
        (format!("--cluster west {url} --store short"), "not a dovetail ledger"),
        (url.to_owned(), "--cluster NAME"),
        (format!("--cluster west {url} --exporter http://127.0.0.1:1"), "cannot be used with"),
        ("--cluster west --exporter ftp://a".to_owned(), "--exporter: `ftp://a` is not"),
        ("--exporter http://127.0.0.1:1".to_owned(), "--cluster NAME"),
        (format!("--cluster west {url} --gpu-price H100=six"), "H100=six"),
    ] {
        let done = folder.call(&format!("serve {flags}"));
        assert_eq!(done.code, Some(2), "{flags}: {}", done.err);
        assert!(done.err.contains(expected), "{flags}: {}", done.err);
        assert!(!done.err.contains("secret"), "{flags}: {}", done.err);
    }
    for flags in ["", "--prometheus none", "--exporters-in gpus", "--context dev"] {
        let done = folder.call(&format!("serve --cluster west {flags}"));
        assert_eq!(done.code, Some(1), "{flags}: {}", done.err);
        let is_told = done.err.contains("no kubeconfig: ") && done.err.contains("--prometheus URL");
        assert!(is_told && !done.err.contains("listening on"), "{flags}: {}", done.err);
    }
    for flags in ["--kubeconfig none", "--in-cluster"] {
        let done = folder.call(&format!("serve {url} {flags}"));
        assert_eq!(done.code, Some(1), "{flags}: {}", done.err);
        assert!(!done.err.contains("listening on"), "{flags}: {}", done.err);
    }
}
