//! `dovetail cost questions runs`: attempts joined to runs, from objects and over a period.

use serde_json::{Value, json};

use crate::cost::{dump, node};
use crate::fake_prometheus::{FakePrometheus, Made, Query};
use crate::program::Folder;

const GPU: &str = "nvidia.com/gpu";

/// A pod with GPUs that got its node at `from` o'clock and ended at `to`, failed unless
/// `went_well`.
fn attempt(
    owner: (&str, &str),
    name: &str,
    gpus: u32,
    from: u32,
    to: Option<(u32, bool)>,
) -> Value {
    let (kind, owner) = owner;
    let time = |hour: u32| format!("2026-11-20T{hour:02}:00:00Z");
    let phase = match to {
        None => "Running",
        Some((_, true)) => "Succeeded",
        Some((_, false)) => "Failed",
    };
    let mut status = json!({"phase": phase, "conditions": [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": time(from)}]});
    if let Some((hour, _)) = to {
        let ended = json!({"exitCode": 1, "finishedAt": time(hour)});
        status["containerStatuses"] = json!([{"name": "main", "state": {"terminated": ended}}]);
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "vision", "labels": {"team": "eyes"},
            "ownerReferences": [{"kind": kind, "name": owner, "uid": format!("{owner}-1"), "controller": true}]},
        "spec": {"nodeName": "g1", "containers": [{
            "name": "main", "resources": {"requests": {GPU: gpus}, "limits": {GPU: gpus}}}]},
        "status": status
    })
}

fn answer(document: &Value) -> Value {
    let answers = document["answers"].as_array().expect("answers");
    answers.iter().find(|answer| answer["name"] == "runs").expect("the answer").clone()
}

fn row(answer: &Value, run: &str) -> Value {
    let rows = answer["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["run"] == run).unwrap_or_else(|| panic!("{run}: {answer:#}")).clone()
}

/// At noon, GPUs at $6.88.
#[test]
fn pods_that_are_over_are_attempts_of_the_run_that_goes_on() {
    let mut labelled = attempt(("Job", "second"), "second-x", 2, 4, Some((6, true)));
    labelled["metadata"]["labels"]["dovetail.dev/run"] = json!("llm");
    let mut first = attempt(("Job", "first"), "first-x", 2, 1, Some((2, false)));
    first["metadata"]["labels"]["dovetail.dev/run"] = json!("llm");
    let mut experiment = attempt(("Job", "e-one"), "e-one-x", 1, 1, Some((2, false)));
    experiment["metadata"]["labels"]["mlflow"] = json!("e");
    let mut of_same = attempt(("Job", "e-two"), "e-two-x", 1, 5, None);
    of_same["metadata"]["labels"]["mlflow"] = json!("e");
    let objects = [
        node("g1", 8, "h100"),
        // Two members and their retry after the failure of one.
        attempt(("PyTorchJob", "gang"), "gang-0-a", 1, 6, Some((9, false))),
        attempt(("PyTorchJob", "gang"), "gang-1-a", 1, 6, Some((9, false))),
        attempt(("PyTorchJob", "gang"), "gang-0-b", 1, 10, None),
        attempt(("PyTorchJob", "gang"), "gang-1-b", 1, 10, None),
        first,
        labelled,
        // By their names.
        attempt(("Job", "tune-x2x9k"), "tune-x2x9k-q", 1, 7, Some((8, false))),
        attempt(("Job", "tune-bcdfg"), "tune-bcdfg-q", 1, 9, None),
        experiment,
        of_same,
        attempt(("Deployment", "serve"), "serve-x", 1, 0, None),
    ];
    let folder = Folder::new();
    folder.write("dump.json", &dump(&objects));
    folder.write("dovetail.toml", "[cost]\nexperiment_labels = [\"mlflow\"]\n");
    let call =
        "cost questions runs --config dovetail.toml --from dump.json --at 2026-11-20T12:00:00Z";
    let found = answer(&folder.json(call));
    let gang = row(&found, "vision/gang");
    assert_eq!(gang["joined_by"], "owner");
    assert_eq!((&gang["attempts"], &gang["gpu_hours"]), (&json!(2), &json!(10.0)));
    assert_eq!(gang["cost_usd_micros"], 68_800_000);
    assert_eq!(gang["failed_usd_micros"], 41_280_000);
    let named = json!([{"attempt": "attempt 1 (gang)", "ended": "failed", "gpu_hours": 6.0,
        "cost_usd_micros": 41_280_000}]);
    assert_eq!((&gang["failed"], &gang["team"]), (&named, &json!("eyes")));
    let llm = row(&found, "vision/llm");
    assert_eq!(llm["joined_by"], "label dovetail.dev/run");
    assert_eq!((&llm["gpu_hours"], &llm["failed_gpu_hours"]), (&json!(6.0), &json!(2.0)));
    let tune = row(&found, "vision/tune");
    assert_eq!(tune["joined_by"], "name (inferred)");
    assert_eq!((&tune["attempts"], &tune["failed_gpu_hours"]), (&json!(2), &json!(1.0)));
    let e = row(&found, "vision/e");
    assert_eq!((&e["joined_by"], &e["gpu_hours"]), (&json!("experiment label"), &json!(8.0)));
    let total = row(&found, "total");
    assert_eq!(total["gpu_hours"], 10.0 + 6.0 + 4.0 + 8.0);
    assert!(found["rows"].as_array().is_some_and(|rows| rows.len() == 5), "{found:#}");
    let uncertainty = found["uncertainty"].as_str().expect("a text");
    assert!(uncertainty.contains("1 of 4 runs identified by inference"), "{uncertainty}");
    let table = folder.call(call);
    assert!(
        table.out.contains("vision/gang, failed: attempt 1 (gang), failed, 6.0 GPU-hours, $41.28."),
        "{}",
        table.out
    );
    assert!(table.out.lines().all(|line| line.chars().count() <= 100), "{}", table.out);
}

/// One GPU for two hours: half an hour of a pod that failed, half an hour of nobody, an hour of its
/// retry.
fn series(query: &Query) -> Vec<Made> {
    let text = query.text.as_str();
    let of = |pod: &str, more: Value| {
        let mut labels = json!({"namespace": "vision", "pod": pod, "node": "n1"});
        labels.as_object_mut().expect("labels").extend(more.as_object().expect("labels").clone());
        labels
    };
    let gpu = |pod: Option<&str>, from: usize, to: usize| -> Made {
        let mut labels = json!({"UUID": "a", "Hostname": "n1", "modelName": "NVIDIA H100"});
        if let Some(pod) = pod {
            labels["pod"] = json!(pod);
            labels["namespace"] = json!("vision");
        }
        (labels, Box::new(move |place| (from..to).contains(&place).then_some(0.5)))
    };
    let one = |labels: Value| -> Made { (labels, Box::new(|_| Some(1.0))) };
    match () {
        () if text.contains("GR_ENGINE_ACTIVE[") => {
            vec![gpu(Some("train-a"), 0, 30), gpu(None, 30, 60), gpu(Some("train-b"), 60, 120)]
        }
        () if text.contains("kube_pod_info[") => ["train-a", "train-b"]
            .map(|pod| {
                one(of(pod, json!({"created_by_kind": "Job", "created_by_name": "train-29384720"})))
            })
            .into(),
        () if text.contains("kube_job_owner[") => vec![one(json!({"namespace": "vision",
            "job_name": "train-29384720", "owner_kind": "CronJob", "owner_name": "train"}))],
        () if text.contains("kube_pod_status_phase{phase=~\"Succeeded|Failed\"}") => {
            vec![one(of("train-a", json!({"phase": "Failed"})))]
        }
        () => Vec::new(),
    }
}

#[test]
fn a_period_has_attempts_that_are_gone_and_runs_cost_what_jobs_cost() {
    let server = FakePrometheus::start(series);
    let folder = Folder::new();
    let source = format!("--prometheus {} --period 2h --gpu-price H100=6", server.url);
    let found = answer(&folder.json(&format!("cost questions runs {source}")));
    let run = row(&found, "vision/train-29384720");
    assert_eq!((&run["attempts"], &run["gpu_hours"]), (&json!(2), &json!(1.5)));
    assert_eq!(run["failed"][0]["attempt"], "attempt 1 (train-a)");
    assert_eq!(run["failed_usd_micros"], 3_000_000);
    // Nobody kept the identity of the Job.
    assert_eq!(run["joined_by"], "owner's name (inferred)");
    let bill = folder.json(&format!("cost {source} --by job"));
    let rows = bill["rows"].as_array().expect("rows").iter();
    let job = rows.filter(|row| row["key"]["job"] == "CronJob vision/train");
    let cost: i64 = job.map(|row| row["cost_usd_micros"].as_i64().expect("an amount")).sum();
    assert_eq!(row(&found, "total")["cost_usd_micros"], cost);
}
