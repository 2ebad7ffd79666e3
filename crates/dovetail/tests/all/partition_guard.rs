//! `dovetail partition apply` under a policy with a guard, on a real API server, beside a GPU
//! Operator that is played, with latency histograms in a real Prometheus.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use dovetail_testkit::PrometheusServer;
use serde_json::{Value, json};

use crate::partition_apply::{Setting, policy, tainted};

/// Bounds of `vllm:e2e_request_latency_seconds` up to which the requests of this test reach.
const BOUNDS: [f64; 16] =
    [0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0];
const PER_MINUTE: f64 = 40.0;
/// What the device plugin is asked for.
const LABEL: &str = "nvidia.com/device-plugin.config";
pub(crate) const HOURS: u64 = 6;
pub(crate) const HOUR_MS: u64 = 3_600_000;

pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    now.as_millis() as u64
}

/// Share of requests not slower than a bound, if half take less than `median` seconds. Logistic in
/// the logarithm of latency, not normal.
fn share(bound: f64, median: f64) -> f64 {
    1.0 / (1.0 + (median / bound).powf(2.2))
}

/// The counters of one pod, sample by sample.
pub(crate) fn samples(lines: &mut Vec<String>, pod: &str, median: f64, from_ms: u64) {
    for (le, share) in BOUNDS
        .iter()
        .map(|bound| (bound.to_string(), share(*bound, median)))
        .chain([("+Inf".to_owned(), 1.0)])
    {
        for minute in 0..=(HOURS + 1) * 60 {
            let count = minute as f64 * PER_MINUTE * share;
            let at_s = from_ms / 1_000 + minute * 60;
            lines.push(format!(
                "vllm:e2e_request_latency_seconds_bucket{{namespace=\"default\",pod=\"{pod}\",le=\"{le}\"}} {count} \
                 {at_s}"
            ));
        }
    }
}

/// Three services before and after `changed_ms`: one stays as fast, two are 12% slower.
fn prometheus(setting: &Setting, changed_ms: u64) -> PrometheusServer {
    let mut lines = vec!["# TYPE vllm:e2e_request_latency_seconds_bucket gauge".to_owned()];
    for (name, slower) in [("chat", 1.0), ("slow", 1.12), ("late", 1.12)] {
        samples(&mut lines, &format!("{name}-4d-zzzzz"), 6.0, changed_ms - 24 * HOUR_MS);
        samples(&mut lines, &format!("{name}-5f-bbbbb"), 6.0 * slower, changed_ms);
    }
    lines.push("# EOF\n".to_owned());
    setting.folder.write("history.txt", &lines.join("\n"));
    let folder = setting.folder.path(".");
    PrometheusServer::write_blocks(&folder, &setting.folder.path("history.txt"));
    PrometheusServer::start(&folder, "scrape_configs: []\n")
}

/// A pod of a Deployment that has a replica of a GPU of a node.
fn run(setting: &Setting, deployment: &str, node: &str) {
    let labels = json!({"app": deployment, "pod-template-hash": "5f"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [
        {"name": "c", "image": "i"}]}});
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment,
        "uid": format!("uid-of-{deployment}"), "controller": true});
    let replica_set = format!("{deployment}-5f");
    setting.create(&json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": replica_set, "namespace": "default", "ownerReferences": [owner]},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}}));
    let made = setting.get(&["replicaset", &replica_set]);
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set,
        "uid": made["metadata"]["uid"], "controller": true});
    let name = format!("{replica_set}-bbbbb");
    setting.create(&json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels,
            "ownerReferences": [owner]},
        "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i",
            "resources": {"limits": {"nvidia.com/gpu.shared": "1"}}}]}}));
    setting.bind(&name, node);
}

/// The node as if it had changed at a time.
fn change_at(setting: &Setting, node: &str, changed_ms: u64) {
    let seen = setting.get(&["node", node]);
    let text =
        seen["metadata"]["annotations"]["dovetail.dev/partition"].as_str().expect("a record");
    let mut record: Value = serde_json::from_str(text).expect("JSON");
    record["sinceMs"] = json!(changed_ms);
    record["startedMs"] = json!(changed_ms - 60_000);
    let patch =
        json!({"metadata": {"annotations": {"dovetail.dev/partition": record.to_string()}}});
    setting.kubectl(&["patch", "node", node, "--type=merge", "-p", &patch.to_string()]);
}

fn outcomes(applied: &Value) -> Vec<(&str, &str)> {
    let rows = applied["nodes"].as_array().expect("nodes").iter();
    rows.map(|row| {
        (row["node"].as_str().unwrap_or_default(), row["outcome"].as_str().unwrap_or_default())
    })
    .collect()
}

fn problem<'v>(applied: &'v Value, node: &str) -> &'v str {
    let rows = applied["nodes"].as_array().expect("nodes").iter();
    let row = rows.into_iter().find(|row| row["node"] == node).expect("a row");
    row["problem"].as_str().unwrap_or_default()
}

/// Reason and message of the events about an object.
pub(crate) fn events(setting: &Setting, kind: &str, name: &str) -> BTreeSet<(String, String)> {
    let events = setting.get(&["events", "-n", "default"]);
    let events = events["items"].as_array().expect("events").iter().filter(|event| {
        event["involvedObject"]["kind"] == kind && event["involvedObject"]["name"] == name
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    events.map(|event| (text(&event["reason"]), text(&event["message"]))).collect()
}

pub(crate) fn has(events: &BTreeSet<(String, String)>, reason: &str, words: &str) -> bool {
    events.iter().any(|(of, message)| of == reason && message.contains(words))
}

pub(crate) fn step(setting: &Setting) -> String {
    let shared = setting.get(&["sharingpolicy", "shared"]);
    shared["status"]["step"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn one_node_is_tried_others_follow_and_a_slower_one_goes_back() {
    if !PrometheusServer::is_there() {
        return;
    }
    let setting = Setting::new(&["n0", "n1", "n2", "n3"]);
    setting.set_up();
    malformed_guards_are_refused(&setting);
    refuse_events_about(&setting, "chat");
    let spec = json!({"mode": "time-slicing", "replicas": 4, "apply": true, "classes": ["inference"],
        "budget": {"percentPerDay": 100}, "guard": {}});
    setting.create(&policy("shared", spec));

    let canary = setting.apply("--prometheus none");
    let planned = ["n1", "n2", "n3"].map(|node| (node, "planned"));
    assert_eq!(outcomes(&canary), [&[("n0", "Done")][..], &planned[..]].concat());
    assert!(problem(&canary, "n1").contains("one node changes first; the others wait"), "{canary}");
    assert_eq!(step(&setting), "Watching");
    let dry = setting.apply("--prometheus none --dry-run");
    assert!(problem(&dry, "n1").contains("waiting for the latency check of node n0"), "{dry}");
    let waiting = setting.apply("--prometheus none");
    assert!(
        problem(&waiting, "n1").contains("waiting for the latency check of node n0"),
        "{waiting}"
    );

    let changed_ms = now_ms() / 60_000 * 60_000 - (HOURS + 2) * HOUR_MS;
    let server = prometheus(&setting, changed_ms);
    let flag = format!("--prometheus {}", server.url);
    run(&setting, "chat", "n0");
    change_at(&setting, "n0", changed_ms);
    without_a_server_nothing_is_decided(&setting);
    a_refused_query_is_reported(&setting, &flag);
    let passed = setting.apply(&flag);
    assert_eq!(passed["verdicts"][0]["verdict"], "same", "{passed}");
    assert_eq!(outcomes(&passed), ["n1", "n2", "n3"].map(|node| (node, "Done")), "{passed}");
    assert!(has(&events(&setting, "Node", "n0"), "LatencySame", "default/chat (vLLM): p50"));
    // A refused event stops nothing.
    assert_eq!(events(&setting, "Deployment", "chat"), BTreeSet::new());

    run(&setting, "slow", "n1");
    run(&setting, "mute", "n2");
    change_at(&setting, "n1", changed_ms);
    change_at(&setting, "n2", changed_ms);
    run(&setting, "late", "n3");
    change_at(&setting, "n3", changed_ms);
    apply_as_another(&setting, "n3", &json!({LABEL: "dovetail-time-slicing-4"}));
    a_dry_run_reports_the_way_back(&setting, &flag);
    let worse = setting.apply(&flag);
    slower_and_unmeasured(&setting, &worse);
    is_not_rolled_back_against_another_client(&setting, &worse);
    goes_back_when_its_pod_has_finished(&setting, &flag);
    is_rolled_back_once_the_label_is_dovetails(&setting, &flag);
    a_node_that_goes_back_gets_no_other_change(&setting, &flag);
    assert_eq!(setting.refused(), BTreeSet::new());
}

fn malformed_guards_are_refused(setting: &Setting) {
    let spec = json!({"mode": "time-slicing", "replicas": 4, "apply": true,
        "guard": {"query": "rate(a_bucket[5m])"}});
    setting.create(&policy("shared", spec));
    let refused = setting.apply("");
    assert_eq!(outcomes(&refused), [], "{refused}");
    let shared = setting.get(&["sharingpolicy", "shared"]);
    let ready = &shared["status"]["conditions"][0];
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("WrongField")));
    let message = ready["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("spec.guard.query: it has no $window"), "{message}");
    setting.kubectl(&["delete", "sharingpolicy", "shared"]);
}

/// The server refuses events about objects of a name.
fn refuse_events_about(setting: &Setting, name: &str) {
    let version = "admissionregistration.k8s.io/v1";
    let expression = format!("object.involvedObject.name != '{name}'");
    setting.create(&json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "events"},
        "spec": {"validations": [{"expression": expression}], "matchConstraints":
            {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["events"]}]}}}));
    setting.create(&json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "events"},
        "spec": {"policyName": "events", "validationActions": ["Deny"]}}));
}

fn without_a_server_nothing_is_decided(setting: &Setting) {
    for flag in ["--prometheus none", "--prometheus http://127.0.0.1:1"] {
        let waiting = setting.apply(flag);
        assert_eq!(waiting["verdicts"][0]["verdict"], "waiting", "{waiting}");
        assert!(outcomes(&waiting).iter().all(|(_, outcome)| *outcome == "planned"), "{waiting}");
    }
}

/// A query that Prometheus refuses is in the status of its policy and in an event.
fn a_refused_query_is_reported(setting: &Setting, flag: &str) {
    let record = || {
        let node = setting.get(&["node", "n0"]);
        let text = node["metadata"]["annotations"]["dovetail.dev/partition"].clone();
        text.as_str().expect("a record").to_owned()
    };
    let ask = |query: &str, wrong: &str| {
        let spec = json!({"spec": {"guard": {"query": query}}});
        let patch = ["patch", "sharingpolicy", "shared", "--type=merge", "-p"];
        setting.kubectl(&[&patch[..], &[&spec.to_string()]].concat());
        let mut record: Value = serde_json::from_str(&record()).expect("JSON");
        record["watch"]["query"] = json!(wrong);
        let patch =
            json!({"metadata": {"annotations": {"dovetail.dev/partition": record.to_string()}}});
        setting.kubectl(&["patch", "node", "n0", "--type=merge", "-p", &patch.to_string()]);
    };
    let wrong = "increases(a_bucket{pod=~\"$pods\"}[$window])";
    ask(wrong, wrong);
    let refused = setting.apply(flag);
    assert_eq!(refused["verdicts"][0]["verdict"], "waiting", "{refused}");
    let told = "spec.guard.query: Prometheus rejected the query: ";
    let problem = refused["policies"][0]["problem"].as_str().unwrap_or_default();
    assert!(problem.starts_with(told) && problem.contains("increases"), "{refused}");
    let shared = setting.get(&["sharingpolicy", "shared"]);
    let ready = &shared["status"]["conditions"][0];
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("WrongField")));
    let message = ready["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(told) && message.contains("increases"), "{message}");
    assert!(has(&events(setting, "SharingPolicy", "shared"), "LatencyQueryRefused", told));
    // Without a query of its own it uses the known histograms; the watch still has the wrong one.
    ask("", wrong);
}

/// It gives the verdicts, reports what follows from them, and writes nothing.
fn a_dry_run_reports_the_way_back(setting: &Setting, flag: &str) {
    let node = || {
        let node = setting.get(&["node", "n1"]);
        (node["metadata"]["annotations"].clone(), node["spec"]["taints"].clone())
    };
    let before = node();
    let dry = setting.apply(&format!("{flag} --dry-run"));
    let verdicts: Vec<&Value> =
        dry["verdicts"].as_array().expect("verdicts").iter().map(|row| &row["verdict"]).collect();
    assert_eq!(verdicts, ["worse", "unknown", "worse"], "{dry}");
    assert_eq!(outcomes(&dry)[..2], [("n1", "planned"), ("n3", "stays")], "{dry}");
    assert_eq!(problem(&dry, "n3"), not_rolled_back(setting), "{dry}");
    let row = &dry["nodes"][0];
    let layouts = (&row["from"], &row["to"]);
    let (replicas, whole) = (json!("2 × 4 replicas (time-slicing)"), json!("2 × whole"));
    assert_eq!(layouts, (&replicas, &whole), "{dry}");
    let why = problem(&dry, "n1");
    assert!(why.starts_with("latency is worse: the node gets its former layout back; "), "{why}");
    assert!(why.contains("waiting for default/slow-5f-bbbbb"), "{why}");
    assert_eq!(node(), before);
    assert!(!has(&events(setting, "Node", "n1"), "LatencyWorse", ""));
}

/// The slower node waits for its pod; the one without series stays as it is.
fn slower_and_unmeasured(setting: &Setting, worse: &Value) {
    let verdicts: Vec<&Value> =
        worse["verdicts"].as_array().expect("verdicts").iter().map(|row| &row["verdict"]).collect();
    assert_eq!(verdicts, ["worse", "unknown", "worse"], "{worse}");
    assert_eq!(outcomes(worse)[0], ("n1", "Emptying"), "{worse}");
    assert!(tainted(&setting.get(&["node", "n1"])) && !tainted(&setting.get(&["node", "n2"])));
    let p50 = "default/slow (vLLM): p50 +1";
    assert!(has(&events(setting, "Node", "n1"), "LatencyWorse", p50));
    assert!(has(&events(setting, "Deployment", "slow"), "LatencyWorse", "restart its pods"));
    let of_policy = events(setting, "SharingPolicy", "shared");
    assert!(has(&of_policy, "LatencyWorse", p50), "{of_policy:?}");
    assert!(has(&of_policy, "LatencyUnknown", "no series of a latency histogram"));
    let shared = setting.get(&["sharingpolicy", "shared"]);
    let receipts = shared["status"]["receipts"].as_array().expect("receipts");
    let latency: Vec<&str> = receipts.iter().filter_map(|one| one["latency"].as_str()).collect();
    assert!(latency[0].starts_with("same: ") && latency[1].starts_with("worse: "), "{latency:?}");
    assert!(latency[2].starts_with("unknown: "), "{latency:?}");
}

/// A GitOps tool has these labels of a node in its manifest, and no others.
fn apply_as_another(setting: &Setting, node: &str, labels: &Value) {
    let manifest = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": node, "labels": labels}});
    setting.folder.write("node.json", &manifest.to_string());
    let file = setting.folder.path("node.json").display().to_string();
    let apply = ["apply", "--server-side", "--field-manager=kustomize-controller", "-f"];
    setting.kubectl(&[&apply[..], &[&file]].concat());
}

/// Why the node whose label a GitOps tool sets is not rolled back, with what restores its layout.
fn not_rolled_back(setting: &Setting) -> String {
    let node = setting.get(&["node", "n3"]);
    let text =
        node["metadata"]["annotations"]["dovetail.dev/partition"].as_str().expect("a record");
    let record: Value = serde_json::from_str(text).expect("JSON");
    let fragment = json!({"metadata": {"labels": {LABEL: record["from"]["config"]}}});
    format!(
        "latency is worse, but the node is not rolled back: another client, kustomize-controller, \
         sets {LABEL} (metadata.managedFields): to let dovetail manage the node, remove the label \
         there; to restore 2 × whole there, set the label once no pod uses the GPUs: {fragment}"
    )
}

fn is_not_rolled_back_against_another_client(setting: &Setting, worse: &Value) {
    let why = not_rolled_back(setting);
    assert_eq!(problem(worse, "n3"), why, "{worse}");
    assert!(outcomes(worse).contains(&("n3", "stays")), "{worse}");
    let of = |kind: &str, name: &str| events(setting, kind, name);
    assert!(has(&of("Node", "n3"), "NotRolledBack", &why));
    assert!(has(&of("SharingPolicy", "shared"), "NotRolledBack", &format!("node n3: {why}")));
    assert!(has(&of("Deployment", "late"), "LatencyWorse", &why));
    let shared = setting.get(&["sharingpolicy", "shared"]);
    assert_eq!(shared["status"]["receipts"][3]["problem"], why, "{shared}");
    assert!(!tainted(&setting.get(&["node", "n3"])));
}

/// The tool takes the label out of its manifest; the node has it still.
fn is_rolled_back_once_the_label_is_dovetails(setting: &Setting, flag: &str) {
    apply_as_another(setting, "n3", &json!({}));
    let dry = setting.apply(&format!("{flag} --dry-run"));
    assert_eq!(outcomes(&dry)[0], ("n3", "planned"), "{dry}");
    assert!(problem(&dry, "n3").contains("waiting for default/late-5f-bbbbb"), "{dry}");
    assert!(!tainted(&setting.get(&["node", "n3"])));
}

/// Not even for another layout in the policy, when no pod is in the way.
fn a_node_that_goes_back_gets_no_other_change(setting: &Setting, flag: &str) {
    setting.kubectl(&["delete", "pod", "late-5f-bbbbb", "--force", "--grace-period=0"]);
    let spec = json!({"spec": {"replicas": 2}}).to_string();
    setting.kubectl(&["patch", "sharingpolicy", "shared", "--type=merge", "-p", &spec]);
    for (more, outcome) in [("--dry-run", "planned"), ("", "Done")] {
        let told = setting.apply(&format!("{flag} {more}"));
        let of_it = outcomes(&told).into_iter().filter(|(node, _)| *node == "n3");
        assert_eq!(of_it.collect::<Vec<_>>(), [("n3", outcome)], "{told}");
        let words = if outcome == "planned" { "latency is worse: " } else { "" };
        assert!(problem(&told, "n3").starts_with(words), "{told}");
    }
}

fn goes_back_when_its_pod_has_finished(setting: &Setting, flag: &str) {
    setting.kubectl(&["delete", "pod", "slow-5f-bbbbb", "--force", "--grace-period=0"]);
    let back = setting.apply(flag);
    assert_eq!(outcomes(&back)[0], ("n1", "Done"), "{back}");
    let node = setting.get(&["node", "n1"]);
    assert!(!tainted(&node) && node["status"]["allocatable"]["nvidia.com/gpu"] == "2", "{node}");
    assert_eq!(step(setting), "Stopped");
    // It does not change again until people change the policy.
    let shared = setting.get(&["sharingpolicy", "shared"]);
    let roll_out = &shared["status"]["rollOut"];
    assert_eq!((&roll_out["node"], &roll_out["outcome"]), (&json!("n1"), &json!("Worse")));
    let stopped = setting.apply(flag);
    assert!(outcomes(&stopped).iter().all(|(_, outcome)| *outcome != "Done"), "{stopped}");
}
