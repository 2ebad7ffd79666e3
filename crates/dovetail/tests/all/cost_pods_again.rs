//! Pods that come again under the name of one before them, as retries of operators, notebooks and
//! pods of StatefulSets do: each has its own time, owner, labels and end.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::fake_prometheus::{FakePrometheus, Made, Query};
use crate::program::Folder;

const HOUR_S: u64 = 3600;

/// A pod, and from when to when it held the one GPU of its node, in seconds.
#[derive(Clone)]
struct Pod {
    name: &'static str,
    uid: &'static str,
    node: &'static str,
    owner: (&'static str, &'static str),
    team: &'static str,
    busy: f64,
    from_s: u64,
    to_s: u64,
    has_failed: bool,
}

/// From `start_s` on: a pod for two hours and, an hour later, one of its name that goes on. `x-0`
/// is another Job's of another team on another node; `py-master-0` failed and is the same job's
/// again, as `bj` is under names of its own.
fn pods(start_s: u64) -> Vec<Pod> {
    let first = |name, uid, node, owner, team, busy| {
        let (from_s, to_s) = (start_s, start_s + 2 * HOUR_S);
        Pod { name, uid, node, owner, team, busy, from_s, to_s, has_failed: true }
    };
    let second = |name, uid, node, owner, team| {
        let (from_s, to_s) = (start_s + 3 * HOUR_S, u64::MAX);
        Pod { name, uid, node, owner, team, busy: 0.8, from_s, to_s, has_failed: false }
    };
    let (py, bj) = (("PyTorchJob", "py"), ("PyTorchJob", "bj"));
    vec![
        first("x-0", "u9", "m1", ("Job", "old"), "a", 0.0),
        second("x-0", "u2", "m2", ("Job", "new"), "b"),
        first("py-master-0", "u3", "m3", py, "c", 0.9),
        second("py-master-0", "u1", "m3", py, "c"),
        first("bj-aaaaa", "u5", "m4", bj, "c", 0.9),
        second("bj-bbbbb", "u6", "m4", bj, "c"),
    ]
}

/// Series of the pods; who made them says when, where `says_when`, else they are there when they
/// are first seen.
fn series(pods: &[Pod], says_when: bool, query: &Query) -> Vec<Made> {
    let text = query.text.as_str();
    let of = |pod: &Pod, more: Value| {
        let mut labels =
            json!({"namespace": "jobs", "pod": pod.name, "uid": pod.uid, "node": pod.node});
        labels.as_object_mut().expect("labels").extend(more.as_object().cloned().expect("more"));
        labels
    };
    let each = |labels: &dyn Fn(&Pod) -> Value, value: &dyn Fn(&Pod) -> Option<f64>| {
        let made = pods.iter().filter_map(|pod| Some((labels(pod), value(pod)?)));
        made.map(|(labels, value)| -> Made { (labels, Box::new(move |_| Some(value))) }).collect()
    };
    match () {
        () if text.contains("GR_ENGINE_ACTIVE[") => {
            let of_pod = |pod: &Pod| -> Made {
                let (pod, moments) = (pod.clone(), query.moments.clone());
                let labels = json!({"UUID": "a", "Hostname": pod.node, "modelName": "NVIDIA H100",
                    "namespace": "jobs", "pod": pod.name});
                let is_there = move |at_s: f64| pod.from_s as f64 <= at_s && at_s < pod.to_s as f64;
                let busy = pod.busy;
                (labels, Box::new(move |place| is_there(moments[place]).then_some(busy)))
            };
            pods.iter().map(of_pod).collect()
        }
        () if text.contains("kube_pod_info[") => each(
            &|pod| of(pod, json!({"created_by_kind": pod.owner.0, "created_by_name": pod.owner.1})),
            &|_| Some(1.0),
        ),
        () if text.contains("kube_pod_labels[") => {
            each(&|pod| of(pod, json!({"label_team": pod.team})), &|_| Some(1.0))
        }
        () if text.contains("last_over_time(kube_pod_created{") && says_when => {
            each(&|pod| of(pod, json!({})), &|pod| Some(pod.from_s as f64 - 30.0))
        }
        () if text.contains("min_over_time(timestamp(kube_pod_info{") => {
            each(&|pod| of(pod, json!({})), &|pod| Some(pod.from_s as f64))
        }
        () if text.contains("kube_pod_status_phase{") && text.contains("Succeeded|Failed") => {
            each(&|pod| of(pod, json!({"phase": "Failed"})), &|pod| pod.has_failed.then_some(1.0))
        }
        () => Vec::new(),
    }
}

fn hours(bill: &Value, key: [&str; 3]) -> f64 {
    let key = json!({"team": key[0], "job": key[1], "cause": key[2]});
    let rows = bill["rows"].as_array().expect("rows").iter();
    rows.filter(|row| row["key"] == key).filter_map(|row| row["gpu_hours"].as_f64()).sum()
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.06, "{found}, not {expected}");
}

/// By hand: two hours of the first of each name, and from three hours after the begin on what the
/// second has.
#[test]
fn pods_of_one_name_are_each_their_own() {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let start_s = now_s / HOUR_S * HOUR_S - 5 * HOUR_S;
    let goes_on = (now_s - start_s) as f64 / 3600.0 - 3.0;
    for says_when in [true, false] {
        let pods = pods(start_s);
        let server = FakePrometheus::start(move |query| series(&pods, says_when, query));
        let folder = Folder::new();
        let source = format!("--prometheus {} --period 6h --gpu-price H100=6", server.url);
        let by = format!("cost {source} --team-label team --by team,job,cause");
        let bill = folder.json(&by);
        near(hours(&bill, ["a", "Job jobs/old", "idle"]), 2.0);
        near(hours(&bill, ["b", "Job jobs/new", "active_not_separable"]), goes_on);
        near(hours(&bill, ["c", "PyTorchJob jobs/py", "active_not_separable"]), 2.0 + goes_on);
        // Hours that are over are read into a ledger as they are billed without one.
        let bill = folder.json(&format!("{by} --store ledger.db --cluster west"));
        near(hours(&bill, ["a", "Job jobs/old", "idle"]), 2.0);
        let kept = hours(&bill, ["b", "Job jobs/new", "active_not_separable"]);
        assert!((1.9..=goes_on + 0.06).contains(&kept), "{bill:#}");
        let (a, b) = (json!("a"), json!("b"));
        let rows = bill["rows"].as_array().expect("rows").iter();
        let mixed = rows.filter(|row| {
            let (team, job) = (&row["key"]["team"], &row["key"]["job"]);
            (team == &a && job != "Job jobs/old") || (team == &b && job != "Job jobs/new")
        });
        assert_eq!(mixed.count(), 0, "{bill:#}");
        is_as_under_names_of_its_own(&folder, &source);
    }
}

/// Of the retry that comes again under its name is told what is told of the one whose pods have
/// names of their own.
fn is_as_under_names_of_its_own(folder: &Folder, source: &str) {
    let answers = folder.json(&format!("cost questions runs {source}"));
    let answers = answers["answers"].as_array().expect("answers").iter();
    let runs = answers.clone().find(|answer| answer["name"] == "runs").expect("the answer");
    let run = |name: &str| {
        let mut rows = runs["rows"].as_array().expect("rows").iter();
        rows.find(|row| row["run"] == name).unwrap_or_else(|| panic!("{name}: {runs:#}"))
    };
    let (py, bj) = (run("jobs/py"), run("jobs/bj"));
    assert_eq!(py["attempts"], 2, "{py:#}");
    near(py["failed_gpu_hours"].as_f64().expect("hours"), 2.0);
    for key in ["attempts", "gpu_hours", "failed_gpu_hours", "failed_usd_micros"] {
        assert_eq!(py[key], bj[key], "{key}");
    }
    // Both last until now: a sample that comes between the two answers is in one of them alone.
    let asked = || ["py", "bj"].map(|job| folder.json(&format!("cost job {job} {source}")));
    let [mut py, mut bj] = asked();
    for _ in 0..2 {
        if py["parts"] != bj["parts"] {
            [py, bj] = asked();
        }
    }
    assert!(bj["parts"].as_array().is_some_and(|parts| parts.len() > 1), "{bj:#}");
    assert_eq!(py["parts"], bj["parts"]);
}
