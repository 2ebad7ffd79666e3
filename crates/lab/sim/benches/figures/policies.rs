//! All policies on all openb traces, and dovetail against FGD and the limit.

use std::time::Instant;

use dovetail_exact::{BoundNode, BoundPod, prefix_bounds};
use dovetail_trace::fgd::fgd_orders;
use dovetail_trace::{TraceJob, TraceNode};
use rayon::prelude::*;

use crate::openb;

const SEVEN: [&str; 7] =
    ["fgd", "best-fit", "dot-product", "gpu-packing", "gpu-clustering", "random", "dovetail"];

pub(crate) fn print_compare() {
    let Some(folder) = openb::folder() else { return };
    let start = Instant::now();
    let nodes = openb::nodes(&folder);
    let traces: Vec<(&str, Vec<TraceJob>)> =
        openb::TRACES.iter().map(|trace| (*trace, openb::pods(&folder, trace))).collect();
    let mut runs: Vec<(usize, &str, i64)> = Vec::new();
    for trace in 0..traces.len() {
        for policy in SEVEN {
            runs.extend((42..47).map(|seed| (trace, policy, seed)));
        }
    }
    let at_130: Vec<f64> = runs
        .par_iter()
        .map(|(trace, policy, seed)| {
            let run = openb::run(&nodes, &traces[*trace].1, policy, *seed);
            run.curves.allocation_percent[130].unwrap_or(f64::NAN)
        })
        .collect();
    println!(
        "{} runs in {:.1} s (target 60 s on 2 cores)\n",
        runs.len(),
        start.elapsed().as_secs_f64()
    );
    println!("Allocation at 130% arrived, mean of seeds 42 to 46:\n");
    println!("| trace | {} |", SEVEN.join(" | "));
    println!("|---|{}", "---|".repeat(SEVEN.len()));
    for (index, means) in at_130.chunks(5 * SEVEN.len()).enumerate() {
        let cells: Vec<String> =
            means.chunks(5).map(|seeds| format!("{:.2}", mean(seeds))).collect();
        println!("| {} | {} |", openb::TRACES[index], cells.join(" | "));
    }
}

pub(crate) fn print_policies() {
    let Some(folder) = openb::folder() else { return };
    let nodes = openb::nodes(&folder);
    for (name, seeds) in [("42 to 46", 42..47), ("47 to 51", 47..52)] {
        println!("Seeds {name}: allocation at 130%, first rejection in % arrived\n");
        println!(
            "| trace | fgd | fgd-learnt | dovetail | over fgd | first: fgd | dovetail | limit |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        let mut over = Vec::new();
        let mut over_learnt = Vec::new();
        for trace in openb::TRACES {
            let pods = openb::pods(&folder, trace);
            let seeds: Vec<i64> = seeds.clone().collect();
            let of = |policy: &str| -> (f64, f64) {
                let runs: Vec<_> =
                    seeds.par_iter().map(|seed| openb::run(&nodes, &pods, policy, *seed)).collect();
                let at_130: Vec<f64> = runs
                    .iter()
                    .map(|run| run.curves.allocation_percent[130].unwrap_or(f64::NAN))
                    .collect();
                let first: Vec<f64> =
                    runs.iter().map(|run| run.first_rejection_percent.unwrap_or(130.0)).collect();
                (mean(&at_130), mean(&first))
            };
            let (fgd, learnt, ours) = (of("fgd"), of("fgd-learnt"), of("dovetail"));
            let limits: Vec<f64> =
                seeds.par_iter().map(|seed| limit(&nodes, &pods, *seed)).collect();
            over.push(ours.0 - fgd.0);
            over_learnt.push(ours.0 - learnt.0);
            println!(
                "| {trace} | {:.2} | {:.2} | {:.2} | {:+.2} | {:.1} | {:.1} | {:.1} |",
                fgd.0,
                learnt.0,
                ours.0,
                ours.0 - fgd.0,
                fgd.1,
                ours.1,
                mean(&limits)
            );
        }
        println!(
            "\nmean over fgd {:+.3}, least {:+.2}; mean over fgd-learnt {:+.3}\n",
            mean(&over),
            over.iter().copied().fold(f64::INFINITY, f64::min),
            mean(&over_learnt)
        );
    }
}

/// Arrived percent up to which anyone could hold every pod.
fn limit(nodes: &[TraceNode], pods: &[TraceJob], seed: i64) -> f64 {
    let orders = fgd_orders(pods, nodes, seed).expect("seeded orders");
    let node = |node: &TraceNode| BoundNode {
        cpu_milli: node.cpu_milli,
        memory_bytes: node.memory_bytes,
        gpu_count: node.gpu_count,
        model: node.gpu_model.clone(),
    };
    let pod = |row: &u32| {
        let pod = &pods[*row as usize];
        BoundPod {
            cpu_milli: pod.cpu_milli,
            memory_bytes: pod.memory_bytes,
            gpu_count: pod.gpu_count,
            gpu_milli: pod.gpu_milli,
            models: pod.gpu_models.clone(),
        }
    };
    let nodes: Vec<BoundNode> = nodes.iter().map(node).collect();
    let pods: Vec<BoundPod> = orders.arrivals.iter().map(pod).collect();
    prefix_bounds(&nodes, &pods).expect("bounds").limit().arrived_percent
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
