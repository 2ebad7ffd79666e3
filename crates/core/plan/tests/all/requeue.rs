//! A preempted job stays one job: what it has behind it comes back with it.

use std::sync::Arc;

use dovetail_model::{
    Event, History, HowEnded, InterruptionCost, Job, JobId, Node, PreemptionRules, Requirement,
    Resources, Snapshot,
};
use dovetail_plan::Engine;
use dovetail_plan::engine::EngineConfig;

fn job(id: u64) -> Job {
    let requirement = Requirement {
        resources: Resources::pod(1000, 10),
        device: dovetail_model::DeviceRequest::Whole { count: 2, same_island: false },
        ..Requirement::default()
    };
    Job {
        interruption: InterruptionCost {
            checkpoint_interval_ms: Some(100),
            checkpoint_cost_ms: Some(10),
            restart_cost_ms: Some(30),
            ..InterruptionCost::default()
        },
        preemption: PreemptionRules::default(),
        ..Job::single(JobId(id), "train", 5, Arc::new(requirement))
    }
}

fn engine() -> Engine {
    let snapshot =
        Snapshot { nodes: vec![Node::plain("n", 8000, 1000, 2, "H100")], ..Snapshot::default() };
    Engine::new(EngineConfig::default(), &snapshot).expect("a good world")
}

fn submit(engine: &mut Engine, id: u64, now_ms: u64) -> History {
    engine.step(Event::Submitted(Box::new(job(id))), now_ms).expect("a new job");
    engine.job(JobId(id)).expect("it was submitted").history
}

#[test]
fn what_a_job_has_behind_it_comes_back_with_it() {
    let mut engine = engine();
    assert_eq!(submit(&mut engine, 1, 5), History::default());
    // 250 ms: two checkpoints of 100 ms of work, each with 10 ms to write it.
    let preempted = Event::Ended { job: JobId(1), how: HowEnded::Preempted };
    engine.step(preempted.clone(), 255).expect("it runs");
    // An engine that starts anew in between remembers as well.
    let mut engine =
        Engine::new(EngineConfig::default(), &engine.snapshot()).expect("its own snapshot");
    let first = submit(&mut engine, 1, 255);
    let expected = History {
        attempts: 1,
        preemptions: 1,
        attained_gpu_milli_ms: 2000 * 250,
        saved_ms: 200,
        last_end_ms: 255,
    };
    assert_eq!(first, expected);
    // The second attempt begins with 30 ms to come back: of 150 ms, 110 make one checkpoint.
    engine.step(Event::Ended { job: JobId(1), how: HowEnded::Lost }, 405).expect("it runs");
    let second = submit(&mut engine, 1, 405);
    let attained_gpu_milli_ms = 2000 * 400;
    let expected =
        History { attempts: 2, attained_gpu_milli_ms, saved_ms: 300, last_end_ms: 405, ..expected };
    assert_eq!(second, expected);
    // A job that has ended is another one when it comes again.
    engine.step(Event::ended(JobId(1)), 500).expect("it runs");
    assert_eq!(submit(&mut engine, 1, 500), History::default());
}

#[test]
fn a_job_that_does_not_come_back_is_forgotten() {
    const DAY_MS: u64 = 24 * 3_600_000;
    let mut engine = engine();
    for day in 0..9 {
        submit(&mut engine, day, day * DAY_MS);
        let preempted = Event::Ended { job: JobId(day), how: HowEnded::Preempted };
        engine.step(preempted, day * DAY_MS + 1).expect("it runs");
    }
    assert_eq!(engine.snapshot().away.len(), 7);
}
