//! Reservations of several queues: whose turn it is decides, and what is promised to a job stays
//! promised.

use dovetail_check::{Judge, Violation};
use dovetail_model::{Bounds, Event, Plan, Queue};
use dovetail_order::Turns;
use dovetail_plan::{Engine, EngineConfig, Order, PreemptionConfig, ReserveConfig};
use dovetail_sim::timed::{Estimates, Observer, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};

const SECOND_MS: u64 = 1_000;

struct Judged {
    judge: Judge,
    found: Vec<Violation>,
}

impl Observer for Judged {
    fn stepped(&mut self, _: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        events.iter().for_each(|event| self.judge.event(event, now_ms));
        self.found.extend(self.judge.plan(plan));
    }
}

/// A job whose run time is known: pods with so many GPUs each.
fn job(id: &str, queue: &str, (pods, gpus): (u32, u32), (at_ms, run_s): (u64, u64)) -> TraceJob {
    TraceJob {
        id: id.to_owned(),
        queue: Some(queue.to_owned()),
        submit_ms: at_ms,
        duration_ms: Some(run_s * SECOND_MS),
        estimate_ms: Some(run_s * SECOND_MS),
        pod_count: pods,
        gpu_count: gpus,
        gpu_milli: 1_000,
        ..TraceJob::default()
    }
}

fn node(name: &str, model: Option<&str>) -> TraceNode {
    let gpu_model = model.map(str::to_owned);
    TraceNode { name: name.to_owned(), gpu_count: 4, gpu_model, ..TraceNode::default() }
}

/// Starts and ends of the jobs in milliseconds, in the order of submission.
fn run(
    nodes: &[TraceNode],
    jobs: Vec<TraceJob>,
    queues: Vec<Queue>,
    (order, heads): (Order, u32),
) -> Vec<(TraceJob, u64)> {
    let world = TimedWorld { nodes: nodes.to_vec(), jobs, queues, ..TimedWorld::default() };
    let engine = EngineConfig {
        order,
        turns: Turns::preset("fair").expect("a preset"),
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        reserve: ReserveConfig { heads, ..ReserveConfig::default() },
        ..EngineConfig::default()
    };
    let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
    let mut simulation = Simulation::new(world, config).expect("a good world");
    let judge = Judge::new(&simulation.engine.snapshot());
    let mut judged = Judged { judge, found: Vec::new() };
    assert!(simulation.run(None, &mut judged).expect("it runs"));
    assert_eq!(judged.found, [], "{order:?} {heads}");
    let outcomes = simulation.outcomes();
    outcomes.map(|view| (view.job.clone(), view.outcome.start_ms.expect("it starts"))).collect()
}

fn start_s(of: &[(TraceJob, u64)], id: &str) -> u64 {
    of.iter().find(|(job, _)| job.id == id).expect("it is there").1 / SECOND_MS
}

/// GPU time of each queue, in percent of that of all, while none of them runs out of jobs.
fn shares(jobs: &[(TraceJob, u64)], until_s: u64) -> Vec<u64> {
    let until_ms = until_s * SECOND_MS;
    let used = |queue: &str| -> u64 {
        let of_queue = jobs.iter().filter(|(job, _)| job.queue.as_deref() == Some(queue));
        let used = of_queue.map(|(job, start_ms)| {
            (start_ms + job.duration_ms.expect("it is known"))
                .min(until_ms)
                .saturating_sub(*start_ms)
        });
        used.sum()
    };
    let used = ["a", "b", "c"].map(used);
    used.map(|own| 100 * own / used.iter().sum::<u64>()).to_vec()
}

#[test]
fn queues_get_their_shares_whatever_is_reserved() {
    // Three queues, two nodes, jobs of a node each: one of three heads finds no time at first.
    let jobs = || -> Vec<TraceJob> {
        let of = |number: u64| {
            (0..).zip(["a", "b", "c"]).map(move |(place, queue)| {
                let at_ms = 3 * number + place;
                job(&format!("{queue}{number}"), queue, (1, 4), (at_ms, 1_000))
            })
        };
        (0..60).flat_map(of).collect()
    };
    let nodes = [node("n0", None), node("n1", None)];
    let weighted = [("a", 1), ("b", 2), ("c", 3)].map(|(name, weight)| Queue {
        weight,
        borrows: true,
        ..Queue::named(name)
    });
    let equal = ["a", "b", "c"].map(|name| Queue { borrows: true, ..Queue::named(name) });
    for heads in [0, 1, 2, 8] {
        for order in [Order::DominantShare, Order::Dovetail] {
            let same = run(&nodes, jobs(), equal.to_vec(), (order, heads));
            let same = shares(&same, 24_000);
            assert!(same.iter().all(|own| (32..=35).contains(own)), "{order:?} {heads} {same:?}");
        }
        let other = run(&nodes, jobs(), weighted.to_vec(), (Order::Dovetail, heads));
        let other = shares(&other, 24_000);
        let is_near = |(own, share): (&u64, u64)| own.abs_diff(share) <= 4;
        assert!(other.iter().zip([17, 33, 50]).all(is_near), "{heads} {other:?}");
        // The oldest job goes first: no queue waits for all jobs of the others.
        let oldest = run(&nodes, jobs(), equal.to_vec(), (Order::FifoSkip, heads));
        assert!(start_s(&oldest, "b1") <= 3_000, "{heads}: {}", start_s(&oldest, "b1"));
    }
}

#[test]
fn a_later_job_of_equal_priority_preempts_nothing_that_a_head_waits_for() {
    // Both nodes are reserved for the gang when the first of them ends. What runs on the other is
    // of low priority; a later job of the gang's priority would take its place for 25 hours.
    let with = |job: TraceJob, priority: i32| TraceJob { priority, ..job };
    let jobs = || {
        vec![
            with(job("runs", "q", (1, 4), (0, 1_000)), 10),
            with(job("low", "q", (1, 4), (1_000, 900)), 0),
            with(job("gang", "q", (2, 4), (10_000, 600)), 10),
            with(job("later", "q", (1, 4), (20_000, 90_000)), 10),
        ]
    };
    let nodes = [node("n0", None), node("n1", None)];
    for order in [Order::FifoSkip, Order::DominantShare, Order::Dovetail] {
        let queues = vec![Queue::named("q")];
        let reserved = run(&nodes, jobs(), queues.clone(), (order, 1));
        assert_eq!(start_s(&reserved, "gang"), 1_000, "{order:?}");
        // Nothing is promised where nothing is reserved.
        assert!(start_s(&run(&nodes, jobs(), queues, (order, 0)), "gang") > 90_000, "{order:?}");
    }
}

#[test]
fn a_queue_at_the_limit_of_one_model_gets_its_quota_back_in_another() {
    let mut queue = Queue { guaranteed: Bounds::gpus(Some(4_000)), ..Queue::named("a") };
    queue.borrows = true;
    queue.limit.by_model = [("H100".to_owned(), 2_000)].into();
    let queues = vec![queue, Queue { borrows: true, ..Queue::named("b") }];
    let models = |job: TraceJob, models: &[&str]| TraceJob {
        gpu_models: models.iter().map(|model| (*model).to_owned()).collect(),
        ..job
    };
    let jobs = vec![
        models(job("lent", "b", (1, 4), (0, 90_000)), &["A100"]),
        models(job("full", "a", (1, 2), (1_000, 90_000)), &["H100"]),
        models(job("either", "a", (1, 2), (3_000, 1_000)), &["A100", "H100"]),
    ];
    let nodes = [node("n0", Some("H100")), node("n1", Some("A100"))];
    for heads in [0, 8] {
        let starts = run(&nodes, jobs.clone(), queues.clone(), (Order::Dovetail, heads));
        assert!(start_s(&starts, "either") < 300, "{heads}: {}", start_s(&starts, "either"));
    }
}
