//! The pods that are typical for a trace, by which fragmentation is weighed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::job::TraceJob;

/// Share of the pods that the typical ones cover, in hundredths.
const COVERED_PERCENT: u64 = 95;

/// One kind of pod; memory plays no part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TypicalPod {
    /// CPU, in thousandths of a core.
    pub cpu_milli: i64,
    /// Part of each GPU, in thousandths.
    pub gpu_milli: i64,
    pub gpu_count: u32,
    /// GPU models it may use; empty means any.
    pub gpu_models: Vec<String>,
    /// Share among the typical pods; the shares sum to 1.
    pub weight: f64,
}

/// The most frequent kinds that together make up at least 95% of the pods, most frequent first.
///
/// Equal counts are in descending order of CPU, GPU share, GPU count and models, as published with
/// FGD; the order matters, because sums over these weights are formed in it.
pub fn typical_pods(pods: &[TraceJob]) -> Vec<TypicalPod> {
    let mut counts: BTreeMap<(i64, i64, u32, String), u64> = BTreeMap::new();
    for pod in pods {
        let kind = (pod.cpu_milli, pod.gpu_milli, pod.gpu_count, pod.gpu_models.join("|"));
        *counts.entry(kind).or_default() += u64::from(pod.pod_count);
    }
    let total: u64 = counts.values().sum();
    let mut kinds: Vec<_> = counts.into_iter().collect();
    kinds.sort_by(|a, b| Reverse((a.1, &a.0)).cmp(&Reverse((b.1, &b.0))));
    let mut covered = 0;
    let mut length = 0;
    while covered * 100 < total * COVERED_PERCENT {
        covered += kinds[length].1;
        length += 1;
    }
    kinds.truncate(length);
    let covered_share = covered as f64 / total as f64;
    kinds
        .into_iter()
        .map(|((cpu_milli, gpu_milli, gpu_count, models), count)| TypicalPod {
            cpu_milli,
            gpu_milli,
            gpu_count,
            gpu_models: models
                .split('|')
                .filter(|model| !model.is_empty())
                .map(str::to_owned)
                .collect(),
            weight: (count as f64 / total as f64) / covered_share,
        })
        .collect()
}
