//! Real traces: packing on openb, queueing on Philly.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use dovetail_check::Watch;
use dovetail_plan::{EngineConfig, PolicySpec};
use dovetail_sim::comparison::{
    ArrivalComparison, ArrivalPolicy, ArrivalRun, PrefixLimit, ReportData,
};
use dovetail_sim::fgd::{FgdWorld, prefixes, run_fgd};
use dovetail_trace::fgd::fgd_orders;
use dovetail_trace::{ReadOptions, TraceCluster, TraceJob, TraceNode, read_cluster, read_trace};
use rayon::prelude::*;

use crate::{Host, replay};

/// Compared on arriving pods; the first is what clusters have.
const POLICIES: [&str; 5] = ["kube-default", "kube-most-allocated", "best-fit", "fgd", "dovetail"];
const SEEDS: [i64; 3] = [42, 43, 44];
/// The cluster on which the Philly jobs are replayed: 64 nodes of 8 GPUs.
const PHILLY_NODES: u32 = 64;

pub(crate) fn fill(data: &mut ReportData, folder: &Path, host: &dyn Host) -> Result<()> {
    data.command = Some(format!("DOVETAIL_TRACES={} make demo", folder.display()));
    let nodes = folder.join("openb/openb_node_list_gpu_node.csv");
    let pods = folder.join("openb/openb_pod_list_default.csv");
    let philly = folder.join("jobs/philly_pass_82k.csv");
    let mut found = false;
    if nodes.exists() && pods.exists() {
        found = true;
        let cluster = read_cluster(&nodes, &ReadOptions::default())?;
        let pods = read_trace(&pods, &ReadOptions::default())?;
        host.say(&format!(
            "openb: {} pods on {} nodes, under {}",
            pods.jobs.len(),
            cluster.nodes.len(),
            POLICIES.join(", ")
        ));
        data.arrivals.push(packing(&cluster, &pods.jobs)?);
    }
    if philly.exists() {
        found = true;
        let jobs = read_trace(&philly, &ReadOptions::default())?.jobs;
        let cluster = philly_cluster();
        host.say(&format!("Philly: {} jobs on {} GPUs", jobs.len(), cluster.total_gpus()));
        let prices = host.prices(&cluster)?;
        if !host.assumes_prices() {
            let hint = "The Philly trace names no GPU models, so its cost is unknown. To assume a price, pass \
                        --gpu-price '*=USD_PER_HOUR'.";
            host.say(hint);
            data.notes.push(hint.to_owned());
        }
        let name = "Philly 2017, jobs that passed";
        data.timed.push(replay::compared(name, &cluster, &jobs, &prices, host)?);
    }
    found.then_some(()).with_context(|| {
        format!(
            "{}: contains neither openb/ nor jobs/philly_pass_82k.csv: pass the folder of traces, or unset \
             DOVETAIL_TRACES for the generated cluster",
            folder.display()
        )
    })
}

fn philly_cluster() -> TraceCluster {
    let node = |index: u32| TraceNode {
        name: format!("node-{index:02}"),
        gpu_count: 8,
        ..TraceNode::default()
    };
    TraceCluster { nodes: (0..PHILLY_NODES).map(node).collect(), ..TraceCluster::default() }
}

fn packing(cluster: &TraceCluster, pods: &[TraceJob]) -> Result<ArrivalComparison> {
    let policies = POLICIES
        .par_iter()
        .map(|policy| {
            let runs = SEEDS.iter().map(|seed| arrival_run(cluster, pods, policy, *seed));
            Ok(ArrivalPolicy {
                policy: (*policy).to_owned(),
                learning_started_from: (*policy == "dovetail").then(|| "nothing".to_owned()),
                runs: runs.collect::<Result<_>>()?,
            })
        })
        .collect::<Result<Vec<ArrivalPolicy>>>()?;
    Ok(ArrivalComparison {
        trace: "openb default".to_owned(),
        nodes: cluster.nodes.len() as u64,
        gpus: cluster.total_gpus(),
        limits: SEEDS.par_iter().map(|seed| limit(cluster, pods, *seed)).collect::<Result<_>>()?,
        policies,
    })
}

/// What no policy can exceed under a seed.
fn limit(cluster: &TraceCluster, pods: &[TraceJob], seed: i64) -> Result<PrefixLimit> {
    let orders = fgd_orders(pods, &cluster.nodes, seed)?;
    let world = FgdWorld {
        nodes: &cluster.nodes,
        pods,
        arrivals: &orders.arrivals,
        node_order: &orders.nodes,
    };
    let bounds = prefixes(&world, false)?;
    Ok(PrefixLimit {
        seed: seed as u64,
        device_prefix_percent: bounds.device.arrived_percent,
        lp_prefix_percent: bounds.lp.arrived_percent,
    })
}

fn arrival_run(
    cluster: &TraceCluster,
    pods: &[TraceJob],
    policy: &str,
    seed: i64,
) -> Result<ArrivalRun> {
    let orders = fgd_orders(pods, &cluster.nodes, seed)?;
    let world = FgdWorld {
        nodes: &cluster.nodes,
        pods,
        arrivals: &orders.arrivals,
        node_order: &orders.nodes,
    };
    let config = EngineConfig { policy: PolicySpec::named(policy), ..EngineConfig::default() };
    let started = Instant::now();
    let mut clock_ns = || started.elapsed().as_nanos() as u64;
    let (engine, config) = world.engine(config)?;
    let mut judge = Watch::new(&engine.snapshot(), Watch::SAMPLED);
    let run = run_fgd(&world, config, &mut clock_ns, &mut |_, event, plan| {
        judge.step(std::slice::from_ref(event), plan, 0);
    })?;
    judge.verdict()?;
    let held = run.samples.iter().zip(run.samples.iter().skip(1)).find(|(before, after)| {
        after.arrived_milli > before.arrived_milli
            && after.allocated_milli == before.allocated_milli
    });
    let held_milli = held.or_else(|| run.samples.last().map(|last| (last, last)));
    let percent = |milli: i64| 100.0 * milli as f64 / world.cluster_milli() as f64;
    let held_percent = held_milli.map_or(0.0, |(before, _)| percent(before.arrived_milli));
    Ok(ArrivalRun::new(seed as u64, &run, held_percent))
}
