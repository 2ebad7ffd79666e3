//! From the bytes of Prometheus' range answers to committed rows.

use std::fmt::Write;
use std::time::{Duration, Instant};

use dovetail_account::device_time::{Span, device_intervals};
use dovetail_account::rollup::HOUR_MS;
use dovetail_account::signal::ActivityRule;
use dovetail_metrics::exporter::{Observation, PodLabels, measures};
use dovetail_metrics::prometheus::read;
use dovetail_store::{ReadDevice, Reading, Store};

use crate::cluster::{
    GPUS_PER_NODE, NODES, START_HOUR, bytes_on_disk, job, ledger, namespace, node_name, nodes,
    pod_name, pods, run,
};

const STEP_MS: u64 = 30_000;
/// Six windows of ten minutes are an hour.
const WINDOW_MS: u64 = 600_000;
const SIGNALS: [&str; 3] =
    ["DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"];

#[derive(Default)]
struct Took {
    reading: Duration,
    reckoning: Duration,
    keeping: Duration,
}

pub(crate) fn print() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    run(async {
        let mut store = ledger(folder.path()).await;
        let (mut took, mut samples, mut bytes) = (Took::default(), 0, 0);
        let start_ms = START_HOUR * HOUR_MS;
        for window in 0..HOUR_MS / WINDOW_MS {
            let from_ms = start_ms + window * WINDOW_MS;
            let span = Span { from_ms, to_ms: from_ms + WINDOW_MS };
            let answers = SIGNALS.map(|name| answer(name, span));
            bytes += answers.iter().map(String::len).sum::<usize>();
            samples += keep(&mut store, span, &answers, &mut took).await;
        }
        let Took { reading, reckoning, keeping } = took;
        let all_s = (reading + reckoning + keeping).as_secs_f64();
        println!("| {samples} samples, {} MB | measured | target |", bytes / 1_000_000);
        println!("|---|---|---|");
        println!("| samples/s | {:.0} | 200,000 |", samples as f64 / all_s);
        for (what, time) in [("answers read", reading), ("reckoned", reckoning), ("kept", keeping)]
        {
            println!("| {what} | {:.2} s | |", time.as_secs_f64());
        }
        let address = store.address();
        store.close().await;
        println!("| {address} | {} bytes | |", bytes_on_disk(folder.path()));
    });
}

async fn keep(store: &mut Store, span: Span, answers: &[String], took: &mut Took) -> usize {
    let start = Instant::now();
    let found = answers.iter().map(|body| read(body.as_bytes()).expect("an answer").series);
    let found: Vec<_> = found.collect();
    let samples = found.iter().flatten().map(|series| series.samples.len()).sum();
    took.reading += start.elapsed();

    let start = Instant::now();
    let labels = PodLabels::of(found.iter().flatten().map(|series| &series.labels));
    let mut observation = Observation::default();
    for (name, series) in SIGNALS.into_iter().zip(found) {
        let known = measures().find(|(series, ..)| *series == name);
        let (_, measure, scale) = known.expect("a series that is read");
        observation.take(measure, scale, &labels, series);
    }
    let time = observation.histories(span, STEP_MS, &ActivityRule::default());
    let nodes = nodes();
    let place = |name: &str| nodes.iter().position(|node| node.name == name).expect("a node");
    let hour = span.from_ms / HOUR_MS;
    let mut last = (String::new(), 0);
    let devices = time.devices.iter().map(|device| {
        if device.node != last.0 {
            last = (device.node.clone(), place(&device.node));
        }
        let mut intervals = device_intervals(&device.history, span).expect("a history");
        for interval in &mut intervals {
            interval.holder = interval.holder.map(|_| last.1 as u32);
        }
        ReadDevice { node: last.1, name: device.device.clone(), intervals }
    });
    let reading = Reading {
        cluster: "bench".to_owned(),
        source: "http://prometheus".to_owned(),
        span,
        step_ms: Some(STEP_MS),
        devices: devices.collect(),
        pods: pods(hour),
        nodes: nodes.clone(),
        kept: None,
        ..Reading::default()
    };
    took.reckoning += start.elapsed();

    let start = Instant::now();
    store.keep(&reading, span.to_ms).await.expect("kept");
    took.keeping += start.elapsed();
    samples
}

/// The body of an answer, as Prometheus writes it. Every GPU computes, with pauses of some minutes.
fn answer(name: &str, span: Span) -> String {
    let mut body = String::from(r#"{"status":"success","data":{"resultType":"matrix","result":["#);
    for node in 0..NODES {
        let job = job(node, span.from_ms / HOUR_MS);
        for gpu in 0..GPUS_PER_NODE {
            let comma = if node + gpu == 0 { "" } else { "," };
            _ = write!(
                body,
                "{comma}{{\"metric\":{{\"__name__\":\"{name}\",\"Hostname\":\"{}\",\"UUID\":\"GPU-{node:08x}-{gpu:04x}\",\
                 \"gpu\":\"{gpu}\",\"device\":\"nvidia{gpu}\",\"modelName\":\"NVIDIA H100 80GB HBM3\",\
                 \"instance\":\"10.0.0.1:9400\",\"job\":\"dcgm\",\"exported_namespace\":\"{}\",\
                 \"exported_pod\":\"{}\",\"exported_container\":\"main\"}},\"values\":[",
                node_name(node),
                namespace(job),
                pod_name(node, job),
            );
            for at_ms in (span.from_ms..span.to_ms).step_by(STEP_MS as usize) {
                let turn = (at_ms / STEP_MS + (node * 13 + gpu * 5) as u64) % 40;
                let is_busy = turn > 8;
                let value = match name {
                    "DCGM_FI_DEV_POWER_USAGE" => 80.0 + turn as f64 * 9.731,
                    "DCGM_FI_DEV_GPU_UTIL" => f64::from(u8::from(is_busy)) * 97.0,
                    _ => f64::from(u8::from(is_busy)) * 0.873_421,
                };
                let comma = if at_ms == span.from_ms { "" } else { "," };
                _ = write!(body, "{comma}[{},\"{value}\"]", at_ms / 1000);
            }
            body.push_str("]}");
        }
    }
    body.push_str("]}}");
    body
}
