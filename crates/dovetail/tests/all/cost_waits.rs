//! `dovetail cost questions wait requests`: queue waits from objects and over a period, and what
//! requests cost.

use serde_json::{Value, json};

use crate::cost::node;
use crate::fake_prometheus::{FakePrometheus, Made, Query};
use crate::program::Folder;

const GPU: &str = "nvidia.com/gpu";

/// A pod of a Job, made and placed at so many seconds after eleven.
fn asked(job: &str, name: &str, gpus: u32, created_s: u32, placed_s: Option<u32>) -> Value {
    let time = |s: u32| format!("2026-11-20T11:{:02}:{:02}Z", s / 60, s % 60);
    let scheduled = match placed_s {
        Some(s) => json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": time(s)}),
        None => json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "lastTransitionTime": time(created_s)}),
    };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "vision", "labels": {"team": "eyes"},
            "creationTimestamp": time(created_s),
            "ownerReferences": [{"kind": "Job", "name": job, "uid": job, "controller": true}]},
        "spec": {"containers": [{
            "name": "main", "resources": {"requests": {GPU: gpus}, "limits": {GPU: gpus}}}]},
        "status": {"phase": "Pending", "conditions": [scheduled]}
    });
    if placed_s.is_some() {
        pod["spec"]["nodeName"] = json!("g1");
        pod["status"]["phase"] = json!("Running");
    }
    pod
}

fn answer(document: &Value, name: &str) -> Value {
    let answers = document["answers"].as_array().expect("answers");
    answers.iter().find(|answer| answer["name"] == name).expect("the answer").clone()
}

fn row(answer: &Value, key: &str, value: &str) -> Value {
    let rows = answer["rows"].as_array().expect("rows");
    rows.iter()
        .find(|row| row[key] == value)
        .unwrap_or_else(|| panic!("{value}: {answer:#}"))
        .clone()
}

#[test]
fn a_gang_waits_for_its_last_member_and_what_is_free_now_is_told_by_cause() {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "gang",
        "namespace": "vision", "uid": "gang", "creationTimestamp": "2026-11-20T11:00:00Z"}});
    let mut other = asked("solo", "solo-0", 1, 100, Some(110));
    other["metadata"]["namespace"] = json!("speech");
    other["metadata"]["labels"]["team"] = json!("ears");
    let objects = [
        node("g1", 8, "h100"),
        job,
        // It was suspended for a minute.
        asked("gang", "gang-0", 1, 60, Some(70)),
        asked("gang", "gang-1", 1, 61, Some(660)),
        asked("quick", "quick-0", 1, 30, Some(32)),
        // Two pods of which one has no room.
        asked("large", "large-0", 2, 200, Some(230)),
        asked("large", "large-1", 8, 200, None),
        other,
    ];
    let folder = Folder::new();
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    let call = "cost questions wait --from dump.json --at 2026-11-20T12:00:00Z";
    let document = folder.json(call);
    let found = answer(&document, "wait");
    let eyes = row(&found, "team", "eyes");
    // 2 s, 30 s and 70 s to the first member; 2 s and 660 s to the last.
    let wanted = json!({
        "team": "eyes", "starts": 3, "still_waiting": 1,
        "first_samples": 3, "first_p50_s": 30.0, "first_p90_s": 70.0,
        "last_samples": 2, "last_p50_s": 2.0, "last_p90_s": 660.0,
        "free_gpus_meanwhile": 2.0, "free_meanwhile": eyes["free_meanwhile"].clone(),
    });
    assert_eq!(eyes, wanted);
    let by_cause = eyes["free_meanwhile"].as_array().expect("causes").iter();
    let sum: f64 = by_cause.map(|cause| cause["gpus"].as_f64().expect("a number")).sum();
    assert_eq!(sum, 2.0);
    let ears = row(&found, "team", "ears");
    assert_eq!((&ears["last_p90_s"], &ears["free_gpus_meanwhile"]), (&json!(10.0), &Value::Null));
    assert_eq!(row(&found, "team", "total")["starts"], 4);
    let table = folder.call(call);
    assert!(table.out.lines().all(|line| line.chars().count() <= 100), "{}", table.out);
    let blind = answer(&folder.json(&call.replace("wait", "requests")), "requests");
    let because = blind["unknown_because"].as_str().unwrap_or_default();
    assert!(because.contains("--prometheus"), "{blind:#}");
}

/// Two GPUs for two hours: one serves, the other is held by a run in the second hour and free
/// before.
fn series(query: &Query) -> Vec<Made> {
    let text = query.text.as_str();
    let end_s = query.moments.last().copied().unwrap_or(0.0);
    let pod = |name: &str| json!({"namespace": "prod", "pod": name, "node": "n1"});
    let gpu = |uuid: &str, pod: Option<&str>, from: usize, to: usize| -> Made {
        let mut labels = json!({"UUID": uuid, "Hostname": "n1", "modelName": "NVIDIA H100"});
        if let Some(pod) = pod {
            labels["pod"] = json!(pod);
            labels["namespace"] = json!("prod");
        }
        (labels, Box::new(move |place| (from..to).contains(&place).then_some(0.5)))
    };
    let one = |labels: Value, value: f64| -> Made { (labels, Box::new(move |_| Some(value))) };
    let owned = |name: &str, kind: &str, owner: &str| {
        let mut labels = pod(name);
        labels["created_by_kind"] = json!(kind);
        labels["created_by_name"] = json!(owner);
        one(labels, 1.0)
    };
    let counted = |value: f64| {
        let mut labels = pod("chat-0");
        labels["model_name"] = json!("llama");
        vec![one(labels, value)]
    };
    match () {
        () if text.contains("GR_ENGINE_ACTIVE[") => vec![
            gpu("a", Some("chat-0"), 0, 120),
            gpu("b", None, 0, 60),
            gpu("b", Some("train-0"), 60, 120),
        ],
        () if text.contains("kube_pod_info[") => {
            vec![owned("chat-0", "StatefulSet", "chat"), owned("train-0", "Job", "train")]
        }
        // Made an hour before it got its GPU, which was free for all of it; its Job twenty minutes
        // earlier.
        () if text.contains("kube_pod_created[") => {
            vec![one(pod("train-0"), end_s - 5_400.0), one(pod("old-0"), end_s - 90_000.0)]
        }
        () if text.contains("kube_pod_status_scheduled_time[") => {
            vec![one(pod("train-0"), end_s - 3_600.0)]
        }
        () if text.contains("kube_job_created[") => {
            vec![one(json!({"namespace": "prod", "job_name": "train"}), end_s - 6_600.0)]
        }
        () if text.contains("(vllm:request_success_total[") => counted(4_000.0),
        () if text.contains("(vllm:prompt_tokens_total[") => counted(1_500_000.0),
        () if text.contains("(vllm:generation_tokens_total[") => counted(500_000.0),
        () => Vec::new(),
    }
}

#[test]
fn a_period_has_waits_from_the_job_on_and_requests_cost_all_that_their_servers_did() {
    let server = FakePrometheus::start(series);
    let folder = Folder::new();
    let call = format!(
        "cost questions wait requests --prometheus {} --period 2h --gpu-price H100=6",
        server.url
    );
    let found = folder.json(&call);
    let waits = answer(&found, "wait");
    let total = row(&waits, "team", "total");
    assert_eq!((&total["starts"], &total["last_samples"]), (&json!(1), &json!(1)));
    let wait_s = total["last_p50_s"].as_f64().expect("a wait");
    assert!((wait_s - 3_000.0).abs() < 2.0, "{total:#}");
    // All of it lay within the hour in which the second GPU was free.
    let free = total["free_gpus_meanwhile"].as_f64().expect("a mean");
    assert!((free - 1.0).abs() < 0.01, "{total:#}");
    assert_eq!(total["free_meanwhile"][0]["cause"], "unknown");
    // $12 for two hours: $3 for each 1,000 requests and $6 for each million tokens.
    let chat = row(&answer(&found, "requests"), "job", "StatefulSet prod/chat");
    assert_eq!((&chat["cost_usd_micros"], &chat["requests"]), (&json!(12_000_000), &json!(4_000)));
    assert_eq!(chat["per_1000_requests_usd_micros"], 3_000_000);
    assert_eq!(
        (&chat["tokens"], &chat["per_million_tokens_usd_micros"]),
        (&json!(2_000_000), &json!(6_000_000))
    );
    assert_eq!((&chat["model"], &chat["server"]), (&json!("llama"), &json!("vLLM")));
    let table = folder.call(&call);
    assert!(table.out.lines().all(|line| line.chars().count() <= 100), "{}", table.out);
    // A Prometheus without them says so.
    let without = FakePrometheus::start(|query| match query.text.contains("GR_ENGINE_ACTIVE[") {
        true => series(query),
        false => Vec::new(),
    });
    let found = folder
        .json(&format!("cost questions wait requests --prometheus {} --period 2h", without.url));
    for (name, wanted) in [("wait", "kube-state-metrics"), ("requests", "scrape")] {
        let because = answer(&found, name)["unknown_because"].clone();
        assert!(because.as_str().is_some_and(|text| text.contains(wanted)), "{found:#}");
    }
}
