#![allow(missing_docs, clippy::print_stdout)]
use dovetail_plan::*;
use dovetail_sim::fgd::*;
use dovetail_trace::fgd::*;
use dovetail_trace::*;
use std::path::Path;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let root = std::env::var("DOVETAIL_TRACES").unwrap();
    let cluster = read_cluster(
        Path::new(&format!("{root}/openb/openb_node_list_gpu_node.csv")),
        &ReadOptions::default(),
    )
    .unwrap();
    let policy = &args[1];
    let traces: Vec<&str> = args[2].split(',').collect();
    let seeds: i64 = args[3].parse().unwrap();
    for t in traces {
        let pods = read_trace(
            Path::new(&format!("{root}/openb/openb_pod_list_{t}.csv")),
            &ReadOptions::default(),
        )
        .unwrap();
        let mut sum = 0.0;
        let mut fr = 0.0;
        let mut sp = 0.0;
        let mut p99 = 0;
        for seed in 42..42 + seeds {
            let o = fgd_orders(&pods.jobs, &cluster.nodes, seed).unwrap();
            let w = FgdWorld {
                nodes: &cluster.nodes,
                pods: &pods.jobs,
                arrivals: &o.arrivals,
                node_order: &o.nodes,
            };
            let mut spec = PolicySpec::named(policy);
            spec.seed = seed as u64;
            let start = std::time::Instant::now();
            let mut r = run_fgd(
                &w,
                EngineConfig { policy: spec, ..Default::default() },
                &mut || start.elapsed().as_nanos() as u64,
                &mut |_, _, _| {},
            )
            .unwrap();
            r.latencies_ns.sort();
            p99 = r.latencies_ns[r.latencies_ns.len() * 99 / 100];
            sum += r.curves.allocation_percent[130].unwrap();
            fr += r.first_rejection_percent.unwrap_or(0.0);
            sp += r.decisions as f64 / r.decision_ns as f64 * 1e9;
        }
        let n = seeds as f64;
        println!(
            "{t:12} {policy:10} alloc130 {:.3} first {:.2} dec/s {:.0} p99 {} ns",
            sum / n,
            fr / n,
            sp / n,
            p99
        );
    }
}
