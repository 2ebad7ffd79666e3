//! `dovetail cost job` over a period: a job whose phases are known, served as series by exporters,
//! cAdvisor and kube-state-metrics.

use std::collections::BTreeMap;

use dovetail_phases::job_phases::{
    DeviceSample, JobRecord, Member, Phase, PhaseRule, RunEnd, job_phases,
};
use dovetail_signals::{Case, Collected, Half, JobBehavior};
use serde_json::{Value, json};

use crate::cost_job::is_its_bill;
use crate::fake_prometheus::{FakePrometheus, Made, Query};
use crate::program::Folder;

const STEP_MS: u64 = 60_000;
/// Of series that nobody collects.
const NOTHING: fn(&DeviceSample) -> Option<f64> = |_| None;

pub(crate) fn record(kind: JobBehavior, seed: u64) -> JobRecord {
    Case::run(kind, seed, Half::HeldOut).record(STEP_MS, Collected::All)
}

/// Ranks are pods, which keep their names when they are made anew.
pub(crate) fn pod_of(member: &Member) -> String {
    format!("train-worker-{}", member.rank)
}

/// The number of a sample that a query is about.
fn reading(query: &str) -> fn(&DeviceSample) -> Option<f64> {
    match () {
        () if query.contains("GR_ENGINE_ACTIVE") => {
            |s| Some(f64::from(s.engine_micro_percent?) / 1e8)
        }
        () if query.contains("DEV_GPU_UTIL[") => |s| Some(f64::from(s.util_micro_percent?) / 1e6),
        () if query.contains("PROF_SM_ACTIVE") => |s| Some(f64::from(s.sm_micro_percent?) / 1e8),
        () if query.contains("PIPE_TENSOR_ACTIVE") => {
            |s| Some(f64::from(s.tensor_micro_percent?) / 1e8)
        }
        () if query.contains("DRAM_ACTIVE") => |s| Some(f64::from(s.dram_micro_percent?) / 1e8),
        () if query.contains("POWER_USAGE") => |s| Some(f64::from(s.power_milliwatts?) / 1e3),
        () if query.contains("container_cpu_usage") => |s| Some(s.cpu_milli? as f64 / 1e3),
        () if query.contains("container_fs_reads") => |s| Some(s.read_bytes_per_s? as f64),
        () if query.contains("container_fs_writes") => |s| Some(s.written_bytes_per_s? as f64),
        () if query.contains("network_receive") => |s| Some(s.received_bytes_per_s? as f64),
        () if query.contains("network_transmit") => |s| Some(s.sent_bytes_per_s? as f64),
        () => NOTHING,
    }
}

/// The series of a query, from a record that begins with the period.
pub(crate) fn series(record: &JobRecord, query: &Query) -> Vec<Made> {
    let text = query.text.as_str();
    if text.contains("kube_pod_") {
        return events(record, query);
    }
    let read = reading(text);
    let is_host = text.contains("container_");
    let of_member = |(number, member): (usize, &Member)| -> Made {
        let mut labels = json!({"namespace": "ml", "pod": pod_of(member)});
        if !is_host {
            labels["UUID"] = json!(format!("gpu-{number}"));
            labels["Hostname"] = json!(format!("n{}", number % 2));
            labels["modelName"] = json!("NVIDIA H100");
            labels["container"] = json!("main");
        }
        let member = member.clone();
        let from_ms = record.from_ms;
        let value = move |place: usize| {
            let at_ms = from_ms + place as u64 * STEP_MS;
            let is_held = at_ms + STEP_MS > member.held.from_ms && at_ms < member.held.to_ms;
            member.samples.get(place).filter(|_| is_held).and_then(read)
        };
        (labels, Box::new(value))
    };
    let all: Vec<Made> = record.members.iter().enumerate().map(of_member).collect();
    if !is_host {
        return all;
    }
    // One series for each pod, whichever device it has.
    let mut by_pod: BTreeMap<String, Vec<Made>> = BTreeMap::new();
    for made in all {
        by_pod.entry(made.0["pod"].to_string()).or_default().push(made);
    }
    let joined = by_pod.into_values().map(|of_pod| -> Made {
        let labels = of_pod[0].0.clone();
        (labels, Box::new(move |place| of_pod.iter().find_map(|(_, value)| value(place))))
    });
    joined.collect()
}

/// kube-state-metrics: starts and runs of containers, and how pods ended. Their clock is one step
/// before that of samples, which are means over the step before their moment.
fn events(record: &JobRecord, query: &Query) -> Vec<Made> {
    let text = query.text.as_str();
    let begin_ms = (query.moments.first().copied().unwrap_or(0.0) * 1e3) as u64;
    let mut pods: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for member in &record.members {
        pods.entry(pod_of(member)).or_default().push(member.clone());
    }
    let mut made: Vec<Made> = Vec::new();
    for (pod, members) in pods {
        let labels = json!({"namespace": "ml", "pod": pod, "container": "main"});
        let runs: Vec<_> = members.iter().flat_map(|member| member.runs.clone()).collect();
        let from_ms = record.from_ms;
        let after = move |at_ms: u64| at_ms - from_ms;
        match () {
            () if text.contains("state_started") => {
                let starts: Vec<u64> = runs.iter().map(|run| after(run.span.from_ms)).collect();
                let value = move |place: usize| {
                    let now_ms = (place as u64 + 1) * STEP_MS;
                    let last = starts.iter().rfind(|start_ms| **start_ms <= now_ms)?;
                    Some((begin_ms + last - STEP_MS.min(begin_ms + last)) as f64 / 1e3)
                };
                made.push((labels, Box::new(value)));
            }
            () if text.contains("status_running") => {
                let value = move |place: usize| {
                    let (from_ms, to_ms) = (place as u64 * STEP_MS, (place as u64 + 1) * STEP_MS);
                    let mut spans =
                        runs.iter().map(|run| (after(run.span.from_ms), after(run.span.to_ms)));
                    let runs_then = spans.any(|(begin, end)| begin < to_ms && end > from_ms);
                    Some(f64::from(u8::from(runs_then)))
                };
                made.push((labels, Box::new(value)));
            }
            () if text.contains("status_phase") => {
                let mut labels = labels;
                labels["phase"] = json!("Succeeded");
                let is_over = runs.last().is_some_and(|run| run.end == RunEnd::Completed);
                made.push((labels, Box::new(move |_| Some(f64::from(u8::from(is_over))))));
            }
            () if text.contains("last_terminated_reason") => {
                let mut labels = labels;
                labels["reason"] = json!("Error");
                let is_lost = runs.iter().any(|run| run.end == RunEnd::Lost);
                made.push((labels, Box::new(move |_| Some(f64::from(u8::from(is_lost))))));
            }
            () if text.contains("kube_pod_info[") => {
                let mut labels = labels;
                labels["node"] = json!("n0");
                labels["created_by_kind"] = json!("PyTorchJob");
                labels["created_by_name"] = json!("train");
                made.push((labels, Box::new(|_| Some(1.0))));
            }
            () => {}
        }
    }
    made
}

/// What the method says of the record itself is what comes out at the end of the way: through
/// names, labels, queries, steps, ranks and runs. A holding begins and ends with a sample there, so
/// a little differs.
#[test]
fn a_job_is_told_as_if_its_record_had_been_at_hand() {
    for (kind, seed) in [
        (JobBehavior::Straggler, 3),
        (JobBehavior::Failing, 5),
        (JobBehavior::Hanging, 2),
        (JobBehavior::Starved, 1),
    ] {
        let record = record(kind, seed);
        let served = record.clone();
        let server = FakePrometheus::start(move |query| series(&served, query));
        let folder = Folder::new();
        let source =
            format!("--prometheus {} --period 12h --step 60s --gpu-price H100=6", server.url);
        let found = folder.json(&format!("cost job train {source}"));
        let ranks = json!(record.ranks);
        assert_eq!(
            (&found["job"], &found["ranks"]),
            (&json!("PyTorchJob ml/train"), &ranks),
            "{kind:?}"
        );
        let all = ["activity", "sm", "tensor", "dram", "power", "cpu", "inwards", "outwards"];
        assert_eq!(found["signals"], json!(all));
        let wanted = job_phases(&record, &PhaseRule::default()).expect("a record").by_phase();
        let time: i128 = wanted.values().sum();
        let said: BTreeMap<&str, f64> = found["parts"]
            .as_array()
            .expect("parts")
            .iter()
            .map(|part| {
                (part["phase"].as_str().expect("a name"), part["share"].as_f64().expect("a share"))
            })
            .collect();
        let hours = found["gpu_hours"].as_f64().expect("hours");
        assert!((hours / (time as f64 / 3.6e9) - 1.0).abs() < 0.02, "{kind:?}: {hours}");
        for phase in dovetail_phases::job_phases::Phase::ALL {
            let wanted = wanted.get(&phase).copied().unwrap_or(0) as f64 / time as f64;
            let said = said.get(phase.name()).copied().unwrap_or(0.0);
            assert!((wanted - said).abs() < 0.015, "{kind:?} {phase:?}: {said}, not {wanted}");
        }
        is_its_bill(&found, &folder.json(&format!("cost {source} --by job")));
    }
}

/// A server without the further series: what is not separable stays so, and nothing fails.
#[test]
fn without_further_series_what_is_busy_is_not_separable() {
    let record = record(JobBehavior::Straggler, 3);
    let server = FakePrometheus::start(move |query| match query.text.contains("DEV_GPU_UTIL[") {
        true => series(&record, query),
        false => Vec::new(),
    });
    let call = format!("cost job train-worker --prometheus {} --period 12h --step 60s", server.url);
    let found: Value = Folder::new().json(&call);
    let share = |phase: &str| {
        let parts = found["parts"].as_array().expect("parts").iter();
        parts
            .filter(|part| part["phase"] == phase)
            .map(|part| part["share"].as_f64().unwrap_or(0.0))
            .sum::<f64>()
    };
    assert!(share("busy_not_separable") > 0.8 && share("compute") == 0.0, "{found:#}");
}

/// The share of a phase, and how sure it is.
fn share_of(found: &Value, phase: &str) -> (f64, Value) {
    let mut parts = found["parts"].as_array().expect("parts").iter();
    let part = parts.find(|part| part["phase"] == phase);
    part.map_or((0.0, Value::Null), |part| {
        (part["share"].as_f64().expect("a share"), part["confidence"].clone())
    })
}

fn wanted_share(record: &JobRecord, phase: Phase) -> f64 {
    let phases = job_phases(record, &PhaseRule::default()).expect("a record").by_phase();
    phases.get(&phase).copied().unwrap_or(0) as f64 / phases.values().sum::<i128>() as f64
}

/// A job whose utilisation alone is read, and that says when it saved: what it repeated is known
/// from then on.
#[test]
fn checkpoints_that_a_job_tells_bound_what_it_repeated() {
    let record =
        Case::run(JobBehavior::Failing, 5, Half::HeldOut).record(STEP_MS, Collected::UtilOnly);
    assert!(record.checkpoints_ms.len() > 1);
    let wanted = wanted_share(&record, Phase::Repeated);
    let asked = |tells: bool| {
        let record = record.clone();
        let server = FakePrometheus::start(move |query| {
            if !query.text.contains("dovetail_last_checkpoint_timestamp_seconds") {
                return series(&record, query);
            }
            // Its own clock is one step before that of samples.
            let begin_ms = (query.moments.first().copied().unwrap_or(0.0) * 1e3) as u64;
            let after: Vec<u64> =
                record.checkpoints_ms.iter().map(|at_ms| at_ms - record.from_ms).collect();
            let value = move |place: usize| {
                let now_ms = (place as u64 + 1) * STEP_MS;
                let last = after.iter().rfind(|at_ms| tells && **at_ms <= now_ms)?;
                Some((begin_ms + last - STEP_MS) as f64 / 1e3)
            };
            vec![(json!({"namespace": "ml", "pod": "train-worker-0"}), Box::new(value))]
        });
        let source = format!("--prometheus {} --period 12h --step 60s", server.url);
        share_of(&Folder::new().json(&format!("cost job train {source}")), "repeated")
    };
    let (share, confidence) = asked(true);
    assert!((share - wanted).abs() < 0.02 && wanted > 0.02, "{share}, not {wanted}");
    assert_eq!(confidence, "high");
    let (untold, confidence) = asked(false);
    assert!(untold > wanted + 0.05, "{untold}: since each attempt began");
    assert_eq!(confidence, "low");
}

/// The series of node_exporter of the nodes of a record: what the hosts of its members did,
/// together.
fn of_nodes(record: &JobRecord, query: &Query) -> Vec<Made> {
    let text = query.text.as_str();
    let instances = ["n0:9100", "n1:9100"];
    if text == "node_uname_info" {
        let made = |instance: &&str| -> Made {
            let labels = json!({"instance": instance, "nodename": &instance[..2]});
            (labels, Box::new(|_| Some(1.0)))
        };
        return instances.iter().map(made).collect();
    }
    let read: fn(&DeviceSample) -> Option<f64> = match () {
        () if text.contains("node_cpu_seconds") => |s| Some(s.cpu_milli? as f64 / 1e3),
        () if text.contains("node_disk_read") => |s| Some(s.read_bytes_per_s? as f64),
        () if text.contains("node_disk_written") => |s| Some(s.written_bytes_per_s? as f64),
        () if text.contains("node_network_receive") => |s| Some(s.received_bytes_per_s? as f64),
        () if text.contains("node_network_transmit") => |s| Some(s.sent_bytes_per_s? as f64),
        () => NOTHING,
    };
    let made = |(number, instance): (usize, &&str)| -> Made {
        let members: Vec<Member> = record.members.iter().skip(number).step_by(2).cloned().collect();
        let sum = move |place: usize| {
            let samples = members.iter().filter_map(|member| member.samples.get(place));
            let values: Vec<f64> = samples.filter_map(read).collect();
            // A scrape that failed says nothing of anybody.
            (values.len() == members.len()).then(|| values.iter().sum())
        };
        (json!({"instance": instance}), Box::new(sum))
    };
    instances.iter().enumerate().map(made).collect()
}

/// A job of whose pods nobody reads the hosts, on nodes that it has for itself: those of the nodes
/// tell what it waits for.
#[test]
fn nodes_tell_of_a_job_that_has_them_for_itself() {
    let record = record(JobBehavior::Starved, 1);
    let wanted = wanted_share(&record, Phase::DataLoading);
    assert!(wanted > 0.1, "{wanted}");
    let asked = |is_shared: bool| {
        let record = record.clone();
        let server = FakePrometheus::start(move |query| {
            if query.text.contains("container_") {
                return Vec::new();
            }
            if query.text.contains("node_") && !query.text.contains("kube_pod_") {
                return of_nodes(&record, query);
            }
            let mut made = series(&record, query);
            if is_shared && query.text.contains("GR_ENGINE_ACTIVE") {
                for node in ["n0", "n1"] {
                    let labels = json!({"namespace": "ml", "pod": "other", "UUID": format!("{node}-x"),
                        "Hostname": node, "modelName": "NVIDIA H100", "container": "main"});
                    made.push((labels, Box::new(|_| Some(0.5))));
                }
            }
            made
        });
        let source = format!("--prometheus {} --period 12h --step 60s", server.url);
        share_of(&Folder::new().json(&format!("cost job train {source}")), "data_loading").0
    };
    let alone = asked(false);
    assert!((alone - wanted).abs() < 0.1 * wanted, "{alone}, not {wanted}");
    // Whose traffic it is nobody knows.
    assert_eq!(asked(true), 0.0);
}
