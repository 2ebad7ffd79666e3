//! Small worlds drawn at random, in which queues with quotas, priorities and reservations meet: a
//! step ends soon, and preempts nothing that it has just started.

use std::collections::BTreeSet;

use dovetail_check::{Judge, Violation};
use dovetail_model::{Action, Bounds, Event, JobId, Plan, Queue};
use dovetail_order::{QueueTurns, Turns};
use dovetail_plan::{Engine, EngineConfig, Order, PreemptionConfig, ReserveConfig};
use dovetail_sim::timed::{Estimates, Observer, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};

const SECOND_MS: u64 = 1_000;

/// Actions of a step for each job of the world, at most.
const ACTIONS_PER_JOB: usize = 10;

/// Worlds that are drawn.
const SEEDS: std::ops::Range<u64> = 0..250;

/// What steps did.
struct Steps {
    judge: Judge,
    found: Vec<Violation>,
    most_actions: usize,
    /// Jobs that a step started and preempted.
    undone: Vec<(u64, JobId)>,
}

impl Observer for Steps {
    fn stepped(&mut self, _: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        events.iter().for_each(|event| self.judge.event(event, now_ms));
        self.found.extend(self.judge.plan(plan));
        self.most_actions = self.most_actions.max(plan.actions.len());
        let mut started = BTreeSet::new();
        for action in &plan.actions {
            match action {
                Action::Bind { pod, .. } => {
                    started.insert(pod.job);
                }
                Action::Preempt { victims, .. } => {
                    let victims: BTreeSet<JobId> = victims.iter().map(|pod| pod.job).collect();
                    let undone = victims.intersection(&started).map(|job| (now_ms, *job));
                    self.undone.extend(undone);
                }
                _ => {}
            }
        }
    }
}

/// Numbers from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % most
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}

/// A queue with so many GPUs of quota, without a limit.
fn queue(name: &str, quota_gpus: i64) -> Queue {
    let guaranteed = Bounds::gpus((quota_gpus > 0).then_some(quota_gpus * 1_000));
    Queue { guaranteed, borrows: true, ..Queue::named(name) }
}

/// A job whose run time is known: pods with so many GPUs each, submitted and running for so many
/// milliseconds.
fn job(
    number: u64,
    queue: &str,
    (pod_count, gpu_count): (u32, u32),
    priority: i32,
    (submit_ms, run_ms): (u64, u64),
) -> TraceJob {
    TraceJob {
        id: format!("j{number}"),
        queue: Some(queue.to_owned()),
        submit_ms,
        duration_ms: Some(run_ms),
        estimate_ms: Some(run_ms),
        pod_count,
        gpu_count,
        gpu_milli: 1_000,
        priority,
        ..TraceJob::default()
    }
}

fn queues(draws: &mut Draws, gpus: u64) -> Vec<Queue> {
    let count = 2 + draws.below(4);
    let mut drawn = |number: u64| {
        let has_quota = draws.below(4) > 0;
        let quota_gpus = if has_quota { draws.below(gpus / 2 + 2) as i64 } else { 0 };
        queue(&format!("q{number}"), quota_gpus)
    };
    (0..count).map(&mut drawn).collect()
}

fn jobs(draws: &mut Draws, (nodes, each): (u64, u64), queues: u64) -> Vec<TraceJob> {
    let (count, mut at_ms) = (5 + draws.of(&[5, 10, 20]), 0);
    let mut drawn = |number: u64| {
        at_ms += draws.of(&[0, 0, 0, 1, 10, 50, 80]) * SECOND_MS;
        let gpus = 1 + draws.below(each);
        let pods = draws.of(&[1, 1, 1, 2, 3]);
        let run_ms = draws.of(&[5, 30, 50, 200, 260, 700]) * SECOND_MS;
        let queue = format!("q{}", draws.below(queues));
        let pod_count = if pods > nodes { 1 } else { pods as u32 };
        let priority = draws.of(&[0, 0, 0, 1, 5]);
        job(number, &queue, (pod_count, gpus as u32), priority, (at_ms, run_ms))
    };
    (0..count).map(&mut drawn).collect()
}

/// What the steps of a world did: they are legal, and come to an end.
fn steps_of(world: TimedWorld, preset: &str, (heads, lent_percent): (u32, u32)) -> Steps {
    let turns = Turns::preset(preset).expect("a preset");
    let engine = EngineConfig {
        order: Order::Dovetail,
        turns,
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        reserve: ReserveConfig { heads, lent_percent, ..ReserveConfig::default() },
        ..EngineConfig::default()
    };
    let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
    let mut simulation = Simulation::new(world, config).expect("a good world");
    let judge = Judge::new(&simulation.engine.snapshot())
        .with_respite_ms(u64::from(turns.respite_s) * SECOND_MS)
        .with_divided_cluster(turns.queues == QueueTurns::Kai);
    let mut steps = Steps { judge, found: Vec::new(), most_actions: 0, undone: Vec::new() };
    assert!(simulation.run(None, &mut steps).expect("it runs"), "{preset}");
    assert_eq!(steps.found, [], "{preset}");
    steps
}

fn nodes(count: u64, gpu_count: u32) -> Vec<TraceNode> {
    let node = |at: u64| TraceNode { name: format!("n{at}"), gpu_count, ..TraceNode::default() };
    (0..count).map(node).collect()
}

fn drawn(seed: u64) -> (TimedWorld, (u32, u32)) {
    let mut draws = Draws(seed);
    draws.below(1);
    let (count, each) = (1 + draws.below(4), draws.of(&[2, 4, 8]));
    let queues = queues(&mut draws, count * each);
    let jobs = jobs(&mut draws, (count, each), queues.len() as u64);
    let heads = (1 + draws.below(4) as u32, draws.of(&[100, 50, 25]));
    let nodes = nodes(count, each as u32);
    (TimedWorld { nodes, jobs, queues, ..TimedWorld::default() }, heads)
}

/// With seed 15 and preset `fair`, a step of 25 jobs took 3,451 actions where a job without hope
/// was searched for again whenever a reservation ended.
#[test]
fn a_step_ends_soon() {
    for seed in SEEDS {
        let (world, heads) = drawn(seed);
        let most_actions = ACTIONS_PER_JOB * world.jobs.len();
        for preset in ["fair", "kai"] {
            let steps = steps_of(world.clone(), preset, heads);
            let is_short = steps.most_actions <= most_actions;
            assert!(is_short, "{preset}, seed {seed}, {heads:?}: {} actions", steps.most_actions);
            let is_kept = preset != "kai" || steps.undone.is_empty();
            assert!(is_kept, "{preset}, seed {seed}, {heads:?}: {:?}", steps.undone);
        }
    }
}

/// Queue, pods and GPUs of each, priority, submission and run time in milliseconds.
type Row = (&'static str, (u32, u32), i32, (u64, u64));

/// A world of these jobs, and of queues with so many GPUs of quota, without limits.
fn by_hand(nodes: Vec<TraceNode>, rows: &[Row], quotas: &[(&str, i64)]) -> TimedWorld {
    let numbered = (0..).zip(rows);
    let jobs = numbered.map(|(number, row)| job(number, row.0, row.1, row.2, row.3)).collect();
    let queues = quotas.iter().map(|(name, gpus)| queue(name, *gpus)).collect();
    TimedWorld { nodes, jobs, queues, ..TimedWorld::default() }
}

/// The first job of a queue asks for more than its quota, and one behind the first of another queue
/// asks for less than that of its own.
#[test]
fn a_job_beyond_its_quota_does_not_start_before_one_within_its_own() {
    let behind = by_hand(
        nodes(1, 4),
        &[
            ("q0", (1, 4), 0, (0, 50_000)),
            ("q1", (1, 3), 0, (0, 200_000)),
            ("q1", (1, 1), 5, (0, 200_000)),
            ("q0", (1, 2), 0, (85_519, 5_000)),
            ("q0", (1, 1), 0, (135_519, 200_000)),
            ("q1", (1, 2), 1, (135_519, 700_000)),
            ("q1", (2, 1), 0, (135_519, 5_000)),
            ("q1", (1, 1), 0, (135_519, 700_000)),
        ],
        &[("q0", 2), ("q1", 2)],
    );
    let gang = by_hand(
        nodes(4, 8),
        &[
            ("q0", (2, 1), 5, (72_444, 5_000)),
            ("q2", (1, 8), 0, (73_444, 5_000)),
            ("q2", (1, 6), 0, (73_444, 200_000)),
            ("q2", (1, 6), 5, (73_444, 50_000)),
            ("q0", (1, 8), 0, (153_352, 200_000)),
            ("q2", (1, 3), 5, (210_989, 50_000)),
            ("q0", (3, 8), 5, (210_989, 259_375)),
            ("q2", (1, 3), 0, (210_989, 313_391)),
            ("q1", (2, 5), 0, (250_115, 200_000)),
            ("q1", (1, 7), 0, (300_115, 50_000)),
            ("q0", (2, 6), 0, (301_115, 5_000)),
            ("q2", (2, 7), 1, (351_115, 538_820)),
            ("q0", (1, 4), 0, (436_154, 200_000)),
            ("q2", (1, 1), 1, (436_154, 5_000)),
        ],
        &[("q0", 5), ("q1", 2), ("q2", 0)],
    );
    for (name, world, heads) in [("behind", behind, (1, 50)), ("gang", gang, (4, 50))] {
        for preset in ["fair", "kai"] {
            let steps = steps_of(world.clone(), preset, heads);
            assert_eq!(steps.undone, [], "{name}, {preset}");
        }
    }
}
