//! `dovetail demo`: a month of a real-size cluster under four policies, and where the money went.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use dovetail_console::app::{App, to_stderr};
use dovetail_console::file::{check_place, write_whole};
use dovetail_console::progress::Progress;
use dovetail_console::table::counted;
use dovetail_model::{Event, Plan};
use dovetail_plan::{Engine, EngineConfig, Order, PolicySpec};
use dovetail_render::comparison as report;
use dovetail_settings::form::Output;
use dovetail_sim::comparison::{ReportData, RunAccount, TimedComparison, TimedPolicy, TimedRun};
use dovetail_sim::timed::{Estimates, Observer, Simulation, TimedConfig, TimedWorld};
use dovetail_sim::timeline::{Timeline, TimelineConfig, UsageReport};
use dovetail_sources::prices::{PriceFlags, Prices};
use dovetail_trace::synth::{SynthConfig, synth};
use dovetail_trace::{TraceCluster, TraceJob};
use dovetail_units::duration::duration_of_seconds;
use rayon::prelude::*;

use crate::commands::demo_traces;
use dovetail_replays::check::{Check, ReplayWatch};
use dovetail_replays::impossible::Impossible;

/// Two settings of the scheduler that clusters have, a simple policy, and the default.
const POLICIES: [&str; 4] = ["kube-default", "kube-most-allocated", "best-fit", "dovetail"];
/// How long a judgement of causes may be out of date; the sums are exact whatever this is.
const CAUSE_PERIOD_MS: u64 = 600_000;

/// What to show, and where to put the report.
#[derive(Debug, Args)]
pub(crate) struct DemoFlags {
    /// Number of nodes in the synthetic cluster
    #[arg(long, value_name = "N", default_value_t = 1_200)]
    nodes: u32,
    /// Length of the trace, in days
    #[arg(long, value_name = "N", default_value_t = 30)]
    days: u32,
    /// GPU time that the jobs can use within --days, as a fraction of the cluster's GPU time
    #[arg(long, value_name = "RATIO", default_value_t = 0.9)]
    load: f64,
    /// Folder of real traces to replay instead of a synthetic one
    #[arg(long, value_name = "FOLDER", env = "DOVETAIL_TRACES")]
    traces: Option<PathBuf>,
    /// File for the report
    #[arg(long, value_name = "FILE", default_value = "out/demo.html")]
    report: PathBuf,
    #[command(flatten)]
    prices: PriceFlags,
}

/// Runs the demonstration.
pub(crate) fn run(app: &App, flags: &DemoFlags) -> Result<()> {
    let output = app.output("demo")?;
    prepare_place(&flags.report)?;
    let started = Instant::now();
    let mut data = ReportData {
        title: "dovetail demo".to_owned(),
        program: format!("dovetail {}", env!("CARGO_PKG_VERSION")),
        command: Some(flags.command(app)),
        ..ReportData::default()
    };
    match flags.traces.as_deref().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => demo_traces::fill(app, &mut data, folder, flags)?,
        None => data.timed.push(synthetic(app, flags)?),
    }
    let html = report::html(&data)?;
    write_whole(&flags.report, |file| file.write_all(html.as_bytes()))?;
    match output {
        Output::Json => return app.print_json(&data),
        Output::Html => return app.print(&html),
        _ => app.print(&report::text(&data)?)?,
    }
    let path = flags.report.canonicalize().unwrap_or_else(|_| flags.report.clone());
    let seconds = started.elapsed().as_secs_f64();
    let took = duration_of_seconds(seconds);
    app.print(&format!("\nReport with plots: {}  ({took})\n", path.display()))
}

fn synthetic(app: &App, flags: &DemoFlags) -> Result<TimedComparison> {
    let config = SynthConfig {
        seed: app.settings.seed.value,
        nodes: flags.nodes,
        days: flags.days,
        load: flags.load,
        ..SynthConfig::default()
    };
    let synthetic = synth(&config)?;
    let (cluster, jobs) = (synthetic.cluster, synthetic.trace.jobs);
    to_stderr(&format!(
        "{} jobs on {} nodes with {} GPUs over {}, under {}",
        jobs.len(),
        cluster.nodes.len(),
        cluster.total_gpus(),
        counted(flags.days as usize, "day"),
        POLICIES.join(", ")
    ));
    let prices = flags.prices.of(&cluster, &app.settings)?;
    let name = match flags.days {
        30 => "synthetic month".to_owned(),
        days => format!("synthetic, {}", counted(days as usize, "day")),
    };
    compare(&name, &cluster, &jobs, &prices)
}

/// The same jobs under every policy, side by side.
pub(crate) fn compare(
    trace: &str,
    cluster: &TraceCluster,
    jobs: &[TraceJob],
    prices: &Prices,
) -> Result<TimedComparison> {
    let progress = Progress::new("jobs", (jobs.len() * POLICIES.len()) as u64);
    let impossible = Impossible::of(jobs, cluster)?;
    let policies = POLICIES
        .par_iter()
        .map(|policy| replay(policy, cluster, jobs, prices, &progress))
        .collect::<Result<Vec<TimedPolicy>>>()?;
    Ok(TimedComparison {
        trace: trace.to_owned(),
        nodes: cluster.nodes.len() as u64,
        gpus: cluster.total_gpus(),
        policies,
        impossible_jobs: impossible.impossible_jobs,
        first_impossible_jobs: impossible.first_impossible_jobs,
        ..TimedComparison::default()
    })
}

fn replay(
    policy: &str,
    cluster: &TraceCluster,
    jobs: &[TraceJob],
    prices: &Prices,
    progress: &Progress,
) -> Result<TimedPolicy> {
    let spec = PolicySpec::named(policy);
    let engine = EngineConfig { policy: spec, order: Order::FifoSkip, ..EngineConfig::default() };
    let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
    let world =
        TimedWorld { nodes: cluster.nodes.clone(), jobs: jobs.to_vec(), ..TimedWorld::default() };
    // Behind the last submission a trace offers nothing, and an emptying cluster says nothing.
    let until_ms = jobs.iter().map(|job| job.submit_ms).max();
    let timeline = Timeline::new(TimelineConfig { cause_period_ms: CAUSE_PERIOD_MS, until_ms });
    let mut simulation = Simulation::new(world, config)?;
    let judge = ReplayWatch::new(Check::Sampled, &simulation.engine.snapshot());
    let mut eyes = Eyes { timeline, judge, progress };
    simulation.run(None, &mut eyes)?;
    eyes.judge.verdict()?;
    let usage = UsageReport::new(&eyes.timeline.usage()?, prices)?;
    let learns = simulation.engine.policy().learnt().is_some();
    let run = TimedRun {
        seed: 0,
        metrics: simulation.metrics(),
        account: Some(RunAccount { usage, series: eyes.timeline.series()? }),
        event_log_hash: simulation.event_log_hash(),
    };
    Ok(TimedPolicy {
        policy: policy.to_owned(),
        learning_started_from: learns.then(|| "nothing".to_owned()),
        runs: vec![run],
    })
}

/// The account of GPU-time, the judge of every action, and the progress bar.
struct Eyes<'p> {
    timeline: Timeline,
    judge: ReplayWatch,
    progress: &'p Progress,
}

impl Observer for Eyes<'_> {
    fn advanced(&mut self, engine: &mut Engine, from_ms: u64, to_ms: u64) {
        self.timeline.advanced(engine, from_ms, to_ms);
    }

    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        self.timeline.stepped(engine, now_ms, events, plan);
        self.judge.step(events, plan, now_ms);
        let ended = events.iter().filter(|event| matches!(event, Event::Ended { .. }));
        self.progress.advance(ended.count() as u64);
    }
}

/// Makes the folder of the report and sees that it can be written there, before the long work.
fn prepare_place(path: &Path) -> Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    }
    check_place(path)
}

impl DemoFlags {
    /// What repeats this demonstration.
    fn command(&self, app: &App) -> String {
        let Self { nodes, days, load, .. } = self;
        let seed = app.settings.seed.value;
        format!("dovetail demo --nodes {nodes} --days {days} --load {load} --seed {seed}")
    }

    /// Whether the user said anything about prices.
    pub(crate) fn assumes_prices(&self) -> bool {
        self.prices.given().is_some()
    }

    /// Prices of the models of a cluster.
    pub(crate) fn prices_of(&self, app: &App, cluster: &TraceCluster) -> Result<Prices> {
        self.prices.of(cluster, &app.settings)
    }
}
