//! The non-preemptive reference rows: first come, first come with passing over, shortest first.

use dovetail_plan::{EngineConfig, PolicySpec};
use dovetail_sim::timed::{Estimates, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{ReadOptions, TraceNode, read_trace};

use crate::traces;

fn nodes(count: u32, gpus: u32) -> Vec<TraceNode> {
    let node = |index: u32| TraceNode {
        name: format!("node-{index:04}"),
        gpu_count: gpus,
        ..TraceNode::default()
    };
    (0..count).map(node).collect()
}

fn close(ours: Option<f64>, cell: &str, what: &str) {
    if cell.is_empty() {
        return;
    }
    let (ours, theirs) = (ours.unwrap(), cell.parse::<f64>().unwrap());
    let off = (ours - theirs).abs();
    assert!(off <= (theirs.abs() * 1e-8).max(0.010), "{what}: {ours} against {theirs}");
}

#[test]
fn reference_rows_are_met() {
    let Some(folder) = traces::folder("reference_rows_are_met") else { return };
    let mut reader = csv::Reader::from_path(folder.join("expected/reference_jct.csv")).unwrap();
    let mut compared = 0;
    for row in reader.records() {
        let row = row.unwrap();
        let order = match &row[3] {
            "fifo" => "fifo",
            "fifo_skip" => "fifo-skip",
            "sjf" => "shortest-first",
            _ => continue,
        };
        let file = folder.join(format!("jobs/{}.csv", &row[0]));
        let world = TimedWorld {
            nodes: nodes(row[1].parse().unwrap(), row[2].parse().unwrap()),
            jobs: read_trace(&file, &ReadOptions::default()).unwrap().jobs,
            ..TimedWorld::default()
        };
        let order = serde_json::from_value(order.into()).unwrap();
        let policy = PolicySpec::named("first-fit");
        let engine = EngineConfig { policy, order, ..EngineConfig::default() };
        let config = TimedConfig { engine, estimates: Estimates::Truth, ..TimedConfig::default() };
        let mut simulation = Simulation::new(world, config).unwrap();
        assert!(simulation.run(None, &mut ()).unwrap());
        let metrics = simulation.metrics();
        let what = format!("{} {}", &row[0], &row[3]);
        assert_eq!(metrics.jobs.to_string(), row[4], "{what}");
        assert_eq!(metrics.unfinished_jobs, 0, "{what}");
        close(metrics.average_jct_s, &row[5], &format!("{what} average"));
        close(metrics.p99_jct_s, &row[6], &format!("{what} p99"));
        close(metrics.makespan_s, &row[7], &format!("{what} makespan"));
        close(metrics.average_queue_s, &row[8], &format!("{what} queue"));
        let occupancy = format!("{:.4}", metrics.gpu_occupancy.unwrap());
        assert_eq!(occupancy, row[9], "{what} occupancy");
        compared += 1;
    }
    assert_eq!(compared, 9, "three orders on three traces");
}
