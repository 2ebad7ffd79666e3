//! Machines of a generated cluster: classes in their shares, racks of one class, zones.

use super::SynthConfig;
use super::profile::{MachineClass, Parameters};
use crate::node::{TraceCluster, TraceNode};

/// Machines of a rack (choice; a rack holds one class).
const RACK_NODES: u32 = 16;
/// Racks are dealt out to the zones in turn (choice).
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
const GIB: i64 = 1 << 30;

pub(super) fn cluster(config: &SynthConfig, profile: &Parameters) -> TraceCluster {
    let width = config.nodes.to_string().len();
    let mut nodes = Vec::with_capacity(config.nodes as usize);
    let mut racks = 0;
    for (class, count) in profile.machines.iter().zip(counts(profile.machines, config.nodes)) {
        for index in 0..count {
            racks += u32::from(index % RACK_NODES == 0);
            nodes.push(TraceNode {
                name: format!("node-{:0width$}", nodes.len() + 1),
                cpu_milli: class.cpu_cores * 1000,
                memory_bytes: class.memory_gib * GIB,
                gpu_count: class.gpus,
                gpu_model: Some(class.gpu_model.to_owned()),
                gpu_memory_bytes: Some(class.gpu_memory_gib * GIB),
                rack: Some(format!("rack-{racks:04}")),
                zone: Some(ZONES[(racks as usize - 1) % ZONES.len()].to_owned()),
            });
        }
    }
    let source = format!(
        "synthetic ({}, seed {}, {} nodes, {} days, load {})",
        config.profile.name(),
        config.seed,
        config.nodes,
        config.days,
        config.load
    );
    TraceCluster { nodes, source, ..TraceCluster::default() }
}

/// Machines of each class, by the largest remainder.
fn counts(classes: &[MachineClass], total: u32) -> Vec<u32> {
    let weight: f64 = classes.iter().map(|class| class.weight).sum();
    let exact = |class: &MachineClass| f64::from(total) * class.weight / weight;
    let mut counts: Vec<u32> = classes.iter().map(|class| exact(class) as u32).collect();
    let mut order: Vec<usize> = (0..classes.len()).collect();
    let remainder = |index: &usize| exact(&classes[*index]) - f64::from(counts[*index]);
    order.sort_by(|a, b| remainder(b).total_cmp(&remainder(a)));
    let missing = total - counts.iter().sum::<u32>();
    for index in order.into_iter().take(missing as usize) {
        counts[index] += 1;
    }
    counts
}
