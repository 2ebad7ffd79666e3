//! GPUs that pods have together: what was measured of one is of all of them.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::cost::{document, dump, folder, made_long_ago, node, pod};
use crate::cost_job::ONE_HOUR;
use crate::fake_prometheus::{FakePrometheus, two_gpus};
use crate::program::Folder;

/// GPU-hours of a pod by cause.
fn hours(found: &Value, pod: &str, cause: &str) -> f64 {
    let rows = found["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["key"] == json!({"pod": pod, "cause": cause}));
    row.map_or(0.0, |row| row["gpu_hours"].as_f64().expect("hours"))
}

/// Two GPUs in two replicas each: two pods on one of them, one on the other. For 10 hours both GPUs
/// stand still, for 10 they compute. A month of half a GPU is 360 hours.
#[test]
fn what_several_pods_computed_on_one_gpu_is_unknown_and_what_stood_still_is_not() {
    let folder = folder();
    let mut replicas = node("g1", 4, "h100");
    let labels = &mut replicas["metadata"]["labels"];
    labels["nvidia.com/gpu.replicas"] = json!("2");
    labels["nvidia.com/gpu.count"] = json!("2");
    let pods = [("a-0", "GPU-0"), ("b-0", "GPU-0"), ("c-0", "GPU-1")];
    let mut objects = vec![replicas];
    objects.extend(pods.map(|(name, _)| made_long_ago(pod("vision", name, 1, "g1"))));
    folder.write("dump.json", &dump(&objects));
    let write = |pods: &[(&str, &str)]| {
        let mut csv = "timestamp_s,pod,gpu,activity_percent,namespace,node\n".to_owned();
        for step in 0..20 * 60 {
            // Until 2026-11-20T12:00:00Z.
            let at_s = 1_795_104_000 + 60 * step;
            let percent = if step < 600 { 0 } else { 50 };
            for (name, gpu) in pods {
                writeln!(csv, "{at_s},{name},{gpu},{percent},vision,g1").expect("a text");
            }
        }
        folder.write("usage.csv", &csv);
        let found = document(&folder, "--by pod,cause --usage usage.csv");
        let of = |name: &str| {
            let pod = format!("vision/{name}");
            ["idle", "active_not_separable", "unknown"]
                .map(|cause| hours(&found, &pod, cause).round())
        };
        [of("a-0"), of("b-0"), of("c-0")]
    };
    let (several, alone) = ([180.0, 0.0, 180.0], [180.0, 180.0, 0.0]);
    assert_eq!(write(&pods), [several, several, alone]);
    // Where one of them was not measured, nobody knows which GPU it has.
    assert_eq!(write(&pods[1..]), [[0.0, 0.0, 360.0], several, several]);
    let job =
        folder.json("cost job b --from dump.json --at 2026-11-20T12:00:00Z --usage usage.csv");
    // Its GPU computed for it or for its neighbour.
    let notes = job["notes"].to_string();
    assert!(notes.contains("1 GPU that it shares was active, but"), "{notes}");
    assert!(!notes.contains("never active"), "{notes}");
    let phases: Vec<(&str, f64)> = job["parts"]
        .as_array()
        .expect("parts")
        .iter()
        .map(|part| {
            let hours = part["gpu_hours"].as_f64().expect("hours");
            (part["phase"].as_str().expect("a phase"), hours.round())
        })
        .filter(|(_, hours)| *hours > 0.0)
        .collect();
    assert!(phases.contains(&("unknown", 180.0)), "{phases:?}");
    assert_eq!(phases.iter().map(|(_, hours)| hours).sum::<f64>(), 360.0, "{phases:?}");
}

/// The pod was made on 2026-11-20 at 11:00, and the objects were read at 12:00. Until then the GPU
/// computed, for ten hours; from then on it stands still. What is of the pod alone is an hour and
/// five minutes.
#[test]
fn samples_of_a_pod_that_had_the_name_before_or_later_say_nothing_of_it() {
    const MADE_S: u64 = 1_795_172_400;
    let folder = folder();
    let objects = [node("g1", 4, "h100"), pod("vision", "a-0", 1, "g1")];
    folder.write("dump.json", &dump(&objects));
    let before = "ignored 600 samples of pod vision/a-0, from before the pod was created";
    let later =
        "ignored 54 samples of pod vision/a-0, from more than 5 minutes after 2026-11-20T12:00:00Z";
    // Minutes from when the pod was made on; hours of the month that are idle, active and unknown;
    // what is left out.
    let month = |idle: f64, active: f64, unknown: f64| [idle, active, unknown];
    for (minutes, wanted, told) in [
        (-600..60, month(720.0, 0.0, 0.0), vec![before]),
        (0..120, month(720.0, 0.0, 0.0), vec![later]),
        (-600..120, month(720.0, 0.0, 0.0), vec![before, later]),
        (0..65, month(720.0, 0.0, 0.0), vec![]),
        (-600..0, month(0.0, 0.0, 720.0), vec![before]),
    ] {
        let row = |minute: i64| {
            let percent = if (0..=65).contains(&minute) { 0 } else { 90 };
            format!("{},a-0,0,{percent}\n", MADE_S.saturating_add_signed(60 * minute))
        };
        let rows: String = minutes.clone().map(row).collect();
        folder.write("usage.csv", &format!("timestamp_s,pod,gpu,activity_percent\n{rows}"));
        folder.write("dovetail.toml", ONE_HOUR);
        let found = document(&folder, "--by pod,cause --usage usage.csv");
        let of = ["idle", "active_not_separable", "unknown"];
        assert_eq!(of.map(|cause| hours(&found, "vision/a-0", cause)), wanted, "{minutes:?}");
        std::fs::remove_file(folder.path("dovetail.toml")).expect("a file");
        let audit = folder.json(
            "audit --from dump.json --at 2026-11-20T12:00:00Z --usage usage.csv --fail-on never",
        );
        for document in [&found, &audit] {
            let notes = document["notes"].to_string();
            for text in [before, later] {
                assert_eq!(notes.contains(text), told.contains(&text), "{minutes:?} {notes}");
            }
        }
        // Too little is known of it to sell it.
        let findings = audit["findings"].as_array().expect("findings");
        assert!(findings.iter().all(|finding| finding["id"] != "REQ-05"), "{audit:#}");
        if minutes.start == -600 && minutes.end == 60 {
            folder.write("dovetail.toml", ONE_HOUR);
            let job = folder
                .json("cost job a --from dump.json --at 2026-11-20T12:00:00Z --usage usage.csv");
            let parts = job["parts"].as_array().expect("parts");
            let pause = parts.iter().find(|part| part["phase"] == "long_pause");
            let pause = pause.map(|part| &part["gpu_hours"]);
            assert_eq!(pause, Some(&json!(720.0)), "{job:#}");
        }
    }
}

#[test]
fn samples_that_lie_days_apart_are_no_measurement() {
    let folder = folder();
    let objects = [node("g1", 4, "h100"), made_long_ago(pod("vision", "a-0", 1, "g1"))];
    folder.write("dump.json", &dump(&objects));
    let call = |first_s: u64| {
        let rows = format!("{first_s},a-0,0,5\n1795104000,a-0,0,5\n");
        folder.write("usage.csv", &format!("timestamp_s,pod,gpu,activity_percent\n{rows}"));
        folder.call("cost --from dump.json --at 2026-11-20T12:00:00Z --usage usage.csv")
    };
    assert_eq!(call(1_795_104_000 - 86_400).code, Some(0));
    let done = call(0);
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.err.contains("usage.csv: samples of a GPU are 20,777 d apart"), "{}", done.err);
}

/// Two pods have one GPU, which computes in even hours.
#[test]
fn over_a_period_too_what_several_pods_computed_on_one_gpu_is_unknown() {
    let server = FakePrometheus::start(|query| {
        let mut made = two_gpus(query);
        let more = two_gpus(query).into_iter().take(1).map(|(mut labels, value)| {
            labels["pod"] = json!("serve-0");
            (labels, value)
        });
        made.extend(more);
        made
    });
    let folder = Folder::new();
    let ask = format!(
        "--prometheus {} --period 2026-10-05T00:00:00Z..2026-10-05T08:00:00Z --gpu-price H100=6",
        server.url
    );
    let bill = folder.json(&format!("cost {ask} --by pod,cause"));
    let of_bill = |cause: &str| hours(&bill, "vision/train-0", cause);
    assert_eq!(of_bill("active_not_separable"), 0.0, "{bill:#}");
    assert!(of_bill("unknown") > 1.4, "{bill:#}");
    let job = folder.json(&format!("cost job train-0 {ask}"));
    let notes = job["notes"].to_string();
    assert!(notes.contains("1 GPU that it shares was active, but"), "{notes}");
    assert!(!notes.contains("never active"), "{notes}");
    let of_job = |work: &[&str]| -> f64 {
        let parts = job["parts"].as_array().expect("parts").iter();
        let of = parts.filter(|part| work.contains(&part["phase"].as_str().expect("a phase")));
        of.map(|part| part["gpu_hours"].as_f64().expect("hours")).sum()
    };
    let teams = folder.json(&format!("cost questions teams {ask}"));
    let total = &teams["answers"][0]["rows"][0];
    assert_eq!(total["utilisation"], Value::Null, "{teams:#}");
    assert!(total["utilisation_at_most"].as_f64() > Some(0.3), "{teams:#}");
    assert_eq!(of_job(&["compute", "busy_not_separable"]), 0.0, "{job:#}");
    // A sample holds for a step.
    assert!((of_job(&["unknown"]) - of_bill("unknown")).abs() < 0.1, "{job:#}");
}
