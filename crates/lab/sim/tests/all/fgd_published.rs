//! Every published point of the deterministic FGD runs, and `random` in the mean.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use dovetail_plan::{EngineConfig, PolicySpec};
use dovetail_sim::fgd::{FgdRun, FgdWorld, run_fgd};
use dovetail_trace::fgd::fgd_orders;
use dovetail_trace::{ReadOptions, TraceJob, TraceNode, read_cluster, read_trace};

use crate::traces;

/// Name here, name in the published table.
const POLICIES: [(&str, &str); 5] = [
    ("fgd", "06-FGD"),
    ("best-fit", "05-BestFit"),
    ("dot-product", "02-DotProd"),
    ("gpu-packing", "04-GpuPacking"),
    ("gpu-clustering", "03-GpuClustering"),
];
const SEEDS: [i64; 5] = [42, 43, 44, 45, 46];
/// Published figures are rounded to hundredths, before and after averaging.
const TOLERANCE: f64 = 0.011;

type Published = BTreeMap<(String, String, i64), Vec<f64>>;

fn published(folder: &Path, file: &str, key_columns: usize) -> Published {
    let path = folder.join("openb/expected").join(file);
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    text.lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let trace = cells[0].trim_start_matches("openb_pod_list_").to_owned();
            let figures = cells[key_columns..key_columns + 131].iter();
            let figures = figures.map(|cell| cell.parse().unwrap()).collect();
            ((trace, cells[1].to_owned(), cells[3].parse().unwrap()), figures)
        })
        .collect()
}

fn run(nodes: &[TraceNode], pods: &[TraceJob], policy: &str, seed: i64) -> FgdRun {
    let orders = fgd_orders(pods, nodes, seed).unwrap();
    let world = FgdWorld { nodes, pods, arrivals: &orders.arrivals, node_order: &orders.nodes };
    let policy = PolicySpec { seed: seed as u64, ..PolicySpec::named(policy) };
    let config = EngineConfig { policy, ..EngineConfig::default() };
    run_fgd(&world, config, &mut || 0, &mut |_, _, _| {}).unwrap()
}

fn worst(ours: &[Option<f64>], published: &[f64]) -> f64 {
    ours.iter()
        .zip(published)
        .map(|(ours, published)| (ours.expect("every percent has arrivals") - published).abs())
        .fold(0.0, f64::max)
}

#[test]
fn every_published_point_is_met() {
    let Some(folder) = traces::folder("every_published_point_is_met") else { return };
    let allocation = published(&folder, "allo_discrete.csv.gz", 5);
    let fragmentation = published(&folder, "frag_discrete.csv.gz", 4);
    let nodes_file = folder.join("openb/openb_node_list_gpu_node.csv");
    let nodes = read_cluster(&nodes_file, &ReadOptions::default()).unwrap().nodes;
    let traces: std::collections::BTreeSet<String> =
        allocation.keys().map(|(trace, ..)| trace.clone()).collect();
    let mut compared = 0;
    for trace in traces {
        let file = folder.join(format!("openb/openb_pod_list_{trace}.csv"));
        if !file.exists() {
            continue;
        }
        let pods = read_trace(&file, &ReadOptions::default()).unwrap().jobs;
        for seed in SEEDS {
            for (policy, name) in POLICIES {
                let key = (trace.clone(), name.to_owned(), seed);
                let run = run(&nodes, &pods, policy, seed);
                let allocation_off = worst(&run.curves.allocation_percent, &allocation[&key]);
                let fragmentation_off =
                    worst(&run.curves.fragmentation_percent, &fragmentation[&key]);
                assert!(allocation_off <= TOLERANCE, "{key:?}: allocation off {allocation_off}");
                assert!(
                    fragmentation_off <= TOLERANCE,
                    "{key:?}: fragmentation off {fragmentation_off}"
                );
                compared += 1;
            }
        }
        let mean = |figures: &dyn Fn(i64) -> f64| {
            SEEDS.iter().map(|seed| figures(*seed)).sum::<f64>() / SEEDS.len() as f64
        };
        let ours = mean(&|seed| {
            run(&nodes, &pods, "random", seed).curves.allocation_percent[130].unwrap()
        });
        let theirs = mean(&|seed| allocation[&(trace.clone(), "01-Random".to_owned(), seed)][130]);
        assert!((ours - theirs).abs() <= 1.0, "{trace}: random {ours} against {theirs}");
    }
    assert_eq!(compared, 14 * 5 * 5, "all traces, seeds and policies were compared");
}
