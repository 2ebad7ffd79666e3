//! The openb traces.

use std::path::PathBuf;
use std::time::Instant;

use dovetail_plan::{EngineConfig, PolicySpec};
use dovetail_sim::fgd::{FgdRun, FgdWorld, run_fgd};
use dovetail_trace::fgd::fgd_orders;
use dovetail_trace::{ReadOptions, TraceJob, TraceNode, read_cluster, read_trace};

pub(crate) const TRACES: [&str; 14] = [
    "default",
    "cpu050",
    "cpu100",
    "cpu200",
    "cpu250",
    "gpushare40",
    "gpushare80",
    "gpushare100",
    "gpuspec10",
    "gpuspec20",
    "gpuspec33",
    "multigpu20",
    "multigpu40",
    "multigpu50",
];

/// The folder of real traces; says so if it is not set.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("DOVETAIL_TRACES").map(PathBuf::from);
    if folder.is_none() {
        println!("not measured: set DOVETAIL_TRACES to the folder of real traces");
    }
    folder.map(|folder| std::fs::canonicalize(&folder).unwrap_or(folder))
}

pub(crate) fn nodes(folder: &std::path::Path) -> Vec<TraceNode> {
    let file = folder.join("openb/openb_node_list_gpu_node.csv");
    read_cluster(&file, &ReadOptions::default()).expect("the openb nodes").nodes
}

pub(crate) fn pods(folder: &std::path::Path, trace: &str) -> Vec<TraceJob> {
    let file = folder.join(format!("openb/openb_pod_list_{trace}.csv"));
    read_trace(&file, &ReadOptions::default()).expect("the openb pods").jobs
}

pub(crate) fn config(policy: &str, seed: u64) -> EngineConfig {
    let policy = PolicySpec { seed, ..PolicySpec::named(policy) };
    EngineConfig { policy, ..EngineConfig::default() }
}

/// One run on the seeded orders.
pub(crate) fn run(nodes: &[TraceNode], pods: &[TraceJob], policy: &str, seed: i64) -> FgdRun {
    let orders = fgd_orders(pods, nodes, seed).expect("seeded orders");
    let world = FgdWorld { nodes, pods, arrivals: &orders.arrivals, node_order: &orders.nodes };
    timed_run(&world, config(policy, seed as u64))
}

/// One run with the machine's clock around each decision.
pub(crate) fn timed_run(world: &FgdWorld<'_>, config: EngineConfig) -> FgdRun {
    let start = Instant::now();
    let mut clock = || start.elapsed().as_nanos() as u64;
    run_fgd(world, config, &mut clock, &mut |_, _, _| {}).expect("a run of the fgd protocol")
}
