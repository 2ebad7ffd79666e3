//! A queue that wants its quota back again and again, from a job that loses all that it did.

use dovetail_check::{Judge, Violation};
use dovetail_model::{Action, Bounds, Event, JobId, PendingReason, Plan, Queue};
use dovetail_order::Turns;
use dovetail_plan::{Engine, EngineConfig, Order, PolicySpec, PreemptionConfig, ReserveConfig};
use dovetail_sim::timed::{Estimates, Observer, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::{StopCosts, TraceJob, TraceNode};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

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

fn job(id: String, queue: &str, submit_ms: u64, run_ms: u64, pods: u32, gpus: u32) -> TraceJob {
    TraceJob {
        id,
        queue: Some(queue.to_owned()),
        submit_ms,
        duration_ms: Some(run_ms),
        pod_count: pods,
        gpu_count: gpus,
        gpu_milli: 1_000,
        ..TraceJob::default()
    }
}

/// A gang without checkpoints fills the cluster for so many hours; for 40 hours, the other queue
/// has a job of one GPU and one minute every hour.
fn run(gang_hours: u64) -> Simulation {
    let node = |at: u32| TraceNode { name: format!("n{at}"), gpu_count: 8, ..TraceNode::default() };
    let mut jobs = vec![job("gang".to_owned(), "lent", 0, gang_hours * HOUR_MS, 2, 8)];
    jobs.extend((0..40).map(|hour| {
        let at_ms = hour * HOUR_MS + HOUR_MS / 2;
        job(format!("s{hour}"), "ours", at_ms, MINUTE_MS, 1, 1)
    }));
    let guaranteed = Bounds::gpus(Some(8_000));
    let queues = ["lent", "ours"].map(|name| Queue {
        guaranteed: guaranteed.clone(),
        borrows: true,
        ..Queue::named(name)
    });
    let nodes = (0..2).map(node).collect();
    let world = TimedWorld { nodes, jobs, queues: queues.into(), ..TimedWorld::default() };
    let turns = Turns::preset("fair").expect("a preset");
    let respite_ms = u64::from(turns.respite_s) * 1_000;
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let engine =
        EngineConfig { order: Order::Dovetail, turns, preemption, ..EngineConfig::default() };
    let config = TimedConfig { engine, estimates: Estimates::None, ..TimedConfig::default() };
    let mut simulation = Simulation::new(world, config).expect("a good world");
    let judge = Judge::new(&simulation.engine.snapshot()).with_respite_ms(respite_ms);
    let mut judged = Judged { judge, found: Vec::new() };
    assert!(simulation.run(None, &mut judged).expect("it runs"));
    assert_eq!(judged.found, []);
    simulation
}

/// The longest wait of the queue with the quota, and how often the gang was preempted.
fn waits(simulation: &Simulation) -> (u64, u32) {
    let of = |queue: &str| {
        let queue = Some(queue.to_owned());
        simulation.outcomes().filter(move |view| view.job.queue == queue).map(|view| view.outcome)
    };
    let wait = |start_ms: Option<u64>, submit_ms| start_ms.expect("it ran") - submit_ms;
    let longest = of("ours").map(|job| wait(job.start_ms, job.submit_ms)).max();
    (longest.expect("jobs"), of("lent").map(|job| job.preemptions).sum())
}

#[test]
fn a_quota_is_given_back_at_once_and_not_again_and_again() {
    let short = run(10);
    let (longest_ms, preemptions) = waits(&short);
    assert_eq!(preemptions, 1);
    let lost = short.metrics().lost_percent.expect("work was done");
    assert!(lost > 0.0 && lost < 10.0, "{lost}%");
    assert!(longest_ms < 10 * HOUR_MS, "{longest_ms} ms");
    let first = short.outcomes().find(|view| view.job.id == "s0").expect("the first");
    assert_eq!(first.outcome.start_ms, Some(first.outcome.submit_ms), "at once");
    // And no longer than a day, however long the gang would go on.
    let (longest_ms, preemptions) = waits(&run(30));
    assert_eq!((longest_ms / HOUR_MS, preemptions), (23, 3));
}

/// Two jobs of a queue fill the cluster, one beyond its quota. Two of the other queue, within its
/// quota, get a node each: one by reclaiming, the other when the first has ended.
#[test]
fn a_reservation_beyond_a_quota_does_not_hold_back_who_gets_a_quota_back() {
    const SECOND_MS: u64 = 1_000;
    let node = |at: u32| TraceNode { name: format!("n{at}"), gpu_count: 8, ..TraceNode::default() };
    let known = |id: &str, queue, at_s: u64, run_s: u64, says_s: u64| {
        let whole = job(id.to_owned(), queue, at_s * SECOND_MS, run_s * SECOND_MS, 1, 8);
        TraceJob { estimate_ms: Some(says_s * SECOND_MS), ..whole }
    };
    let jobs = vec![
        known("m", "lent", 0, 36_000, 36_000),
        known("v", "lent", 0, 36_000, 36_000),
        known("w1", "ours", 100, 1_000, 3_600),
        known("w2", "ours", 100, 3_600, 3_600),
    ];
    let queue = |name: &str, gpus: i64| Queue {
        guaranteed: Bounds::gpus(Some(gpus * 1_000)),
        borrows: true,
        ..Queue::named(name)
    };
    let queues = vec![queue("ours", 16), queue("lent", 8)];
    for heads in [0, 8] {
        let world = TimedWorld {
            nodes: (0..2).map(node).collect(),
            jobs: jobs.clone(),
            queues: queues.clone(),
            ..TimedWorld::default()
        };
        let engine = EngineConfig {
            order: Order::Dovetail,
            turns: Turns::preset("fair").expect("a preset"),
            preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
            reserve: ReserveConfig { heads, ..ReserveConfig::default() },
            ..EngineConfig::default()
        };
        let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
        let mut simulation = Simulation::new(world, config).expect("a good world");
        assert!(simulation.run(None, &mut ()).expect("it runs"));
        let preemptions: u32 = simulation.outcomes().map(|view| view.outcome.preemptions).sum();
        assert_eq!(preemptions, 1, "{heads} reservations");
        let second = simulation.outcomes().find(|view| view.job.id == "w2").expect("it is there");
        assert_eq!(second.outcome.start_ms, Some(1_100 * SECOND_MS), "{heads} reservations");
    }
}

/// Why the second job waits, with when it is said.
#[derive(Default)]
struct SecondWaits(Vec<(u64, PendingReason)>);

impl Observer for SecondWaits {
    fn stepped(&mut self, _: &mut Engine, now_ms: u64, _: &[Event], plan: &Plan) {
        let said = plan.actions.iter().filter_map(|action| match action {
            Action::Wait { job: JobId(1), reason } => Some((now_ms, *reason)),
            _ => None,
        });
        self.0.extend(said);
    }
}

/// A job that writes a checkpoint every five minutes fills the cluster. A minute before the next
/// one, another queue needs its quota.
#[test]
fn a_job_that_waits_for_a_checkpoint_of_its_victim_waits_for_its_turn() {
    let node = TraceNode { name: "n0".to_owned(), gpu_count: 4, ..TraceNode::default() };
    let lent = TraceJob {
        stop_costs: StopCosts {
            checkpoint_interval_ms: Some(5 * MINUTE_MS),
            ..StopCosts::default()
        },
        ..job("lent".to_owned(), "lent", 0, 10 * HOUR_MS, 1, 4)
    };
    let ours = job("ours".to_owned(), "ours", 64 * MINUTE_MS, 10 * MINUTE_MS, 1, 2);
    let queue = |name: &str, gpus: Option<i64>| Queue {
        guaranteed: Bounds::gpus(gpus),
        borrows: true,
        ..Queue::named(name)
    };
    for heads in [0, 8] {
        let world = TimedWorld {
            nodes: vec![node.clone()],
            jobs: vec![lent.clone(), ours.clone()],
            queues: vec![queue("ours", Some(2_000)), queue("lent", None)],
            ..TimedWorld::default()
        };
        let engine = EngineConfig {
            order: Order::Dovetail,
            turns: Turns::preset("fair").expect("a preset"),
            preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
            reserve: ReserveConfig { heads, ..ReserveConfig::default() },
            ..EngineConfig::default()
        };
        let config = TimedConfig { engine, estimates: Estimates::None, ..TimedConfig::default() };
        let mut simulation = Simulation::new(world, config).expect("a good world");
        let mut waits = SecondWaits::default();
        assert!(simulation.run(None, &mut waits).expect("it runs"));
        let told = waits.0;
        let first = (64 * MINUTE_MS, PendingReason::WaitingForTurn);
        assert_eq!(told.first(), Some(&first), "{heads} reservations: {told:?}");
        let lacks_nodes = told.iter().any(|(_, reason)| *reason == PendingReason::Unschedulable);
        assert!(!lacks_nodes, "{heads} reservations: {told:?}");
        let ours = simulation.outcomes().find(|view| view.job.id == "ours").expect("it is there");
        assert_eq!(ours.outcome.start_ms, Some(65 * MINUTE_MS), "{heads} reservations");
    }
}

/// Ends a simulation that decides far more often than there is anything to decide.
struct Ends {
    steps: u32,
}

impl Observer for Ends {
    fn stepped(&mut self, _: &mut Engine, now_ms: u64, _: &[Event], _: &Plan) {
        self.steps += 1;
        assert!(self.steps < 1_000, "the same jobs preempt each other at {now_ms} ms");
    }
}

/// Jobs of one pod: name, queue, submission and run time in ms, GPUs, priority.
type PlainJob = (&'static str, &'static str, u64, u64, u32, i32);

/// Runs jobs on nodes of so many GPUs with the preset `fair` and preemption until none is left.
fn ends(nodes: &[u32], jobs: &[PlainJob], queues: &[(&str, i64)]) {
    let node = |(at, gpu_count): (usize, &u32)| TraceNode {
        name: format!("n{at}"),
        gpu_count: *gpu_count,
        ..TraceNode::default()
    };
    let job = |(id, queue, submit_ms, run_ms, gpus, priority): &PlainJob| TraceJob {
        priority: *priority,
        ..job((*id).to_owned(), queue, *submit_ms, *run_ms, 1, *gpus)
    };
    let queue = |(name, gpus): &(&str, i64)| Queue {
        guaranteed: Bounds::gpus(Some(gpus * 1_000)),
        borrows: true,
        ..Queue::named(name)
    };
    let world = TimedWorld {
        nodes: nodes.iter().enumerate().map(node).collect(),
        jobs: jobs.iter().map(job).collect(),
        queues: queues.iter().map(queue).collect(),
        ..TimedWorld::default()
    };
    let engine = EngineConfig {
        policy: PolicySpec::named("first-fit"),
        order: Order::Dovetail,
        turns: Turns::preset("fair").expect("a preset"),
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        ..EngineConfig::default()
    };
    let config = TimedConfig { engine, estimates: Estimates::None, ..TimedConfig::default() };
    let mut simulation = Simulation::new(world, config).expect("a good world");
    assert!(simulation.run(None, &mut Ends { steps: 0 }).expect("it runs"));
    assert_eq!(simulation.metrics().unfinished_jobs, 0);
}

/// A large job of a queue with a small quota has a higher priority than a small one of that queue,
/// another queue's jobs have a higher priority than the large one, and the small one reclaims its
/// quota from them. If the large one preempted the small one, this would never end.
#[test]
fn a_job_beyond_its_quota_preempts_none_of_its_queue_within_it() {
    let jobs = [
        ("j5", "", 49_341, 91_693, 2, 0),
        ("j10", "", 65_149, 87_772, 4, 0),
        ("j12", "q0", 65_738, 230_335, 1, -3),
        ("j13", "q0", 120_414, 311_765, 2, 0),
        ("j15", "q3", 158_913, 62_954, 2, 0),
        ("j16", "q3", 163_963, 361_954, 4, 0),
        ("j21", "", 374_956, 283_622, 2, 5),
        ("j25", "", 394_816, 148_220, 2, 5),
    ];
    ends(&[8], &jobs, &[("q0", 1), ("q3", 7)]);
}
