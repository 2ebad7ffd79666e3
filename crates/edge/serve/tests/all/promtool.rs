//! Rules, alerts and queries, judged by Prometheus' own tool.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use dovetail_serve::AccessGuard;
use dovetail_serve::connections::Limits;
use dovetail_serve::monitoring::{dashboard, rules};
use serde_json::Value;

use crate::http::Server;

/// Whether the program is there; says so where it is not.
#[allow(clippy::print_stderr, reason = "a skipped test must say why")]
fn is_there() -> bool {
    let mut asked = Command::new("promtool");
    asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let found = asked.status().is_ok_and(|status| status.success());
    if !found {
        eprintln!(
            "skipped: rules, queries and metrics by promtool: no `promtool` on the PATH (make test fetches it)"
        );
    }
    found
}

fn promtool(folder: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new("promtool").args(arguments).current_dir(folder).output().expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "promtool {arguments:?}: {text}");
    text
}

#[test]
fn alerts_fire_when_they_should_and_not_when_they_nearly_should() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("rules.yaml"), rules()).expect("written");
    promtool(folder.path(), &["check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"]);
    std::fs::write(folder.path().join("test.yaml"), include_str!("rules_test.yaml"))
        .expect("written");
    promtool(folder.path(), &["test", "rules", "test.yaml"]);
}

#[test]
fn every_query_of_the_dashboard_is_promql() {
    if !is_there() {
        return;
    }
    let whole: Value = serde_json::from_str(&dashboard()).expect("JSON");
    let panels = whole["panels"].as_array().expect("panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let rules: Vec<Value> = targets
        .enumerate()
        .map(|(number, target)| {
            let expression = target["expr"].as_str().expect("a query");
            let expression = expression.replace("$cluster", ".+").replace("$__rate_interval", "5m");
            serde_json::json!({"record": format!("query:{number}"), "expr": expression})
        })
        .collect();
    assert!(rules.len() > 10);
    let folder = tempfile::tempdir().expect("a folder");
    let file = serde_json::json!({"groups": [{"name": "queries", "rules": rules}]});
    std::fs::write(folder.path().join("queries.yaml"), file.to_string()).expect("written");
    promtool(folder.path(), &["check", "rules", "queries.yaml"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_served_to_whoever_names_no_format_is_understood_without_a_complaint() {
    if !is_there() {
        return;
    }
    let server = Server::start(AccessGuard::default(), None, Limits::default()).await;
    // The second answer counts the first question.
    server.ask("GET /metrics HTTP/1.1").await;
    let (status, answer) = server.ask("GET /metrics HTTP/1.1").await;
    assert_eq!(status, 200, "{answer}");
    let (head, page) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    for counter in ["dovetail_collections_total", "dovetail_http_requests_total"] {
        assert!(page.lines().any(|line| line.starts_with(&format!("{counter}{{"))), "{page}");
    }
    let mut judge = Command::new("promtool");
    judge.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut judge = judge.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut input = judge.stdin.take().expect("a stream");
    input.write_all(page.as_bytes()).expect("written");
    drop(input);
    let found = judge.wait_with_output().expect("an end");
    let told = [found.stdout, found.stderr].concat();
    assert!(found.status.success() && told.is_empty(), "{}", String::from_utf8_lossy(&told));
    let open = server.ask("GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text").await.1;
    assert!(open.contains("application/openmetrics-text; version=1.0.0"), "{open}");
    assert!(open.trim_end().ends_with("# EOF"), "{open}");
    server.end().await;
}
