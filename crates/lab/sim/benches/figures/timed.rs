//! The 82k jobs of Philly, first come with passing over, on 512 GPUs.

use std::time::Instant;

use dovetail_sim::timed::{Estimates, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{ReadOptions, TraceNode, read_trace};

use crate::openb;

pub(crate) fn print() {
    let Some(folder) = openb::folder() else { return };
    let node = |index: u32| TraceNode {
        name: format!("node-{index:04}"),
        gpu_count: 8,
        ..TraceNode::default()
    };
    let file = folder.join("jobs/philly_pass_82k.csv");
    let start = Instant::now();
    let world = TimedWorld {
        nodes: (0..64).map(node).collect(),
        jobs: read_trace(&file, &ReadOptions::default()).expect("the Philly jobs").jobs,
        ..TimedWorld::default()
    };
    let config = TimedConfig {
        engine: openb::config("first-fit", 0),
        estimates: Estimates::Trace,
        ..TimedConfig::default()
    };
    let mut simulation = Simulation::new(world, config).expect("a simulation");
    simulation.run(None, &mut ()).expect("a run");
    let metrics = simulation.metrics();
    println!("| what | measured | target |");
    println!("|---|---|---|");
    println!(
        "| reading and replaying {} jobs | {:.2} s | 5 s |",
        metrics.jobs,
        start.elapsed().as_secs_f64()
    );
    match peak_memory_mib() {
        Some(mib) => println!("| peak memory of this process | {mib} MiB | 300 MB |"),
        None => println!("| peak memory of this process | unknown here | 300 MB |"),
    }
    println!("| average queue time | {:.0} s | |", metrics.average_queue_s.unwrap_or(f64::NAN));
    println!("| GPU occupancy | {:.4} | |", metrics.gpu_occupancy.unwrap_or(f64::NAN));
}

/// Largest resident size so far, where the system tells.
fn peak_memory_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}
