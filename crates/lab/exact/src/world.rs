//! Groups pods into shapes and nodes into classes, because the bounds see only how many there are
//! of each.

use std::collections::BTreeMap;

use crate::input::{BoundNode, BoundPod};

/// Pods that no bound can tell apart.
#[derive(Debug, Clone)]
pub(crate) struct PodShape {
    pub(crate) cpu_milli: i64,
    pub(crate) memory_bytes: i64,
    pub(crate) gpu_count: u32,
    pub(crate) gpu_milli: i64,
    /// Node classes whose empty node holds one such pod, as indices, ascending.
    pub(crate) classes: Vec<usize>,
}

impl PodShape {
    pub(crate) fn requested_milli(&self) -> i128 {
        i128::from(self.gpu_count) * i128::from(self.gpu_milli)
    }
}

/// Nodes that no bound can tell apart.
#[derive(Debug, Clone)]
pub(crate) struct EqualNodes {
    pub(crate) cpu_milli: i64,
    pub(crate) memory_bytes: i64,
    pub(crate) gpu_count: u32,
    pub(crate) nodes: i64,
}

/// A cluster and the pods that arrive, grouped.
#[derive(Debug)]
pub(crate) struct PackingProblem {
    pub(crate) classes: Vec<EqualNodes>,
    pub(crate) shapes: Vec<PodShape>,
    /// Shape of each arriving pod, in order of arrival.
    pub(crate) arrivals: Vec<usize>,
    pub(crate) gpus: i64,
}

impl PackingProblem {
    pub(crate) fn new(nodes: &[BoundNode], pods: &[BoundPod]) -> Self {
        let (shapes, arrivals) = group_pods(pods);
        let (classes, examples) = group_nodes(nodes, &shapes);
        let shapes = shapes
            .iter()
            .map(|pod| PodShape {
                cpu_milli: pod.cpu_milli,
                memory_bytes: pod.memory_bytes,
                gpu_count: pod.gpu_count,
                gpu_milli: if pod.gpu_count == 0 { 0 } else { pod.gpu_milli },
                classes: (0..classes.len()).filter(|&c| pod.fits_empty(examples[c])).collect(),
            })
            .collect();
        let gpus = nodes.iter().map(|node| i64::from(node.gpu_count)).sum();
        Self { classes, shapes, arrivals, gpus }
    }

    /// How many pods of each shape are among the first `pods` arrivals.
    pub(crate) fn demand(&self, pods: usize) -> Vec<i64> {
        let mut demand = vec![0; self.shapes.len()];
        for &shape in &self.arrivals[..pods] {
            demand[shape] += 1;
        }
        demand
    }
}

/// One pod of each shape in order of first arrival, and the shape of each pod.
fn group_pods(pods: &[BoundPod]) -> (Vec<&BoundPod>, Vec<usize>) {
    let mut index = BTreeMap::new();
    let mut shapes = Vec::new();
    let arrivals = pods
        .iter()
        .map(|pod| {
            let gpu = (pod.gpu_count > 0).then(|| (pod.gpu_milli, accepted_models(pod)));
            let key = (pod.cpu_milli, pod.memory_bytes, pod.gpu_count, gpu);
            *index.entry(key).or_insert_with(|| {
                shapes.push(pod);
                shapes.len() - 1
            })
        })
        .collect();
    (shapes, arrivals)
}

fn accepted_models(pod: &BoundPod) -> Vec<&str> {
    let mut models: Vec<&str> = pod.models.iter().map(String::as_str).collect();
    models.sort_unstable();
    models.dedup();
    models
}

/// Nodes differ by size and by which shapes accept their model; the model's name itself says
/// nothing.
fn group_nodes<'a>(
    nodes: &'a [BoundNode],
    shapes: &[&BoundPod],
) -> (Vec<EqualNodes>, Vec<&'a BoundNode>) {
    let constrained: Vec<&&BoundPod> = shapes.iter().filter(|pod| !pod.models.is_empty()).collect();
    let mut accepted_by: BTreeMap<Option<&str>, Vec<bool>> = BTreeMap::new();
    let mut index = BTreeMap::new();
    let mut classes: Vec<EqualNodes> = Vec::new();
    let mut examples = Vec::new();
    for node in nodes {
        let model = node.model.as_deref();
        let accepted = accepted_by
            .entry(model)
            .or_insert_with(|| constrained.iter().map(|pod| pod.accepts_model(model)).collect());
        let key = (node.cpu_milli, node.memory_bytes, node.gpu_count, accepted.clone());
        let class = *index.entry(key).or_insert_with(|| {
            classes.push(EqualNodes {
                cpu_milli: node.cpu_milli,
                memory_bytes: node.memory_bytes,
                gpu_count: node.gpu_count,
                nodes: 0,
            });
            examples.push(node);
            classes.len() - 1
        });
        classes[class].nodes += 1;
    }
    (classes, examples)
}
