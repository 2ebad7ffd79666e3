//! Preset `fair`: what queues hold over weeks, against their weights, and against what each should
//! hold at every moment.

use std::collections::BTreeSet;

use dovetail_check::Judge;
use dovetail_model::{Bounds, Event, Plan, Queue};
use dovetail_order::Turns;
use dovetail_plan::{Engine, EngineConfig, Order, PolicySpec, PreemptionConfig};
use dovetail_sim::timed::{
    Observer, QueueFigures, QueueWatch, Simulation, TimedConfig, TimedWorld,
};
use dovetail_trace::{StopCosts, TraceJob, TraceNode};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const HOUR_MS: u64 = 3_600_000;
const NODES: u32 = 4;
const GPUS: u64 = 32;

fn config(order: Order, half_life_s: u32) -> TimedConfig {
    let turns = Turns { half_life_s, ..Turns::preset("fair").expect("a preset") };
    let preemption =
        PreemptionConfig { enabled: true, by_priority: false, ..PreemptionConfig::default() };
    let policy = PolicySpec::named("best-fit");
    let engine = EngineConfig { policy, order, preemption, turns, ..EngineConfig::default() };
    let stop_costs = StopCosts {
        checkpoint_interval_ms: Some(600_000),
        checkpoint_cost_ms: Some(0),
        restart_cost_ms: Some(30_000),
        save_on_notice_ms: None,
    };
    TimedConfig { engine, stop_costs, ..TimedConfig::default() }
}

fn job(number: usize, queue: &str, submit_ms: u64, gpus: u32, hours: f64) -> TraceJob {
    TraceJob {
        id: format!("{queue}-{number}"),
        queue: Some(queue.to_owned()),
        submit_ms,
        duration_ms: Some((hours * HOUR_MS as f64) as u64),
        pod_count: 1,
        gpu_count: gpus,
        gpu_milli: 1_000,
        ..TraceJob::default()
    }
}

/// Jobs of a queue that ask for so many GPUs on average, for so many hours.
fn stream(queue: &str, seed: u64, from_h: f64, until_h: f64, gpus: f64) -> Vec<TraceJob> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut jobs = Vec::new();
    let mut at_h = from_h;
    while at_h < until_h {
        let (size, hours) = (1 << random.random_range(0..4), random.random_range(0.5..6.0));
        let submit_ms = (at_h * HOUR_MS as f64) as u64;
        jobs.push(job(jobs.len(), queue, submit_ms, size, hours));
        at_h += f64::from(size) * hours / gpus;
    }
    jobs
}

/// A queue watch beside a judge of every step.
struct Watched {
    queues: QueueWatch,
    judge: Judge,
    problems: Vec<String>,
}

impl Observer for Watched {
    fn advanced(&mut self, engine: &mut Engine, from_ms: u64, to_ms: u64) {
        self.queues.advanced(engine, from_ms, to_ms);
    }

    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        self.queues.stepped(engine, now_ms, events, plan);
        events.iter().for_each(|event| self.judge.event(event, now_ms));
        let found = self.judge.plan(plan);
        self.problems.extend(found.iter().map(|violation| format!("{violation:?}")));
    }
}

fn run(
    queues: Vec<Queue>,
    jobs: Vec<TraceJob>,
    until_h: u64,
    (order, half_life_s): (Order, u32),
) -> Vec<QueueFigures> {
    let node = |at: u32| TraceNode { name: format!("n{at}"), gpu_count: 8, ..Default::default() };
    let nodes = (0..NODES).map(node).collect();
    let world = TimedWorld { nodes, jobs, queues: queues.clone(), ..TimedWorld::default() };
    let mut simulation = Simulation::new(world, config(order, half_life_s)).expect("a good world");
    let judge = Judge::new(&simulation.engine.snapshot());
    let queues = QueueWatch::new(&queues, GPUS, BTreeSet::new());
    let mut watched = Watched { queues, judge, problems: Vec::new() };
    simulation.run(Some(until_h * HOUR_MS), &mut watched).expect("runs");
    assert_eq!(watched.problems, Vec::<String>::new());
    let usage = |name: &str| simulation.engine.list().queue_usage(name);
    watched.queues.figures(simulation.outcomes(), usage)
}

fn queue(name: &str, weight: u32, quota: i64) -> Queue {
    let guaranteed = Bounds::gpus((quota > 0).then_some(quota * 1_000));
    Queue { weight, guaranteed, borrows: true, ..Queue::named(name) }
}

#[test]
fn where_demand_never_ends_queues_get_what_their_weights_say() {
    let queues = vec![queue("a", 1, 0), queue("b", 3, 0), queue("c", 2, 0)];
    let names = ["a", "b", "c"].iter().zip(1..);
    let jobs = names.flat_map(|(name, seed)| stream(name, seed, 0.0, 700.0, 40.0)).collect();
    // Eight weeks are over before the demand of anybody is.
    let figures = run(queues, jobs, 672, (Order::Dovetail, 7 * 24 * 3_600));
    for (figures, part) in figures.iter().zip([1.0 / 6.0, 3.0 / 6.0, 2.0 / 6.0]) {
        let share = figures.share.expect("it held something");
        // Within 2% of the cluster. The least weight got 5.5% more than its part, likely because
        // who has used least starts a whole job, of up to 8 of 32 GPUs.
        assert!((share - part).abs() < 0.02, "{}: {share} of {part}", figures.name);
        assert!((share / part - 1.0).abs() < 0.06, "{}: {share} of {part}", figures.name);
        assert!(figures.usage_gpu_hours.is_some_and(|used| used > 0.0), "{figures:?}");
    }
}

#[test]
fn a_queue_that_comes_late_gets_back_its_share() {
    // The other one borrows everything for a week before.
    let queues = vec![queue("early", 1, 16), queue("late", 1, 16)];
    let mut jobs = stream("early", 1, 0.0, 400.0, 60.0);
    jobs.extend(stream("late", 2, 200.0, 400.0, 14.0));
    let late = |order: Order| {
        let figures = run(queues.clone(), jobs.clone(), 400, (order, 0));
        figures.into_iter().find(|figures| figures.name == "late").expect("a queue")
    };
    let ours = late(Order::Dovetail);
    let sum =
        |of: fn(&dovetail_sim::timed::QueueWeek) -> f64| ours.weeks.iter().map(of).sum::<f64>();
    let (held, fair) = (sum(|week| week.held_gpu_hours), sum(|week| week.fair_gpu_hours));
    assert!(fair > 1_000.0 && held / fair > 0.95, "{held} of {fair}");
    let ended = ours.finish_time_fairness.expect("jobs ended");
    let fifo = late(Order::FifoSkip).finish_time_fairness.expect("jobs ended");
    assert!(ended.p99 < fifo.p99 && ended.worst < fifo.worst, "{ended:?} {fifo:?}");
}
