//! One replay of the `timed` protocol, whatever the order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Error, Result};
use clap::ValueEnum;
use dovetail_capacity::Usage;
use dovetail_console::progress::Progress;
use dovetail_model::{Beneficiary, Booking, Event, Plan, Queue};
use dovetail_order::{ModelWeights, QueueTurns, Turns};
use dovetail_plan::{
    Engine, EngineConfig, EstimatesConfig, Foresight, Learnt, Order, PolicySpec, PreemptionConfig,
    ReserveConfig,
};
use dovetail_settings::errors::{BadInput, UsageError};
use dovetail_sim::baseline::{BaselineEvent, BaselineOrder, StartOverheads, replay_baseline};
use dovetail_sim::timed::cluster_events::ClusterEvent;
use dovetail_sim::timed::{
    Calibration, Estimates, FaultModel, Observer, QueueFigures, QueueWatch, Simulation,
    StartEstimate, StartWatch, TimedConfig, TimedError, TimedMetrics, TimedWorld, impossible_jobs,
    lost_percent,
};
use dovetail_sim::timeline::{Series, Timeline};
use dovetail_trace::{StopCosts, Trace, TraceCluster, TraceJob};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::check::{Check, ReplayWatch};
use crate::input::baseline;
use crate::input::queues_file::QueueFlags;
use crate::money;
use crate::pause::{self, Pause, Resumed};
use crate::recording::ReplayRecording;
use crate::reservations::ReservationFigures;

/// The order in which pending jobs start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderName {
    /// Submission order; the first job that does not fit blocks all later jobs
    Fifo,
    /// Submission order; jobs that do not fit are skipped
    FifoSkip,
    /// Queue with the smallest dominant share first, as `dovetail scheduler` does by default; all
    /// queues have equal weight
    DominantShare,
    /// The order of a preset (default: fair); run times that the trace does not estimate are
    /// learned from other jobs
    Dovetail,
    /// Shortest expected run time first (by default the true run time; see --estimates); jobs that
    /// do not fit are skipped
    Sjf,
    /// Shortest remaining time first; preemptive, as published
    Srtf,
    /// Shortest remaining time x GPUs first; preemptive, as published
    Srsf,
    /// Least attained service in three queues, with one pool of GPUs instead of nodes; preemptive,
    /// as published
    Las,
    /// Least attained service on individual nodes; running jobs keep their nodes, and preemption
    /// has a cost
    LasPlaced,
}

/// What an order runs on.
#[derive(Debug)]
enum OrderRunner {
    /// The decision engine, with the estimates it is given unless told otherwise.
    Engine(Order, Estimates),
    /// A published simulation, apart from the engine.
    Published(BaselineOrder),
}

impl OrderName {
    /// The name for the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::FifoSkip => "fifo-skip",
            Self::DominantShare => "dominant-share",
            Self::Dovetail => "dovetail",
            Self::Sjf => "sjf",
            Self::Srtf => "srtf",
            Self::Srsf => "srsf",
            Self::Las => "las",
            Self::LasPlaced => "las-placed",
        }
    }

    /// True when jobs are preempted and restarted, by published rules that know no policy.
    pub fn is_preemptive(self) -> bool {
        matches!(self.kind(), OrderRunner::Published(_))
    }

    fn kind(self) -> OrderRunner {
        match self {
            Self::Fifo => OrderRunner::Engine(Order::Fifo, Estimates::Trace),
            Self::FifoSkip => OrderRunner::Engine(Order::FifoSkip, Estimates::Trace),
            Self::DominantShare => OrderRunner::Engine(Order::DominantShare, Estimates::Trace),
            Self::Dovetail => OrderRunner::Engine(Order::Dovetail, Estimates::Trace),
            Self::Sjf => OrderRunner::Engine(Order::ShortestFirst, Estimates::Truth),
            Self::Srtf => OrderRunner::Published(BaselineOrder::Srtf),
            Self::Srsf => OrderRunner::Published(BaselineOrder::Srsf),
            Self::Las => OrderRunner::Published(BaselineOrder::Las),
            Self::LasPlaced => OrderRunner::Published(BaselineOrder::LasPlaced),
        }
    }
}

/// Everything a replay is told beside the trace and the machines.
#[derive(Clone, Debug)]
pub struct TimedPlan {
    pub order: OrderName,
    /// How nodes are chosen; preemptive orders do not ask.
    pub policy: PolicySpec,
    /// What the engine knows about run times, if not what the order asks for.
    pub estimates: Option<Estimates>,
    pub overheads: Option<StartOverheads>,
    pub cluster_events: Vec<ClusterEvent>,
    pub faults: Option<FaultModel>,
    /// Whether jobs of higher priority stop others.
    pub preemption: bool,
    /// Weights of order `dovetail`.
    pub turns: Turns,
    /// What GPUs of some models count in the usage of queues.
    pub model_weights: ModelWeights,
    /// Where queues are described, and what they have used.
    pub queues: QueueFlags,
    /// What stops cost where the trace does not say.
    pub stop_costs: StopCosts,
    /// Whether published orders pay for stops, too.
    pub charges_baselines: bool,
    /// Whether capacity is reserved for the jobs that are next.
    pub reserve: ReserveConfig,
    /// What is reserved from one time to another, with when it is asked for.
    pub bookings: Vec<(u64, Booking)>,
    /// How often it is asked when pending jobs start; `None` is never.
    pub forecast_every_ms: Option<u64>,
    pub check: Check,
}

impl TimedPlan {
    /// Notes about reservations that no job of the trace may use.
    pub fn without_jobs(&self, jobs: &[TraceJob]) -> Vec<String> {
        let note = |booking: &Booking| {
            let name = &booking.name;
            match booking.beneficiary.as_ref()? {
                Beneficiary::Queue(queue) => {
                    let has_jobs = jobs.iter().any(|job| job.queue.as_ref() == Some(queue));
                    (!has_jobs).then(|| format!("reservation {name}: no job is in queue {queue}"))
                }
                Beneficiary::Job(id) => {
                    let is_there = jobs.iter().any(|job| job.id == *id);
                    (!is_there).then(|| format!("reservation {name}: the trace has no job {id}"))
                }
            }
        };
        self.bookings.iter().filter_map(|(_, booking)| note(booking)).collect()
    }
}

/// Files beside a replay; published orders know none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'f> {
    pub record: Option<&'f Path>,
    pub pause: Option<Pause<'f>>,
    pub from_checkpoint: Option<&'f Path>,
}

/// What came out, as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct TimedFigures {
    #[serde(flatten)]
    pub metrics: TimedMetrics,
    /// How good the expected run times were that jobs started with, by source; absent where no job
    /// had one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub estimates: BTreeMap<&'static str, Calibration>,
    /// How good expected starts were, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_estimate: Option<StartEstimate>,
    /// How queues fared, where the order or `--queues` looks at them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<QueueFigures>>,
    /// What became of reservations from one time to another, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservationFigures>,
    pub event_log_hash: String,
    #[serde(skip)]
    pub learnt: Option<Learnt>,
    /// Where the GPU-time went; published orders keep no such account.
    #[serde(skip)]
    pub usage: Option<Usage>,
    /// The same over time.
    #[serde(skip)]
    pub series: Option<Series>,
    /// Where it went on, on the trace's clock, if it was paused before.
    pub resumed_at_ms: Option<u64>,
    /// Whether it was paused before the end; then there is no account yet.
    #[serde(skip)]
    pub is_paused: bool,
}

/// Replays a trace.
pub fn replay(
    trace: &Trace,
    cluster: &TraceCluster,
    plan: &TimedPlan,
    files: Files<'_>,
    progress: &Progress,
) -> Result<TimedFigures> {
    match plan.order.kind() {
        OrderRunner::Engine(order, estimates) => {
            let config = config(trace, plan, order, estimates);
            by_engine(trace, cluster, plan, &config, files, progress)
        }
        OrderRunner::Published(order) => as_published(trace, cluster, plan, order, progress),
    }
}

fn config(trace: &Trace, plan: &TimedPlan, order: Order, estimates: Estimates) -> TimedConfig {
    let mut policy = plan.policy.clone();
    if policy.name == "fgd" {
        policy.target_mix = Simulation::target_mix(&trace.jobs);
    }
    let of_order = match order {
        Order::Dovetail => PreemptionConfig::of_turns(&plan.turns),
        _ => PreemptionConfig::default(),
    };
    let enabled = of_order.enabled || plan.preemption;
    let by_priority = of_order.by_priority || plan.preemption;
    let preemption = PreemptionConfig { enabled, by_priority, ..of_order };
    let turns = plan.turns;
    let estimates = plan.estimates.unwrap_or(estimates);
    let learn = estimates == Estimates::Learned;
    let learned = EstimatesConfig { learn, ..EstimatesConfig::default() };
    let engine = EngineConfig {
        policy,
        order,
        preemption,
        estimates: learned,
        reserve: plan.reserve,
        turns,
        model_weights: plan.model_weights.clone(),
        ..EngineConfig::default()
    };
    TimedConfig { engine, estimates, faults: plan.faults, stop_costs: plan.stop_costs }
}

/// The queues of a trace, where the order or a flag asks for them.
fn queues(trace: &Trace, plan: &TimedPlan, config: &TimedConfig) -> Result<Vec<Queue>> {
    let looks_at_queues = match config.engine.order {
        Order::DominantShare => true,
        Order::Dovetail => config.engine.turns.queues != QueueTurns::None,
        _ => false,
    };
    match looks_at_queues || plan.queues.given().is_some() {
        true => plan.queues.queues(&trace.jobs),
        false => Ok(Vec::new()),
    }
}

fn by_engine(
    trace: &Trace,
    cluster: &TraceCluster,
    plan: &TimedPlan,
    config: &TimedConfig,
    files: Files<'_>,
    progress: &Progress,
) -> Result<TimedFigures> {
    baseline::check_times(trace, baseline::TIMED)?;
    let queues = queues(trace, plan, config)?;
    let queue_watch = watch_queues(&queues, trace, cluster)?;
    let world = TimedWorld {
        nodes: cluster.nodes.clone(),
        jobs: trace.jobs.clone(),
        cluster_events: plan.cluster_events.clone(),
        bookings: plan.bookings.clone(),
        usage: plan.queues.usage(&queues, cluster.total_gpus())?,
        queues,
        ..TimedWorld::default()
    };
    let kept_world = files.pause.map(|_| world.clone());
    let (mut simulation, account, queue_watch) = match files.from_checkpoint {
        None => (Simulation::new(world, config.clone())?, new_account(trace), queue_watch),
        Some(path) => resume(path, world, config, queue_watch)?,
    };
    let resumed_at_ms = files.from_checkpoint.map(|_| simulation.progress().now_ms());
    refuse_passed(files, resumed_at_ms)?;
    progress.advance((trace.jobs.len() - simulation.progress().unfinished()) as u64);
    let watch = ReplayWatch::of_turns(plan.check, &simulation.engine.snapshot(), &config.engine);
    let record = |path| ReplayRecording::start(path, &config.engine, &simulation.engine);
    let recording = files.record.map(record).transpose()?;
    let foresight = Foresight::default();
    let starts = plan.forecast_every_ms.map(|every_ms| StartWatch::new(every_ms, foresight));
    let mut eyes = Eyes { watch, account, queues: queue_watch, recording, starts, progress };
    let is_over = simulation
        .run(files.pause.map(|pause| pause.at_ms), &mut eyes)
        .map_err(|error| placed(trace, error))?;
    let Eyes { watch, mut account, queues, recording, starts, .. } = eyes;
    recording.map_or(Ok(()), ReplayRecording::finish)?;
    watch.verdict()?;
    let mut figures = TimedFigures {
        metrics: simulation.metrics(),
        estimates: simulation.calibrations(),
        start_estimate: starts.as_ref().map(StartWatch::figures),
        queues: queues.as_ref().map(|queues| {
            let usage = |name: &str| simulation.engine.list().queue_usage(name);
            queues.figures(simulation.outcomes(), usage)
        }),
        reservations: simulation.engine.list().bookings().map(ReservationFigures::of).collect(),
        event_log_hash: simulation.event_log_hash(),
        learnt: simulation.engine.policy().learnt().cloned(),
        usage: None,
        series: None,
        resumed_at_ms,
        is_paused: !is_over,
    };
    match (files.pause, kept_world) {
        (Some(pause), Some(world)) if !is_over => {
            let seen = (account, queues.as_ref().map(QueueWatch::pause));
            pause::write(pause.path, &simulation, &world, config, seen)?;
        }
        _ => {
            figures.usage = Some(account.usage()?);
            figures.series = Some(account.series()?);
        }
    }
    Ok(figures)
}

fn new_account(trace: &Trace) -> Timeline {
    Timeline::new(money::period(trace))
}

/// A paused simulation, with its account and its watch of queues as they were.
fn resume(
    path: &Path,
    world: TimedWorld,
    config: &TimedConfig,
    watch: Option<QueueWatch>,
) -> Result<(Simulation, Timeline, Option<QueueWatch>)> {
    let Resumed { simulation, account, queues } = pause::resume(path, world, config)?;
    let watch = watch.zip(queues).and_then(|(watch, seen)| watch.resume(seen));
    Ok((simulation, account, watch))
}

/// Watches what queues get. Jobs without a queue are one more, without a name.
fn watch_queues(
    queues: &[Queue],
    trace: &Trace,
    cluster: &TraceCluster,
) -> Result<Option<QueueWatch>> {
    if queues.is_empty() {
        return Ok(None);
    }
    let has_nameless = trace.jobs.iter().any(|job| job.queue.is_none());
    let nameless = has_nameless.then(|| Queue::named(""));
    let queues: Vec<Queue> = queues.iter().cloned().chain(nameless).collect();
    let impossible = impossible_jobs(&cluster.nodes, &trace.jobs)?;
    let ignored = impossible.into_iter().map(|job| job.job).collect();
    Ok(Some(QueueWatch::new(&queues, cluster.total_gpus(), ignored)))
}

/// Refuses a pause at a time that has passed.
fn refuse_passed(files: Files<'_>, resumed_at_ms: Option<u64>) -> Result<()> {
    match files.pause.zip(resumed_at_ms) {
        Some((pause, stands_ms)) if pause.at_ms < stands_ms => {
            let text = format!(
                "--pause-at: the checkpoint is already at {stands_ms} ms: use a later time"
            );
            Err(UsageError(text).into())
        }
        _ => Ok(()),
    }
}

/// What a simulation says of a trace, with the place of the job where it is one.
fn placed(trace: &Trace, error: TimedError) -> Error {
    match error {
        TimedError::TooLate { row, .. } => {
            BadInput(format!("{}: {error}", trace.place(row))).into()
        }
        error => error.into(),
    }
}

fn as_published(
    trace: &Trace,
    cluster: &TraceCluster,
    plan: &TimedPlan,
    order: BaselineOrder,
    progress: &Progress,
) -> Result<TimedFigures> {
    let is_charged = plan.charges_baselines || order == BaselineOrder::LasPlaced;
    let jobs = baseline::jobs(trace, is_charged.then_some(plan.stop_costs))?;
    let pool = baseline::cluster(cluster)?;
    let mut log = Sha256::new();
    let mut on_event = |event: BaselineEvent| {
        let BaselineEvent { time_us, job, kind } = event;
        log.update(format!("{time_us} {} {job}\n", kind.name()));
    };
    let run = replay_baseline(&jobs, &pool, order, plan.overheads.as_ref(), &mut on_event)
        .map_err(|error| baseline::placed(trace, error))?;
    progress.advance(jobs.len() as u64);
    let mut waits_us: Vec<u64> = run.outcomes.iter().map(|o| o.start_us - o.submit_us).collect();
    waits_us.sort_unstable();
    let wait_s = |hundredths: usize| {
        waits_us.get(waits_us.len() * hundredths / 100).map(|us| *us as f64 / 1e6)
    };
    let work_gpu_us =
        jobs.iter().map(|job| u128::from(job.service_us) * u128::from(job.num_gpu)).sum();
    let metrics = TimedMetrics {
        jobs: run.metrics.jobs as u64,
        unfinished_jobs: 0,
        started_jobs: run.metrics.jobs as u64,
        average_jct_s: Some(run.metrics.average_jct_s),
        p99_jct_s: Some(run.metrics.p99_jct_s),
        makespan_s: Some(run.metrics.makespan_s),
        average_queue_s: Some(run.metrics.average_queue_s),
        p50_queue_s: wait_s(50),
        p99_queue_s: wait_s(99),
        worst_queue_s: waits_us.last().map(|us| *us as f64 / 1e6),
        gpu_occupancy: Some(run.metrics.gpu_occupancy),
        restarts: 0,
        repeated_gpu_hours: 0.0,
        preemptions: run.preemptions,
        lost_gpu_s: run.lost_gpu_us as f64 / 1e6,
        lost_percent: lost_percent(run.lost_gpu_us, work_gpu_us),
    };

    let event_log_hash = hexadecimal(&log.finalize());
    Ok(TimedFigures {
        metrics,
        estimates: BTreeMap::new(),
        start_estimate: None,
        queues: None,
        reservations: Vec::new(),
        event_log_hash,
        learnt: None,
        usage: None,
        series: None,
        resumed_at_ms: None,
        is_paused: false,
    })
}

/// The judge, the account, the recorder and the progress bar.
struct Eyes<'p> {
    watch: ReplayWatch,
    account: Timeline,
    queues: Option<QueueWatch>,
    recording: Option<ReplayRecording<'p>>,
    starts: Option<StartWatch>,
    progress: &'p Progress,
}

impl Observer for Eyes<'_> {
    fn advanced(&mut self, engine: &mut Engine, from_ms: u64, to_ms: u64) {
        self.account.advanced(engine, from_ms, to_ms);
        if let Some(queues) = &mut self.queues {
            queues.advanced(engine, from_ms, to_ms);
        }
    }

    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        self.account.stepped(engine, now_ms, events, plan);
        if let Some(queues) = &mut self.queues {
            queues.stepped(engine, now_ms, events, plan);
        }
        self.watch.step(events, plan, now_ms);
        self.watch.lent(engine);
        if let Some(recording) = &mut self.recording {
            recording.recorder.step(now_ms, events, plan);
        }
        if let Some(starts) = &mut self.starts {
            starts.stepped(engine, now_ms, events, plan);
        }
        let ended = events.iter().filter(|event| matches!(event, Event::Ended { .. }));
        self.progress.advance(ended.count() as u64);
    }
}

/// Bytes as hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
