//! `dovetail partition size` by what pods use: how many of them can share each GPU.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use dovetail_console::clock::now_ms;
use dovetail_console::table::{facts, whole};
use dovetail_metrics::exporter::{PodFigure, dcgm, pod_figures};
use dovetail_model::canonical_gpu_model;
use dovetail_partition::{MeasuredUse, SharedBy, SharingLimit, shared_by};
use dovetail_sources::kubeconfig::ConnectionFlags;
use dovetail_sources::prometheus::{ServerChoice, WayFlags};
use dovetail_units::amount::percent;
use dovetail_units::duration::duration;
use serde::Serialize;

use crate::size::{HOURS_PER_MONTH, month_words};

const MIB: f64 = 1_048_576.0;
const DAY_MS: u64 = 86_400_000;

/// Which pods are asked about, and where.
#[derive(Debug)]
pub struct Question<'q> {
    /// Model, as dovetail names it.
    pub model: &'q str,
    /// Only pods of these; all if there are none.
    pub namespaces: &'q [String],
    /// How far back to look, in milliseconds.
    pub window_ms: u64,
    pub prometheus: &'q str,
    pub way: &'q WayFlags,
}

/// What `dovetail partition size --prometheus` answers.
#[derive(Debug, Serialize)]
pub struct Document {
    pub gpu: String,
    /// Pods with one whole GPU of the model that were measured for a day or more.
    pub pods: usize,
    /// How many of these pods can share each GPU, whichever meet; 1 where they should not share.
    pub replicas: usize,
    /// What keeps more from sharing: `memory`, `activity`, `clients`, `pods`; `null` where one pod
    /// alone uses more than the limits.
    pub limited_by: Option<&'static str>,
    /// Memory that the largest of so many pods use together, as a percentage of the GPU.
    pub memory_percent: f64,
    /// Time in which the busiest of so many pods compute, as a percentage.
    pub activity_percent: f64,
    pub gpus: usize,
    /// No fewer GPUs can hold the pods within the limits.
    pub lower_bound: u64,
    /// Days for which pods were measured: the shortest and the longest.
    pub measured_days: [f64; 2],
    /// Pods that are not counted, by reason.
    pub left_out: BTreeMap<&'static str, usize>,
    pub usd_per_gpu_hour: Option<f64>,
    pub usd_per_month: Option<f64>,
    pub whole_usd_per_month: Option<f64>,
}

/// What was measured of a pod.
#[derive(Default)]
struct Measured {
    devices: BTreeSet<String>,
    /// Whether another pod has one of its devices, too.
    is_sharing: bool,
    is_slice: bool,
    model: Option<String>,
    memory_bytes: Option<u64>,
    gpu_bytes: Option<u64>,
    activity_ppm: Option<u64>,
    measured_ms: u64,
}

/// By node, namespace and name.
type Pods = BTreeMap<(String, String, String), Measured>;

/// Distance of the times at which it is asked whether a pod was measured.
const STEP_MS: u64 = 600_000;

/// Asks Prometheus what pods use, and how many of them can share each GPU.
///
/// # Errors
/// A server that does not answer; no pod to judge by.
pub async fn document(question: &Question<'_>, price_micros: Option<i64>) -> Result<Document> {
    let pods = read(question).await?;
    let mut left_out: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut uses, mut sizes, mut days) = (Vec::new(), Vec::new(), Vec::new());
    for measured in pods.values() {
        match use_of(measured, question.model) {
            Ok((used, gpu_bytes, measured_ms)) => {
                uses.push(used);
                sizes.push(gpu_bytes);
                days.push(measured_ms as f64 / DAY_MS as f64);
            }
            Err(why) => *left_out.entry(why).or_default() += 1,
        }
    }
    let Some(gpu_bytes) = sizes.into_iter().min() else {
        let why: Vec<String> = left_out.iter().map(|(why, pods)| format!("{pods} {why}")).collect();
        let seen = if why.is_empty() { "no pods".to_owned() } else { why.join(", ") };
        let models: BTreeSet<&str> = pods.values().filter_map(|pod| pod.model.as_deref()).collect();
        let models: Vec<&str> = models.into_iter().collect();
        let models = match models.is_empty() {
            true => String::new(),
            false => format!("; models: {}", models.join(", ")),
        };
        bail!(
            "Prometheus at {} has no data for any pod that used one whole {} for a day or more \
             (it has: {seen}{models})",
            question.prometheus,
            question.model
        );
    };
    let found = shared_by(&uses, gpu_bytes);
    let SharedBy { replicas, memory_bytes, activity_ppm, gpus, lower_bound, .. } = found;
    let hour = price_micros.map(|micros| micros as f64 / 1e6);
    let month = |gpus: usize| hour.map(|hour| hour * (gpus as u64 * HOURS_PER_MONTH) as f64);
    Ok(Document {
        gpu: question.model.to_owned(),
        pods: uses.len(),
        replicas,
        limited_by: found.limit.map(word),
        memory_percent: memory_bytes as f64 * 100.0 / gpu_bytes as f64,
        activity_percent: activity_ppm as f64 / 1e4,
        gpus,
        lower_bound: u64::try_from(lower_bound).unwrap_or(u64::MAX),
        measured_days: [
            days.iter().copied().fold(f64::INFINITY, f64::min),
            days.iter().copied().fold(0.0, f64::max),
        ],
        left_out,
        usd_per_gpu_hour: hour,
        usd_per_month: month(gpus),
        whole_usd_per_month: month(uses.len()),
    })
}

fn word(limit: SharingLimit) -> &'static str {
    match limit {
        SharingLimit::Memory => "memory",
        SharingLimit::Activity => "activity",
        SharingLimit::Clients => "clients",
        SharingLimit::Pods => "pods",
    }
}

/// The use of a pod, the memory of its GPU, and for how long it was measured; or why it is not
/// counted.
fn use_of(pod: &Measured, model: &str) -> Result<(MeasuredUse, u64, u64), &'static str> {
    if pod.model.as_deref() != Some(model) {
        return Err("on GPUs of other models");
    }
    if pod.is_slice {
        return Err("on MIG instances");
    }
    if pod.devices.len() > 1 {
        return Err("with several GPUs");
    }
    if pod.is_sharing {
        return Err("on GPUs that other pods use, too");
    }
    if pod.measured_ms < DAY_MS {
        return Err("measured for less than a day");
    }
    let parts = pod.memory_bytes.zip(pod.activity_ppm).zip(pod.gpu_bytes);
    let ((memory_bytes, activity_ppm), gpu_bytes) = parts.ok_or("without all metrics")?;
    Ok((MeasuredUse { memory_bytes, activity_ppm }, gpu_bytes, pod.measured_ms))
}

/// Everything about pods that have GPUs now.
async fn read(question: &Question<'_>) -> Result<Pods> {
    let choice = ServerChoice::At(question.prometheus.to_owned());
    let (client, _) = question.way.reach(&choice, &ConnectionFlags::default()).await?;
    let mut client = client.context("no Prometheus is named")?;
    let at_ms = now_ms().cast_signed();
    let mut pods = Pods::new();
    for (what, query) in queries(question.window_ms) {
        for figure in pod_figures(&client.instant(&query, at_ms).await?) {
            let PodFigure { node, namespace, pod, .. } = &figure;
            let key = (node.clone(), namespace.clone(), pod.clone());
            pods.entry(key).or_default().note(what, figure);
        }
    }
    pods.retain(|_, pod| !pod.devices.is_empty());
    let mut holders: BTreeMap<(String, String), usize> = BTreeMap::new();
    for ((node, ..), pod) in &pods {
        for device in &pod.devices {
            *holders.entry((node.clone(), device.clone())).or_default() += 1;
        }
    }
    for ((node, ..), pod) in &mut pods {
        let is_shared = |device: &String| holders[&(node.clone(), device.clone())] > 1;
        pod.is_sharing = pod.devices.iter().any(is_shared);
    }
    let namespaces = question.namespaces;
    pods.retain(|(_, namespace, _), _| namespaces.is_empty() || namespaces.contains(namespace));
    Ok(pods)
}

/// What a query asks for.
#[derive(Clone, Copy)]
enum Figure {
    /// In use, in MiB.
    Memory,
    /// Of the GPU, in MiB.
    GpuMemory,
    /// Times at which there was a sample.
    Samples,
    /// A part of one.
    Activity,
}

/// The queries, the less exact one before the one that takes its place.
fn queries(window_ms: u64) -> [(Figure, String); 5] {
    let window = format!("{}s", window_ms / 1_000);
    let (memory, free) = (dcgm::MEMORY_USED, dcgm::MEMORY_FREE);
    let (active, utilized) = (dcgm::GR_ENGINE_ACTIVE, dcgm::GPU_UTIL);
    let step = format!("{}s", STEP_MS / 1_000);
    let p95 = |metric: &str| format!("quantile_over_time(0.95, {metric}[{window}])");
    [
        (Figure::Memory, format!("quantile_over_time(0.99, {memory}[{window}]) and {memory}")),
        (Figure::GpuMemory, format!("{memory} + {free}")),
        (Figure::Samples, format!("count_over_time({memory}[{window}:{step}]) and {memory}")),
        (Figure::Activity, format!("{} / 100 and {utilized}", p95(utilized))),
        (Figure::Activity, format!("{} and {active}", p95(active))),
    ]
}

impl Measured {
    fn note(&mut self, what: Figure, figure: PodFigure) {
        let PodFigure { device, model, is_slice, value, .. } = figure;
        match what {
            Figure::Memory if value >= 0.0 => {
                self.devices.insert(device);
                self.is_slice |= is_slice;
                self.model = model.as_deref().map(canonical_gpu_model);
                self.memory_bytes = self.memory_bytes.max(Some((value * MIB).ceil() as u64));
            }
            Figure::GpuMemory if value > 0.0 => self.gpu_bytes = Some((value * MIB) as u64),
            Figure::Samples => self.measured_ms = self.measured_ms.max(value as u64 * STEP_MS),
            // Beyond that the exporter has no value.
            Figure::Activity if (0.0..=1.0).contains(&value) => {
                self.activity_ppm = Some((value * 1e6).ceil() as u64);
            }
            _ => {}
        }
    }
}

/// The document as text.
pub fn text(document: &Document) -> String {
    let Document { gpu, pods, replicas, memory_percent, activity_percent, .. } = document;
    let used = format!(
        "{} of the memory (limit 85%) and {} of the time (limit 80%)",
        percent(memory_percent / 100.0),
        percent(activity_percent / 100.0)
    );
    let found = match document.limited_by {
        None => format!("none: one pod alone can need {used}"),
        Some(limit) => {
            let more = match limit {
                "pods" => "there are no more pods".to_owned(),
                "clients" => "more than 48 pods are not supported".to_owned(),
                limit => format!("one more can exceed the limit of {limit}"),
            };
            format!("{replicas} per GPU: {replicas} of these pods can need {used}; {more}")
        }
    };
    let days = document.measured_days.map(|days| duration((days * DAY_MS as f64) as u64));
    let [from, to] = &days;
    let measured = if from == to { from.clone() } else { format!("{from} to {to}") };
    let bound = match document.lower_bound == document.gpus as u64 {
        true => "the minimum",
        false => &format!("at least {} are needed", document.lower_bound),
    };
    let of_pods = match pods {
        1 => "1 pod".to_owned(),
        pods => format!("{} pods", whole(*pods as u64)),
    };
    let mut rows = vec![
        ("replicas", found),
        (
            "shared",
            format!(
                "{} × {gpu} for {of_pods} ({bound}): {}",
                whole(document.gpus as u64),
                month_words(document.usd_per_month)
            ),
        ),
        (
            "one GPU each",
            format!(
                "{} × {gpu}: {}",
                whole(*pods as u64),
                month_words(document.whole_usd_per_month)
            ),
        ),
        (
            "method",
            format!(
                "p99 of memory and p95 of activity of each pod, measured for {measured}; estimate"
            ),
        ),
    ];
    if !document.left_out.is_empty() {
        let left_out = document.left_out.iter().map(|(why, pods)| format!("{pods} {why}"));
        rows.push(("pods left out", left_out.collect::<Vec<_>>().join(", ")));
    }
    facts(rows)
}
