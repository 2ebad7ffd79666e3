//! How long decisions take on a large, full cluster with thousands of pending jobs, event by event,
//! with everything on and with all of it off.
//!
//! Half of the queues hold more than their quotas and have the pending jobs. The others hold less
//! and submit one job in twenty, for which quotas are reclaimed. One job in fifty that is submitted
//! later has a high priority.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dovetail_model::job::EstimateSource;
use dovetail_model::{
    Action, Bounds, DeviceAmount, DeviceRequest, Estimate, Event, History, Holding, HoldingId,
    HoldingPhase, HowEnded, Job, JobId, Node, Owner, Plan, PodId, PodSet, Queue, Requirement,
    Resources, RunProfile, Snapshot,
};
use dovetail_order::Turns;
use dovetail_plan::{
    Batch, Engine, EngineConfig, EstimatesConfig, Order, PreemptionConfig, ReserveConfig,
};
use dovetail_trace::fgd::GoRandom;

const SEED: i64 = 42;
const NODES: u32 = 10_000;
const GPUS_PER_NODE: u32 = 8;
/// Nodes that gangs hold, and how many each of them does.
const GANG_NODES: u32 = 6_000;
const NODES_PER_GANG: u32 = 16;
const PENDING: usize = 5_000;
/// At most so many more or fewer.
const PENDING_SLACK: usize = 50;
const QUEUES: u32 = 200;
/// GPUs that each queue is guaranteed: four fifths of the cluster in sum.
const QUOTA_GPUS: i64 = 320;
const RESERVATIONS: u32 = 20;
const DAY_MS: u64 = 24 * 3_600_000;
const NOW_MS: u64 = 10 * DAY_MS;
/// Submissions and ends of a day, at even distances.
const EVENTS_OF_DAY: u64 = 64_000;
/// So many of them are measured, as far as there is time for them.
const EVENTS: usize = 4_000;
const MOST_TIME: Duration = Duration::from_secs(35);
/// Decisions after the first until the day begins, at most.
const MOST_DECISIONS: u32 = 20;
/// How jobs of one GPU to eight share a node.
const LAYOUTS: [&[u32]; 4] = [&[8], &[4, 4], &[4, 2, 2], &[1; 8]];
/// A shape is one of these numbers of GPUs with one of 50 requests for CPU and one of 5 for memory.
const SHAPE_GPUS: [u32; 4] = [1, 2, 4, 8];
const SHAPES_OF_GPUS: u32 = 250;

pub(crate) fn print() {
    println!(
        "| features | first decision | until settled | events | median | p99 | worst | \
         submitted, ended, preempted, timers | search steps | \
         pending jobs, reservations at the end |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    row("on", on());
    row("off", EngineConfig::default());
    let most = EngineConfig::default().max_index_bytes >> 20;
    println!("\nTargets with features on: p99 50 ms, worst 500 ms.");
    println!("Score trees take {most} MiB at most: beyond that, the engine drops the oldest.");
}

/// Order `dovetail`, learned run times, reservations, preemption and reclaim.
fn on() -> EngineConfig {
    EngineConfig {
        order: Order::Dovetail,
        turns: Turns::preset("fair").expect("a preset"),
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        estimates: EstimatesConfig { learn: true, ..EstimatesConfig::default() },
        reserve: ReserveConfig { heads: RESERVATIONS, ..ReserveConfig::default() },
        ..EngineConfig::default()
    }
}

fn row(features: &str, config: EngineConfig) {
    let mut day = RecordedDay::new(config);
    let first_us = day.first_decision();
    let (decisions, settled_us) = day.settle();
    day.run();
    let Counts { submitted, ended, preempted, timers } = day.counts;
    let effort = day.engine.take_search_effort();
    let (pending, reserved) =
        (day.engine.list().waiting_jobs(), day.engine.snapshot().reserved.len());
    let mut times_us = day.times_us;
    times_us.sort_unstable();
    let at = |percent: usize| ms(times_us[(times_us.len() - 1) * percent / 100]);
    println!(
        "| {features} | {:.0} ms | {decisions} decisions, {:.0} ms | {} | {:.2} ms | {:.2} ms | \
         {:.2} ms | {submitted}, {ended}, {preempted}, {timers} | {} | {pending}, {reserved} |",
        ms(first_us),
        ms(settled_us),
        times_us.len(),
        at(50),
        at(99),
        at(100),
        effort.operations,
    );
}

fn ms(us: u128) -> f64 {
    us as f64 / 1000.0
}

/// Events that were measured, by kind.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    submitted: u64,
    ended: u64,
    preempted: u64,
    timers: u64,
}

/// An engine, and what happens to it.
struct RecordedDay {
    engine: Engine,
    jobs: JobMaker,
    /// Jobs that run and are not being preempted.
    running: Vec<JobId>,
    /// Ends of preempted jobs, each before its submission again.
    follow: VecDeque<Event>,
    times_us: Vec<u128>,
    counts: Counts,
}

impl RecordedDay {
    fn new(config: EngineConfig) -> Self {
        let mut jobs = JobMaker::new();
        let world = jobs.world();
        let running = world.jobs.iter().map(|job| job.id).collect();
        let engine = Engine::new(config, &world).expect("an engine");
        let (follow, times_us) = (VecDeque::new(), Vec::new());
        Self { engine, jobs, running, follow, times_us, counts: Counts::default() }
    }

    /// Submits the pending jobs and decides about all of them; how long that takes, in µs.
    fn first_decision(&mut self) -> u128 {
        for _ in 0..PENDING {
            let queue = self.jobs.queue_beyond_quota();
            let submit_ms = NOW_MS - self.jobs.below(DAY_MS);
            let job = self.jobs.pending(queue, submit_ms);
            let event = Event::Submitted(Box::new(job));
            self.engine.step(Batch::pending(event), NOW_MS).expect("a new job");
        }
        let start = Instant::now();
        let plan = self.engine.step(Batch::decision(), NOW_MS).expect("a decision");
        let took_us = start.elapsed().as_micros();
        self.note(&plan);
        self.engine.take_search_effort();
        took_us
    }

    /// Victims of the first decisions leave and wait again, and decisions follow, until nobody is
    /// preempted any more. How many decisions that took, and how long all of it, in µs.
    fn settle(&mut self) -> (u32, u128) {
        let start = Instant::now();
        let mut decisions = 0;
        while !self.follow.is_empty() && decisions < MOST_DECISIONS {
            while let Some(event) = self.follow.pop_front() {
                self.engine.step(Batch::pending(event), NOW_MS).expect("a step");
            }
            let plan = self.engine.step(Batch::decision(), NOW_MS).expect("a decision");
            self.note(&plan);
            decisions += 1;
        }
        self.engine.take_search_effort();
        (decisions, start.elapsed().as_micros())
    }

    fn run(&mut self) {
        let begun = Instant::now();
        let mut now_ms = NOW_MS;
        for _ in 0..EVENTS {
            now_ms += DAY_MS / EVENTS_OF_DAY;
            // A timer that is due now was honored in the last step, as far as that helped.
            while let Some(due_ms) = self.engine.due_ms()
                && due_ms > self.engine.now_ms()
                && due_ms < now_ms
                && begun.elapsed() < MOST_TIME
            {
                self.step(Event::Tick, due_ms);
            }
            let event = self.next_event(now_ms);
            self.step(event, now_ms);
            while begun.elapsed() < MOST_TIME
                && let Some(event) = self.follow.pop_front()
            {
                self.step(event, now_ms);
            }
            if begun.elapsed() >= MOST_TIME {
                return;
            }
        }
    }

    /// A submission or an end; both are as likely while there are about [`PENDING`] pending jobs.
    fn next_event(&mut self, now_ms: u64) -> Event {
        let pending = self.engine.list().waiting_jobs();
        let draws_submission = self.jobs.below(2) == 0;
        let submits = pending < PENDING - PENDING_SLACK
            || draws_submission && pending <= PENDING + PENDING_SLACK
            || self.running.is_empty();
        if submits {
            let queue = match self.jobs.below(20) {
                0 => self.jobs.queue_within_quota(),
                _ => self.jobs.queue_beyond_quota(),
            };
            let mut job = self.jobs.pending(queue, now_ms);
            job.priority = if self.jobs.below(50) == 0 { 5 } else { 0 };
            return Event::Submitted(Box::new(job));
        }
        let at = self.jobs.below(self.running.len() as u64) as usize;
        Event::ended(self.running.swap_remove(at))
    }

    /// Measures a step.
    fn step(&mut self, event: Event, now_ms: u64) {
        match &event {
            Event::Submitted(_) => self.counts.submitted += 1,
            Event::Ended { how: HowEnded::Preempted, .. } => self.counts.preempted += 1,
            Event::Ended { .. } => self.counts.ended += 1,
            _ => self.counts.timers += 1,
        }
        let start = Instant::now();
        let plan = self.engine.step(event, now_ms).expect("a step");
        self.times_us.push(start.elapsed().as_micros());
        self.note(&plan);
    }

    /// Notes who started, and lets those leave at once that are to be preempted: they wait again.
    fn note(&mut self, plan: &Plan) {
        let (mut started, mut leaving) = (BTreeSet::new(), BTreeSet::new());
        for action in &plan.actions {
            match action {
                Action::Bind { pod, .. } => {
                    started.insert(pod.job);
                }
                Action::Preempt { victims, .. } => {
                    leaving.extend(victims.iter().map(|pod| pod.job));
                }
                _ => {}
            }
        }
        self.running.extend(started);
        if leaving.is_empty() {
            return;
        }
        self.running.retain(|job| !leaving.contains(job));
        for job in leaving {
            let mut again = self.engine.job(job).expect("a victim runs").clone();
            again.pod_sets.iter_mut().for_each(|set| set.present = 0);
            again.start_ms = None;
            again.estimate = None;
            // The engine keeps what it has behind it.
            again.history = History::default();
            let ended = Event::Ended { job, how: HowEnded::Preempted };
            self.follow.extend([ended, Event::Submitted(Box::new(again))]);
        }
    }
}

/// Jobs by seed.
struct JobMaker {
    random: GoRandom,
    shapes: Vec<Arc<Requirement>>,
    made: u64,
}

impl JobMaker {
    fn new() -> Self {
        let all = SHAPE_GPUS.into_iter().flat_map(|gpus| {
            (0..SHAPES_OF_GPUS).map(move |number| Arc::new(requirement(gpus, number)))
        });
        Self { random: GoRandom::new(SEED), shapes: all.collect(), made: 0 }
    }

    /// A number below another one.
    fn below(&mut self, bound: u64) -> u64 {
        u64::from(self.random.below(bound as u32))
    }

    fn queue_beyond_quota(&mut self) -> u64 {
        self.below(u64::from(QUEUES / 2))
    }

    fn queue_within_quota(&mut self) -> u64 {
        u64::from(QUEUES / 2) + self.below(u64::from(QUEUES / 2))
    }

    /// Nodes without a free GPU.
    fn world(&mut self) -> Snapshot {
        let node = |number| Node::plain(&node_name(number), 128_000, 1 << 40, 8, "H100");
        let queue = |number: u32| Queue {
            guaranteed: Bounds::gpus(Some(QUOTA_GPUS * 1_000)),
            borrows: true,
            ..Queue::named(&queue_name(u64::from(number)))
        };
        let mut world = Snapshot {
            now_ms: NOW_MS,
            nodes: (0..NODES).map(node).collect(),
            queues: (0..QUEUES).map(queue).collect(),
            ..Snapshot::default()
        };
        for first in (0..GANG_NODES).step_by(NODES_PER_GANG as usize) {
            let places = (first..first + NODES_PER_GANG).map(|node| (node, 0)).collect();
            self.add_running(&mut world, GPUS_PER_NODE, places);
        }
        for node in GANG_NODES..NODES {
            let mut device = 0;
            for gpus in LAYOUTS[node as usize % LAYOUTS.len()] {
                self.add_running(&mut world, *gpus, vec![(node, device)]);
                device += gpus;
            }
        }
        world
    }

    /// A job that runs, with pods of so many GPUs at these places: a node, and its first device
    /// there. Three of four are of queues that hold more than their quotas.
    fn add_running(&mut self, world: &mut Snapshot, gpus: u32, places: Vec<(u32, u32)>) {
        let queue = match self.below(4) {
            0 => self.queue_within_quota(),
            _ => self.queue_beyond_quota(),
        };
        let start_ms = NOW_MS - self.below(DAY_MS);
        let mut job = self.job(gpus, places.len() as u32, queue, start_ms);
        let run_ms = NOW_MS - start_ms + 1 + self.below(DAY_MS);
        let source = EstimateSource::History;
        job.estimate = Some(Estimate { p50_ms: run_ms, p90_ms: 2 * run_ms, source });
        job.start_ms = Some(start_ms);
        job.pod_sets[0].present = places.len() as u32;
        for ((node, device), ordinal) in places.into_iter().zip(0..) {
            let devices = (device..device + gpus).map(|index| index as u16);
            world.holdings.push(Holding {
                id: HoldingId(world.holdings.len() as u64),
                node: node_name(node).as_str().into(),
                owner: Owner::Pod(PodId { job: job.id, pod_set: 0, ordinal }),
                phase: HoldingPhase::Held { expected_end_ms: Some(start_ms + run_ms) },
                reservation: None,
                resources: job.pod_sets[0].requirement.resources.clone(),
                devices: devices.map(|index| (index, DeviceAmount::share(1_000, 0))).collect(),
                counts_into: Default::default(),
                attachments: BTreeSet::new(),
            });
        }
        world.jobs.push(job);
    }

    /// A job of any shape; one in four of those with whole nodes has several pods.
    fn pending(&mut self, queue: u64, submit_ms: u64) -> Job {
        let gpus = SHAPE_GPUS[self.below(SHAPE_GPUS.len() as u64) as usize];
        let pods = match self.below(4) {
            0 if gpus == GPUS_PER_NODE => 2_u32 << self.below(4),
            _ => 1,
        };
        self.job(gpus, pods, queue, submit_ms)
    }

    fn job(&mut self, gpus: u32, pods: u32, queue: u64, submit_ms: u64) -> Job {
        let number = self.below(u64::from(SHAPES_OF_GPUS));
        let of_gpus = u64::from(gpus.trailing_zeros() * SHAPES_OF_GPUS);
        let requirement = Arc::clone(&self.shapes[(of_gpus + number) as usize]);
        let id = JobId(self.made);
        self.made += 1;
        let name = format!("train-{}", id.0);
        let mut job = Job::single(id, &name, submit_ms, Arc::clone(&requirement));
        job.pod_sets = vec![PodSet::fixed("main", requirement, pods)];
        job.queue = queue_name(queue);
        let image = format!("image-{}", number % 50);
        job.profile = RunProfile { owner: job.queue.clone(), image, ..RunProfile::default() };
        job.interruption.checkpoint_interval_ms = Some(10 * 60_000);
        job.interruption.restart_cost_ms = Some(30_000);
        job
    }
}

fn requirement(gpus: u32, number: u32) -> Requirement {
    let (gpus, number) = (i64::from(gpus), i64::from(number));
    let cpu_milli = gpus * (4_000 + 100 * (number % 50));
    let memory_bytes = (gpus * (32 + 8 * (number / 50))) << 30;
    Requirement {
        resources: Resources::pod(cpu_milli, memory_bytes),
        device: DeviceRequest::Whole { count: gpus as u16, same_island: false },
        ..Requirement::default()
    }
}

fn node_name(number: u32) -> String {
    format!("node-{number:05}")
}

fn queue_name(number: u64) -> String {
    format!("queue-{number:03}")
}
