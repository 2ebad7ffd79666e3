//! MOD: models that are served, by what their names and arguments say.

use dovetail_facts::{ActiveShare, ServedModel, Workload, WorkloadClass};
use dovetail_model::labels;
use dovetail_units::amount::gib;

use super::{Run, View, pods_of};
use crate::catalogue::Check;
use crate::finding::Finding;

pub(super) const RUNS: &[Run] = &[("MOD-01", not_quantised), ("MOD-02", small_on_large)];

/// Fewer bits than these are quantised.
const WIDE_BITS: u32 = 16;

const WHOLE: &str = labels::NVIDIA_GPU;
const GPU_MEMORY: &str = labels::NVIDIA_MEMORY;
const REPLICAS: &str = labels::NVIDIA_REPLICAS;

fn served<'a>(view: &View<'a>) -> impl Iterator<Item = (&'a Workload, ServedModel)> {
    let serves = |workload: &&Workload| workload.class == Some(WorkloadClass::Inference);
    let workloads: Vec<&Workload> = view.gpu_workloads().filter(serves).collect();
    workloads.into_iter().filter_map(|workload| Some((workload, workload.template.model?)))
}

/// Bits, and who says so.
fn bits_words(model: ServedModel) -> String {
    let said = if model.bits.is_some() { "" } else { ", assumed" };
    format!("{}{said}", model.likely_bits())
}

fn weights_words(millions: u64) -> String {
    match millions {
        1_000.. => format!("{} billion", millions as f64 / 1e3),
        _ => format!("{millions} million"),
    }
}

fn not_quantised(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let many = view.facts.thresholds.many_requests_per_day;
    for (workload, model) in served(view) {
        let Some(requests) = workload.requests_per_day.filter(|count| *count > many) else {
            continue;
        };
        if model.likely_bits() < WIDE_BITS {
            continue;
        }
        let mut finding = Finding::new(check, &workload.owner)
            .with("requests per day", requests)
            .with("bits per weight", bits_words(model));
        if let Some(millions) = model.weights_millions {
            finding =
                finding.with("weights, according to the model's name", weights_words(millions));
        }
        found.push(finding.affecting(pods_of(workload)));
    }
}

fn small_on_large(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let limits = &view.facts.thresholds;
    for (workload, model) in served(view) {
        let (Some(millions), Some(weights)) = (model.weights_millions, model.weight_bytes()) else {
            continue;
        };
        let Some(memory) = memory_of_a_pod(view, workload) else { continue };
        let active = ActiveShare::of(workload.pods.iter().flat_map(|pod| &pod.uses));
        let is_busy = active.is_some_and(|active| active.percent >= limits.busy_model_percent);
        let small = u128::from(memory) * u128::from(limits.small_model_percent);
        if u128::from(weights) * 100 > small || is_busy {
            continue;
        }
        let mut finding = Finding::new(check, &workload.owner)
            .with("weights, according to the model's name", weights_words(millions))
            .with("bits per weight", bits_words(model))
            .with("memory of its weights", gib(weights))
            .with("memory of the GPUs of a pod", gib(memory));
        if let Some(active) = active {
            finding = finding.with("GPU active", active);
        }
        found.push(finding.affecting(pods_of(workload)));
    }
}

/// Memory of the whole GPUs that a pod has for itself, the least of any of its pods; `None` where
/// it shares them or nobody knows.
fn memory_of_a_pod(view: &View<'_>, workload: &Workload) -> Option<u64> {
    let gpus = workload.gpus_per_pod();
    let whole = gpus.get(WHOLE).filter(|_| gpus.len() == 1)?;
    let of_pods = view.placed(workload).map(|(_, node)| {
        let number = |key: &str| node.node.labels.get(key)?.parse::<u64>().ok();
        let is_shared = number(REPLICAS).is_some_and(|replicas| replicas > 1);
        number(GPU_MEMORY).filter(|_| !is_shared)
    });
    let mib = of_pods.collect::<Option<Vec<u64>>>()?.into_iter().min()?;
    mib.checked_mul(1 << 20)?.checked_mul(u64::try_from(*whole).ok()?)
}
