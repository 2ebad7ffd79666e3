//! Reservations of several queues: whose turn it is decides, and what is promised to a job stays
//! promised.

use dovetail_check::{Judge, Violation};
use dovetail_model::{Bounds, Event, Plan, Queue};
use dovetail_order::Turns;
use dovetail_plan::{Engine, EngineConfig, Order, PolicySpec, PreemptionConfig, ReserveConfig};
use dovetail_sim::timed::{Estimates, Observer, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};

const SECOND_MS: u64 = 1_000;

struct Judged {
    judge: Judge,
    found: Vec<Violation>,
}

impl Observer for Judged {
    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        events.iter().for_each(|event| self.judge.event(event, now_ms));
        self.found.extend(self.judge.plan(plan));
        self.found.extend(self.judge.lent(&engine.list().lending()));
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
    let lent_percent = ReserveConfig::default().lent_percent;
    let judge = Judge::new(&simulation.engine.snapshot()).with_lent_percent(lent_percent);
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

/// Streams of three queues that fill half of the cluster at a time, and a gang that needs all of
/// it: when jobs of the streams end, their queues use nothing, as does the gang's.
fn streams_and_gang() -> Vec<TraceJob> {
    let mut jobs = Vec::new();
    for (place, queue) in (0..).zip(["a", "b", "c"]) {
        for number in 0..20 {
            let run_s = if number == 0 { 1_000 * (place + 1) } else { 3_000 };
            jobs.push(job(&format!("{queue}{number}"), queue, (1, 1), (place, run_s)));
        }
    }
    jobs.push(job("gang", "z", (2, 4), (1_500, 1_000)));
    jobs
}

#[test]
fn a_head_keeps_its_turn_until_it_starts() {
    let nodes = [node("n0", None), node("n1", None)];
    for heads in [0, 1, 2, 8] {
        for order in [Order::DominantShare, Order::Dovetail] {
            let queues = TimedWorld::named_queues(&streams_and_gang());
            let starts = run(&nodes, streams_and_gang(), queues, (order, heads));
            let (gang, last) = (start_s(&starts, "gang"), starts.iter().map(|of| of.1).max());
            let is_soon = heads == 0 || gang <= 6_000;
            assert!(is_soon, "{order:?} {heads}: {gang}");
            // It holds up nobody for longer than that.
            assert!(last <= Some(30_000 * SECOND_MS), "{order:?} {heads}: {last:?}");
        }
    }
}

#[test]
fn a_restored_engine_goes_on_with_the_same_reservations() {
    let mut seed: u64 = 7;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut jobs = Vec::new();
    for number in 0..150 {
        let queue = ["a", "b", "c", "d"][draw(4) as usize];
        let gpus = [1, 1, 2, 4][draw(4) as usize];
        let pods = if draw(6) == 0 { 3 } else { 1 };
        jobs.push(job(
            &format!("j{number}"),
            queue,
            (pods, gpus),
            (draw(1_000), 300 + draw(5_000)),
        ));
    }
    let nodes: Vec<TraceNode> = (0..4).map(|at| node(&format!("n{at}"), None)).collect();
    let queues = TimedWorld::named_queues(&jobs);
    let world = TimedWorld { nodes, jobs, queues, ..TimedWorld::default() };
    for order in [Order::DominantShare, Order::Dovetail] {
        let engine = EngineConfig {
            order,
            policy: PolicySpec::named("first-fit"),
            turns: Turns::preset("fair").expect("a preset"),
            reserve: ReserveConfig { heads: 8, ..ReserveConfig::default() },
            ..EngineConfig::default()
        };
        let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
        let starts = |simulation: &Simulation| -> Vec<Option<u64>> {
            simulation.outcomes().map(|view| view.outcome.start_ms).collect()
        };
        for pause_s in (250..20_000).step_by(750) {
            let mut first = Simulation::new(world.clone(), config.clone()).expect("a good world");
            first.run(Some(pause_s * SECOND_MS), &mut ()).expect("it runs");
            let (snapshot, progress) = (first.engine.snapshot(), first.progress().clone());
            let resumed = Simulation::resume(world.clone(), config.clone(), &snapshot, progress);
            let mut resumed = resumed.expect("the same world");
            resumed.run(None, &mut ()).expect("it runs");
            // The engine that went on has been asked at the same time.
            first.run(None, &mut ()).expect("it runs");
            assert_eq!(starts(&resumed), starts(&first), "{order:?}, paused at {pause_s} s");
        }
    }
}

/// `x` has a reservation when `h` gets one, and nothing is known of its end: room for `h` is first
/// found after `l`. Once `x` runs, its end is known, and `h` starts as soon as `b` has ended.
#[test]
fn a_head_starts_earlier_once_another_head_runs() {
    let nodes = [node("n0", None), node("n1", None)];
    for order in [Order::Dovetail, Order::DominantShare, Order::FifoSkip] {
        for heads in [1, 2, 4] {
            let mut jobs = vec![
                job("l", "a", (1, 4), (0, 20_000)),
                job("x", "b", (1, 2), (1_000, 50)),
                job("h", "c", (1, 4), (2_000, 50)),
            ];
            jobs.insert(1, job("a", "a", (1, 3), (0, 100)));
            jobs.insert(2, job("b", "a", (1, 1), (0, 200)));
            let small = |at: u64| job(&format!("s{at}"), "d", (1, 1), (3_000 + at, 300));
            jobs.extend((0..60).map(small));
            let started = run(&nodes, jobs, Vec::new(), (order, heads));
            assert_eq!(start_s(&started, "h"), 200, "{order:?} {heads}");
        }
    }
}

/// The largest number of actions of one step.
#[derive(Default)]
struct MostActions(usize);

impl Observer for MostActions {
    fn stepped(&mut self, _: &mut Engine, _: u64, _: &[Event], plan: &Plan) {
        self.0 = self.0.max(plan.actions.len());
    }
}

/// A job of higher priority beyond the quota of its queue, and one of lower priority within it: if
/// what is reserved for either yielded to the other, they would end each other's reservations for
/// as long as a cycle may search.
#[test]
fn reservations_yield_one_way_only() {
    // Id, queue, pods and GPUs of each, priority, submission and run time in milliseconds.
    let jobs = [
        ("j0", "q3", (2, 3), 0, (1_000, 5_000)),
        ("j1", "q0", (1, 1), 0, (51_000, 200_000)),
        ("j2", "q2", (2, 2), 1, (51_000, 50_000)),
        ("j3", "q1", (1, 5), 0, (52_000, 200_000)),
        ("j4", "q1", (1, 4), 1, (62_000, 5_000)),
        ("j5", "q4", (1, 6), 0, (62_000, 30_159)),
        ("j6", "q0", (1, 1), 0, (72_000, 700_000)),
        ("j7", "q4", (1, 8), 5, (72_000, 50_000)),
        ("j8", "q0", (1, 5), 0, (122_000, 200_000)),
        ("j9", "q1", (1, 4), 0, (132_000, 700_000)),
        ("j10", "q4", (2, 4), 0, (182_000, 41_979)),
        ("j11", "q3", (1, 7), 0, (183_000, 5_000)),
        ("j12", "q3", (2, 8), 5, (233_000, 50_000)),
        ("j13", "q0", (3, 6), 5, (243_000, 50_000)),
        ("j14", "q4", (3, 4), 0, (243_000, 50_000)),
        ("j15", "q3", (1, 8), 0, (244_000, 700_000)),
        ("j16", "q1", (3, 4), 5, (244_000, 5_000)),
        ("j17", "q0", (1, 6), 5, (244_000, 5_000)),
        ("j18", "q0", (1, 6), 1, (244_000, 700_000)),
        ("j19", "q4", (1, 8), 0, (294_000, 200_000)),
        ("j20", "q0", (1, 5), 0, (295_000, 700_000)),
        ("j21", "q4", (3, 8), 0, (375_972, 200_000)),
        ("j22", "q2", (1, 1), 0, (375_972, 200_000)),
        ("j23", "q4", (1, 5), 1, (375_972, 5_000)),
    ];
    let jobs = jobs.map(|(id, queue, pods, priority, (at_ms, run_ms))| TraceJob {
        priority,
        duration_ms: Some(run_ms),
        estimate_ms: Some(run_ms),
        ..job(id, queue, pods, (at_ms, 0))
    });
    let node = |at: u32| TraceNode { gpu_count: 8, ..node(&format!("n{at}"), None) };
    let quotas = [("q1", 14), ("q2", 5), ("q3", 10), ("q4", 12)];
    let queues = quotas.map(|(name, gpus)| Queue {
        guaranteed: Bounds::gpus(Some(gpus * 1_000)),
        borrows: true,
        ..Queue::named(name)
    });
    let world = TimedWorld {
        nodes: (0..4).map(node).collect(),
        jobs: jobs.to_vec(),
        queues: [vec![Queue { borrows: true, ..Queue::named("q0") }], queues.to_vec()].concat(),
        ..TimedWorld::default()
    };
    for (preset, heads) in [("fair", 2), ("fair", 4), ("kai", 2), ("kai", 4)] {
        let engine = EngineConfig {
            order: Order::Dovetail,
            turns: Turns::preset(preset).expect("a preset"),
            preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
            reserve: ReserveConfig { heads, lent_percent: 100, ..ReserveConfig::default() },
            ..EngineConfig::default()
        };
        let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
        let mut simulation = Simulation::new(world.clone(), config).expect("a good world");
        let mut most = MostActions::default();
        assert!(simulation.run(None, &mut most).expect("it runs"));
        assert!(most.0 <= 10 * jobs.len(), "{preset} {heads}: {} actions in a step", most.0);
    }
}
