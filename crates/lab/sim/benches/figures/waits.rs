//! How long jobs wait on the machines of Philly: passing over alone, and with reservations.

use std::time::Instant;

use dovetail_plan::{EngineConfig, EstimatesConfig, Order, PolicySpec, ReserveConfig};
use dovetail_sim::timed::{Estimates, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{ReadOptions, TraceNode, read_trace};

use crate::openb;

/// File, machines of 8 GPUs, and how many of the jobs; all where it is 0.
const WORLDS: [(&str, u32, usize); 3] = [
    ("jobs/philly_pass_82k.csv", 64, 0),
    ("jobs/itp_cluster04.csv", 64, 0),
    ("jobs/itp_cluster07.csv", 34, 0),
];

pub(crate) fn print() {
    let Some(folder) = openb::folder() else { return };
    println!(
        "| jobs | order | run times | heads, lent % | mean wait | p99 | worst | within p50, p90 | \
         loss over recent median | time |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let only = std::env::var("DOVETAIL_WAITS").unwrap_or_default();
    for (name, nodes, jobs) in WORLDS.into_iter().filter(|(name, ..)| name.contains(&only)) {
        let mut jobs_of = read_trace(&folder.join(name), &ReadOptions::default()).expect(name).jobs;
        jobs_of.truncate(if jobs == 0 { jobs_of.len() } else { jobs });
        let node = |index: u32| TraceNode {
            name: format!("node-{index:04}"),
            gpu_count: 8,
            ..TraceNode::default()
        };
        let world = TimedWorld {
            nodes: (0..nodes).map(node).collect(),
            jobs: jobs_of,
            ..TimedWorld::default()
        };
        for (order, estimates, heads, lent) in [
            (Order::FifoSkip, Estimates::None, 0, 0),
            (Order::FifoSkip, Estimates::Learned, 8, 100),
            (Order::FifoSkip, Estimates::Learned, 8, 50),
            (Order::FifoSkip, Estimates::Truth, 8, 100),
            (Order::ShortestFirst, Estimates::Learned, 0, 0),
            (Order::ShortestFirst, Estimates::Learned, 8, 100),
        ] {
            let reserve = ReserveConfig { heads, lent_percent: lent, ..ReserveConfig::default() };
            let engine = EngineConfig {
                policy: PolicySpec::default(),
                order,
                estimates: EstimatesConfig {
                    learn: estimates == Estimates::Learned,
                    ..EstimatesConfig::default()
                },
                reserve,
                ..EngineConfig::default()
            };
            let config = TimedConfig { engine, estimates, ..TimedConfig::default() };
            line(name, &world, config);
        }
    }
}

fn line(name: &str, world: &TimedWorld, config: TimedConfig) {
    let start = Instant::now();
    let EngineConfig { order, reserve, .. } = config.engine.clone();
    let estimates = config.estimates;
    let mut simulation = Simulation::new(world.clone(), config).expect("a simulation");
    simulation.run(None, &mut ()).expect("a run");
    let metrics = simulation.metrics();
    let hours = |seconds: Option<f64>| seconds.map_or(f64::NAN, |seconds| seconds / 3_600.0);
    let learned = simulation.calibrations().get("learned").copied();
    let within = learned.map(|l| format!("{:.2}, {:.2}", l.within_p50, l.within_p90));
    let loss = learned.and_then(|l| Some(l.p50_loss_beside_s? / l.recent_median_loss_s?));
    println!(
        "| {name} | {order:?} | {estimates:?} | {}, {} | {:.3} h | {:.2} h | {:.1} h | {} | {} | \
         {:.1} s |",
        reserve.heads,
        reserve.lent_percent,
        hours(metrics.average_queue_s),
        hours(metrics.p99_queue_s),
        hours(metrics.worst_queue_s),
        within.unwrap_or_default(),
        loss.map(|loss| format!("{loss:.3}")).unwrap_or_default(),
        start.elapsed().as_secs_f64(),
    );
}
