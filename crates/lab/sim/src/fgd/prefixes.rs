//! What no policy can exceed where pods arrive one at a time.

use dovetail_exact::{
    BoundError, BoundNode, BoundPod, PrefixBounds, combined_prefix_bounds, prefix_bounds,
};
use dovetail_trace::TraceJob;

use super::FgdWorld;

/// Bounds on the arrivals that fit together, in the order of a seed.
///
/// # Errors
/// Amounts outside the limits of the bounds.
pub fn prefixes(world: &FgdWorld<'_>, combined: bool) -> Result<PrefixBounds, BoundError> {
    let nodes: Vec<BoundNode> = world
        .nodes
        .iter()
        .map(|node| BoundNode {
            cpu_milli: node.cpu_milli,
            memory_bytes: node.memory_bytes,
            gpu_count: node.gpu_count,
            model: node.gpu_model.clone(),
        })
        .collect();
    let arrivals = world.arrivals.iter().map(|row| pod(&world.pods[*row as usize]));
    let arrivals: Vec<BoundPod> = arrivals.collect();
    match combined {
        true => combined_prefix_bounds(&nodes, &arrivals),
        false => prefix_bounds(&nodes, &arrivals),
    }
}

fn pod(job: &TraceJob) -> BoundPod {
    BoundPod {
        cpu_milli: job.cpu_milli,
        memory_bytes: job.memory_bytes,
        gpu_count: job.gpu_count,
        gpu_milli: job.gpu_milli,
        models: job.gpu_models.clone(),
    }
}
