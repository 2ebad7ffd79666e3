//! Rules, alerts and queries, judged by Prometheus' own tool.

use std::path::Path;
use std::process::{Command, Stdio};

use dovetail_serve::monitoring::{dashboard, rules};
use serde_json::Value;

/// Whether the program is there; says so where it is not.
#[allow(clippy::print_stderr, reason = "a skipped test must say why")]
fn is_there() -> bool {
    let mut asked = Command::new("promtool");
    asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let found = asked.status().is_ok_and(|status| status.success());
    if !found {
        eprintln!(
            "skipped: rules and queries by promtool: no `promtool` on the PATH (make test fetches it)"
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
