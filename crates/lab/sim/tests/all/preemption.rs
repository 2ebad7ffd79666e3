//! Jobs of higher priority stop others: the judge looks at every step, and a recording replays.

use dovetail_check::{Judge, Violation};
use dovetail_model::{Action, Event, Plan};
use dovetail_plan::{Engine, EngineConfig, PolicySpec, PreemptionConfig};
use dovetail_sim::record::{Recorder, replay, what_if};
use dovetail_sim::timed::{Estimates, Observer, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::synth::{SynthConfig, synth};
use dovetail_trace::{TraceJob, TraceNode};

/// A judge beside the simulation.
struct Judged {
    judge: Judge,
    found: Vec<Violation>,
    preemptions: usize,
    several: usize,
}

impl Observer for Judged {
    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        events.iter().for_each(|event| self.judge.event(event, now_ms));
        self.found.extend(self.judge.plan(plan));
        for action in &plan.actions {
            if let Action::Preempt { victims, .. } = action {
                self.preemptions += 1;
                self.several += usize::from(victims.len() > 1);
                self.found.extend(self.judge.compare(&engine.snapshot()));
            }
        }
    }
}

fn simulation(nodes: Vec<TraceNode>, jobs: Vec<TraceJob>) -> (Simulation, TimedConfig) {
    let world = TimedWorld { jobs, nodes, ..TimedWorld::default() };
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let policy = PolicySpec { seed: 3, ..PolicySpec::named("dovetail") };
    let engine = EngineConfig { policy, preemption, ..EngineConfig::default() };
    let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
    (Simulation::new(world, config.clone()).unwrap(), config)
}

/// Jobs of every size and kind, some of them more important than others.
fn mixed() -> (Simulation, TimedConfig) {
    let config = SynthConfig { seed: 11, nodes: 12, days: 4, load: 1.5, ..SynthConfig::default() };
    let synthetic = synth(&config).unwrap();
    let mut jobs = synthetic.trace.jobs;
    jobs.retain(|job| job.total_gpus() <= 32);
    for (number, job) in jobs.iter_mut().enumerate() {
        job.priority = [0, 0, 0, 1, 5][number % 5];
    }
    simulation(synthetic.cluster.nodes, jobs)
}

/// Eight nodes full of pods of one or two GPUs and of small gangs; now and then a job comes that
/// needs whole nodes.
fn large_over_small() -> (Simulation, TimedConfig) {
    const MINUTE_MS: u64 = 60_000;
    let node = |at: u32| TraceNode { name: format!("n{at}"), gpu_count: 8, ..TraceNode::default() };
    let job = |at: u64, pods: u32, gpus: u32, minutes: u64, priority: i32| TraceJob {
        id: format!("{at}-{pods}x{gpus}"),
        submit_ms: at * MINUTE_MS,
        duration_ms: Some(minutes * MINUTE_MS),
        pod_count: pods,
        gpu_count: gpus,
        gpu_milli: 1000,
        priority,
        ..TraceJob::default()
    };
    let mut jobs = Vec::new();
    for at in 0..480 {
        jobs.push(job(at, 1, 1 + u32::from(at % 3 == 0), 30 + at * 37 % 60, 0));
        if at % 20 == 5 {
            jobs.push(job(at, 3, 2, 50, 1));
        }
        if at % 30 == 7 {
            jobs.push(job(at, 1 + (at / 30) as u32 % 3, 8, 15, 5));
        }
    }
    simulation((0..8).map(node).collect(), jobs)
}

#[test]
fn preemptions_are_judged_step_by_step() {
    for (world, preemptions, several) in [(mixed(), 20, 0), (large_over_small(), 10, 10)] {
        let (mut simulation, _) = world;
        let judge = Judge::new(&simulation.engine.snapshot());
        let mut judged = Judged { judge, found: Vec::new(), preemptions: 0, several: 0 };
        assert!(simulation.run(None, &mut judged).unwrap());
        assert_eq!(judged.found, []);
        let seen = (judged.preemptions, judged.several);
        assert!(seen.0 >= preemptions && seen.1 >= several, "{seen:?}");
        let metrics = simulation.metrics();
        assert!(metrics.restarts > 20, "{metrics:?}");
    }
}

#[test]
fn a_recording_of_preemptions_replays() {
    for (mut simulation, config) in [mixed(), large_over_small()] {
        let mut recorder =
            Recorder::start("log", Vec::new(), "test", &config.engine, &simulation.engine);
        assert!(simulation.run(None, &mut recorder).unwrap());
        let recording = recorder.finish().unwrap();
        assert!(String::from_utf8_lossy(&recording).contains("\"preempt\""));
        let report = replay("log", recording.as_slice()).unwrap();
        assert_eq!(report.divergence, None);
        assert_eq!(report.event_log_hash, simulation.event_log_hash());
        // Whoever decided would choose the same again, also in room that was kept for somebody.
        let asked = what_if("log", recording.as_slice(), config.engine.policy).unwrap();
        assert!(asked.decisions > 100, "{asked:?}");
        assert_eq!(asked.differences, []);
    }
}
