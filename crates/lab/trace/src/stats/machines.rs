//! The machines beside the jobs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ratio;
use crate::node::TraceCluster;

/// Machines in sum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClusterStats {
    /// Where they come from.
    pub source: String,
    pub nodes: u64,
    pub gpus: u64,
    pub cpu_cores: f64,
    /// Memory, in GiB.
    pub memory_gib: f64,
    /// GPUs by model, most first.
    pub gpu_models: Vec<GpuModelStats>,
    /// GPUs that the jobs ask for on average between the first and the last submission, if each
    /// started when it was submitted, over the GPUs of the machines. What they run for later is not
    /// in it.
    pub offered_load: Option<f64>,
}

/// Machines with one GPU model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuModelStats {
    /// The model; `None` when the source does not say.
    pub model: Option<String>,
    pub nodes: u64,
    pub gpus: u64,
}

impl ClusterStats {
    pub(super) fn of(cluster: &TraceCluster, mean_gpus: Option<f64>) -> Self {
        let mut models: BTreeMap<&Option<String>, (u64, u64)> = BTreeMap::new();
        for node in cluster.nodes.iter().filter(|node| node.gpu_count > 0) {
            let sums = models.entry(&node.gpu_model).or_default();
            *sums = (sums.0 + 1, sums.1 + u64::from(node.gpu_count));
        }
        let mut gpu_models: Vec<GpuModelStats> = models
            .into_iter()
            .map(|(model, (nodes, gpus))| GpuModelStats { model: model.clone(), nodes, gpus })
            .collect();
        gpu_models.sort_by(|a, b| b.gpus.cmp(&a.gpus).then(a.model.cmp(&b.model)));
        let sum = |value: fn(&crate::TraceNode) -> i64| {
            cluster.nodes.iter().map(|node| i128::from(value(node))).sum::<i128>() as f64
        };
        let gpus = cluster.total_gpus();
        Self {
            source: cluster.source.clone(),
            nodes: cluster.nodes.len() as u64,
            gpus,
            cpu_cores: sum(|node| node.cpu_milli) / 1000.0,
            memory_gib: sum(|node| node.memory_bytes) / f64::from(1 << 30),
            gpu_models,
            offered_load: mean_gpus.and_then(|mean| ratio(mean, gpus as f64)),
        }
    }
}
