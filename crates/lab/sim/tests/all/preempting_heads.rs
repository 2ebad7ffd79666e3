//! What is reserved for a job, or for a less important one, is in nobody's way who preempts.

use dovetail_plan::{EngineConfig, Order, PreemptionConfig, ReserveConfig};
use dovetail_sim::timed::{Estimates, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};

const SECOND_MS: u64 = 1_000;

/// A job of one pod with a known run time.
fn job(id: &str, priority: i32, gpus: u32, (at_s, run_s): (u64, u64)) -> TraceJob {
    TraceJob {
        id: id.to_owned(),
        queue: Some("q".to_owned()),
        submit_ms: at_s * SECOND_MS,
        duration_ms: Some(run_s * SECOND_MS),
        estimate_ms: Some(run_s * SECOND_MS),
        pod_count: 1,
        gpu_count: gpus,
        gpu_milli: 1_000,
        priority,
        ..TraceJob::default()
    }
}

/// When a job starts on one node, and how many are preempted.
fn start_s(jobs: &[TraceJob], gpus: u32, (order, heads): (Order, u32), id: &str) -> (u64, u32) {
    let node = TraceNode { name: "n0".to_owned(), gpu_count: gpus, ..TraceNode::default() };
    let world = TimedWorld { nodes: vec![node], jobs: jobs.to_vec(), ..TimedWorld::default() };
    let engine = EngineConfig {
        order,
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        reserve: ReserveConfig { heads, ..ReserveConfig::default() },
        ..EngineConfig::default()
    };
    let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
    let mut simulation = Simulation::new(world, config).expect("a good world");
    assert!(simulation.run(None, &mut ()).expect("it runs"));
    let preemptions = simulation.outcomes().map(|view| view.outcome.preemptions).sum();
    let found = simulation.outcomes().find(|view| view.job.id == id).expect("it is there");
    (found.outcome.start_ms.expect("it starts") / SECOND_MS, preemptions)
}

#[test]
fn a_head_preempts_beside_what_is_reserved_for_it() {
    // The head may stop only the job of one GPU, and it must wait for the other one before that
    // helps: by then, what the other one has left is reserved for the head.
    let jobs = [
        job("equal", 10, 3, (0, 1_000)),
        job("low", 0, 1, (1, 90_000)),
        job("head", 10, 4, (100, 600)),
    ];
    for order in [Order::FifoSkip, Order::Dovetail] {
        for heads in [0, 1] {
            assert_eq!(start_s(&jobs, 4, (order, heads), "head"), (1_000, 1), "{order:?} {heads}");
        }
    }
}

#[test]
fn a_higher_priority_takes_what_is_reserved_for_a_lower_one() {
    // Two GPUs are free and reserved for a job of low priority that needs all four. The urgent job
    // needs three: it preempts one of the running jobs, and uses what is reserved.
    let jobs = [
        job("first", 1, 1, (0, 50_000)),
        job("second", 1, 1, (1, 50_000)),
        job("waits", 1, 4, (10, 600)),
        job("urgent", 10, 3, (100, 600)),
    ];
    for order in [Order::FifoSkip, Order::Dovetail] {
        for heads in [0, 1] {
            let (start_s, preemptions) = start_s(&jobs, 4, (order, heads), "urgent");
            assert_eq!((start_s, preemptions), (100, 1), "{order:?} {heads}");
        }
    }
}

#[test]
fn a_short_job_preempts_beside_what_is_lent_to_it() {
    // One GPU is free and reserved for the head, which needs it with two others at 1,000 s. Until
    // then it is lent to the short job, which preempts another one beside it.
    let jobs = [
        job("runs", 10, 2, (0, 1_000)),
        job("low", 0, 1, (1, 90_000)),
        job("head", 10, 3, (100, 600)),
        job("short", 10, 2, (200, 300)),
    ];
    for order in [Order::FifoSkip, Order::Dovetail] {
        for heads in [0, 1] {
            assert_eq!(start_s(&jobs, 4, (order, heads), "short"), (200, 1), "{order:?} {heads}");
            assert_eq!(start_s(&jobs, 4, (order, heads), "head"), (1_000, 1), "{order:?} {heads}");
        }
    }
}
